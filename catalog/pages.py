"""Pages of lists of records, and the base class of classes whose records are read and listed."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic

from sqlalchemy import Select, func, or_, select, tuple_
from sqlalchemy.orm import Session

from catalog.errors import CursorError
from catalog.ids import new_id
from catalog.rows import RecordT, RowT, WorkspaceRecords, copy_row, find_row


@dataclass(frozen=True)
class Page(Generic[RecordT]):
    """One page of a list.

    Attributes:
        items: Records on the page.
        next_cursor: Cursor to request the next page; None on the last page.
    """

    items: list[RecordT]
    next_cursor: str | None


class Order(StrEnum):
    """Order of a list: by time of creation or by name."""

    NEWEST = "newest"
    OLDEST = "oldest"
    NAME = "name"


class ListedRecords(WorkspaceRecords, Generic[RowT, RecordT]):
    """Base class of the classes whose records can be read by id and listed.

    Attributes:
        _row, _record: Class of the database rows, and dataclass to which each row is copied.
        _prefix: Prefix of the ids that `new_id` returns, such as `ds` for datasets.
    """

    _row: type[RowT]
    _record: type[RecordT]
    _prefix: str

    def new_id(self) -> str:
        """Returns an id for a record that is about to be created."""
        return new_id(self._prefix)

    def get(self, record_id: str) -> RecordT:
        """Returns the record with this id."""
        with self._database.reading() as session:
            return copy_row(self._record, self._find(session, record_id))

    def list(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        search: str | None = None,
        order: Order = Order.NEWEST,
        **values: object,
    ) -> Page[RecordT]:
        """Returns one page of the workspace's records.

        Args:
            limit: Maximum number of records on the page.
            cursor: `next_cursor` of the previous page; None for the first page.
            search: Part of the name (ignoring case) or beginning of the id of the records; empty or
                None for all records.
            order: Order of the list, the same for all its pages.
            **values: Required values of database columns, by column name; None for any value.

        Raises:
            CursorError: The cursor is not from a page of a list in this order.
        """
        row: Any = self._row
        query = self._ours()
        for name, value in values.items():
            if value is not None:
                query = query.where(getattr(row, name) == value)
        if search:
            has_name = func.lower(row.name).contains(search.lower(), autoescape=True)
            query = query.where(or_(has_name, row.id.startswith(search, autoescape=True)))
        with self._database.reading() as session:
            return read_page(session, query, row, self._record, limit, cursor, order)

    def _ours(self) -> Select[Any]:
        """Query for the rows of the complete list; a subclass may omit some rows."""
        row: Any = self._row
        return select(row).where(row.workspace == self._workspace)

    def _find(self, session: Session, record_id: str, *, lock: bool = False) -> RowT:
        return find_row(session, self._row, record_id, self._workspace, lock=lock)


def read_page(
    session: Session,
    query: Select[Any],
    row_type: Any,
    record_type: type[RecordT],
    limit: int,
    cursor: str | None,
    order: Order = Order.NEWEST,
) -> Page[RecordT]:
    """Returns one page of a list: at most `limit` records, beginning after the previous page.

    Args:
        query: Query for the rows of the complete list, in any order.
        row_type: Class of the database rows.
        record_type: Dataclass to which each row is copied, by field name.
        cursor: `next_cursor` of the previous page, in the same order; None for the first page.
        order: Order of the list: newest first, oldest first, or by name and then oldest first.

    Raises:
        CursorError: The cursor is not from a page of a list in this order.
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
    """Returns the SQL condition that selects the rows after the last row of the previous page.

    Args:
        text: Decoded cursor: the id of the last row, followed by a space and its name if the list
            is ordered by name.
        cursor: The cursor as the client sent it, for the error.
    """
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
