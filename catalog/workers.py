"""Workers: who is there to do jobs, by the signs of life that each group gives."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, select

from catalog.database.clock import database_clock
from catalog.database.engine import Database
from catalog.database.tables import WorkerRow
from catalog.pages import copy_row
from catalog.records import Worker

_FORGOTTEN_SECONDS = 3600.0
"""A worker that was killed says no good-bye; so long an operator can see that it is missing."""


class Workers:
    """Gateway to the worker groups; they serve every workspace."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def seen(self, name: str, version: str, slots: Sequence[str]) -> None:
        """Note that the worker lives, and what it can do at once."""
        with self._database.writing() as session:
            row = session.get(WorkerRow, name)
            if row is None:
                row = WorkerRow(name=name, started_at=database_clock())
                session.add(row)
            row.version, row.slots, row.seen_at = version, [*slots], database_clock()
            long_ago = database_clock(-_FORGOTTEN_SECONDS)
            session.execute(delete(WorkerRow).where(WorkerRow.seen_at < long_ago))

    def gone(self, name: str) -> None:
        """Note that the worker has ended in order."""
        with self._database.writing() as session:
            session.execute(delete(WorkerRow).where(WorkerRow.name == name))

    def list(self) -> tuple[datetime, list[Worker]]:
        """The time by the database's clock, and every worker, by name."""
        query = select(WorkerRow).order_by(WorkerRow.name)
        with self._database.reading() as session:
            workers = [copy_row(Worker, row) for row in session.scalars(query)]
            return session.scalars(select(database_clock())).one(), workers
