"""What operators see of all workspaces: queues, workers, and what they hold."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from catalog.database.tables import WorkerRow
from catalog.records import Scope
from tests.claims import claim_job, let_expire
from tests.running_service import Running, assert_problem

TABLE = b"a,b\n" + b"".join(b"%d,%d\n" % (i % 9, i % 2) for i in range(60))
CSV = {"Content-Type": "text/csv"}


@pytest.fixture
def service(start: Callable[..., Running]) -> Running:
    return start()


def _client(service: Running, workspace: str, *scopes: Scope) -> httpx.Client:
    _, text = service.catalog.keys.create(workspace, "", scopes)
    return httpx.Client(base_url=service.url, headers={"Authorization": f"Bearer {text}"})


def _train(http: httpx.Client) -> str:
    dataset = http.post("/v1/datasets", content=TABLE, headers=CSV).json()
    made = http.post("/v1/models", json={"dataset_id": dataset["id"]})
    return str(made.json()["job_id"])


def test_an_empty_service_says_that_nobody_is_there(service: Running) -> None:
    found = service.http.get("/v1/work").json()
    assert (found["queues"], found["workers"], found["jobs"]) == ([], [], [])


def test_what_waits_and_what_is_held_is_told_by_workspace(service: Running) -> None:
    catalog = service.catalog
    ours, theirs = _client(service, "ours", *Scope), _client(service, "café", Scope.WRITE)
    with ours, theirs:
        held, _, waiting = _train(ours), _train(ours), _train(theirs)
        claim = claim_job(catalog, held, "host/12/ab", 60)
        assert claim is not None

        found = ours.get("/v1/work").json()

        queues = {one["workspace"]: one for one in found["queues"]}
        assert [(queues[n]["queued"], queues[n]["running"]) for n in ("ours", "café")] == [
            (1, 1),
            (1, 0),
        ]
        job = catalog.workspace("café").jobs.get(waiting)
        assert datetime.fromisoformat(queues["café"]["oldest_queued_at"]) == job.queued_at
        (lease,) = found["jobs"]
        assert (lease["id"], lease["workspace"], lease["worker"]) == (held, "ours", "host/12")
        assert (lease["is_lost"], lease["attempt"]) == (False, 1)

        let_expire(catalog, claim)
        (lease,) = ours.get("/v1/work").json()["jobs"]
        assert lease["is_lost"]


def test_a_worker_that_falls_silent_is_lost_and_later_forgotten(service: Running) -> None:
    workers = service.catalog.workers
    workers.seen("one/1", "0.1.0", ["CPU: train, compute"])
    workers.seen("two/2", "0.1.0", ["GPU 0: train", "CPU: compute"])

    def states() -> dict[str, Any]:
        found = service.http.get("/v1/work").json()["workers"]
        return {one["name"]: (one["is_lost"], len(one["slots"])) for one in found}

    assert states() == {"one/1": (False, 1), "two/2": (False, 2)}
    _make_silent(service, "one/1", 60)
    assert states() == {"one/1": (True, 1), "two/2": (False, 2)}
    _make_silent(service, "one/1", 4000)
    workers.seen("two/2", "0.1.0", ["CPU: compute"])
    assert states() == {"two/2": (False, 1)}
    workers.gone("two/2")
    assert states() == {}


def _make_silent(service: Running, name: str, seconds: float) -> None:
    """As if the worker had given its last sign of life so long ago."""
    seen_at = datetime.now(UTC) - timedelta(seconds=seconds)
    with service.catalog.database.writing() as session:
        session.execute(update(WorkerRow).where(WorkerRow.name == name).values(seen_at=seen_at))


def test_only_who_administers_sees_it(service: Running) -> None:
    with _client(service, "ours", Scope.READ, Scope.WRITE) as http:
        assert_problem(http.get("/v1/work"), 403, "missing-scope")
