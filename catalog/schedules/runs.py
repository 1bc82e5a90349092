"""Runs of the schedules of all workspaces: begins due runs, and assigns their steps to processes.

`next_step_at` is the time from which the next step of a run may begin, unless the run waits for a
job. A process that takes a step sets `next_step_at` to the end of the step's time limit. If the
process dies, the step is therefore due again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import and_, delete, exists, func, select, update
from sqlalchemy.orm import Session

from catalog.database.clock import database_clock
from catalog.database.tables import JobRow, RunRow, ScheduleRow
from catalog.errors import LeaseLostError
from catalog.idempotency import recording_ids
from catalog.ids import new_id
from catalog.records import ACTIVE, Document, Failed, Run, RunStatus, Schedule
from catalog.rows import Records, copy_row
from catalog.schedules.times import Times
from catalog.webhooks.events import announce_run

MOST_ATTEMPTS = 20
_MOST_KEPT = 1000
_FIRST_PAUSE_SECONDS = 2.0
_LONGEST_PAUSE_SECONDS = 600.0
_AT_ONCE = 100
_WAITS = exists().where(
    JobRow.id == func.coalesce(RunRow.sample_job_id, RunRow.training_job_id),
    JobRow.status.in_(ACTIVE),
)
_DUE = and_(RunRow.next_step_at <= database_clock(), ~_WAITS)
_FIRES = ScheduleRow.next_at <= database_clock()


@dataclass(frozen=True)
class Step:
    """The right of one process to do the next step of a run of a schedule."""

    schedule: Schedule
    run: Run


class Runs(Records):
    """Begins due runs, assigns their steps to processes and records the results; several processes
    may do so at the same time."""

    def fire(self) -> None:
        """Begins the run of each schedule that is due.

        If several due times have passed, only the latest gets a run, which counts the others as
        missed. If the schedule's last run is still running, the new run is skipped.
        """
        if not self._any(select(ScheduleRow.id).where(_FIRES)):
            return
        with self._database.writing() as session:
            due = select(ScheduleRow).where(_FIRES).limit(_AT_ONCE)
            for row in session.scalars(due.with_for_update(skip_locked=True)).all():
                _fire(session, row)

    def take(self, seconds: float, at_once: int) -> list[Step]:
        """Returns at most `at_once` due steps, which begin now.

        A run fails, instead of beginning a step, if it has already begun `MOST_ATTEMPTS` steps.

        Args:
            seconds: Time after which a step without a result is due again.
        """
        if at_once <= 0 or not self._any(select(RunRow.id).where(_DUE)):
            return []
        with self._database.writing() as session:
            due = select(RunRow).where(_DUE).order_by(RunRow.next_step_at).limit(at_once)
            rows = session.scalars(due.with_for_update(skip_locked=True, of=RunRow)).all()
            steps = [_begin(session, row, seconds) for row in rows]
            return [step for step in steps if step is not None]

    @contextmanager
    def recording_id(self, run: Run, column: str) -> Iterator[None]:
        """Context manager that stores in the run the id of the record that its block creates.

        The id is stored in the transaction that creates the record.

        Args:
            column: Column of the run for the id, such as `dataset_id`.

        Raises:
            LeaseLostError: Another process has taken over the step; the record is not created.
        """
        with recording_ids(partial(_record_in_run, run, column)):
            yield

    def keep(self, run: Run, seconds: float) -> None:
        """Extends the time limit of a step to `seconds` from now, unless it is done or overdue."""
        is_open = RunRow.next_step_at > database_clock()
        extended = update(RunRow).where(_is_held(run), is_open)
        with self._database.writing() as session:
            session.execute(extended.values(next_step_at=database_clock(seconds)))

    def begin_export(self, run: Run) -> None:
        """Records that the sample of a run is being written to a connection."""
        self._change(run, export_begun=True)

    def done(self, run: Run) -> None:
        """Records that a step is done.

        If the step has queued a job, the next step is due when that job ends, otherwise at once.
        """
        self._change(run, error=None, next_step_at=database_clock())

    def store_columns(self, run: Run, columns: Document) -> None:
        """Stores the types of the columns of the table that a schedule imports.

        The first run calls this; later runs fail if the columns or types have changed.
        """
        with self._database.writing() as session:
            _held(session, run)
            session.get_one(ScheduleRow, run.schedule_id).columns = columns

    def try_again(self, run: Run, error: Document) -> None:
        """Records that a step cannot be done now; it is due again after a pause that doubles with
        each attempt."""
        pause = min(_FIRST_PAUSE_SECONDS * 2.0**run.attempt, _LONGEST_PAUSE_SECONDS)
        self._change(run, error=error, next_step_at=database_clock(pause))

    def close(self, run: Run, error: Document | None) -> None:
        """Ends a run: as failed because of `error`, or as succeeded if `error` is None."""
        with self._database.writing() as session:
            _end(session, _held(session, run), error)

    def _change(self, run: Run, **values: Any) -> None:
        with self._database.writing() as session:
            row = _held(session, run)
            for name, value in values.items():
                setattr(row, name, value)


def active_run(session: Session, schedule: ScheduleRow) -> str | None:
    """Returns the id of the schedule's run that is running; None if there is none."""
    running = RunRow.status == RunStatus.RUNNING
    return session.scalar(select(RunRow.id).where(RunRow.schedule_id == schedule.id, running))


def add_run(
    session: Session, schedule: ScheduleRow, due_at: datetime, missed: int, status: RunStatus
) -> RunRow:
    """Creates a run of a schedule and returns its database row.

    The first step of the run may begin at once; a skipped run has no steps. Old runs of the
    schedule are deleted if they have ended and are not among its newest 1,000 runs.

    Args:
        due_at: Time at which the run was due, or at which it was requested.
        missed: Number of earlier due times without a run.
        status: Status of the new run: running or skipped.
    """
    is_skipped = status is RunStatus.SKIPPED
    row = RunRow(
        id=new_id("run"),
        schedule_id=schedule.id,
        due_at=due_at,
        status=status,
        missed=missed,
        dataset_id=None if is_skipped else schedule.work.get("dataset_id"),
        next_step_at=None if is_skipped else database_clock(),
        created_at=database_clock(),
        finished_at=database_clock() if is_skipped else None,
    )
    session.add(row)
    session.flush()
    session.refresh(row)
    if is_skipped:
        announce_run(session, schedule, row)
    of_schedule = RunRow.schedule_id == schedule.id
    kept = select(RunRow.id).where(of_schedule).order_by(RunRow.id.desc()).limit(_MOST_KEPT)
    has_ended = RunRow.next_step_at.is_(None)
    session.execute(delete(RunRow).where(of_schedule, has_ended, RunRow.id.not_in(kept)))
    return row


def now(session: Session) -> datetime:
    """Returns the database's current time."""
    return session.scalars(select(database_clock())).one()


def _fire(session: Session, row: ScheduleRow) -> None:
    assert row.next_at is not None
    times, time = Times(row.cron, row.time_zone), now(session)
    due_at = max(times.latest(time), row.next_at)
    missed = times.count(row.next_at, due_at)
    row.next_at = times.after(time)
    known = select(RunRow.id).where(RunRow.schedule_id == row.id, RunRow.due_at == due_at)
    if session.scalar(known) is not None:  # it exists if the clock was set back
        return
    is_busy = active_run(session, row) is not None
    add_run(session, row, due_at, missed, RunStatus.SKIPPED if is_busy else RunStatus.RUNNING)


def _begin(session: Session, row: RunRow, seconds: float) -> Step | None:
    if row.attempt >= MOST_ATTEMPTS:
        lost = Failed("process-died", "the processes that did its steps ended too often")
        _end(session, row, row.error or lost.to_json())
        return None
    row.attempt += 1
    row.next_step_at = database_clock(seconds)
    session.flush()
    session.refresh(row)
    schedule = session.get_one(ScheduleRow, row.schedule_id)
    return Step(copy_row(Schedule, schedule), copy_row(Run, row))


def _end(session: Session, row: RunRow, error: Document | None) -> None:
    row.status = RunStatus.SUCCEEDED if error is None else RunStatus.FAILED
    row.error, row.next_step_at, row.finished_at = error, None, database_clock()
    session.flush()
    announce_run(session, session.get_one(ScheduleRow, row.schedule_id), row)


def _held(session: Session, run: Run) -> RunRow:
    """Locks and returns the row of a run. Raises a LeaseLostError if another process has begun a
    newer step, or the run has ended."""
    held = select(RunRow).where(_is_held(run)).with_for_update(of=RunRow)
    row = session.scalar(held)
    if row is None:
        raise LeaseLostError(run.id, run.attempt)
    return row


def _is_held(run: Run) -> Any:
    return and_(
        RunRow.id == run.id, RunRow.attempt == run.attempt, RunRow.next_step_at.is_not(None)
    )


def _record_in_run(run: Run, column: str, session: Session, created_id: str) -> None:
    is_open = getattr(RunRow, column).is_(None)
    change = update(RunRow).where(_is_held(run), is_open).values({column: created_id})
    if session.scalar(change.returning(RunRow.id)) is None:
        raise LeaseLostError(run.id, run.attempt)
