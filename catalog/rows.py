"""Database rows: the classes that read and write them, lookup by id, and frozen copies."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from catalog.database.engine import Database
from catalog.errors import NotFoundError

RecordT = TypeVar("RecordT")
RowT = TypeVar("RowT")


class Records:
    """Base class of the classes that read and write records of all workspaces."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _any(self, query: Select[Any]) -> bool:
        with self._database.reading() as session:
            return session.scalar(query.limit(1)) is not None


class WorkspaceRecords(Records):
    """Base class of the classes that read and write records of one workspace.

    Methods that find a record by its id raise `NotFoundError` if the workspace has no such record.
    Methods that return pages raise `CursorError` if the cursor is not from a page of the same list.
    Methods that create a record raise `ReservationLostError` if the reservation of the record's
    bytes has expired. They raise `IdempotencyBusyError` if another process took over the
    idempotency key of the request.
    """

    def __init__(self, database: Database, workspace: str) -> None:
        super().__init__(database)
        self._workspace = workspace


def copy_row(record_type: type[RecordT], row: Any) -> RecordT:
    """Returns a copy of a database row as an instance of the dataclass `record_type`.

    Each field gets the value of the row's column of the same name.
    """
    names = [field.name for field in fields(record_type)]  # type: ignore[arg-type]
    return record_type(**{name: getattr(row, name) for name in names})


def write_row(session: Session, row: Any, record_type: type[RecordT]) -> RecordT:
    """Writes a new or changed row within the caller's transaction and returns a frozen copy."""
    session.add(row)
    session.flush()
    session.refresh(row)
    return copy_row(record_type, row)


def find_row(
    session: Session, row_type: type[RowT], record_id: str, workspace: str, *, lock: bool = False
) -> RowT:
    """Returns the row of a dataset, model, job or result; `lock` locks it in this transaction.

    Raises:
        NotFoundError: The workspace contains no such record.
    """
    table: Any = row_type
    query = select(row_type).where(table.id == record_id, table.workspace == workspace)
    query = query.execution_options(populate_existing=True)
    row = session.scalar(query.with_for_update() if lock else query)
    if row is None:
        raise NotFoundError(table.__tablename__.removesuffix("s"), record_id)
    return row
