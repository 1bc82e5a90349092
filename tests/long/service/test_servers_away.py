"""PostgreSQL, Redis and S3 go away while the service runs: it says so, and goes on by itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from sqlalchemy import func, select

from catalog.database.tables import OrphanRow
from tests.running_service import Running, assert_problem, running, settings_in
from tests.servers.servers import PostgresServer, RedisServer, S3Server
from tests.servers.store_proxy import StoreMode, StoreProxy
from worker.upkeep import collect_garbage

_ANSWER_SECONDS = 2.0
_TRIES = 3  # a busy machine may be slow once
_CSV = {"Content-Type": "text/csv"}
_RESERVATION_SECONDS = 2.0


@dataclass(frozen=True)
class Production:
    """A service on the servers of production, which a test may mistreat."""

    service: Running
    postgres: PostgresServer
    redis: RedisServer
    proxy: StoreProxy

    @property
    def http(self) -> httpx.Client:
        return self.service.http

    def answers(self) -> bool:
        return self.http.get("/readyz").status_code == 200

    def upload(self, table: bytes, **headers: str) -> httpx.Response:
        return self.http.post("/v1/datasets", content=table, headers=_CSV | headers)

    def assert_nothing_is_left(self, before: dict[str, object]) -> None:
        """Once reservations have run out and a worker has collected garbage, all is as before."""
        deadline = time.monotonic() + 60
        while self.service.traces() != before and time.monotonic() < deadline:
            collect_garbage(self.service.catalog, self.service.store)
            time.sleep(0.1)
        assert self.service.traces() == before


@pytest.fixture(scope="module")
def production(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Production]:
    with ExitStack() as stack:
        postgres = stack.enter_context(PostgresServer())
        redis = stack.enter_context(RedisServer())
        s3 = stack.enter_context(S3Server())
        proxy = stack.enter_context(StoreProxy(s3.port))
        environment = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in (s3.environment() | {"AWS_ENDPOINT_URL": proxy.url}).items():
            environment.setenv(name, value)
        settings = settings_in(
            tmp_path_factory.mktemp("production"),
            database_url=postgres.create_database("service"),
            broker_url=redis.url,
            store_url="s3://bucket/service",
            reservation_seconds=_RESERVATION_SECONDS,
        )
        yield Production(stack.enter_context(running(settings)), postgres, redis, proxy)


@pytest.fixture(scope="module")
def dataset(production: Production, cars: bytes) -> dict[str, Any]:
    return dict(production.upload(cars).json())


def assert_unavailable(response: httpx.Response, name: str) -> dict[str, Any]:
    """A 503 that came in time and says when to ask again."""
    problem = assert_problem(response, 503, name)
    assert int(response.headers["Retry-After"]) > 0
    assert quickest_seconds(response) < _ANSWER_SECONDS
    return problem


def quickest_seconds(response: httpx.Response) -> float:
    """How long the answer took, or that of the same request sent again where it was slow."""
    seconds = [response.elapsed.total_seconds()]
    with httpx.Client(timeout=60) as again:
        while seconds[-1] >= _ANSWER_SECONDS and len(seconds) < _TRIES:
            seconds.append(again.send(response.request).elapsed.total_seconds())
    return min(seconds)


def test_without_postgres_every_call_says_so_soon_and_works_again_after(
    production: Production, dataset: dict[str, Any], cars: bytes
) -> None:
    http, training = production.http, {"dataset_id": dataset["id"]}
    production.postgres.kill()
    for response in (
        http.get("/v1/jobs"),
        http.get(f"/v1/datasets/{dataset['id']}"),
        http.post("/v1/models", json=training),
        http.post("/v1/models", json=training, headers={"Idempotency-Key": "again"}),
        http.delete(f"/v1/datasets/{dataset['id']}"),
        production.upload(cars),
    ):
        assert_unavailable(response, "database-unavailable")
    problem = assert_unavailable(http.get("/readyz"), "not-ready")
    assert problem["checks"]["database"] != "ok"
    assert problem["checks"]["store"] == problem["checks"]["broker"] == "ok"
    assert http.get("/healthz").status_code == 200
    production.postgres.start()
    assert production.answers()
    assert http.get(f"/v1/datasets/{dataset['id']}").json() == dataset
    headers = {"Idempotency-Key": "again"}
    assert http.post("/v1/models", json=training, headers=headers).status_code == 202


def test_a_frozen_postgres_hangs_no_call_and_works_again_after(
    production: Production, dataset: dict[str, Any]
) -> None:
    production.postgres.freeze()
    response = production.http.get("/v1/jobs")
    try:
        assert_unavailable(production.http.get("/readyz"), "not-ready")
    finally:
        production.postgres.thaw()
    assert_problem(response, 503, "database-unavailable")
    assert production.http.get(f"/v1/datasets/{dataset['id']}").json() == dataset


@pytest.mark.parametrize("fate", ["killed", "frozen"])
def test_without_redis_jobs_are_taken_soon_and_the_service_is_not_ready(
    production: Production, dataset: dict[str, Any], fate: str
) -> None:
    http, redis = production.http, production.redis
    redis.kill() if fate == "killed" else redis.freeze()
    try:
        taken = http.post("/v1/models", json={"dataset_id": dataset["id"]})
        taken_seconds = quickest_seconds(taken)
        ready = assert_unavailable(http.get("/readyz"), "not-ready")
    finally:
        redis.start() if fate == "killed" else redis.thaw()
    assert taken.status_code == 202
    assert taken_seconds < _ANSWER_SECONDS
    assert ready["checks"]["broker"] != "ok"
    assert production.answers()
    job_id = taken.json()["job_id"]
    leases = production.service.catalog.leases
    _wait_until(lambda: job_id in [job.id for job in leases.take_due()])  # it is sent then
    assert http.post(f"/v1/jobs/{job_id}/cancel").json()["status"] == "cancelled"


def test_an_upload_in_flight_when_postgres_dies_leaves_nothing(
    production: Production, cars: bytes
) -> None:
    before = production.service.traces()
    coming = threading.Event()

    def slowly() -> Iterator[bytes]:
        yield cars[:500]
        coming.wait(60)
        yield cars[500:]

    answers: list[httpx.Response] = []

    def send() -> None:
        answers.append(production.http.post("/v1/datasets", content=slowly(), headers=_CSV))

    uploading = threading.Thread(target=send)
    uploading.start()
    production.postgres.kill()
    coming.set()
    uploading.join()
    production.postgres.start()
    assert_problem(answers[0], 503, "database-unavailable")
    assert production.service.traces() == before


def test_an_upload_whose_record_can_not_be_made_leaves_nothing_and_may_come_again(
    production: Production, cars: bytes
) -> None:
    before = production.service.traces()
    production.proxy.mode = StoreMode.SLOW
    answers: list[httpx.Response] = []
    key = {"Idempotency-Key": "upload"}
    uploading = threading.Thread(target=lambda: answers.append(production.upload(cars, **key)))
    uploading.start()
    _wait_until(lambda: _n_orphans(production) != before["leftovers"])
    production.postgres.kill()  # between the reservation and the record
    uploading.join()
    production.postgres.start()
    production.proxy.mode = StoreMode.WELL
    assert_problem(answers[0], 503, "database-unavailable")
    _wait_until(lambda: production.upload(cars, **key).status_code == 201)
    [uploaded] = production.http.get("/v1/datasets?limit=1").json()["items"]
    assert production.http.delete(f"/v1/datasets/{uploaded['id']}").status_code == 204
    before["idempotency_keys"] = production.service.traces()["idempotency_keys"]
    production.assert_nothing_is_left(before)


@pytest.mark.parametrize(
    "mode", [StoreMode.ERRORS, StoreMode.FULL, StoreMode.READ_ONLY, StoreMode.TRUNCATED]
)
def test_an_upload_to_a_store_that_fails_is_refused_and_leaves_nothing(
    production: Production, cars: bytes, mode: StoreMode
) -> None:
    before = production.service.traces()
    production.proxy.mode = mode
    response = production.upload(cars)
    production.proxy.mode = StoreMode.WELL
    assert_problem(response, 503, "store-unavailable")
    assert int(response.headers["Retry-After"]) > 0
    production.assert_nothing_is_left(before)


def _n_orphans(production: Production) -> int | None:
    with production.service.catalog.database.reading() as session:
        return session.scalar(select(func.count()).select_from(OrphanRow))


def _wait_until(is_done: Any) -> None:
    deadline = time.monotonic() + 60
    while not is_done():
        assert time.monotonic() < deadline
        time.sleep(0.05)
