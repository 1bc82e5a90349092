"""Records of worker groups (the processes started by one worker command).

Each group updates its own record by regular heartbeats.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, select

from catalog.database.clock import database_clock
from catalog.database.tables import WorkerRow
from catalog.records import Worker
from catalog.rows import Records, copy_row

_FORGOTTEN_SECONDS = 3600.0
"""Time for which a worker without heartbeats is still listed, so that operators see that it is
missing."""


class Workers(Records):
    """Records which worker groups are running; every group serves all workspaces."""

    def seen(self, name: str, version: str, slots: Sequence[str]) -> None:
        """Records a heartbeat of a worker group, with its version and slots."""
        with self._database.writing() as session:
            row = session.get(WorkerRow, name)
            if row is None:
                row = WorkerRow(name=name, started_at=database_clock())
                session.add(row)
            row.version, row.slots, row.seen_at = version, [*slots], database_clock()
            long_ago = database_clock(-_FORGOTTEN_SECONDS)
            session.execute(delete(WorkerRow).where(WorkerRow.seen_at < long_ago))

    def gone(self, name: str) -> None:
        """Removes a worker group that shut down regularly."""
        with self._database.writing() as session:
            session.execute(delete(WorkerRow).where(WorkerRow.name == name))

    def list(self) -> tuple[datetime, list[Worker]]:
        """Returns (the database's current time, all worker groups sorted by name)."""
        query = select(WorkerRow).order_by(WorkerRow.name)
        with self._database.reading() as session:
            workers = [copy_row(Worker, row) for row in session.scalars(query)]
            return session.scalars(select(database_clock())).one(), workers
