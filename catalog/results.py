"""Reads and deletes the records of results: tables and reports that jobs made."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import delete, select

from catalog.database.clock import database_clock
from catalog.database.tables import IdempotencyRow, ResultRow
from catalog.job_kinds import KINDS_OF_MODEL, JobKind
from catalog.object_keys import result_prefix
from catalog.orphans import add_orphans
from catalog.pages import ListedRecords
from catalog.records import Result
from catalog.rows import Records, copy_row


class Results(ListedRecords[ResultRow, Result]):
    """Reads and deletes the result records of one workspace; `Leases.finish` creates them."""

    _row, _record = ResultRow, Result

    def of_models(self, kind: JobKind, model_ids: Collection[str]) -> dict[str, Result]:
        """Returns the newest result of a kind by model id; models without one are omitted."""
        query = self._ours().where(ResultRow.kind == kind, ResultRow.model_id.in_(model_ids))
        with self._database.reading() as session:
            rows = session.scalars(query.order_by(ResultRow.id)).all()
            return {row.model_id: copy_row(Result, row) for row in rows}

    def delete(self, result_id: str) -> tuple[str, ...]:
        """Deletes a result's record and returns a tuple with the store prefix of its bytes."""
        with self._database.writing() as session:
            session.delete(self._find(session, result_id))
            prefixes = (result_prefix(result_id),)
            add_orphans(session, prefixes)
            return prefixes


class Retention(Records):
    """Deletes old results and idempotency keys in all workspaces."""

    def delete_results_older_than(self, seconds: float) -> int:
        """Deletes results that are older than `seconds`, and returns their number.

        Results that belong to a model, such as reports, are kept with it.
        """
        old = select(ResultRow).where(
            ResultRow.created_at < database_clock(-seconds), ResultRow.kind.not_in(KINDS_OF_MODEL)
        )
        with self._database.writing() as session:
            rows = session.scalars(old.with_for_update(skip_locked=True)).all()
            for row in rows:
                session.delete(row)
            add_orphans(session, [result_prefix(row.id) for row in rows])
            return len(rows)

    def forget_answers_older_than(self, seconds: float) -> None:
        """Deletes idempotency keys, with the stored responses, that are older than `seconds`."""
        with self._database.writing() as session:
            session.execute(
                delete(IdempotencyRow).where(IdempotencyRow.created_at < database_clock(-seconds))
            )
