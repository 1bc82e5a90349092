"""Jobs: polled, followed, listed, cancelled, tried again."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from catalog import Claim, Failed
from tests.claims import claim_job
from tests.running_service import Running, assert_problem


@pytest.fixture
def job(service: Running, dataset_id: str) -> dict[str, Any]:
    """A queued training job."""
    model = service.http.post("/v1/models", json={"dataset_id": dataset_id}).json()
    return dict(service.http.get(f"/v1/jobs/{model['job_id']}").json())


def claim(service: Running, job: dict[str, Any]) -> Claim:
    claimed = claim_job(service.catalog, job["id"], "a worker", lease_seconds=60)
    assert claimed is not None
    return claimed


def events(response: httpx.Response) -> Iterator[tuple[int, dict[str, Any]]]:
    """Id and document of each event of a stream."""
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        name, _, value = line.partition(": ")
        if line:
            fields[name] = value
        elif "data" in fields:
            assert fields["event"] == "job"
            yield int(fields["id"]), json.loads(fields["data"])
            fields = {}


def test_a_waiting_job_says_when_to_ask_again(service: Running, job: dict[str, Any]) -> None:
    assert set(job) >= {
        "id", "kind", "status", "attempt", "progress", "error", "created_at", "started_at",
        "finished_at",
    }  # fmt: skip
    assert set(job["progress"]) == {
        "phase", "table", "fraction", "epoch", "epochs", "bound_train", "bound_held_out",
        "rows_per_second", "seconds_left",
    }  # fmt: skip
    response = service.http.get(f"/v1/jobs/{job['id']}")
    assert int(response.headers["Retry-After"]) >= 1
    assert response.json()["created_at"].endswith("Z")


def test_polling_sends_nothing_until_something_changed(
    service: Running, job: dict[str, Any]
) -> None:
    path = f"/v1/jobs/{job['id']}"
    tag = service.http.get(path).headers["ETag"]
    unchanged = service.http.get(path, headers={"If-None-Match": f'"other", {tag}'})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert unchanged.headers["ETag"] == tag
    assert "Retry-After" in unchanged.headers
    claimed = claim(service, job)
    progress = {"phase": "training", "fraction": 0.5, "bound_train": -3.25}
    service.catalog.leases.heartbeat(claimed, progress)
    changed = service.http.get(path, headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.json()["status"] == "running"
    assert changed.json()["progress"]["bound_train"] == -3.25


def test_events_tell_each_change_until_the_job_is_over(
    service: Running, job: dict[str, Any]
) -> None:
    with service.http.stream("GET", f"/v1/jobs/{job['id']}/events") as response:
        assert response.headers["Content-Type"].startswith("text/event-stream")
        stream = events(response)
        first_id, first = next(stream)
        assert first == job
        claimed = claim(service, job)
        second_id, second = next(stream)
        assert second["status"] == "running"
        service.catalog.leases.finish(claimed, Failed("trouble", "it broke"))
        last_id, last = next(stream)
        assert (last["status"], last["error"]["message"]) == ("failed", "it broke")
        assert first_id < second_id < last_id
        assert list(stream) == []


def test_events_resume_after_the_last_one_seen(service: Running, job: dict[str, Any]) -> None:
    path = f"/v1/jobs/{job['id']}/events"
    with service.http.stream("GET", path) as response:
        seen, _ = next(events(response))
    claimed = claim(service, job)
    with service.http.stream("GET", path, headers={"Last-Event-ID": str(seen)}) as response:
        stream = events(response)
        next_id, document = next(stream)
        assert next_id > seen
        assert document["status"] == "running"
    service.catalog.leases.finish(claimed, Failed("trouble", "it broke"))
    with service.http.stream("GET", path, headers={"Last-Event-ID": str(next_id)}) as response:
        (last,) = events(response)
    over = service.http.get(path, headers={"Last-Event-ID": str(last[0])})
    assert over.status_code == 204


@pytest.mark.parametrize("last", ["", "no number", "999999"])
def test_an_event_id_that_was_never_sent_starts_anew(
    service: Running, job: dict[str, Any], last: str
) -> None:
    path = f"/v1/jobs/{job['id']}/events"
    with service.http.stream("GET", path, headers={"Last-Event-ID": last}) as response:
        assert next(events(response))[1] == job


def test_a_server_that_stops_ends_its_streams(start: Callable[..., Running], cars: bytes) -> None:
    service = start()
    headers = {"Content-Type": "text/csv"}
    dataset = service.http.post("/v1/datasets", content=cars, headers=headers).json()
    model = service.http.post("/v1/models", json={"dataset_id": dataset["id"]}).json()
    with service.http.stream("GET", f"/v1/jobs/{model['job_id']}/events") as response:
        stream = events(response)
        next(stream)
        service.resources.closing.set()
        assert list(stream) == []


def test_cancelling_twice_is_no_error(service: Running, job: dict[str, Any]) -> None:
    path = f"/v1/jobs/{job['id']}"
    for _ in range(2):
        cancelled = service.http.post(f"{path}/cancel")
        assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    model = service.http.get(f"/v1/models/{job['model_id']}").json()
    assert model["status"] == "cancelled"
    assert "Retry-After" not in service.http.get(path).headers


def test_cancelling_a_running_job_asks_it_to_stop(service: Running, job: dict[str, Any]) -> None:
    claimed = claim(service, job)
    asked = service.http.post(f"/v1/jobs/{job['id']}/cancel").json()
    assert (asked["status"], asked["cancel_requested"]) == ("running", True)
    assert service.catalog.leases.heartbeat(claimed).cancel_requested


def test_only_what_failed_or_was_cancelled_is_tried_again(
    service: Running, job: dict[str, Any]
) -> None:
    path = f"/v1/jobs/{job['id']}"
    assert_problem(service.http.post(f"{path}/retry"), 409, "conflict")
    service.http.post(f"{path}/cancel")
    retried = service.http.post(f"{path}/retry")
    assert (retried.status_code, retried.json()["status"]) == (202, "queued")
    assert retried.headers["Location"] == path
    service.catalog.leases.finish(claim(service, job), Failed("trouble", "it broke"))
    assert_problem(service.http.post(f"{path}/cancel"), 409, "conflict")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "jobs/job_x"), ("GET", "jobs/job_x/events"), ("POST", "jobs/job_x/cancel"),
        ("POST", "jobs/job_x/retry"), ("GET", "datasets/ds_x"), ("DELETE", "datasets/ds_x"),
        ("GET", "datasets/ds_x/profile"), ("GET", "models/mdl_x"), ("DELETE", "models/mdl_x"),
        ("GET", "samples/smp_x"), ("GET", "samples/smp_x/content"), ("GET", "scores/scr_x"),
        ("DELETE", "samples/smp_x"), ("GET", "datasets/%00"), ("GET", "jobs/%F0%9F%98%80"),
    ],
)  # fmt: skip
def test_what_is_unknown_is_not_found(service: Running, method: str, path: str) -> None:
    assert_problem(service.http.request(method, f"/v1/{path}"), 404, "not-found")


def test_pages_lead_through_the_whole_list_newest_first(
    start: Callable[..., Running],
) -> None:
    service = start()
    headers = {"Content-Type": "text/csv"}
    made = [
        service.http.post("/v1/datasets", content=b"a\n1\n2\n", headers=headers).json()["id"]
        for _ in range(5)
    ]
    found, cursor, sizes = [], None, []
    while True:
        params = {"limit": 2} | ({} if cursor is None else {"cursor": cursor})
        page = service.http.get("/v1/datasets", params=params).json()
        found += [item["id"] for item in page["items"]]
        sizes.append(len(page["items"]))
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert found == made[::-1]
    assert sizes == [2, 2, 1]


@pytest.mark.parametrize("query", ["limit=0", "limit=1000", "limit=x", "cursor=%21", "status=done"])
def test_a_page_that_can_not_be_is_refused(service: Running, query: str) -> None:
    response = service.http.get(f"/v1/jobs?{query}")
    name = "invalid-cursor" if "cursor" in query else "invalid-request"
    assert_problem(response, 422, name)


def test_jobs_are_listed_by_status_kind_and_model(service: Running, job: dict[str, Any]) -> None:
    params = {"status": "queued", "kind": "train", "model_id": job["model_id"]}
    assert service.http.get("/v1/jobs", params=params).json()["items"] == [job]
    assert service.http.get("/v1/jobs", params=params | {"kind": "score"}).json()["items"] == []


def test_many_readers_follow_one_job(service: Running, job: dict[str, Any]) -> None:
    last: list[str] = []
    started = threading.Barrier(9)

    def follow() -> None:
        path = f"{service.url}/v1/jobs/{job['id']}/events"
        with httpx.stream("GET", path, timeout=20) as response:
            stream = events(response)
            next(stream)
            started.wait(60)
            last.extend(document["status"] for _, document in stream)

    readers = [threading.Thread(target=follow) for _ in range(8)]
    for reader in readers:
        reader.start()
    started.wait(60)
    service.http.post(f"/v1/jobs/{job['id']}/cancel")
    for reader in readers:
        reader.join(60)
    assert last == ["cancelled"] * 8


def test_a_waiting_job_tells_its_queue_its_priority_and_what_it_is_likely_to_take(
    service: Running, dataset_id: str, model: dict[str, Any]
) -> None:
    body = {"dataset_id": dataset_id, "priority": 7}
    training = service.http.post("/v1/models", json=body).json()["job_id"]
    told = service.http.get(f"/v1/jobs/{training}").json()
    assert (told["queue"], told["priority"]) == ("train", 7)
    assert told["estimate"]["seconds"] > 1
    assert told["estimate"]["memory_bytes"] > 10**8
    path = f"/v1/models/{model['id']}/samples"
    for given, is_known in (({}, True), ({"given": {"fuel": "petrol"}}, False)):
        sample = service.http.post(path, json={"rows": 5001, **given}).json()["job_id"]
        told = service.http.get(f"/v1/jobs/{sample}").json()
        assert (told["queue"], told["estimate"] is not None) == ("compute", is_known)
        service.http.post(f"/v1/jobs/{sample}/cancel")
    report = service.http.post(f"/v1/models/{model['id']}/report", json={}).json()["job_id"]
    assert service.http.get(f"/v1/jobs/{report}").json()["estimate"]["seconds"] > 1
    service.http.post(f"/v1/jobs/{report}/cancel")
    service.http.post(f"/v1/jobs/{training}/cancel")


def test_a_priority_out_of_its_range_is_refused(service: Running, dataset_id: str) -> None:
    response = service.http.post("/v1/models", json={"dataset_id": dataset_id, "priority": 101})
    problem = assert_problem(response, 422, "invalid-request")
    assert problem["errors"][0]["pointer"] == "/priority"
