"""Webhooks: signed events of jobs, reports and keys, at least once and in order."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import select, update
from standardwebhooks import Webhook as Standard

from catalog.database.tables import DeliveryRow, WebhookRow
from catalog.records import Scope
from catalog.webhooks.outbox import MOST_ATTEMPTS
from tests.running_service import (
    OUTSIDE,
    Running,
    assert_problem,
    running,
    settings_in,
    train,
    work,
)
from tests.servers.webhook_receiver import Receiver, receiver

INTERVAL_SECONDS = 0.05


@pytest.fixture
def target() -> Iterator[Receiver]:
    """A receiver of events."""
    with receiver() as found:
        yield found


SETTINGS: dict[str, Any] = {
    "outside_timeout_seconds": 0.4,
    "webhook_interval_seconds": INTERVAL_SECONDS,
    **OUTSIDE,
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service that may reach the receiver."""
    with running(settings_in(tmp_path_factory.mktemp("service"), **SETTINGS)) as found:
        yield found


@pytest.fixture
def service(shared: Running) -> Iterator[Running]:
    """That service, without webhooks before and after the test."""
    yield shared
    for webhook in shared.http.get("/v1/webhooks").json()["items"]:
        shared.http.delete(f"/v1/webhooks/{webhook['id']}")


@pytest.fixture
def own(start: Callable[..., Running]) -> Running:
    """A service of the test's own, which may have keys."""
    return start(**SETTINGS)


def _create(http: httpx.Client, url: str, **more: Any) -> dict[str, Any]:
    made = http.post("/v1/webhooks", json={"url": url} | more)
    assert made.status_code == 201, made.text
    assert made.headers["Location"] == f"/v1/webhooks/{made.json()['id']}"
    return dict(made.json())


def _end_job(http: httpx.Client, cars: bytes) -> None:
    """A training that is cancelled before it begins."""
    dataset = http.post("/v1/datasets", content=cars, headers={"Content-Type": "text/csv"})
    made = http.post("/v1/models", json={"dataset_id": dataset.json()["id"]}).json()
    http.post(f"/v1/jobs/{made['job_id']}/cancel")


def _log(http: httpx.Client, webhook: dict[str, Any]) -> list[dict[str, Any]]:
    return list(http.get(f"/v1/webhooks/{webhook['id']}/deliveries").json()["items"])


def _until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


def _hurry(service: Running) -> None:
    """Let all pauses between attempts be over."""
    with service.catalog.database.writing() as session:
        due = update(DeliveryRow).where(DeliveryRow.next_attempt_at.is_not(None))
        session.execute(due.values(next_attempt_at=datetime.now(UTC)))


def test_an_ended_job_and_a_ready_report_are_signed_events(
    service: Running, target: Receiver, cars: bytes
) -> None:
    webhook = _create(service.http, f"{target.url}/hook")
    model = train(service, cars)
    report = service.http.post(f"/v1/models/{model['id']}/report", json={}).json()
    work(service, report["job_id"])

    target.wait_for(3)

    events = target.events()  # in order within a job; events of several jobs are sent at once
    [trained] = [event for event in events if event["data"]["job_id"] == model["job_id"]]
    reported, ready = (e for e in events if e["data"]["job_id"] == report["job_id"])
    assert [event["type"] for event in (trained, reported, ready)] == [
        "job.ended",
        "job.ended",
        "report.ready",
    ]
    assert trained["data"] == {
        "job_id": model["job_id"],
        "kind": "train",
        "status": "succeeded",
        "model_id": model["id"],
        "dataset_id": model["dataset_id"],
        "result_id": None,
        "error": None,
    }
    for _, headers, body in target.received:
        Standard(webhook["secret"]).verify(body, headers)
        assert headers["content-type"] == "application/json"
    _until(lambda: all(entry["delivered_at"] for entry in _log(service.http, webhook)))
    assert [entry["attempts"] for entry in _log(service.http, webhook)] == [1, 1, 1]
    assert [entry["status_code"] for entry in _log(service.http, webhook)] == [204] * 3


def test_a_failed_job_is_told_without_its_message(
    service: Running, target: Receiver, cars: bytes
) -> None:
    _create(service.http, f"{target.url}/hook")
    _end_job(service.http, cars)
    target.wait_for(1)
    assert target.events()[0]["data"]["status"] == "cancelled"


def test_only_the_wanted_events_of_the_own_workspace_are_sent(
    own: Running, target: Receiver, cars: bytes
) -> None:
    _, text = own.catalog.keys.create("other", "", list(Scope))
    with httpx.Client(base_url=own.url, headers={"Authorization": f"Bearer {text}"}) as other:
        _create(other, f"{target.url}/other")
        webhook = _create(other, f"{target.url}/reports", events=["report.ready"])
        _, ours = own.catalog.keys.create("default", "", list(Scope))
        own.http.headers["Authorization"] = f"Bearer {ours}"
        _create(own.http, f"{target.url}/hook", events=["job.ended"])
        _end_job(own.http, cars)
        target.wait_for(1)
        assert_problem(own.http.get(f"/v1/webhooks/{webhook['id']}"), 404, "not-found")
        assert other.get("/v1/webhooks").json()["items"][0]["url"].endswith("/reports")
    time.sleep(5 * INTERVAL_SECONDS)
    assert target.events("/other") == target.events("/reports") == []


@pytest.mark.parametrize("answer", [500, 302, "hang"])
def test_an_event_that_is_not_accepted_is_sent_again(
    service: Running, target: Receiver, answer: int | str
) -> None:
    target.answers["/hook"] = answer if isinstance(answer, int) else lambda: time.sleep(1) or 204
    webhook = _create(service.http, f"{target.url}/hook")
    service.http.post(f"/v1/webhooks/{webhook['id']}/ping")
    _until(lambda: _log(service.http, webhook)[0]["error"] is not None)
    [entry] = _log(service.http, webhook)
    assert entry["status_code"] == (answer if isinstance(answer, int) else None)
    assert entry["next_attempt_at"] is not None

    target.answers.clear()
    _hurry(service)
    _until(lambda: _log(service.http, webhook)[0]["delivered_at"] is not None)
    events = target.events()
    assert len(events) == 2
    assert events[0] == events[1]


def test_a_dead_receiver_holds_no_other_up_and_keeps_the_order(
    service: Running, target: Receiver
) -> None:
    target.answers["/dead"] = lambda: time.sleep(30) or 204
    dead = _create(service.http, f"{target.url}/dead")
    alive = _create(service.http, f"{target.url}/hook")
    began = time.monotonic()
    for _ in range(5):
        service.http.post(f"/v1/webhooks/{dead['id']}/ping")
        service.http.post(f"/v1/webhooks/{alive['id']}/ping")
    target.wait_for(5)
    assert time.monotonic() - began < 25
    told = [event["id"] for event in target.events()]
    assert told == sorted(told), "events about one subject arrive in their order"
    assert len({event["id"] for event in target.events("/dead")}) == 1, "the next one waits"


def test_a_delivery_is_given_up_and_can_be_repeated(service: Running, target: Receiver) -> None:
    target.answers["/hook"] = 500
    webhook = _create(service.http, f"{target.url}/hook")
    service.http.post(f"/v1/webhooks/{webhook['id']}/ping")
    _until(lambda: _log(service.http, webhook)[0]["error"] is not None)
    with service.catalog.database.writing() as session:
        session.execute(update(DeliveryRow).values(attempts=MOST_ATTEMPTS - 1))
    _hurry(service)
    _until(lambda: _log(service.http, webhook)[0]["next_attempt_at"] is None)
    [entry] = _log(service.http, webhook)
    assert (entry["attempts"], entry["delivered_at"]) == (MOST_ATTEMPTS, None)

    target.answers.clear()
    again = service.http.post(f"/v1/webhooks/{webhook['id']}/deliveries/{entry['id']}/retry")
    assert again.status_code == 202
    _until(lambda: _log(service.http, webhook)[0]["delivered_at"] is not None)


def test_a_key_that_expires_within_a_week_is_told_once(own: Running, target: Receiver) -> None:
    _create(own.http, f"{target.url}/hook")
    keys, now = own.catalog.keys, datetime.now(UTC)
    soon, _ = keys.create("default", "soon", [Scope.READ], expires_at=now + timedelta(days=5))
    keys.create("default", "later", [Scope.READ], expires_at=now + timedelta(days=50))
    keys.create("elsewhere", "soon", [Scope.READ], expires_at=now + timedelta(days=5))
    for _ in range(3):
        own.catalog.outbox.announce_expiring_keys()
    target.wait_for(1)
    time.sleep(5 * INTERVAL_SECONDS)
    [event] = target.events()
    assert event["type"] == "key.expiring"
    assert (event["data"]["key_id"], event["data"]["name"]) == (soon.id, "soon")


def test_a_webhook_that_is_deleted_is_told_nothing_more(service: Running, target: Receiver) -> None:
    target.answers["/hook"] = 500
    webhook = _create(service.http, f"{target.url}/hook")
    service.http.post(f"/v1/webhooks/{webhook['id']}/ping")
    _until(lambda: bool(target.received))
    assert service.http.delete(f"/v1/webhooks/{webhook['id']}").status_code == 204
    with service.catalog.database.reading() as session:
        assert session.scalars(select(WebhookRow)).all() == []
        assert session.scalars(select(DeliveryRow)).all() == []
    assert_problem(service.http.delete(f"/v1/webhooks/{webhook['id']}"), 404, "not-found")


def test_old_deliveries_are_forgotten(service: Running, target: Receiver) -> None:
    webhook = _create(service.http, f"{target.url}/hook")
    service.http.post(f"/v1/webhooks/{webhook['id']}/ping")
    target.wait_for(1)
    _until(lambda: _log(service.http, webhook)[0]["delivered_at"] is not None)
    service.catalog.outbox.forget()
    assert len(_log(service.http, webhook)) == 1
    with service.catalog.database.writing() as session:
        session.execute(update(DeliveryRow).values(created_at=datetime.now(UTC) - timedelta(31)))
    service.catalog.outbox.forget()
    assert _log(service.http, webhook) == []


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"url": "https://example.com/x"}, "/url"),
        ({"url": "https://127.0.0.1@example.com/"}, "/url"),
        ({"url": "https://127.0.0.1/#x"}, "/url"),
        ({"url": "https://127.0.0.1/", "events": ["job.begun"]}, "/events/0"),
        ({"url": "https://127.0.0.1/", "events": []}, "/events"),
        ({"url": "https://127.0.0.1/", "secret": "mine"}, "/secret"),
        ({}, "/url"),
    ],
)
def test_a_webhook_that_is_not_valid_is_refused_at_its_place(
    service: Running, body: dict[str, Any], pointer: str
) -> None:
    problem = assert_problem(service.http.post("/v1/webhooks", json=body), 422, "invalid-request")
    assert problem["errors"][0]["pointer"] == pointer


def test_webhooks_need_the_scope_admin_and_hide_their_secret(
    own: Running, target: Receiver
) -> None:
    webhook = _create(own.http, f"{target.url}/hook")
    assert "secret" not in own.http.get(f"/v1/webhooks/{webhook['id']}").json()
    assert webhook["secret"] not in own.http.get("/v1/webhooks").text
    _, text = own.catalog.keys.create("default", "", [Scope.READ, Scope.WRITE])
    with httpx.Client(base_url=own.url, headers={"Authorization": f"Bearer {text}"}) as http:
        for method, path in (
            ("GET", ""),
            ("POST", ""),
            ("GET", f"/{webhook['id']}"),
            ("DELETE", f"/{webhook['id']}"),
            ("GET", f"/{webhook['id']}/deliveries"),
            ("POST", f"/{webhook['id']}/ping"),
        ):
            assert_problem(http.request(method, f"/v1/webhooks{path}"), 403, "missing-scope")


def test_a_workspace_has_twenty_webhooks_at_most(service: Running, target: Receiver) -> None:
    for n in range(20):
        _create(service.http, f"{target.url}/{n}")
    for url in (f"{target.url}/20", f"{target.url}/1"):
        assert_problem(service.http.post("/v1/webhooks", json={"url": url}), 409, "conflict")


def test_a_receiver_that_answers_byte_by_byte_is_left(service: Running) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            with suppress(OSError), listening.accept()[0] as sender:
                for _ in range(100):
                    sender.sendall(b"H")
                    time.sleep(0.1)

        threading.Thread(target=drip, daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        webhook = _create(service.http, url)
        service.http.post(f"/v1/webhooks/{webhook['id']}/ping")
        _until(lambda: bool(_log(service.http, webhook)[0]["error"]))
        [delivery] = _log(service.http, webhook)
        assert (delivery["error"], delivery["attempts"]) == (
            "the receiver did not answer in time",
            1,
        )


def test_without_allowed_hosts_there_are_no_webhooks(start: Callable[..., Running]) -> None:
    refused = start().http.post("/v1/webhooks", json={"url": "https://example.com/"})
    problem = assert_problem(refused, 422, "invalid-request")
    assert "GCVAE_OUTSIDE_HOSTS, which lists none" in problem["errors"][0]["expected"]
