"""Deletes old results and idempotency keys in all workspaces."""

from __future__ import annotations

from sqlalchemy import delete, select

from catalog.database.clock import database_clock
from catalog.database.engine import Database
from catalog.database.tables import IdempotencyRow, ResultRow
from catalog.job_kinds import JobKind
from catalog.object_keys import result_prefix
from catalog.orphans import add_orphans

_OF_MODEL = [kind for kind in JobKind if kind.spec.is_of_model]


class Retention:
    """Deletes old results and idempotency keys in all workspaces."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def delete_results_older_than(self, seconds: float) -> int:
        """Deletes results that are older than `seconds`, marks their bytes for deletion, and
        returns the number of results.

        Results that belong to a model, such as reports, are kept with it.
        """
        old = select(ResultRow).where(
            ResultRow.created_at < database_clock(-seconds), ResultRow.kind.not_in(_OF_MODEL)
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
