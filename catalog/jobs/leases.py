"""Leases: temporary ownership of jobs by workers.

A worker owns a job until its lease expires, by the database's clock; heartbeats renew the lease.
The lease names the worker (owner) and the number of the attempt. Every write is conditional on
owner and attempt, so an attempt that lost its lease cannot overwrite its successor's data: its
writes change no row, and it stops.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, case, or_, select, update
from sqlalchemy.orm import Session
from sqlalchemy.sql.elements import ColumnElement

from catalog.database.clock import database_clock
from catalog.database.counts import Counted, count, observe
from catalog.database.engine import Database, serialize
from catalog.database.tables import JobRow
from catalog.errors import LeaseLostError
from catalog.job_kinds import Queue
from catalog.jobs.fair_share import next_job, note_claim
from catalog.jobs.finishing import close_job
from catalog.jobs.privacy_ledger import CheckCaps, begin_spending
from catalog.jobs.shards import begin, lock_parent, report_progress, requeue_lost_shards
from catalog.orphans import add_orphans
from catalog.records import Cancelled, Claim, Document, Failed, Job, JobStatus, Outcome, PrivacyCost
from catalog.rows import Records, copy_row

_CLAIM_LOCK = 7_203_119  # any number, the same in every process
_PATIENCE = 10
"""Factor on the limit of attempts for attempts that do not count, as during an outage."""


@dataclass(frozen=True)
class HeartbeatAnswer:
    """Response to a heartbeat of an attempt.

    Attributes:
        alive: Whether the attempt still owns the job.
        cancel_requested: Whether the attempt should stop, because a user cancelled the job.
    """

    alive: bool
    cancel_requested: bool


class Leases(Records):
    """Gives jobs of all workspaces to workers, renews their leases and records how jobs end.

    A lease is the temporary ownership of a job. Methods that write for a claim raise
    `LeaseLostError`, without writing, if the claim's attempt does not own the job any more.

    Args:
        attempts_limit: Maximum number of attempts at a job without a new checkpoint.
        resend_seconds, resend_limit_seconds: First and longest pause before a message to workers is
            sent again, or a failed attempt at a job is repeated.
        running_jobs_limit: Maximum number of running jobs of a workspace in each queue; None for no
            limit.
    """

    def __init__(
        self,
        database: Database,
        attempts_limit: int,
        resend_seconds: float,
        resend_limit_seconds: float,
        running_jobs_limit: int | None = None,
    ) -> None:
        super().__init__(database)
        self._attempts_limit = attempts_limit
        self._resend_seconds = resend_seconds
        self._resend_limit_seconds = resend_limit_seconds
        self._running_jobs_limit = running_jobs_limit

    def claim_next(
        self, queues: Collection[Queue], owner: str, lease_seconds: float
    ) -> Claim | None:
        """Gives the next waiting job in these queues to a worker, by fair scheduling.

        Claims of all workers are serialised, so that together they do not exceed a workspace's
        limit.

        Args:
            owner: Unique name of the worker.
            lease_seconds: Time until the lease expires without a heartbeat.

        Returns:
            The claim on the job; None if no job can be taken.
        """
        query = next_job(queues, self._claimable(), self._running_jobs_limit)
        if not self._any(query):
            return None
        with self._database.writing() as session:
            serialize(session, _CLAIM_LOCK)
            while (job_id := session.scalar(query)) is not None:
                claim = self._take(session, job_id, owner, lease_seconds)
                if claim is not None:  # otherwise it was cancelled between the two statements
                    note_claim(session, claim.job)
                    return claim
            return None

    def _take(
        self, session: Session, job_id: str, owner: str, lease_seconds: float
    ) -> Claim | None:
        """Claims a job for a new attempt; returns None if the job is not available.

        Because the claim is one conditional UPDATE, only one of several workers succeeds.
        """
        begin(session, job_id)
        statement = (
            update(JobRow)
            .where(JobRow.id == job_id, self._claimable())
            .values(
                status=JobStatus.RUNNING,
                attempt=JobRow.attempt + 1,
                attempts_since_checkpoint=JobRow.attempts_since_checkpoint + 1,
                lease_owner=owner,
                lease_expires_at=database_clock(lease_seconds),
                next_dispatch_at=database_clock(),
                rests_until=None,
                started_at=case(
                    (JobRow.started_at.is_(None), database_clock()), else_=JobRow.started_at
                ),
                error=None,
                version=JobRow.version + 1,
            )
            .returning(JobRow)
        )
        before = select(JobRow.status, JobRow.lease_owner).where(JobRow.id == job_id)
        was = session.execute(before.with_for_update()).one_or_none()
        row = session.scalar(statement)
        if row is None or was is None:
            return None
        job = copy_row(Job, row)
        _count_claim(session, job, was.status, was.lease_owner, lease_seconds)
        return Claim(job, owner, job.attempt, lease_seconds)

    def find_claim(
        self, job_id: str, owner: str, attempt: int, lease_seconds: float
    ) -> Claim | None:
        """Returns the claim on a job with this owner and attempt; None if the lease was lost.

        A child process thus obtains the claim of the worker that started it.
        """
        with self._database.reading() as session:
            row = session.scalar(select(JobRow).where(_owned_by(job_id, owner, attempt)))
            return None if row is None else Claim(copy_row(Job, row), owner, attempt, lease_seconds)

    def heartbeat(self, claim: Claim, progress: Document | None = None) -> HeartbeatAnswer:
        """Renews an attempt's lease and returns whether the attempt should continue.

        Args:
            progress: New progress to store; None if unchanged.
        """
        values: dict[str, Any] = {"lease_expires_at": database_clock(claim.lease_seconds)}
        if progress is not None:
            values |= {"progress": progress, "version": JobRow.version + 1}
        statement = (
            update(JobRow).where(_owned(claim)).values(values).returning(JobRow.cancel_requested)
        )
        with self._database.writing() as session:
            cancel_requested = session.scalar(statement)
        if progress is not None and claim.job.parent_id is not None:
            # In a separate transaction, because a job has to be locked before its shards.
            with self._database.writing() as session:
                report_progress(session, claim.job.parent_id)
        return HeartbeatAnswer(cancel_requested is not None, bool(cancel_requested))

    def record_checkpoint(self, claim: Claim, key: str, sha256: str) -> None:
        """Records the checkpoint from which the next attempt resumes, in place of the previous one.

        A new checkpoint is progress, so the count of attempts restarts.

        Args:
            key: Store key of the checkpoint.
            sha256: Checksum of the checkpoint.
        """
        with self._database.writing() as session:
            row = _find_owned(session, claim)
            if row.checkpoint_key is not None and row.checkpoint_key != key:
                add_orphans(session, [row.checkpoint_key])
            row.checkpoint_key, row.checkpoint_sha256 = key, sha256
            row.attempts_since_checkpoint = 0

    def record_privacy_spending(
        self, claim: Claim, cost: PrivacyCost, check_caps: CheckCaps
    ) -> None:
        """Records in the privacy ledger that a private training is about to query its table.

        Args:
            claim: Claim of the attempt.
            cost: Maximum privacy cost of the training.
            check_caps: Function that raises an exception if the cost exceeds a cap.

        Raises:
            BudgetError: An earlier attempt has already queried the table, and another query would
                exceed a privacy cap.
        """
        with self._database.writing() as session:
            begin_spending(session, _find_owned(session, claim), cost, check_caps)

    def finish(self, claim: Claim, outcome: Outcome, progress: Document | None = None) -> None:
        """Writes the outcome of a job, and of its model or result, in one transaction.

        Args:
            progress: Last progress; None if it is already stored.
        """
        with self._database.writing() as session:
            row = _find_owned(session, claim)
            if progress is not None:
                row.progress = progress
            close_job(session, row, outcome)

    def requeue_lost_shards(self, claim: Claim, numbers: Collection[int]) -> None:
        """Queues again the shards of a job whose results were lost.

        The job waits until these shards have ended. The claim on the job ends.

        Args:
            claim: Claim of the attempt that joins the shards.
            numbers: Indices of the lost shards.
        """
        with self._database.writing() as session:
            requeue_lost_shards(session, _find_owned(session, claim), numbers)

    def release(
        self, claim: Claim, error: Failed, *, is_counted: bool = True, smaller_batch: bool = False
    ) -> JobStatus:
        """Ends a failed attempt: the job is queued again, or it fails if its attempts are used up.

        Args:
            error: The error, to be recorded with the job.
            is_counted: Whether the attempt counts towards the maximum number of attempts; False if
                an unavailable server caused the error. Once the job has had ten times the maximum
                of attempts, every attempt counts, so that the job does not continue forever.
            smaller_batch: Whether the next attempt uses half the batch size; checkpoints of this
                attempt are then discarded.

        Returns:
            The new status of the job.
        """
        with self._database.writing() as session:
            row = _find_owned(session, claim)
            if not is_counted and row.attempt < _PATIENCE * self._attempts_limit:
                row.attempts_since_checkpoint = max(0, row.attempts_since_checkpoint - 1)
            if row.cancel_requested:
                close_job(session, row, Cancelled())
            elif row.attempts_since_checkpoint >= self._attempts_limit:
                close_job(session, row, _given_up(row, error.message))
            else:
                # The longer an outage lasts, the more attempts (counted or not) there were.
                earlier = row.attempts_since_checkpoint if is_counted else row.attempt
                _unlease(row)
                row.error = error.to_json()
                row.sends = 0
                pause = database_clock(self._pause_seconds(earlier - 1))
                row.next_dispatch_at = row.rests_until = pause
                count(session, Counted.RETRIES, kind=row.kind, reason=error.code)
            if smaller_batch and not row.status.is_final:
                row.smaller_batch = True
                if row.checkpoint_key is not None:
                    add_orphans(session, [row.checkpoint_key])
                row.checkpoint_key = row.checkpoint_sha256 = None
            return row.status

    def hand_back(self, claim: Claim) -> None:
        """Queues a job again because its worker shuts down, without counting the attempt."""
        with self._database.writing() as session:
            row = _find_owned(session, claim)
            row.attempts_since_checkpoint = max(0, row.attempts_since_checkpoint - 1)
            row.sends = 0
            _unlease(row)
            count(session, Counted.RETRIES, kind=row.kind, reason="handed_back")

    def take_due(self, limit: int = 100) -> list[Job]:
        """Returns up to `limit` jobs whose message to the workers is due now.

        For each of these jobs, it also sets the time at which the next message is due.

        Messages are sent for queued jobs, and for running jobs whose lease has expired, until a
        worker takes the job. The pause between messages doubles each time, up to a maximum.
        """
        is_due = and_(self._claimable(), JobRow.next_dispatch_at <= database_clock())
        query = select(JobRow).where(is_due).order_by(JobRow.id).limit(limit)
        if not self._any(query.with_only_columns(JobRow.id)):
            return []
        with self._database.writing() as session:
            rows = session.scalars(query.with_for_update(skip_locked=True)).all()
            jobs = [copy_row(Job, row) for row in rows]
            for row in rows:
                row.next_dispatch_at = database_clock(self._pause_seconds(row.sends))
                row.sends += 1
            return jobs

    def make_due(self) -> None:
        """Makes the message of every queued job due now, so that `take_due` returns the job."""
        with self._database.writing() as session:
            session.execute(
                update(JobRow)
                .where(JobRow.status == JobStatus.QUEUED)
                .values(next_dispatch_at=database_clock())
            )

    def close_abandoned(self) -> list[str]:
        """Ends the jobs that no worker runs and that were cancelled or have used up their attempts.

        A job is closed only if no worker holds a valid lease on it and all its shards, if any, have
        ended. Cancelled jobs end as cancelled, the others as failed. Shards are closed in the same
        way.

        Returns:
            The ids of the closed jobs and shards.
        """
        query = select(JobRow.id, JobRow.parent_id).where(_abandoned(), ~self._allowed())
        with self._database.reading() as session:
            found = session.execute(query).all()
        return [
            job_id for job_id, parent_id in found if self._close_if_abandoned(job_id, parent_id)
        ]

    def _close_if_abandoned(self, job_id: str, parent_id: str | None) -> bool:
        """Ends an abandoned job or shard as cancelled or failed, and returns whether it was ended.

        It is not ended if, since the caller found it, another process has ended or claimed it, or
        is changing it now. `parent_id` is the job of a shard.
        """
        query = select(JobRow).where(JobRow.id == job_id, _abandoned(), ~self._allowed())
        with self._database.writing() as session:
            lock_parent(session, parent_id)
            row = session.scalar(query.with_for_update(skip_locked=True))
            if row is None:
                return False
            if row.lease_owner is not None:
                count(session, Counted.LEASE_LOSSES, kind=row.kind)
            hopeless = _given_up(row, "the worker stopped responding, as when it is killed")
            close_job(session, row, Cancelled() if row.cancel_requested else hopeless)
            return True

    def _pause_seconds(self, earlier: int) -> float:
        doublings = min(max(earlier, 0), 30)
        return min(self._resend_seconds * 2.0**doublings, self._resend_limit_seconds)

    def _allowed(self) -> ColumnElement[bool]:
        return and_(
            ~JobRow.cancel_requested, JobRow.attempts_since_checkpoint < self._attempts_limit
        )

    def _claimable(self) -> ColumnElement[bool]:
        return and_(_abandoned(), self._allowed())


def _abandoned() -> ColumnElement[bool]:
    """SQL condition that no worker is working on a job or shard; false for a job with unfinished
    shards."""
    expired = JobRow.lease_expires_at < database_clock()
    is_running = and_(JobRow.status == JobStatus.RUNNING, expired)
    return and_(JobRow.open_shards == 0, or_(JobRow.status == JobStatus.QUEUED, is_running))


def _owned(claim: Claim) -> ColumnElement[bool]:
    return _owned_by(claim.job_id, claim.owner, claim.attempt)


def _owned_by(job_id: str, owner: str, attempt: int) -> ColumnElement[bool]:
    return and_(
        JobRow.id == job_id,
        JobRow.lease_owner == owner,
        JobRow.attempt == attempt,
        JobRow.status == JobStatus.RUNNING,
    )


def _find_owned(session: Session, claim: Claim) -> JobRow:
    lock_parent(session, claim.job.parent_id)
    row = session.scalar(select(JobRow).where(_owned(claim)).with_for_update())
    if row is None:
        raise LeaseLostError(claim.job_id, claim.attempt)
    return row


def _unlease(row: JobRow) -> None:
    row.status = JobStatus.QUEUED
    row.lease_owner = row.lease_expires_at = None
    row.next_dispatch_at = row.queued_at = database_clock()
    row.version += 1


def _count_claim(
    session: Session, job: Job, was: JobStatus, last_owner: str | None, lease_seconds: float
) -> None:
    """Counts a new attempt at a job, and another worker's loss of the lease, for monitoring.

    The waiting time of a job that was queued is added to a histogram, but not that of a shard. For
    a job with shards, `catalog.jobs.shards.begin` adds one waiting time.

    Args:
        was: Status of the job before the attempt.
        last_owner: Worker whose lease on the job has expired; None if no worker owned the job.
        lease_seconds: Time until the new lease expires.
    """
    count(session, Counted.ATTEMPTS, kind=job.kind)
    if last_owner is not None:
        count(session, Counted.LEASE_LOSSES, kind=job.kind)
        count(session, Counted.RETRIES, kind=job.kind, reason="lease_lost")
    elif was == JobStatus.QUEUED and job.parent_id is None and job.lease_expires_at is not None:
        waited = (job.lease_expires_at - job.queued_at).total_seconds() - lease_seconds
        observe(session, Counted.WAIT, waited, kind=job.kind)


def _given_up(row: JobRow, last: str) -> Failed:
    attempts = row.attempts_since_checkpoint
    return Failed(
        "attempts_used_up",
        f"given up after {attempts} attempts without a new checkpoint; the last one: {last}",
    )
