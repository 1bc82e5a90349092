"""Schedules: each due time has one run, one run at a time, and no step is done twice."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select, update

from catalog import Catalog, Dataset, Failed
from catalog.database.tables import DeliveryRow, RunRow, ScheduleRow
from catalog.errors import ConflictError, LeaseLostError, NotFoundError
from catalog.records import EventType, Run, RunStatus, Schedule
from catalog.schedules.runs import MOST_ATTEMPTS, Step
from catalog.schedules.times import ScheduleError, Times, checked_times
from tests.catalog.conftest import trained
from tests.claims import claim_job

BERLIN = "Europe/Berlin"


def _create(catalog: Catalog, dataset_id: str = "ds_1", **more: Any) -> Schedule:
    given: dict[str, Any] = {"name": "nightly", "cron": "*/5 * * * *", "paused": False} | more
    times = checked_times(given["cron"], "UTC")
    work = {"dataset_id": dataset_id}
    schedules = catalog.workspace("default").schedules
    return schedules.create(given["name"], times, work, paused=given["paused"])


def _move(catalog: Catalog, back: timedelta) -> datetime:
    """Let the next due time of all schedules be one in the past, as if no service had run since."""
    past = datetime.now(UTC).replace(second=0, microsecond=0) - back
    past -= timedelta(minutes=past.minute % 5)
    with catalog.database.writing() as session:
        session.execute(update(ScheduleRow).values(next_at=past))
    return past


def _expire(catalog: Catalog) -> None:
    """Let every lease and every pause of a step be over."""
    with catalog.database.writing() as session:
        waiting = update(RunRow).where(RunRow.next_step_at.is_not(None))
        session.execute(waiting.values(next_step_at=datetime(2020, 1, 1, tzinfo=UTC)))


def _runs(catalog: Catalog, schedule: Schedule) -> list[Run]:
    return catalog.workspace("default").schedules.runs(schedule.id, limit=99, cursor=None).items


def _take(catalog: Catalog) -> Step:
    [step] = catalog.runs.take(60.0, 9)
    return step


def _told(catalog: Catalog) -> list[dict[str, Any]]:
    with catalog.database.reading() as session:
        rows = session.scalars(select(DeliveryRow).order_by(DeliveryRow.number)).all()
        return [row.about for row in rows if row.type is EventType.RUN_ENDED]


def test_missed_due_times_are_counted_and_only_the_latest_is_run(catalog: Catalog) -> None:
    schedule = _create(catalog)
    assert schedule.next_at is not None
    assert schedule.next_at > datetime.now(UTC)
    catalog.runs.fire()
    assert _runs(catalog, schedule) == []
    first = _move(catalog, timedelta(minutes=31))

    catalog.runs.fire()
    catalog.runs.fire()

    [run] = _runs(catalog, schedule)
    assert run.status is RunStatus.RUNNING
    assert datetime.now(UTC) - run.due_at < timedelta(minutes=5, seconds=1)
    assert run.missed == (run.due_at - first) / timedelta(minutes=5) >= 6
    next_at = catalog.workspace("default").schedules.get(schedule.id).next_at
    assert next_at == run.due_at + timedelta(minutes=5)


def test_a_due_time_during_a_run_is_skipped_and_told(catalog: Catalog) -> None:
    catalog.workspace("default").webhooks.create("https://x.org/", list(EventType))
    schedule = _create(catalog)
    started = catalog.workspace("default").schedules.run_now(schedule.id)
    with pytest.raises(ConflictError, match=f"run {started.id} of the schedule is still running"):
        catalog.workspace("default").schedules.run_now(schedule.id)
    _move(catalog, timedelta(0))
    catalog.runs.fire()
    skipped, running = _runs(catalog, schedule)
    assert (skipped.status, running.status) == (RunStatus.SKIPPED, RunStatus.RUNNING)
    assert skipped.finished_at is not None
    step = _take(catalog)
    assert step.run.id == running.id

    catalog.runs.close(step.run, Failed("conflict", "secret").to_json() | {"differences": ["a"]})

    assert [(one["status"], one["error"]) for one in _told(catalog)] == [
        ("skipped", None),
        ("failed", "conflict"),
    ]
    assert _told(catalog)[1]["differences"] == ["a"]
    assert "secret" not in str(_told(catalog))
    assert catalog.workspace("default").schedules.run_now(schedule.id).status is RunStatus.RUNNING


def test_several_processes_begin_each_due_time_once(catalog: Catalog) -> None:
    schedules = [_create(catalog, name=f"s{n}") for n in range(12)]
    _move(catalog, timedelta(hours=1))
    taken: list[str] = []

    def work() -> None:
        for _ in range(8):
            catalog.runs.fire()
            taken.extend(step.run.id for step in catalog.runs.take(60.0, 3))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken.extend(step.run.id for step in catalog.runs.take(60.0, 99))

    assert len(taken) == len(set(taken)) == len(schedules)
    assert all(len(_runs(catalog, schedule)) == 1 for schedule in schedules)


def test_a_step_that_died_is_done_by_another_process_only(
    catalog: Catalog, dataset: Dataset
) -> None:
    schedule = _create(catalog, dataset.id)
    jobs = catalog.workspace("default").jobs
    catalog.workspace("default").schedules.run_now(schedule.id)
    slow = _take(catalog)
    assert slow.run.dataset_id == dataset.id
    assert catalog.runs.take(60.0, 9) == []
    catalog.runs.keep(slow.run, -1.0)
    second = _take(catalog)
    catalog.runs.keep(slow.run, -1.0)
    assert catalog.runs.take(60.0, 9) == [], "the lease is that of another process"

    asked: dict[str, Any] = {"dataset_id": dataset.id, "name": "m", "training": {"seed": 0}}
    with pytest.raises(LeaseLostError), catalog.runs.recording_id(slow.run, "training_job_id"):
        jobs.enqueue_training(**asked)
    assert jobs.list().items == [], "nothing was made"
    with catalog.runs.recording_id(second.run, "training_job_id"):
        model, job = jobs.enqueue_training(**asked)
    _expire(catalog)
    assert catalog.runs.take(60.0, 9) == [], "the run waits for the job, even if its process died"

    claim = claim_job(catalog, job.id, "trainer", 10)
    assert claim is not None
    catalog.leases.finish(claim, trained(job))
    third = _take(catalog)
    assert (third.run.training_job_id, third.run.model_id) == (job.id, model.id)
    with pytest.raises(LeaseLostError), catalog.runs.recording_id(third.run, "training_job_id"):
        jobs.enqueue_training(**asked)
    for lost in (catalog.runs.done, catalog.runs.begin_export):
        with pytest.raises(LeaseLostError):
            lost(slow.run)
    catalog.runs.close(third.run, None)
    [run] = _runs(catalog, schedule)
    assert (run.status, run.error) == (RunStatus.SUCCEEDED, None)
    catalog.runs.keep(third.run, -60.0)
    assert catalog.runs.take(60.0, 9) == [], "it has ended"


def test_a_step_that_cannot_be_done_now_is_repeated_and_given_up_in_the_end(
    catalog: Catalog,
) -> None:
    schedule = _create(catalog)
    catalog.workspace("default").schedules.run_now(schedule.id)
    error = Failed("busy", "all threads are busy").to_json()
    for attempt in range(1, MOST_ATTEMPTS + 1):
        step = _take(catalog)
        assert step.run.attempt == attempt
        catalog.runs.try_again(step.run, error)
        assert catalog.runs.take(60.0, 9) == []
        _expire(catalog)
    assert catalog.runs.take(60.0, 9) == []
    [run] = _runs(catalog, schedule)
    assert (run.status, run.error) == (RunStatus.FAILED, error)


def test_a_run_whose_processes_all_died_fails_and_old_runs_are_forgotten(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("catalog.schedules.runs._MOST_KEPT", 3)
    schedule = _create(catalog)
    for _ in range(5):
        catalog.workspace("default").schedules.run_now(schedule.id)
        catalog.runs.close(_take(catalog).run, None)
    assert len(_runs(catalog, schedule)) == 3
    catalog.workspace("default").schedules.run_now(schedule.id)
    with catalog.database.writing() as session:
        session.execute(update(RunRow).values(attempt=MOST_ATTEMPTS))
    assert catalog.runs.take(60.0, 9) == []
    error = _runs(catalog, schedule)[0].error
    assert error is not None
    assert error["code"] == "process-died"


def test_a_paused_schedule_has_no_due_time_and_misses_none(catalog: Catalog) -> None:
    schedules = catalog.workspace("default").schedules
    schedule = _create(catalog, paused=True)
    assert schedule.next_at is None
    started = schedules.change(schedule.id, paused=False, name="other")
    assert started.next_at is not None
    past = _move(catalog, timedelta(hours=1))
    assert schedules.change(schedule.id, name="third").next_at == past, "not lost"
    assert schedules.change(schedule.id, paused=True).next_at is None
    again = schedules.change(schedule.id, paused=False, cron="0 0 1 1 *", time_zone=BERLIN)
    assert again.next_at is not None
    assert again.next_at.hour == 23, "midnight in Berlin"
    with pytest.raises(ConflictError, match="there is a schedule 'third' already"):
        _create(catalog, name="third")


def test_a_run_of_a_deleted_schedule_makes_nothing(catalog: Catalog, dataset: Dataset) -> None:
    schedules, jobs = catalog.workspace("default").schedules, catalog.workspace("default").jobs
    schedule = _create(catalog, dataset.id)
    schedules.run_now(schedule.id)
    step = _take(catalog)
    schedules.delete(schedule.id)
    with pytest.raises(LeaseLostError), catalog.runs.recording_id(step.run, "training_job_id"):
        jobs.enqueue_training(dataset_id=dataset.id, name="m", training={"seed": 0})
    assert jobs.list().items == []


def test_another_workspace_has_no_such_schedule(catalog: Catalog) -> None:
    schedule, theirs = _create(catalog), catalog.workspace("theirs").schedules
    run = catalog.workspace("default").schedules.run_now(schedule.id)
    for refused in (theirs.get, theirs.delete, theirs.run_now, theirs.change):
        with pytest.raises(NotFoundError):
            refused(schedule.id)
    with pytest.raises(NotFoundError):
        theirs.runs(schedule.id, limit=1, cursor=None)
    with pytest.raises(NotFoundError):
        theirs.get_run(schedule.id, run.id)
    assert theirs.list().items == []


@pytest.mark.parametrize(
    ("cron", "zone", "expected"),
    [
        ("", "UTC", "five fields"),
        ("* * * * * *", "UTC", "five fields"),
        ("61 * * * *", "UTC", "bad minute"),
        ("0 0 31 4 *", "UTC", "bad day-of-month"),
        ("0 0 29 2 MON#5", "Europe/Berlyn", "did you mean 'Europe/Berlin'"),
        ("0 6 * * *", "../etc/passwd", "there is no time zone"),
    ],
)
def test_a_bad_time_is_refused(cron: str, zone: str, expected: str) -> None:
    with pytest.raises(ScheduleError, match=expected):
        checked_times(cron, zone)


def test_daylight_saving_time_counts_as_in_cron() -> None:
    times = Times("30 2 * * *", BERLIN)
    before = datetime(2026, 3, 28, 12, tzinfo=UTC)
    skipped = times.after(before)  # 2:30 does not exist on the 29th
    assert skipped == datetime(2026, 3, 29, 1, tzinfo=UTC)
    assert times.after(skipped) == datetime(2026, 3, 30, 0, 30, tzinfo=UTC)
    assert times.latest(skipped) == skipped
    assert times.count(skipped, times.after(skipped)) == 1
    assert times.count(before.replace(hour=1, minute=30), skipped) == 1
    assert times.count(skipped, skipped) == 0
