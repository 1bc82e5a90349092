"""Reads and deletes the records of results: tables and reports that jobs made."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.database.engine import Database
from catalog.database.tables import ResultRow
from catalog.errors import NotFoundError
from catalog.job_kinds import JobKind
from catalog.object_keys import result_prefix
from catalog.orphans import add_orphans
from catalog.pages import Page, copy_row, read_page
from catalog.records import Result


class Results:
    """Reads and deletes the result records of one workspace; `Leases.finish` creates them."""

    def __init__(self, database: Database, workspace: str) -> None:
        self._database = database
        self._workspace = workspace

    def get(self, result_id: str) -> Result:
        """Returns the result with this id.

        Raises:
            NotFoundError: The workspace contains no such result, or its job has not finished.
        """
        with self._database.reading() as session:
            return copy_row(Result, _find(session, result_id, self._workspace))

    def of_models(self, kind: JobKind, model_ids: Collection[str]) -> dict[str, Result]:
        """Returns the newest result of a kind for each of these models that has one, by model
        id."""
        query = select(ResultRow).where(
            ResultRow.workspace == self._workspace,
            ResultRow.kind == kind,
            ResultRow.model_id.in_(model_ids),
        )
        with self._database.reading() as session:
            rows = session.scalars(query.order_by(ResultRow.id)).all()
            return {row.model_id: copy_row(Result, row) for row in rows}

    def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[Result]:
        """Returns one page of the workspace's results, the newest first; `cursor` is the
        `next_cursor` of the previous page."""
        query = select(ResultRow).where(ResultRow.workspace == self._workspace)
        with self._database.reading() as session:
            return read_page(session, query, ResultRow, Result, limit, cursor)

    def delete(self, result_id: str) -> tuple[str, ...]:
        """Deletes a result's record and returns the store prefix of its bytes, which garbage
        collection deletes.

        Raises:
            NotFoundError: The workspace contains no such result.
        """
        with self._database.writing() as session:
            session.delete(_find(session, result_id, self._workspace))
            prefixes = (result_prefix(result_id),)
            add_orphans(session, prefixes)
            return prefixes


def _find(session: Session, result_id: str, workspace: str) -> ResultRow:
    query = select(ResultRow).where(ResultRow.id == result_id, ResultRow.workspace == workspace)
    row = session.scalar(query)
    if row is None:
        raise NotFoundError("result", result_id)
    return row
