"""Reads the jobs of all workspaces, for workers and monitoring."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import case, func, select

from catalog.database.tables import JobRow
from catalog.job_kinds import Queue
from catalog.jobs.shards import shard_rows
from catalog.records import ACTIVE, Job, JobStatus
from catalog.rows import Records, copy_row


@dataclass(frozen=True)
class QueueState:
    """Number of waiting and running jobs of one workspace in one queue.

    If a job is divided into shards, each unfinished shard counts as one job. When all shards have
    ended, the job itself counts as one.

    Attributes:
        oldest_queued_at: Time at which the oldest waiting job was queued; None if nothing waits.
    """

    workspace: str
    queue: Queue
    queued: int
    running: int
    oldest_queued_at: datetime | None


class AllJobs(Records):
    """Reads the jobs of all workspaces; the caller checks who may see them."""

    def get_many(self, job_ids: Collection[str]) -> dict[str, Job]:
        """Returns the jobs with these ids, by id; ids without a job are omitted."""
        query = select(JobRow).where(JobRow.id.in_(job_ids))
        with self._database.reading() as session:
            return {row.id: copy_row(Job, row) for row in session.scalars(query)}

    def shards(self, job_id: str) -> Sequence[Job]:
        """Returns the shards of a job (ranges of rows for several workers) in the order of their
        rows."""
        with self._database.reading() as session:
            return [copy_row(Job, row) for row in shard_rows(session, job_id)]

    def queues(self) -> Sequence[QueueState]:
        """Returns the state of every queue with unfinished jobs, sorted by workspace and queue."""
        is_queued = JobRow.status == JobStatus.QUEUED
        query = (
            select(
                JobRow.workspace,
                JobRow.queue,
                func.count(case((is_queued, 1))),
                func.count(case((JobRow.status == JobStatus.RUNNING, 1))),
                func.min(case((is_queued, JobRow.queued_at))),
            )
            .where(JobRow.status.in_(ACTIVE), JobRow.open_shards == 0)
            .group_by(JobRow.workspace, JobRow.queue)
            .order_by(JobRow.workspace, JobRow.queue)
        )
        with self._database.reading() as session:
            return [QueueState(*found) for found in session.execute(query)]

    def held(self, limit: int) -> Sequence[Job]:
        """Returns at most `limit` jobs in status `running`, the longest-running first. Jobs whose
        worker has died are included."""
        query = (
            select(JobRow)
            .where(JobRow.status == JobStatus.RUNNING, JobRow.lease_owner.is_not(None))
            .order_by(JobRow.started_at, JobRow.id)
            .limit(limit)
        )
        with self._database.reading() as session:
            return [copy_row(Job, row) for row in session.scalars(query)]
