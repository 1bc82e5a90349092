"""Shards: a job whose rows are made by several workers, and joined by one.

The shards of a job are jobs of their own, under leases of their own: a lost one is done again
alone. The job itself waits while shards are open. The transaction that ends the last of them lets
the job go on, and its one attempt at a time joins what they made; so it is published once,
whoever dies. Shards are not among the jobs that users see; what becomes of them shows in their job.

Whoever changes a shard and its job locks the job first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import case, select, update
from sqlalchemy.orm import Session

from catalog.database.clock import database_clock
from catalog.database.counts import Counted, count, observe
from catalog.database.tables import JobRow
from catalog.ids import new_id
from catalog.job_kinds import ShardSpec
from catalog.jobs.queued_rows import queued_row
from catalog.object_keys import output_prefix
from catalog.orphans import add_orphans
from catalog.records import Document, Failed, JobStatus, Outcome, Produced

_SHARDS = 0.98
"""The fraction of a job whose shards are done and not joined yet."""
_PAST_SECONDS = -0.01


def add_shards(session: Session, job: JobRow, shards: Sequence[range]) -> None:
    """Shards of a job that was just added: one for each run of rows."""
    job.n_shards = job.open_shards = len(shards)
    for number, rows in enumerate(shards):
        spec = ShardSpec(number, len(shards), rows.start, rows.stop)
        session.add(
            queued_row(
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
    """The job that a shard belongs to, locked; None where there is none."""
    if parent_id is None:
        return None
    return session.get(JobRow, parent_id, with_for_update=True, populate_existing=True)


def shard_rows(session: Session, job_id: str) -> Sequence[JobRow]:
    """The shards of a job, in order."""
    return session.scalars(
        select(JobRow).where(JobRow.parent_id == job_id).order_by(JobRow.id)
    ).all()


def begin(session: Session, shard_id: str) -> None:
    """The job of a shard runs from its first shard on; until then it has waited."""
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
    """Close the shards of a job that wait, ask those that run to stop."""
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
    """Count a shard that has ended; its job, which goes on or ends where `open_shards` is 0."""
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
    """Let the next worker that asks for work join the shards."""
    # As if an attempt before had ended without a word: the job runs, and nobody owns it.
    job.lease_expires_at = database_clock(_PAST_SECONDS)
    job.next_dispatch_at = database_clock()
    job.sends = 0


def reset_shards(session: Session, job: JobRow) -> None:
    """Queue every shard of a job again, from nothing."""
    job.open_shards = job.n_shards
    if job.n_shards:
        _queue(session, job, [row.id for row in shard_rows(session, job.id)])


def redraw_shards(session: Session, job: JobRow, numbers: Collection[int]) -> None:
    """Queue those shards again whose parts the store has lost; the job waits for them."""
    lost = [row for row in shard_rows(session, job.id) if row.spec["number"] in numbers]
    for row in lost:
        add_orphans(session, [output_prefix(row, row.attempt)])
    _queue(session, job, [row.id for row in lost])
    count(session, Counted.RETRIES, len(lost), kind=job.kind, reason="part_lost")
    job.open_shards = len(lost)
    job.lease_owner = job.lease_expires_at = None
    job.version += 1
    if not lost:
        let_join(job)


def report_progress(session: Session, parent_id: str) -> None:
    """Write how far a job is by what its shards report."""
    job = lock_parent(session, parent_id)
    if job is not None and job.open_shards:
        job.progress = _progress(session, job)
        job.version += 1


def shard_prefixes(session: Session, job: JobRow) -> list[str]:
    """Where the shards of a job have published, in all their attempts."""
    return [
        output_prefix(row, attempt)
        for row in shard_rows(session, job.id)
        for attempt in range(1, row.attempt + 1)
    ]


def _queue(session: Session, job: JobRow, shard_ids: Collection[str]) -> None:
    values: dict[str, Any] = {
        "status": JobStatus.QUEUED,
        "cancel_requested": False,
        "attempts_since_checkpoint": 0,
        "sends": 0,
        "progress": {},
        "error": None,
        "part": None,
        "rests_until": None,
        "finished_at": None,
        "next_dispatch_at": database_clock(),
        "queued_at": database_clock(),
        "request_id": job.request_id,
        "traceparent": job.traceparent,
        "version": JobRow.version + 1,
    }
    session.execute(
        update(JobRow)
        .where(JobRow.id.in_(shard_ids))
        .values(values)
        .execution_options(synchronize_session=False)
    )


def _progress(session: Session, job: JobRow) -> Document:
    """The mean of the shards' fractions, but for what joining takes; it never falls.

    Shards whose results are lost are made again, and the job waits for them where it is. Seconds
    left by the job's own speed are not reported.
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
