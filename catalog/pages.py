"""Pages of a list by cursor, newest first if nothing else is asked."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Generic, TypeVar

from sqlalchemy import Select, func, or_, tuple_
from sqlalchemy.orm import Session

from catalog.errors import CursorError

RecordT = TypeVar("RecordT")


@dataclass(frozen=True)
class Page(Generic[RecordT]):
    """A piece of a list; `next_cursor` is None at its end."""

    items: list[RecordT]
    next_cursor: str | None


class Order(StrEnum):
    """How a list is sorted. Ids grow with time."""

    NEWEST = "newest"
    OLDEST = "oldest"
    NAME = "name"


def copy_row(record_type: type[RecordT], row: Any) -> RecordT:
    """The frozen copy of a row: same names, same values."""
    names = [field.name for field in fields(record_type)]  # type: ignore[arg-type]
    return record_type(**{name: getattr(row, name) for name in names})


def named_like(query: Select[Any], row_type: Any, search: str | None) -> Select[Any]:
    """The rows whose name has the text in it, in capitals or not, or whose id begins with it."""
    if not search:
        return query
    has_name = func.lower(row_type.name).contains(search.lower(), autoescape=True)
    return query.where(or_(has_name, row_type.id.startswith(search, autoescape=True)))


def read_page(
    session: Session,
    query: Select[Any],
    row_type: Any,
    record_type: type[RecordT],
    limit: int,
    cursor: str | None,
    order: Order = Order.NEWEST,
) -> Page[RecordT]:
    """The page of `query` after `cursor`, of a list in the same order. Equal names: oldest first.

    Raises:
        CursorError: the cursor is none that a page gave out.
    """
    if cursor is not None:
        query = query.where(_behind(row_type, _decode_cursor(cursor), cursor, order))
    rows = session.scalars(query.order_by(*_by(row_type, order)).limit(limit + 1)).all()
    items = [copy_row(record_type, row) for row in rows[:limit]]
    if len(rows) <= limit:
        return Page(items, None)
    last = rows[limit - 1]
    return Page(items, _encode_cursor(f"{last.id} {last.name}" if order == Order.NAME else last.id))


def _by(row_type: Any, order: Order) -> tuple[Any, ...]:
    if order == Order.NAME:
        return row_type.name, row_type.id
    return (row_type.id.desc() if order == Order.NEWEST else row_type.id,)


def _behind(row_type: Any, text: str, cursor: str, order: Order) -> Any:
    """What lies behind the last row of the page before."""
    if order == Order.NAME:
        record_id, space, name = text.partition(" ")
        if not space:
            raise CursorError(cursor)
        return tuple_(row_type.name, row_type.id) > tuple_(name, record_id)
    return row_type.id < text if order == Order.NEWEST else row_type.id > text


def _encode_cursor(record_id: str) -> str:
    return base64.urlsafe_b64encode(record_id.encode()).decode().rstrip("=")


def _decode_cursor(cursor: str) -> str:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        return base64.b64decode(padded.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise CursorError(cursor) from error
