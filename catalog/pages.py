"""Pages of a list, newest first, by cursor."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

from sqlalchemy import Select
from sqlalchemy.orm import Session

from catalog.errors import CursorError

RecordT = TypeVar("RecordT")


@dataclass(frozen=True)
class Page(Generic[RecordT]):
    """A piece of a list; `next_cursor` is None at its end."""

    items: list[RecordT]
    next_cursor: str | None


def copy_row(record_type: type[RecordT], row: Any) -> RecordT:
    """The frozen copy of a row: same names, same values."""
    names = [field.name for field in fields(record_type)]  # type: ignore[arg-type]
    return record_type(**{name: getattr(row, name) for name in names})


def read_page(
    session: Session,
    query: Select[Any],
    row_type: Any,
    record_type: type[RecordT],
    limit: int,
    cursor: str | None,
) -> Page[RecordT]:
    """The page of `query` after `cursor`. Ids grow with time, so newest first is id downward.

    Raises:
        CursorError: the cursor is none that a page gave out.
    """
    if cursor is not None:
        query = query.where(row_type.id < _decode_cursor(cursor))
    rows = session.scalars(query.order_by(row_type.id.desc()).limit(limit + 1)).all()
    items = [copy_row(record_type, row) for row in rows[:limit]]
    more = len(rows) > limit
    return Page(items, _encode_cursor(rows[limit - 1].id) if more else None)


def _encode_cursor(record_id: str) -> str:
    return base64.urlsafe_b64encode(record_id.encode()).decode().rstrip("=")


def _decode_cursor(cursor: str) -> str:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        return base64.b64decode(padded.encode(), altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError) as error:
        raise CursorError(cursor) from error
