"""Fair scheduling between workspaces; by priority and age within one.

    next = the claimable job of the workspace with the fewest jobs running in its queue, of these
           the one that got a worker longest ago; of its jobs the highest priority, then the oldest

A workspace with hundreds of queued jobs gets every second worker if another one has jobs, and
priorities apply within a workspace only.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import ColumnElement, Select, func, select, text
from sqlalchemy.orm import Session

from catalog.database.clock import database_clock
from catalog.database.tables import FairShareRow, JobRow
from catalog.job_kinds import Queue
from catalog.records import Job, JobStatus

_CLAIM_LOCK = 7_203_119  # any number, the same in every process


def serialize_claims(session: Session) -> None:
    """Serialises claims, so that each sees the earlier ones.

    SQLite's BEGIN IMMEDIATE has waited already; PostgreSQL needs a lock of its own.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _CLAIM_LOCK})


def next_job(
    queues: Collection[Queue], claimable: ColumnElement[bool], running_limit: int | None
) -> Select[str]:
    """Returns a query for the id of the next claimable job."""
    running = (
        select(JobRow.workspace, JobRow.queue, func.count().label("n"))
        .where(JobRow.status == JobStatus.RUNNING, JobRow.lease_expires_at >= database_clock())
        .group_by(JobRow.workspace, JobRow.queue)
        .subquery()
    )
    n_running = func.coalesce(running.c.n, 0)
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
        .where(JobRow.queue.in_(queues), claimable, _has_rested())
        .order_by(n_running, func.coalesce(FairShareRow.taken_at, 0.0))
        .order_by(JobRow.priority.desc(), JobRow.id)
        .limit(1)
    )
    return query if running_limit is None else query.where(n_running < running_limit)


def note_claim(session: Session, job: Job) -> None:
    """Records that the job's workspace got a worker."""
    share = session.get(FairShareRow, (job.workspace, job.queue))
    if share is None:
        share = FairShareRow(workspace=job.workspace, queue=job.queue)
        session.add(share)
    share.taken_at = database_clock()


def _has_rested() -> ColumnElement[bool]:
    """Returns the condition that the pause after a failed attempt is over."""
    return JobRow.rests_until.is_(None) | (JobRow.rests_until <= database_clock())
