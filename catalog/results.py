"""Results: the records of the tables that sample and score jobs made."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.clock import database_clock
from catalog.database import Database
from catalog.errors import NotFoundError
from catalog.leftovers import leave_behind
from catalog.pages import Page, copy_row, read_page
from catalog.records import DEFAULT_WORKSPACE, JobKind, Result
from catalog.tables import ResultRow


def result_prefix(result_id: str) -> str:
    """Where a result's bytes lie in the store."""
    return f"results/{result_id}/"


class Results:
    """Gateway to the results of one kind of job; `Leases.finish` adds them."""

    def __init__(self, database: Database, kind: JobKind) -> None:
        self._database = database
        self._kind = kind

    def get(self, result_id: str, *, workspace: str = DEFAULT_WORKSPACE) -> Result:
        """The result.

        Raises:
            NotFoundError: no such result in this workspace, or its job is not done yet.
        """
        with self._database.reading() as session:
            return copy_row(Result, self._find(session, result_id, workspace))

    def list(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        workspace: str = DEFAULT_WORKSPACE,
        model_id: str | None = None,
    ) -> Page[Result]:
        """A page of results, newest first."""
        query = select(ResultRow).where(
            ResultRow.workspace == workspace, ResultRow.kind == self._kind
        )
        if model_id is not None:
            query = query.where(ResultRow.model_id == model_id)
        with self._database.reading() as session:
            return read_page(session, query, ResultRow, Result, limit, cursor)

    def delete(self, result_id: str, *, workspace: str = DEFAULT_WORKSPACE) -> tuple[str, ...]:
        """Delete the record; returns the store prefixes to sweep (they stand in `leftovers` too).

        Raises:
            NotFoundError: no such result in this workspace.
        """
        with self._database.writing() as session:
            session.delete(self._find(session, result_id, workspace))
            prefixes = (result_prefix(result_id),)
            leave_behind(session, prefixes)
            return prefixes

    def delete_older_than(self, seconds: float) -> int:
        """Delete what was made so long ago, its bytes left to the sweep; how many there were."""
        old = select(ResultRow).where(
            ResultRow.kind == self._kind, ResultRow.created_at < database_clock(-seconds)
        )
        with self._database.writing() as session:
            rows = session.scalars(old.with_for_update(skip_locked=True)).all()
            for row in rows:
                session.delete(row)
            leave_behind(session, [result_prefix(row.id) for row in rows])
            return len(rows)

    def _find(self, session: Session, result_id: str, workspace: str) -> ResultRow:
        row = session.scalar(
            select(ResultRow).where(
                ResultRow.id == result_id,
                ResultRow.workspace == workspace,
                ResultRow.kind == self._kind,
            )
        )
        if row is None:
            raise NotFoundError(self._kind.value, result_id)
        return row
