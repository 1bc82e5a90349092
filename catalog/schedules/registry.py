"""The schedules of a workspace and the log of their runs."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from catalog.database.clock import database_clock
from catalog.database.tables import RunRow, ScheduleRow
from catalog.errors import ConflictError, NotFoundError
from catalog.pages import Page, read_page
from catalog.records import Document, Run, RunStatus, Schedule
from catalog.registered import RegisteredRecords
from catalog.rows import copy_row, write_row
from catalog.schedules.runs import active_run, add_run, now
from catalog.schedules.times import Times, checked_times


class Schedules(RegisteredRecords[ScheduleRow, Schedule]):
    """Creates, lists, changes and deletes the schedules of one workspace, with their runs."""

    _row, _record, _prefix, _most = ScheduleRow, Schedule, "sch", 100

    def create(self, name: str, times: Times, work: Document, *, paused: bool) -> Schedule:
        """Creates a schedule of repeated trainings and returns its record.

        Args:
            times: Times of the runs.
            work: Work of each run, as JSON with the members that `catalog.records.Schedule` lists.
            paused: Whether the schedule begins paused: no run is due until it is resumed.

        Raises:
            ConflictError: The workspace has the maximum number of schedules already, or one with
                this name.
        """
        with self._database.writing() as session:
            self._require_room(session)
            row = ScheduleRow(
                id=self.new_id(),
                workspace=self._workspace,
                work=work,
                columns=None,
                created_at=database_clock(),
            )
            return _changed(session, row, name, times, paused)

    def change(
        self,
        schedule_id: str,
        *,
        name: str | None = None,
        cron: str | None = None,
        time_zone: str | None = None,
        paused: bool | None = None,
        forget_columns: bool = False,
    ) -> Schedule:
        """Changes a schedule and returns it; attributes that are None remain unchanged.

        Args:
            forget_columns: Whether the next run accepts and stores the columns that the source then
                has. Otherwise, runs fail if the columns or their types have changed.

        Raises:
            ScheduleError: The cron expression or the time zone is invalid.
            ConflictError: Another schedule has this name.
        """
        with self._database.writing() as session:
            row = self._find(session, schedule_id, lock=True)
            if forget_columns:
                row.columns = None
            times = checked_times(cron or row.cron, time_zone or row.time_zone)
            stops = row.paused if paused is None else paused
            return _changed(session, row, name or row.name, times, stops)

    def runs(self, schedule_id: str, *, limit: int, cursor: str | None) -> Page[Run]:
        """Returns a page of a schedule's runs, the newest first.

        Raises:
            NotFoundError: The workspace has no such schedule.
            CursorError: The cursor is invalid.
        """
        query = select(RunRow).where(RunRow.schedule_id == schedule_id)
        with self._database.reading() as session:
            self._find(session, schedule_id)
            return read_page(session, query, RunRow, Run, limit, cursor)

    def get_run(self, schedule_id: str, run_id: str) -> Run:
        """Returns a run of a schedule."""
        with self._database.reading() as session:
            self._find(session, schedule_id)
            row = session.get(RunRow, run_id)
            if row is None or row.schedule_id != schedule_id:
                raise NotFoundError("run", run_id)
            return copy_row(Run, row)

    def run_now(self, schedule_id: str) -> Run:
        """Starts a run now, also of a paused schedule, and returns it.

        Raises:
            ConflictError: A run of the schedule is still running.
        """
        with self._database.writing() as session:
            row = self._find(session, schedule_id, lock=True)
            if (busy := active_run(session, row)) is not None:
                raise ConflictError(f"run {busy} of the schedule is still running")
            run = add_run(session, row, now(session), 0, RunStatus.RUNNING)
            return copy_row(Run, run)


def _changed(session: Session, row: ScheduleRow, name: str, times: Times, paused: bool) -> Schedule:
    """Writes new attributes and the time of the next run of a schedule; returns its record."""
    before = row.cron, row.time_zone, row.paused
    # If the times are unchanged, `next_at` may be a due time for which no run has begun yet.
    if (times.cron, times.time_zone, paused) != before:
        row.next_at = None if paused else times.after(now(session))
    row.name, row.cron, row.time_zone, row.paused = name, times.cron, times.time_zone, paused
    try:
        return write_row(session, row, Schedule)
    except IntegrityError:
        raise ConflictError(f"there is a schedule {name!r} already") from None
