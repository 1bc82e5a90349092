"""Measures the usage of a workspace: stored bytes, and training time."""

from __future__ import annotations

from sqlalchemy import func, select

from catalog.database.clock import database_clock
from catalog.database.tables import DatasetRow, JobRow, ModelRow, ResultRow
from catalog.job_kinds import JobKind
from catalog.rows import WorkspaceRecords


class Usage(WorkspaceRecords):
    """Measures the storage and training time that a workspace uses."""

    def stored_bytes(self) -> int:
        """Returns the total size in bytes of the workspace's tables, models and results.

        Files of unfinished jobs are not included.
        """
        with self._database.reading() as session:
            return sum(
                int(session.scalar(select(func.sum(size)).where(ours == self._workspace)) or 0)
                for ours, size in (
                    (DatasetRow.workspace, DatasetRow.size_bytes),
                    (ModelRow.workspace, ModelRow.artifact_bytes),
                    (ResultRow.workspace, ResultRow.size_bytes),
                )
            )

    def training_seconds(self, within_seconds: float) -> float:
        """Returns the total duration in seconds of trainings that began in the last
        `within_seconds`.

        A retried training counts from its first attempt; a running one counts until now.
        """
        begun = select(JobRow.started_at, JobRow.finished_at).where(
            JobRow.workspace == self._workspace,
            JobRow.kind == JobKind.TRAIN,
            JobRow.started_at >= database_clock(-within_seconds),
        )
        with self._database.reading() as session:
            now = session.scalar(select(database_clock()))
            spans = session.execute(begun).all()
        assert now is not None
        return sum(((end or now) - start).total_seconds() for start, end in spans if start)
