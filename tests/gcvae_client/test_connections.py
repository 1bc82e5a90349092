"""Connections by the client."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gcvae_client import Client, InvalidError, NotFoundError
from tests.gcvae_cli.test_sources import N_ROWS, table
from tests.running_service import Running, running, settings_in, working


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a database that connections may open."""
    (tmp_path / "files").mkdir()
    with closing(sqlite3.connect(tmp_path / "files/shop.sqlite")) as lite:
        table().to_sql("orders", lite, index=False)
    return tmp_path / "files"


@pytest.fixture
def service(tmp_path: Path, folder: Path) -> Iterator[Running]:
    settings = {"connection_folder": folder, "schedule_interval_seconds": 0.05}
    with (
        running(settings_in(tmp_path / "service", **settings)) as found,
        working(found),
    ):
        yield found


def test_a_model_is_trained_on_a_connection_and_its_rows_are_written_back(
    service: Running, folder: Path
) -> None:
    with Client(service.url) as client:
        made = client.create_connection("shop", "sqlite:///shop.sqlite")
        assert [one["name"] for one in client.connections()] == ["shop"]
        assert client.test_connection(made) == client.test_connection("shop") == ["orders"]
        dataset = client.import_table("shop", query="SELECT * FROM orders", name="some")
        assert (dataset["name"], dataset["rows"]) == ("some", N_ROWS)
        model = dataset.train(preset="fast", max_steps=10, device="cpu").wait(progress=False)
        told = model.export_sample("shop", table="drawn", rows=20, seed=1)
        assert told == {"connection": "shop", "table": "drawn", "key": None, "rows": 20}
        with pytest.raises(InvalidError):
            model.export_sample("shop", table="drawn", rows=20)
        told = client.export_sample(model, made, table="drawn", rows=5, if_exists="append")
        assert told["rows"] == 5
        client.delete(made)
        with pytest.raises(NotFoundError):
            client.import_table("shop", table="orders")
    with closing(sqlite3.connect(folder / "shop.sqlite")) as lite:
        assert lite.execute("SELECT count(*) FROM drawn").fetchone() == (25,)


def test_a_model_is_trained_again_by_a_schedule(service: Running, folder: Path) -> None:
    with Client(service.url) as client:
        shop = client.create_connection("shop", "sqlite:///shop.sqlite")
        schedule = client.create_schedule(
            "nightly",
            "0 3 * * *",
            source={"connection": shop, "table": "orders"},
            training={"preset": "fast", "max_steps": 5, "device": "cpu"},
            sample={"rows": 9, "format": "parquet"},
            export={"connection": "shop", "table": "drawn", "if_exists": "replace"},
            paused=True,
        )
        assert [one["id"] for one in client.schedules()] == [schedule["id"]]
        client.run_schedule(schedule)
        until = time.monotonic() + 60
        while (run := next(client.runs(schedule)))["status"] == "running":
            assert time.monotonic() < until
            time.sleep(0.02)
        assert run["status"] == "succeeded", run["error"]
        assert client.model(run["model_id"])["name"] == "nightly"
        changed = client.change_schedule(schedule, cron="0 4 * * *", paused=False, columns=None)
        assert client.schedule(schedule) == changed
        assert (changed["cron"], changed["columns"]) == ("0 4 * * *", None)
        client.delete(schedule)
        with pytest.raises(NotFoundError):
            client.schedule(schedule["id"])
    with closing(sqlite3.connect(folder / "shop.sqlite")) as lite:
        assert lite.execute("SELECT count(*) FROM drawn").fetchone() == (9,)
