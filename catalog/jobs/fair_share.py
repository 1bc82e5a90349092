"""Fair scheduling between workspaces, and by priority and age within a workspace.

    next job = from the workspace with the fewest running jobs in the queue (if several, the one
               that got a worker longest ago): the job with the highest priority, then the oldest

If two workspaces have waiting jobs, each gets every second worker, even if one has hundreds of
jobs. Priorities apply only within a workspace.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session

from catalog.database.clock import database_clock
from catalog.database.tables import FairShareRow, JobRow
from catalog.job_kinds import Queue
from catalog.records import Job, JobStatus


def next_job(
    queues: Collection[Queue], claimable: ColumnElement[bool], running_limit: int | None
) -> Select[str]:
    """Returns a query for the id of the job that a free worker should take next.

    Args:
        queues: Queues that the worker serves.
        claimable: SQL condition that a job satisfies if it may be taken.
        running_limit: Maximum number of running jobs of a workspace in each queue; None for no
            limit.
    """
    running = (
        select(JobRow.workspace, JobRow.queue, func.count().label("n"))
        .where(JobRow.status == JobStatus.RUNNING, JobRow.lease_expires_at >= database_clock())
        .group_by(JobRow.workspace, JobRow.queue)
        .subquery()
    )
    n_running = func.coalesce(running.c.n, 0)
    has_rested = JobRow.rests_until.is_(None) | (JobRow.rests_until <= database_clock())
    query = (
        select(JobRow.id)
        .outerjoin(
            running,
            (running.c.workspace == JobRow.workspace) & (running.c.queue == JobRow.queue),
        )
        .outerjoin(
            FairShareRow,
            (FairShareRow.workspace == JobRow.workspace) & (FairShareRow.queue == JobRow.queue),
        )
        .where(JobRow.queue.in_(queues), claimable, has_rested)
        .order_by(n_running, func.coalesce(FairShareRow.taken_at, 0.0))
        .order_by(JobRow.priority.desc(), JobRow.id)
        .limit(1)
    )
    return query if running_limit is None else query.where(n_running < running_limit)


def note_claim(session: Session, job: Job) -> None:
    """Records that the job's workspace got a worker now, for fair scheduling."""
    share = session.get(FairShareRow, (job.workspace, job.queue))
    if share is None:
        share = FairShareRow(workspace=job.workspace, queue=job.queue)
        session.add(share)
    share.taken_at = database_clock()
