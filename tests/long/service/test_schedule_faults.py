"""Schedules under faults: two API processes are killed between any two steps of a run."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text, update

from catalog import Catalog
from catalog.database.tables import RunRow, ScheduleRow
from catalog.records import Run, RunStatus
from tests.gcvae_cli.test_sources import table
from tests.long.service.test_webhook_faults import Api

N_RUNS = 8


def _until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 90
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_each_due_time_has_one_dataset_and_one_training_whatever_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "files").mkdir()
    with closing(sqlite3.connect(tmp_path / "files/shop.sqlite")) as lite:
        table().to_sql("orders", lite, index=False)
    monkeypatch.setenv("GCVAE_CONNECTION_FOLDER", str(tmp_path / "files"))
    chance = random.Random(0)
    apis = [Api(tmp_path / "service"), Api(tmp_path / "service")]
    catalog = Catalog(f"sqlite:///{tmp_path}/service/catalog.sqlite")
    ours = catalog.workspace("default")
    schedules, datasets, jobs = ours.schedules, ours.datasets, ours.jobs
    long_ago = datetime(2026, 1, 1, tzinfo=UTC)
    try:
        with httpx.Client(base_url=apis[0].url, timeout=60) as http:
            connection = {"name": "shop", "url": "sqlite:///shop.sqlite"}
            http.post("/v1/connections", json=connection).raise_for_status()
            source = {"connection": "shop", "table": "orders"}
            body = {"name": "often", "cron": "* * * * *", "paused": True, "source": source}
            schedule = http.post("/v1/schedules", json=body).raise_for_status().json()["id"]

        def runs() -> list[Run]:
            return schedules.runs(schedule, limit=9, cursor=None).items

        for n in range(N_RUNS):
            with catalog.database.writing() as session:
                # So that the latest due time is none of an earlier run.
                session.execute(text("UPDATE runs SET due_at = due_at - 3600"))
                session.execute(update(ScheduleRow).values(next_at=long_ago))
            _until(lambda: len(runs()) > n)  # noqa: B023
            time.sleep(3 * chance.random())
            killed = chance.choice([[0], [1], [0, 1]])
            for number in killed:
                apis[number].kill()
            with catalog.database.writing() as session:  # no further run, and no lease of the dead
                session.execute(update(ScheduleRow).values(next_at=None))
                alive = update(RunRow).where(RunRow.next_step_at.is_not(None))
                session.execute(alive.values(next_step_at=long_ago))
            for number in killed:
                apis[number].start()
            _until(lambda: runs()[0].training_job_id is not None)
            jobs.request_cancel(str(runs()[0].training_job_id))
            _until(lambda: runs()[0].status is RunStatus.FAILED)

            assert len({run.due_at for run in runs()}) == len(runs()) == n + 1
            made = [dataset.id for dataset in datasets.list().items]
            assert sorted(made) == sorted(str(run.dataset_id) for run in runs())
            trained = [job.id for job in jobs.list().items]
            assert sorted(trained) == sorted(str(run.training_job_id) for run in runs())
    finally:
        catalog.close()
        for api in apis:
            api.kill()
