"""What a workspace may take in all: storage and time of training."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from catalog.database.clock import database_clock
from catalog.database.tables import JobRow
from tests.catalog.conftest import add_dataset
from tests.running_service import Running, assert_problem, train, work

TABLE = b"a,b\n" + b"".join(b"%d,%d\n" % (i % 9, i % 2) for i in range(60))
CSV = {"Content-Type": "text/csv"}


def test_an_upload_beyond_the_storage_of_its_workspace_is_refused_and_leaves_nothing(
    start: Callable[..., Running],
) -> None:
    service = start(max_stored_bytes=2 * len(TABLE))
    ids = [_upload(service)["id"] for _ in range(2)]
    before = service.traces()
    refused = service.http.post("/v1/datasets", content=TABLE, headers=CSV)
    problem = assert_problem(refused, 403, "quota-exceeded")
    assert problem["limit"] == 2 * len(TABLE)
    assert re.search(r"stores [\d.]+ \w+ of [\d.]+ \w+, and this request would", problem["detail"])
    assert problem["setting"] == "GCVAE_MAX_STORED_BYTES"
    assert service.traces() == before
    training = service.http.post("/v1/models", json={"dataset_id": ids[0]})
    assert_problem(training, 403, "quota-exceeded")  # it would store a model
    add_dataset(service.catalog, workspace="another")
    service.http.delete(f"/v1/datasets/{ids[0]}")
    _upload(service)


def test_models_and_results_are_counted_as_tables_are(service: Running, cars: bytes) -> None:
    ours = service.catalog.workspace("default")
    before = ours.usage.stored_bytes()
    model = train(service, cars)
    job = service.http.post(f"/v1/models/{model['id']}/samples", json={"rows": 6000}).json()
    work(service, job["job_id"])
    kept = ours.models.get(model["id"]).artifact_bytes, ours.results.get(job["id"]).size_bytes
    assert ours.usage.stored_bytes() == before + len(cars) + sum(kept)  # type: ignore[arg-type]
    assert service.catalog.workspace("nobody's").usage.stored_bytes() == 0


def test_trainings_of_thirty_days_are_counted_and_the_next_is_refused(
    start: Callable[..., Running],
) -> None:
    service = start(max_training_seconds=500)
    model = train(service, TABLE)
    asked = {"dataset_id": model["dataset_id"]}
    _spend(service, model["job_id"], 400)
    waiting = service.http.post("/v1/models", json=asked)
    assert waiting.status_code == 202
    _spend(service, model["job_id"], 600)
    problem = assert_problem(service.http.post("/v1/models", json=asked), 403, "quota-exceeded")
    assert (problem["limit"], problem["setting"]) == (500, "GCVAE_MAX_TRAINING_SECONDS")
    job_id = waiting.json()["job_id"]
    service.http.post(f"/v1/jobs/{job_id}/cancel")
    assert_problem(service.http.post(f"/v1/jobs/{job_id}/retry"), 403, "quota-exceeded")
    sampled = service.http.post(f"/v1/models/{model['id']}/samples", json={"rows": 2})
    assert sampled.status_code == 200
    _spend(service, model["job_id"], 600, ago=40 * 86_400)
    assert service.http.post("/v1/models", json=asked).status_code == 202


def _upload(service: Running) -> dict[str, str]:
    answer = service.http.post("/v1/datasets", content=TABLE, headers=CSV)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def _spend(service: Running, job_id: str, seconds: float, ago: float = 0.0) -> None:
    """Have a training begun so long before its end, which was so long ago."""
    with service.catalog.database.writing() as session:
        job = session.get(JobRow, job_id)
        assert job is not None
        job.started_at = database_clock(-ago - seconds)
        job.finished_at = database_clock(-ago)


@pytest.mark.parametrize("n_bytes", [0, -1])
def test_a_limit_of_nothing_is_refused(start: Callable[..., Running], n_bytes: int) -> None:
    with pytest.raises(ValueError, match="max_stored_bytes"):
        start(max_stored_bytes=n_bytes)
