"""Choice of the response format by the query parameter `format` or else by the Accept header."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from fastapi import Query

from gcvae.errors import Problem
from service.errors import NotAcceptableError, RequestError
from service.http.body_limits import ARCHIVE_TYPE

TABLE_MEDIA_TYPES = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
}
"""Media types by table format, as in `gcvae.files.table_stream`, which is slow to import."""

BYTES: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
"""OpenAPI description of a body that is a file."""
TABLE_CONTENT: dict[str, Any] = {
    media_type: {} if media_type == "application/json" else BYTES
    for media_type in TABLE_MEDIA_TYPES.values()
}
"""OpenAPI member `content` for a response that is a table."""
SAMPLE_CONTENT = TABLE_CONTENT | {ARCHIVE_TYPE: BYTES}
"""OpenAPI member `content` for synthetic rows: a table, or a ZIP file of a database's tables."""
LIST_CONTENT = {"application/json": {"schema": {"type": "object"}}, "text/csv": BYTES}
"""OpenAPI member `content` for a response with results for each row, as JSON or CSV."""
PICTURE_MEDIA_TYPES = {"json": "application/json", "png": "image/png", "svg": "image/svg+xml"}
"""Media types by format of dependency maps and manifolds: numbers as JSON, or a picture."""
PictureFormat = Annotated[str | None, Query(description="json, png or svg; default: by Accept")]
ListFormat = Annotated[str | None, Query(description="json or csv; default: by Accept")]


def query_parameter(name: str, description: str) -> dict[str, Any]:
    """Returns the OpenAPI description of an optional query parameter that is a text."""
    text = {"type": "string"}
    parameter = {"name": name, "in": "query", "required": False}
    return {**parameter, "schema": text, "description": description}


def form_or_file(fields: Mapping[str, Any], media_types: Iterable[str]) -> dict[str, Any]:
    """Returns the OpenAPI member `content` of a request body: a file, or a form with a file.

    Args:
        fields: Descriptions of the form's fields by name.
        media_types: Media types of the file.
    """
    form = {"type": "object", "required": ["file"], "properties": fields}
    return {"multipart/form-data": {"schema": form}} | dict.fromkeys(media_types, BYTES)


def picture_content(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the OpenAPI member `content` of a response that is a picture, or JSON that fits the
    OpenAPI `schema`."""
    numbers = {"application/json": {"schema": schema}}
    return numbers | {PICTURE_MEDIA_TYPES[name]: BYTES for name in ("png", "svg")}


def choose_format(format: str | None, accept: str | None, media_types: Mapping[str, str]) -> str:
    """Returns the name of the response format that a client asks for.

    If the client accepts several formats equally, the first of them in `media_types` is returned.

    Args:
        format: Query parameter `format`, which overrides `accept`; None if it is missing.
        accept: Accept header; None if it is missing.
        media_types: Media types of the supported formats, by name of the format.

    Raises:
        RequestError: `format` is not a key of `media_types`.
        NotAcceptableError: `accept` allows none of the media types.
    """
    if format is not None:
        if format not in media_types:
            expected = f"one of {', '.join(media_types)}"
            raise RequestError(Problem(f"format is {format!r}", "?format", expected=expected))
        return format
    qualities = _qualities(accept or "*/*")
    best = max(media_types, key=lambda name: _quality(media_types[name], qualities))
    if _quality(media_types[best], qualities) <= 0:
        raise NotAcceptableError(str(accept), tuple(media_types.values()))
    return best


def _qualities(accept: str) -> dict[str, float]:
    """Returns the quality (q value) of each media range in an Accept header.

    >>> _qualities("image/png, */*;q=0.1")
    {'image/png': 1.0, '*/*': 0.1}
    """
    qualities = {}
    for part in accept.split(","):
        media_range, *parameters = (piece.strip() for piece in part.split(";"))
        stated = [p.removeprefix("q=") for p in parameters if p.startswith("q=")]
        try:
            qualities[media_range.lower()] = float(stated[0]) if stated else 1.0
        except ValueError:
            qualities[media_range.lower()] = 0.0
    return qualities


def _quality(media_type: str, qualities: Mapping[str, float]) -> float:
    """Returns the quality (q value) of the most specific media range that matches, such as
    image/png before image/*; 0 if none matches."""
    essence = media_type.split(";")[0]
    family = f"{essence.split('/')[0]}/*"
    return next((qualities[name] for name in (essence, family, "*/*") if name in qualities), 0.0)
