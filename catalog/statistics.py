"""Statistics for monitoring (queues and counters), and the usage of a workspace."""

from __future__ import annotations

import json
from dataclasses import dataclass

from sqlalchemy import case, func, select

from catalog.database.clock import database_clock
from catalog.database.tables import (
    CountRow,
    DatasetRow,
    JobRow,
    ModelRow,
    OrphanRow,
    ResultRow,
)
from catalog.job_kinds import JobKind
from catalog.records import ACTIVE, JobStatus
from catalog.rows import Records, WorkspaceRecords


@dataclass(frozen=True)
class Count:
    """Current value of a counter, as written by `catalog.database.counts`.

    Attributes:
        name: Name of the counter, from `Counted`.
        labels: Labels of the counter, such as the kind of job.
        value: Number of events, or seconds.
    """

    name: str
    labels: dict[str, str]
    value: float


@dataclass(frozen=True)
class KindState:
    """Number and progress of the unfinished jobs of one kind.

    If a job is divided into shards, each unfinished shard counts as one job. When all shards have
    ended, the job itself counts as one.

    Attributes:
        oldest_seconds: Longest waiting time of the jobs that have not begun; 0 if there are none.
        abandoned: Number of running jobs whose lease has expired, because their worker died.
        rows_per_second: Sum of the speeds that running jobs report.
    """

    kind: JobKind
    queued: int = 0
    oldest_seconds: float = 0.0
    running: int = 0
    abandoned: int = 0
    rows_per_second: float = 0.0


class Statistics(Records):
    """Computes statistics of jobs and stored bytes in all workspaces, for monitoring."""

    def counts(self) -> list[Count]:
        """Returns the current values of all counters, ordered by name and labels."""
        with self._database.reading() as session:
            rows = session.scalars(select(CountRow).order_by(CountRow.name, CountRow.labels))
            return [Count(row.name, json.loads(row.labels), row.value) for row in rows]

    def kinds(self) -> list[KindState]:
        """Returns the number and progress of unfinished jobs for every kind of job.

        Kinds without unfinished jobs are included, with zeros.
        """
        is_taken_whole = JobRow.open_shards == 0
        is_queued = (JobRow.status == JobStatus.QUEUED) & is_taken_whole
        is_running = (JobRow.status == JobStatus.RUNNING) & is_taken_whole
        is_unbegun = (JobRow.status == JobStatus.QUEUED) & JobRow.parent_id.is_(None)
        age = case((is_unbegun, database_clock() - JobRow.queued_at))
        # A job whose shards are ready to be joined has an expired lease without an owner.
        expired = JobRow.lease_owner.is_not(None) & (JobRow.lease_expires_at < database_clock())
        query = (
            select(
                JobRow.kind,
                func.count(case((is_queued, 1))),
                func.coalesce(func.max(age), 0.0),
                func.count(case((is_running, 1))),
                func.count(case((is_running & expired, 1))),
            )
            .where(JobRow.status.in_(ACTIVE))
            .group_by(JobRow.kind)
        )
        progress = select(JobRow.kind, JobRow.progress).where(is_running)
        speeds = dict.fromkeys(JobKind, 0.0)
        with self._database.reading() as session:
            found = {
                kind: (queued, max(float(age), 0.0), running, abandoned)
                for kind, queued, age, running, abandoned in session.execute(query)
            }
            for kind, document in session.execute(progress):
                speeds[kind] += document.get("rows_per_second") or 0.0
        return [KindState(kind, *found.get(kind, (0, 0.0, 0, 0)), speeds[kind]) for kind in JobKind]

    def n_orphans(self) -> int:
        """Returns the number of store prefixes that are due to be deleted."""
        due = select(func.count()).where(OrphanRow.sweep_at <= database_clock())
        with self._database.reading() as session:
            return int(session.scalar(due) or 0)


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
        """Returns the total duration in seconds of trainings begun in the last `within_seconds`.

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
