"""Shards: parts of a job, each a range of rows that one worker processes; one worker then joins
their results.

Shards are jobs with leases, so each can be repeated separately. The job waits until all shards have
ended. The transaction that ends the last shard lets the job continue, and one attempt at a time
joins the results; the joined result is thus published once. Users do not see shards; the job shows
their progress.

To avoid deadlocks, a job is always locked before its shards.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import case, select, update
from sqlalchemy.orm import Session

from catalog.database.clock import database_clock
from catalog.database.counts import Counted, count, observe
from catalog.database.tables import JobRow
from catalog.ids import new_id
from catalog.job_kinds import ShardSpec
from catalog.object_keys import output_prefix
from catalog.orphans import add_orphans
from catalog.records import Document, Failed, JobStatus, Outcome, Produced

_SHARDS = 0.98
"""Fraction of the work that is done when all shards have ended but are not joined yet."""
_PAST_SECONDS = -0.01


def add_shards(session: Session, job: JobRow, shards: Sequence[range]) -> None:
    """Divides a new job into shards, one for each range of rows."""
    job.n_shards = job.open_shards = len(shards)
    for number, rows in enumerate(shards):
        spec = ShardSpec(number, len(shards), rows.start, rows.stop)
        session.add(
            JobRow(
                id=new_id("job"),
                parent_id=job.id,
                workspace=job.workspace,
                kind=job.kind,
                spec=spec.to_json(),
                model_id=job.model_id,
                dataset_id=job.dataset_id,
                result_id=job.result_id,
                queue=job.queue,
                priority=job.priority,
                next_dispatch_at=job.next_dispatch_at,
                request_id=job.request_id,
                traceparent=job.traceparent,
            )
        )


def lock_parent(session: Session, parent_id: str | None) -> JobRow | None:
    """Locks and returns the database row of the job to which a shard belongs.

    Returns None if `parent_id` is None, or if the job does not exist.
    """
    if parent_id is None:
        return None
    return session.get(JobRow, parent_id, with_for_update=True, populate_existing=True)


def shard_rows(session: Session, job_id: str) -> Sequence[JobRow]:
    """Returns the database rows of a job's shards.

    The first shard is the one that processes the first rows of the table.
    """
    return session.scalars(
        select(JobRow).where(JobRow.parent_id == job_id).order_by(JobRow.id)
    ).all()


def begin(session: Session, shard_id: str) -> None:
    """Marks a queued job as running when the first of its shards begins.

    Does nothing if the job runs already, or if `shard_id` is not the id of a shard.
    """
    parent_id = select(JobRow.parent_id).where(JobRow.id == shard_id).scalar_subquery()
    started_at = case((JobRow.started_at.is_(None), database_clock()), else_=JobRow.started_at)
    begun = session.execute(
        update(JobRow)
        .where(JobRow.id == parent_id, JobRow.status == JobStatus.QUEUED, JobRow.open_shards > 0)
        .values(status=JobStatus.RUNNING, started_at=started_at, version=JobRow.version + 1)
        .returning(JobRow.kind, JobRow.queued_at, database_clock())
        .execution_options(synchronize_session=False)
    )
    for kind, queued_at, now in begun:
        observe(session, Counted.WAIT, (now - queued_at).total_seconds(), kind=kind)


def stop_shards(session: Session, job: JobRow) -> None:
    """Cancels the waiting shards of a job, and asks running ones to stop."""
    waiting = session.execute(
        update(JobRow)
        .where(JobRow.parent_id == job.id, JobRow.status == JobStatus.QUEUED)
        .values(
            status=JobStatus.CANCELLED,
            finished_at=database_clock(),
            next_dispatch_at=None,
            version=JobRow.version + 1,
        )
        .execution_options(synchronize_session=False)
    )
    job.open_shards -= waiting.rowcount  # type: ignore[attr-defined]
    session.execute(
        update(JobRow)
        .where(JobRow.parent_id == job.id, JobRow.status == JobStatus.RUNNING)
        .values(cancel_requested=True, version=JobRow.version + 1)
        .execution_options(synchronize_session=False)
    )


def count_shard(session: Session, shard: JobRow, outcome: Outcome) -> JobRow:
    """Records in the row of a job that one of its shards has ended.

    The number of open shards decreases by one. If the shard has succeeded, its result is recorded
    and the job's progress is updated. If the shard is the first to fail, its error is recorded as
    that of the job, and the other shards are stopped.

    Returns:
        The database row of the job. When `open_shards` is 0, the caller continues or ends the job.
    """
    job = lock_parent(session, shard.parent_id)
    assert job is not None, "a job is there while shards of it are"
    job.open_shards -= 1
    job.version += 1
    if isinstance(outcome, Produced):
        shard.part = outcome.to_json()
        session.flush()
        job.progress = _progress(session, job)
    elif isinstance(outcome, Failed) and job.error is None:
        job.error = outcome.to_json()
        stop_shards(session, job)
    return job


def let_join(job: JobRow) -> None:
    """Makes a job whose shards have succeeded available to a worker that joins them."""
    # The same state as after a lost attempt: the job is running with an expired lease.
    job.lease_expires_at = database_clock(_PAST_SECONDS)
    job.next_dispatch_at = database_clock()
    job.sends = 0


def reset_shards(session: Session, job: JobRow) -> None:
    """Queues every shard of a job again and removes the shards' results."""
    job.open_shards = job.n_shards
    for row in shard_rows(session, job.id):
        queue_again(row, job.request_id, job.traceparent)


def requeue_lost_shards(session: Session, job: JobRow, numbers: Collection[int]) -> None:
    """Queues again the shards of a job whose results are missing in the store.

    The job waits until these shards, with the indices `numbers`, have ended.
    """
    lost = [row for row in shard_rows(session, job.id) if row.spec["number"] in numbers]
    for row in lost:
        add_orphans(session, [output_prefix(row, row.attempt)])
        queue_again(row, job.request_id, job.traceparent)
    count(session, Counted.RETRIES, len(lost), kind=job.kind, reason="part_lost")
    job.open_shards = len(lost)
    job.lease_owner = job.lease_expires_at = None
    job.version += 1
    if not lost:
        let_join(job)


def report_progress(session: Session, parent_id: str) -> None:
    """Updates the progress of a job from the progress of its shards."""
    job = lock_parent(session, parent_id)
    if job is not None and job.open_shards:
        job.progress = _progress(session, job)
        job.version += 1


def shard_prefixes(session: Session, job: JobRow) -> list[str]:
    """Returns the store prefixes of the results of all attempts at a job's shards."""
    return [
        output_prefix(row, attempt)
        for row in shard_rows(session, job.id)
        for attempt in range(1, row.attempt + 1)
    ]


def queue_again(
    row: JobRow, request_id: str | None, traceparent: str | None, pause_seconds: float = 0.0
) -> None:
    """Queues an ended job or shard again, and resets its progress, error and counted attempts.

    Args:
        request_id, traceparent: Id and trace span of the HTTP request that causes this; None if
            there is no request.
        pause_seconds: Time until workers are notified of the job.
    """
    row.status = JobStatus.QUEUED
    row.cancel_requested = row.smaller_batch = False
    row.progress, row.error, row.part = {}, None, None
    row.attempts_since_checkpoint = row.sends = 0
    row.finished_at = row.rests_until = None
    row.queued_at = database_clock()
    row.request_id, row.traceparent = request_id, traceparent
    row.next_dispatch_at = database_clock(pause_seconds)
    row.version += 1


def _progress(session: Session, job: JobRow) -> Document:
    """Returns the phase and the finished fraction of a job with shards.

    The fraction is 0.98 times the mean fraction of the shards; the rest is for joining their
    results. It is never less than the fraction that the job has already reported.
    """
    query = select(JobRow.status, JobRow.progress).where(JobRow.parent_id == job.id)
    fractions, phase = [], "preparing"
    for status, progress in session.execute(query):
        done = status == JobStatus.SUCCEEDED
        fractions.append(1.0 if done else progress.get("fraction", 0.0))
        phase = progress.get("phase", phase) if phase == "preparing" else phase
    mean = sum(fractions) / len(fractions)
    fraction = max(_SHARDS * mean, job.progress.get("fraction", 0.0))
    return {"phase": phase, "fraction": fraction}
