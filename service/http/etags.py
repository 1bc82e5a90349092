"""Entity tags: checksums of responses. A client that sends the current tag gets a 304 response."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from fastapi import Request, Response
from pydantic import BaseModel


def entity_tag(content: bytes) -> str:
    """Returns a strong entity tag (RFC 9110) of the content: half of its SHA-256 checksum, quoted.

    >>> entity_tag(b"")
    '"e3b0c44298fc1c149afbf4c8996fb924"'
    """
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def matches(if_none_match: str | None, tag: str) -> bool:
    """Returns whether If-None-Match lists the tag, also as a weak tag (with the prefix W/).

    >>> matches('W/"a", "b"', '"a"'), matches('"c"', '"a"'), matches("*", '"a"')
    (True, False, True)
    """
    if if_none_match is None:
        return False
    named = {part.strip().removeprefix("W/") for part in if_none_match.split(",")}
    return "*" in named or tag in named


def satisfies_if_match(if_match: str | None, tag: str) -> bool:
    """Returns whether an If-Match header is missing or lists the tag. As RFC 9110 requires, weak
    tags (with the prefix W/) in the header never match.

    >>> satisfies_if_match('"a", "b"', '"a"'), satisfies_if_match('W/"a"', '"a"')
    (True, False)
    """
    if if_match is None:
        return True
    named = {part.strip() for part in if_match.split(",")}
    return "*" in named or tag in named


def tag_of(body: BaseModel) -> str:
    """Returns the entity tag of a response body in JSON."""
    return entity_tag(body.model_dump_json(by_alias=True).encode())


def tagged_json(
    request: Request, body: BaseModel, headers: Mapping[str, str] | None = None
) -> Response:
    """Returns a JSON response with its entity tag, or 304 if the client already has this `body`.

    Args:
        headers: Additional headers of the response.
    """
    return tagged(
        request, body.model_dump_json(by_alias=True).encode(), "application/json", headers
    )


def tagged(
    request: Request, content: bytes, media_type: str, headers: Mapping[str, str] | None = None
) -> Response:
    """Returns a response with its entity tag, or 304 if the client already has this `content`.

    Args:
        headers: Additional headers of the response.
    """
    all_headers = {"ETag": entity_tag(content), "Cache-Control": "no-cache", **(headers or {})}
    if matches(request.headers.get("If-None-Match"), all_headers["ETag"]):
        return Response(status_code=304, headers=all_headers)
    return Response(content, media_type=media_type, headers=all_headers)
