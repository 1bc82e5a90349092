"""Base class for connections, webhooks and schedules, whose number in a workspace is limited."""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from catalog.database.engine import serialize
from catalog.errors import ConflictError
from catalog.pages import ListedRecords
from catalog.rows import RecordT, RowT

_REGISTRATION_LOCK = 7_203_121  # any number, the same in every process


class RegisteredRecords(ListedRecords[RowT, RecordT]):
    """Base class of the classes that manage a limited number of records in one workspace.

    Attributes:
        _most: Maximum number of records in a workspace.
    """

    _most: int

    def delete(self, record_id: str) -> None:
        """Deletes a record.

        Raises:
            NotFoundError: The workspace has no such record.
        """
        with self._database.writing() as session:
            session.delete(self._find(session, record_id))

    def _require_room(self, session: Session) -> None:
        """Raises a ConflictError if the workspace has `_most` records. Concurrent additions wait
        until this transaction ends."""
        serialize(session, _REGISTRATION_LOCK)
        row: Any = self._row
        n_known = session.scalars(select(func.count()).select_from(self._ours().subquery())).one()
        if n_known >= self._most:
            known = f"{self._most} {row.__tablename__}"
            raise ConflictError(f"the workspace has {known}; delete one first")
