"""Idempotency-Key: whatever is sent twice is done once."""

from __future__ import annotations

import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from catalog.idempotency import Idempotency
from tests.running_service import Running, assert_problem
from tests.wordings import same_wording


@pytest.fixture
def key() -> dict[str, str]:
    """The header with a new key."""
    return {"Idempotency-Key": uuid.uuid4().hex}


def test_an_upload_sent_twice_is_one_dataset(
    service: Running, cars: bytes, key: dict[str, str]
) -> None:
    headers = {"Content-Type": "text/csv", **key}
    first = service.http.post("/v1/datasets", content=cars, headers=headers)
    before = service.traces()
    again = service.http.post("/v1/datasets", content=cars, headers=headers)
    assert (again.status_code, again.json()) == (201, first.json())
    assert again.headers["Location"] == first.headers["Location"]
    assert again.headers["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first.headers
    assert service.traces() == before


def test_of_many_requests_at_once_with_one_key_one_is_done(
    service: Running, dataset_id: str, key: dict[str, str]
) -> None:
    before = service.catalog.workspace("default").jobs.count(["queued"])  # type: ignore[list-item]

    def ask(_: int) -> Any:
        body = {"dataset_id": dataset_id}
        return service.http.post("/v1/models", json=body, headers=key)

    with ThreadPoolExecutor(16) as pool:
        responses = list(pool.map(ask, range(32)))
    done = [response.json()["id"] for response in responses if response.status_code == 202]
    busy = [response for response in responses if response.status_code != 202]
    assert len(done) >= 1
    assert len(set(done)) == 1
    for response in busy:
        assert_problem(response, 409, "idempotency-key-busy")
        assert int(response.headers["Retry-After"]) >= 1
    assert service.catalog.workspace("default").jobs.count(["queued"]) == before + 1  # type: ignore[list-item]


def test_a_key_stands_for_one_request_only(
    service: Running, dataset_id: str, key: dict[str, str]
) -> None:
    body = {"dataset_id": dataset_id}
    assert service.http.post("/v1/models", json=body, headers=key).status_code == 202
    before = service.traces()
    for path, other in (
        ("/v1/models", body | {"name": "other"}),
        ("/v1/models", body | {"training": {"seed": 1}}),
    ):
        response = service.http.post(path, json=other, headers=key)
        assert_problem(response, 422, "idempotency-key-reused")
    assert service.traces() == before


def test_a_request_that_failed_frees_its_key(
    service: Running, cars: bytes, key: dict[str, str]
) -> None:
    headers = {"Content-Type": "text/csv", **key}
    refused = service.http.post("/v1/datasets", content=b"a,a\n1,2\n", headers=headers)
    assert_problem(refused, 422, "invalid-table")
    assert service.http.post("/v1/datasets", content=cars, headers=headers).status_code == 201


def test_a_long_sample_asked_twice_is_one_job(
    service: Running, model: dict[str, Any], key: dict[str, str]
) -> None:
    path, body = f"/v1/models/{model['id']}/samples", {"rows": 6000}
    first, again = (service.http.post(path, json=body, headers=key) for _ in range(2))
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json() == again.json()
    service.http.post(f"/v1/jobs/{first.json()['job_id']}/cancel")


@pytest.fixture
def unanswered(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after an API that died when something was made: nobody writes answers down."""

    def lose(*_: Any, **__: Any) -> None:
        raise OperationalError("", {}, Exception("the server closed the connection"))

    monkeypatch.setattr(Idempotency, "complete", lose)


@pytest.mark.parametrize("what", ["datasets", "models", "samples", "scores", "encodings"])
@pytest.mark.usefixtures("unanswered")
def test_what_was_made_is_the_answer_where_none_was_written_down(
    service: Running,
    dataset_id: str,
    model: dict[str, Any],
    cars: bytes,
    key: dict[str, str],
    what: str,
) -> None:
    rows = cars.partition(b"\n")[2]
    table = {"content": cars + rows, "headers": {"Content-Type": "text/csv", **key}}
    path, request = {
        "datasets": ("", {"content": cars, "headers": {"Content-Type": "text/csv", **key}}),
        "models": ("", {"json": {"dataset_id": dataset_id}, "headers": key}),
        "samples": (f"/models/{model['id']}", {"json": {"rows": 6000}, "headers": key}),
        "scores": (f"/models/{model['id']}", table),
        "encodings": (f"/models/{model['id']}", table),
    }[what]
    first = service.http.post(f"/v1{path}/{what}", **request)
    assert first.status_code == (201 if what == "datasets" else 202), first.text
    before = service.traces()
    again = service.http.post(f"/v1{path}/{what}", **request)
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert again.headers["Location"] == first.headers["Location"]
    assert again.headers["Idempotent-Replayed"] == "true"
    assert service.traces() == before
    if what != "datasets":
        service.http.post(f"/v1/jobs/{first.json()['job_id']}/cancel")


@pytest.mark.usefixtures("unanswered")
def test_what_was_made_and_is_deleted_is_not_made_again(
    service: Running, dataset_id: str, key: dict[str, str]
) -> None:
    body = {"dataset_id": dataset_id}
    model = service.http.post("/v1/models", json=body, headers=key).json()
    service.http.post(f"/v1/jobs/{model['job_id']}/cancel")
    assert service.http.delete(f"/v1/models/{model['id']}").status_code == 204
    again = service.http.post("/v1/models", json=body, headers=key)
    same_wording(assert_problem(again, 404, "not-found")["detail"], names=model["job_id"])


@pytest.mark.parametrize("bad", ["", "x" * 256, "tab\there"])
def test_a_key_that_can_not_be_is_refused(service: Running, dataset_id: str, bad: str) -> None:
    before = service.traces()
    headers = {"Idempotency-Key": bad}
    response = service.http.post("/v1/models", json={"dataset_id": dataset_id}, headers=headers)
    problem = assert_problem(response, 422, "invalid-request")
    assert problem["errors"][0]["parameter"] == "Idempotency-Key"
    assert service.traces() == before


@pytest.mark.parametrize("name", ["complete", "abandon"])
def test_a_key_is_settled_as_soon_as_the_database_is_back(
    service: Running,
    dataset_id: str,
    key: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    losses = iter([True])
    write = getattr(Idempotency, name)

    def lose_once(*told: Any, **more: Any) -> None:
        if next(losses, False):
            raise OperationalError("", {}, Exception("the server closed the connection"))
        write(*told, **more)

    monkeypatch.setattr(Idempotency, name, lose_once)
    asked = dataset_id if name == "complete" else "ds_none"
    first = service.http.post("/v1/models", json={"dataset_id": asked}, headers=key)
    assert first.status_code == (202 if name == "complete" else 404)
    before = service.traces()
    deadline = time.monotonic() + 60
    again = first
    while time.monotonic() < deadline:
        again = service.http.post("/v1/models", json={"dataset_id": asked}, headers=key)
        if again.status_code != 409:
            break
        assert_problem(again, 409, "idempotency-key-busy")
        time.sleep(0.1)
    assert again.status_code == first.status_code
    assert again.headers.get("Idempotent-Replayed") == ("true" if name == "complete" else None)
    if name == "complete":
        assert (again.json(), service.traces()) == (first.json(), before)
