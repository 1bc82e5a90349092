"""Which form an answer takes: by `format` in the query, else by `Accept`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gcvae.errors import Problem
from service.errors import NotAcceptableError, RequestError
from service.http.body_limits import ARCHIVE_TYPE

TABLE_MEDIA_TYPES = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
}
"""The forms of a table, as in `gcvae.files.table_stream`: which needs pandas."""

_BYTES: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
TABLE_CONTENT: dict[str, Any] = {
    media_type: {} if media_type == "application/json" else _BYTES
    for media_type in TABLE_MEDIA_TYPES.values()
}
"""What OpenAPI says of a table in an answer: bytes, or any JSON."""
SAMPLE_CONTENT = TABLE_CONTENT | {ARCHIVE_TYPE: _BYTES}
"""The same of what was drawn: of a database a ZIP file."""


def choose_form(form: str | None, accept: str | None, media_types: Mapping[str, str]) -> str:
    """The form to answer in, a key of `media_types`; the first of them where all are welcome.

    Raises:
        RequestError: `format` names none of them.
        NotAcceptableError: `Accept` allows none of them.
    """
    if form is not None:
        if form not in media_types:
            expected = f"one of {', '.join(media_types)}"
            raise RequestError(Problem(f"format is {form!r}", "?format", expected=expected))
        return form
    wishes = _wishes(accept or "*/*")
    best = max(media_types, key=lambda name: _quality(media_types[name], wishes))
    if _quality(media_types[best], wishes) <= 0:
        raise NotAcceptableError(str(accept), tuple(media_types.values()))
    return best


def _wishes(accept: str) -> dict[str, float]:
    """Quality of each media range of an Accept header.

    >>> _wishes("image/png, */*;q=0.1")
    {'image/png': 1.0, '*/*': 0.1}
    """
    wishes = {}
    for part in accept.split(","):
        media_range, *parameters = (piece.strip() for piece in part.split(";"))
        qualities = [p.removeprefix("q=") for p in parameters if p.startswith("q=")]
        try:
            wishes[media_range.lower()] = float(qualities[0]) if qualities else 1.0
        except ValueError:
            wishes[media_range.lower()] = 0.0
    return wishes


def _quality(media_type: str, wishes: Mapping[str, float]) -> float:
    essence = media_type.split(";")[0]
    family = f"{essence.split('/')[0]}/*"
    return next((wishes[name] for name in (essence, family, "*/*") if name in wishes), 0.0)
