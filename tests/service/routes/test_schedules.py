"""Schedules: a source is read, trained on, sampled and written out again and again."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from catalog.database.tables import RunRow, ScheduleRow
from catalog.records import Scope
from tests.gcvae_cli.test_sources import table
from tests.running_service import (
    OUTSIDE,
    Running,
    assert_problem,
    running,
    settings_in,
    work,
    working,
)
from tests.servers.webhook_receiver import Receiver, receiver

QUICK = {"preset": "fast", "device": "cpu", "max_steps": 5}
SAMPLE = {"rows": 30, "format": "parquet"}
EXPORT = {"connection": "shop", "table": "drawn", "if_exists": "append"}
NIGHTLY: dict[str, Any] = {
    "name": "nightly",
    "cron": "0 3 * * *",
    "time_zone": "Europe/Berlin",
    "source": {"connection": "shop", "table": "orders"},
    "training": QUICK,
}


@pytest.fixture
def target() -> Iterator[Receiver]:
    """A receiver of events."""
    with receiver() as found:
        yield found


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A database that the connection `shop` leads to."""
    return make_shop(tmp_path)


def make_shop(folder: Path) -> Path:
    (folder / "files").mkdir()
    path = folder / "files/shop.sqlite"
    with closing(sqlite3.connect(path)) as lite:
        table().to_sql("orders", lite, index=False)
    return path


@pytest.fixture
def service(tmp_path: Path, shop: Path) -> Iterator[Running]:
    with serving(tmp_path, shop) as found:
        yield found


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service in which no schedule is made."""
    folder = tmp_path_factory.mktemp("idle")
    with serving(folder, make_shop(folder)) as found:
        yield found


@contextmanager
def serving(folder: Path, shop: Path) -> Iterator[Running]:
    settings = settings_in(
        folder / "service",
        connection_folder=shop.parent,
        schedule_interval_seconds=0.05,
        webhook_interval_seconds=0.1,
        **OUTSIDE,
    )
    with running(settings) as found:
        body = {"name": "shop", "url": "sqlite:///shop.sqlite"}
        assert found.http.post("/v1/connections", json=body).status_code == 201
        yield found


def _create(service: Running, **more: Any) -> str:
    made = service.http.post("/v1/schedules", json=NIGHTLY | more)
    assert made.status_code == 201, made.text
    assert made.headers["Location"] == f"/v1/schedules/{made.json()['id']}"
    return str(made.headers["Location"])


def _ended(service: Running, path: str, n_runs: int = 1) -> dict[str, Any]:
    """The newest run, once there are so many and it has ended."""
    until = time.monotonic() + 120
    while True:
        items = service.http.get(f"{path}/runs").json()["items"]
        if len(items) == n_runs and items[0]["status"] != "running":
            return dict(items[0])
        assert time.monotonic() < until, items
        time.sleep(0.03)


def _made(service: Running, path: str, what: str) -> str:
    """The id of what the newest run makes, once it is there."""
    until = time.monotonic() + 60
    while (made := service.http.get(f"{path}/runs").json()["items"][0][what]) is None:
        assert time.monotonic() < until
        time.sleep(0.03)
    return str(made)


def _run(service: Running, path: str, n_runs: int = 1) -> dict[str, Any]:
    """A run that was requested, at its end."""
    started = service.http.post(f"{path}/runs")
    assert started.status_code == 202, started.text
    ended = _ended(service, path, n_runs)
    assert service.http.get(started.headers["Location"]).json() == ended
    return ended


def _alter(shop: Path, *statements: str) -> None:
    with closing(sqlite3.connect(shop)) as lite:
        for statement in statements:
            lite.execute(statement)
        lite.commit()


def test_a_due_schedule_reads_trains_samples_and_writes(
    service: Running, shop: Path, target: Receiver
) -> None:
    hook = {"url": f"{target.url}/hook", "events": ["run.ended"]}
    service.http.post("/v1/webhooks", json=hook)
    path = _create(service, sample=SAMPLE, export=EXPORT, scoring="flag")
    past = datetime.now(UTC) - timedelta(days=2, hours=1)
    with service.catalog.database.writing() as session:
        session.execute(update(ScheduleRow).values(next_at=past))

    with working(service):
        run = _ended(service, path)

    assert (run["status"], run["error"]) == ("succeeded", None), run
    assert run["missed"] in (2, 3), "two days and the days before and after them"
    dataset = service.http.get(f"/v1/datasets/{run['dataset_id']}").json()
    assert dataset["source"] == NIGHTLY["source"]
    model = service.http.get(f"/v1/models/{run['model_id']}").json()
    assert (model["name"], model["scoring"], model["status"]) == ("nightly", "flag", "ready")
    assert model["dataset_id"] == run["dataset_id"]
    assert model["training"]["max_steps"] == QUICK["max_steps"]
    assert service.http.get(f"/v1/samples/{run['sample_id']}").json()["rows"] == 30
    with closing(sqlite3.connect(shop)) as lite:
        assert lite.execute("SELECT count(*) FROM drawn").fetchone() == (30,)
    target.wait_for(1)
    [event] = target.events()
    assert event["data"]["status"] == "succeeded"
    assert event["data"]["model_id"] == run["model_id"]
    assert event["data"]["differences"] == []
    entries = service.catalog.workspace("default").audit.list().items
    actor = path.rpartition("/")[2]
    assert [entry.action for entry in entries if entry.actor == actor][::-1] == [
        "POST /v1/datasets",
        "POST /v1/models",
        "POST /v1/models/{model_id}/samples",
        "POST /v1/samples/{result_id}/export",
    ]


def test_a_source_that_has_changed_stops_the_run_until_it_is_accepted(
    service: Running, shop: Path, target: Receiver
) -> None:
    hook = {"url": f"{target.url}/hook", "events": ["run.ended"]}
    service.http.post("/v1/webhooks", json=hook)
    path = _create(service)
    first = table()
    with working(service):
        assert _run(service, path)["status"] == "succeeded"
        columns = service.http.get(path).json()["columns"]
        assert list(columns) == list(first)
        gone, retyped = first.columns[-1], next(n for n, t in columns.items() if t == "number")
        _alter(
            shop,
            f'ALTER TABLE orders DROP COLUMN "{gone}"',
            "ALTER TABLE orders ADD COLUMN note TEXT",
            "UPDATE orders SET note = 'n' || (rowid % 3)",
            f"UPDATE orders SET \"{retyped}\" = 'text ' || (rowid % 9)",
        )
        run = _run(service, path, 2)
        assert (run["status"], run["error"]["code"]) == ("failed", "schema-changed")
        assert run["error"]["differences"] == [
            f"column {retyped!r}: its type is text (expected: number)",
            f"column {gone!r}: the column is missing",
            "column 'note': the column is new",
        ]
        assert {one["column"] for one in run["error"]["problems"]} == {retyped, gone, "note"}
        assert (run["training_job_id"], run["model_id"]) == (None, None)
        assert run["dataset_id"] is not None, "to look at what has changed"
        target.wait_for(2)
        told = target.events()[1]["data"]
        assert (told["error"], told["differences"]) == (
            "schema-changed",
            run["error"]["differences"],
        )

        assert service.http.patch(path, json={"columns": None}).json()["columns"] is None
        assert _run(service, path, 3)["status"] == "succeeded"
        assert service.http.get(path).json()["columns"]["note"] == "text"


def test_a_source_that_does_not_fit_its_given_schema_any_more_has_changed(
    service: Running, shop: Path, target: Receiver
) -> None:
    service.http.post("/v1/webhooks", json={"url": f"{target.url}/hook", "events": ["run.ended"]})
    name = "quantity" if "quantity" in table() else str(table().select_dtypes("number").columns[0])
    source = NIGHTLY["source"] | {"schema": {"columns": [{"name": name, "kind": "continuous"}]}}
    path = _create(service, source=source)
    with working(service):
        assert _run(service, path)["status"] == "succeeded"
    _alter(shop, f"UPDATE orders SET \"{name}\" = 'secret ' || (rowid % 9)")
    run = _run(service, path, 2)
    assert (run["status"], run["error"]["code"]) == ("failed", "schema-changed")
    assert run["error"]["problems"][0]["column"] == name
    target.wait_for(2)
    told = target.events()[1]["data"]
    assert told["differences"] == [f"column {name!r}: the column does not fit the schema"]
    assert "secret" not in str(told)


def test_a_failed_or_cancelled_job_and_a_deleted_connection_fail_the_run(
    service: Running, shop: Path
) -> None:
    path = _create(service)
    service.http.post(f"{path}/runs")
    job = _made(service, path, "training_job_id")
    assert_problem(service.http.post(f"{path}/runs"), 409, "conflict")
    service.http.post(f"/v1/jobs/{job}/cancel")
    run = _ended(service, path)
    assert (run["status"], run["error"]["code"]) == ("failed", "cancelled")
    assert run["error"]["message"] == f"the training failed: job {job} was cancelled"
    service.http.delete("/v1/connections/shop")
    run = _run(service, path, 2)
    assert run["error"] == {
        "code": "not-found",
        "message": "there is no connection 'shop'",
        "problems": [],
    }
    service.http.delete(path)
    assert_problem(service.http.get(path), 404, "not-found")


def test_a_schedule_of_a_dataset_is_changed_paused_and_read_again(
    service: Running, cars: bytes
) -> None:
    csv = {"Content-Type": "text/csv"}
    dataset = service.http.post("/v1/datasets", content=cars, headers=csv).json()
    body = NIGHTLY | {"source": None, "dataset_id": dataset["id"], "sample": {"rows": 5}}
    path = _create(service, **body)
    found = service.http.get(path)
    unchanged = service.http.get(path, headers={"If-None-Match": found.headers["ETag"]})
    assert unchanged.status_code == 304
    assert found.json()["next_at"] is not None
    changed = service.http.patch(path, json={"paused": True, "cron": "5 4 * * SUN"}).json()
    assert (changed["paused"], changed["next_at"], changed["cron"]) == (True, None, "5 4 * * SUN")
    assert changed["time_zone"] == "Europe/Berlin"
    with working(service):
        run = _run(service, path)
    assert (run["status"], run["dataset_id"]) == ("succeeded", dataset["id"])
    assert service.http.get(path).json()["columns"] is None
    assert [one["id"] for one in service.http.get("/v1/schedules").json()["items"]] == [
        found.json()["id"]
    ]


@pytest.mark.parametrize("if_exists", ["append", "replace"])
def test_writing_that_was_interrupted_is_repeated_if_that_changes_nothing(
    service: Running, shop: Path, if_exists: str
) -> None:
    path = _create(service, sample=SAMPLE, export=EXPORT | {"if_exists": if_exists})
    service.http.post(f"{path}/runs")
    work(service, _made(service, path, "training_job_id"))
    job = _made(service, path, "sample_job_id")
    with service.catalog.database.writing() as session:
        session.execute(update(RunRow).values(export_begun=True))
    work(service, job)
    run = _ended(service, path)
    tables = set(service.http.post("/v1/connections/shop/test").json()["tables"])
    if if_exists == "replace":
        assert (run["status"], tables) == ("succeeded", {"orders", "drawn"})
    else:
        assert (run["error"]["code"], tables) == ("export-interrupted", {"orders"})


@pytest.mark.parametrize(
    ("change", "pointer", "what"),
    [
        ({"cron": "61 * * * *"}, "/cron", "bad minute"),
        ({"cron": "* * * * * *"}, "/cron", "five fields"),
        ({"time_zone": "Europe/Berlyn"}, "/time_zone", "did you mean 'Europe/Berlin'"),
        ({"source": None}, "/source", "one of source and dataset_id"),
        ({"dataset_id": "ds_1"}, "/source", "one of source and dataset_id"),
        ({"source": {"connection": "shop"}}, "/source/table", "one table or query"),
        ({"source": {"connection": "shop", "key": "a"}}, "/source/key", "is for files"),
        ({"training": {"preset": "fsat"}}, "/training/preset", "fsat"),
        ({"sample": {"rows": 10**9}}, "/sample/rows", "at most"),
        ({"sample": SAMPLE | {"row": 1}}, "/sample/row", "unknown member"),
        ({"export": EXPORT}, "/sample", "no sample to write"),
        ({"sample": SAMPLE, "export": EXPORT | {"table": None}}, "/export/table", "missing"),
        ({"sample": {"rows": 5}, "export": EXPORT}, "/export/connection", "format csv"),
        (
            {"sample": SAMPLE, "export": EXPORT | {"if_exists": "fail"}},
            "/export/if_exists",
            "second",
        ),
        ({"source": None, "dataset_id": "ds_1"}, None, "no dataset 'ds_1'"),
        ({"source": {"connection": "else", "table": "t"}}, None, "no connection 'else'"),
    ],
)
def test_a_schedule_that_cannot_run_is_refused(
    idle: Running, change: dict[str, Any], pointer: str | None, what: str
) -> None:
    refused = idle.http.post("/v1/schedules", json=NIGHTLY | change)
    assert refused.status_code == (404 if pointer is None else 422), refused.text
    assert what in refused.text
    if pointer is not None:
        assert pointer in {one.get("pointer") for one in refused.json()["errors"]}
    assert idle.http.get("/v1/schedules").json()["items"] == []


def test_keys_need_their_scope_and_see_only_their_workspace(service: Running) -> None:
    path = _create(service)

    def client(workspace: str, *scopes: Scope) -> httpx.Client:
        _, key = service.catalog.keys.create(workspace, "", list(scopes))
        return httpx.Client(base_url=service.url, headers={"Authorization": f"Bearer {key}"})

    with client("default", Scope.READ) as reader, client("other", *Scope) as other:
        assert reader.get(path).json()["name"] == "nightly"
        for refused in (
            reader.post("/v1/schedules", json=NIGHTLY),
            reader.patch(path, json={"paused": True}),
            reader.post(f"{path}/runs"),
            reader.delete(path),
        ):
            assert_problem(refused, 403, "missing-scope")
        for call in (other.get(path), other.get(f"{path}/runs"), other.post(f"{path}/runs")):
            assert_problem(call, 404, "not-found")
        assert_problem(other.patch(path, json={"paused": True}), 404, "not-found")
        assert_problem(other.delete(path), 404, "not-found")
        problem = assert_problem(other.post("/v1/schedules", json=NIGHTLY), 404, "not-found")
        assert problem["detail"] == "there is no connection 'shop'"
