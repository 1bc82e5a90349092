"""JSON texts of requests: read strictly (RFC 8259, RFC 7493), each fault named with its place.

A name that stands twice in one object is refused: readers differ in which of the two they take.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from jiter import from_json
from starlette.concurrency import run_in_threadpool

from gcvae.errors import Problem
from service.errors import MediaTypeError, RequestError

JSON_TYPE = "application/json"
_PLACED = re.compile(r"(?s)(.*) at line (\d+) column (\d+)")
_EXPECTED = "JSON in UTF-8 without duplicate names in an object"
_TOO_DEEP = "recursion limit exceeded"
_MOST_DEEP = 200
"""Objects and lists in one another: the reader's own limit, whatever the machine's stack is."""


class JsonRoute(APIRoute):
    """A route whose body, where it takes one, is JSON.

    Raises:
        MediaTypeError: the body is of another kind.
        RequestError: it is no JSON.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The framework's handler, with bodies read here."""
        handle = super().get_route_handler()

        async def read_and_handle(request: Request) -> Response:
            if self.body_field is not None and has_body(request):
                require_json(request)
            return await handle(_JsonRequest(request.scope, request.receive))

        return read_and_handle


class _JsonRequest(Request):
    async def json(self) -> Any:
        return await run_in_threadpool(read_json, await self.body())


def has_body(request: Request) -> bool:
    """Whether one is announced: a request without one is refused by what it lacks."""
    length = request.headers.get("Content-Length", "0")
    return length != "0" or "Transfer-Encoding" in request.headers


def require_json(request: Request) -> None:
    """Let bodies of JSON pass.

    Raises:
        MediaTypeError: it is of another kind.
    """
    given = request.headers.get("Content-Type")
    if not is_json(given):
        raise MediaTypeError(given, (JSON_TYPE,))


def is_json(content_type: str | None) -> bool:
    """Whether a body of this kind is JSON.

    >>> is_json("application/json; charset=utf-8"), is_json("application/problem+json")
    (True, True)
    >>> is_json("text/csv"), is_json(None)
    (False, False)
    """
    essence = (content_type or "").split(";")[0].strip().lower()
    return essence == JSON_TYPE or (
        essence.startswith("application/") and essence.endswith("+json")
    )


def read_json(content: bytes, what: str = "the body", pointer: str = "") -> Any:
    """The value of a JSON text.

    Args:
        what: the text is called in errors.
        pointer: of the text in the request.

    Raises:
        RequestError: it is no JSON, nests too deeply, has a number that is none, or repeats a
            name; with line and character.
    """
    text = content.removeprefix(BOM_UTF8)
    try:
        return from_json(text, allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError as error:
        raise RequestError(_problem(str(error), what, pointer)) from error


def _problem(found: str, what: str, pointer: str) -> Problem:
    placed = _PLACED.fullmatch(found)
    assert placed is not None, "the reader names line and character of every fault"
    reason, line, character = placed.groups()
    if reason == _TOO_DEEP:
        message = f"{what} nests deeper than {_MOST_DEEP} levels at character {character}"
        expected = f"objects and lists nested at most {_MOST_DEEP} deep"
        return Problem(message, pointer or None, int(line), expected=expected)
    message = f"{what} cannot be read: {reason} at character {character}"
    return Problem(message, pointer or None, int(line), expected=_EXPECTED)
