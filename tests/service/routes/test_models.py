"""Models: asked for, trained by a worker, read, taken away, deleted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gcvae import Synthesizer
from service.reservations import collect_garbage
from tests.running_service import Running, assert_problem, train, work
from tests.wordings import same_wording


def test_a_model_asked_for_is_in_training_and_names_its_job(
    service: Running, dataset_id: str
) -> None:
    asked = {"dataset_id": dataset_id, "name": "first", "training": {"seed": 3, "max_steps": 7}}
    response = service.http.post("/v1/models", json=asked)
    model = response.json()
    assert response.status_code == 202
    assert response.headers["Location"] == f"/v1/jobs/{model['job_id']}"
    assert (model["name"], model["status"], model["dataset_id"]) == (
        "first", "training", dataset_id,
    )  # fmt: skip
    assert model["training"] == {
        "preset": "default", "seed": 3, "device": "auto", "max_steps": 7,
    }  # fmt: skip
    assert [column["name"] for column in model["schema"]["columns"]] == [
        "mpg", "cylinders", "fuel", "sold",
    ]  # fmt: skip
    assert service.http.get(f"/v1/models/{model['id']}").json() == model
    job = service.http.get(response.headers["Location"]).json()
    assert (job["kind"], job["status"], job["model_id"]) == ("train", "queued", model["id"])


@pytest.mark.parametrize(
    ("body", "name", "pointer"),
    [
        ({}, "invalid-request", "/dataset_id"),
        ({"dataset_id": "x", "preset": "y"}, "invalid-request", "/preset"),
        ({"dataset_id": "x", "name": ""}, "invalid-request", "/name"),
        ({"dataset_id": "x", "training": {"preset": "best"}}, "invalid-training",
         "/training/preset"),
        ({"dataset_id": "x", "training": {"seed": -1}}, "invalid-request", "/training/seed"),
        ({"dataset_id": "x", "training": {"device": "tpu"}}, "invalid-request",
         "/training/device"),
        ({"dataset_id": "x", "training": {"max_steps": 0}}, "invalid-training",
         "/training/max_steps"),
        ({"dataset_id": "x", "training": {"memory": "small"}}, "invalid-training",
         "/training/memory"),
        ({"dataset_id": "x", "training": {"epoochs": 3}}, "invalid-training",
         "/training/epoochs"),
    ],
)  # fmt: skip
def test_settings_that_can_not_be_are_refused_by_their_pointer(
    service: Running, body: dict[str, Any], name: str, pointer: str
) -> None:
    before = service.traces()
    problem = assert_problem(service.http.post("/v1/models", json=body), 422, name)
    assert problem["errors"][0]["pointer"] == pointer
    assert service.traces() == before


def test_a_model_of_low_memory_is_trained_and_says_so_in_its_record(
    service: Running, dataset_id: str
) -> None:
    training = {"preset": "fast", "memory": "low", "max_steps": 20, "annealing": 0.0}
    asked = {"dataset_id": dataset_id, "training": training}
    model = service.http.post("/v1/models", json=asked).json()
    assert model["training"]["memory"] == "low"
    work(service, model["job_id"])
    record = service.http.get(f"/v1/models/{model['id']}").json()["record"]
    found = {name: record["settings"][name] for name in ("memory", "gap_weight", "rare_level_rows")}
    assert found == {"memory": "low", "gap_weight": 1.0, "rare_level_rows": 12}
    assert all(isinstance(look["gap"], float) for look in record["history"])


@pytest.mark.parametrize(
    ("member", "meant"), [("max_step", "max_steps"), ("epochs", "max_passes"), ("sead", "seed")]
)
def test_an_unknown_training_member_is_answered_with_the_one_that_was_meant(
    service: Running, member: str, meant: str
) -> None:
    body = {"dataset_id": "x", "training": {member: 3}}
    problem = assert_problem(service.http.post("/v1/models", json=body), 422, "invalid-training")
    assert problem["errors"][0]["suggestion"] == meant
    assert problem["detail"].endswith(f"did you mean {meant!r}?")


@pytest.mark.parametrize(
    ("member", "belongs"),
    [("max_steps", "max_steps"), ("preset", "preset"), ("seed", "seed"), ("epochs", "max_passes"),
     ("batch-size", "batch_size")],
)  # fmt: skip
def test_a_setting_beside_training_is_said_to_belong_in_it(
    service: Running, member: str, belongs: str
) -> None:
    body = {"dataset_id": "x", member: 3}
    problem = assert_problem(service.http.post("/v1/models", json=body), 422, "invalid-request")
    [error] = problem["errors"]
    assert error == {
        "pointer": f"/{member}",
        "message": "a training setting belongs in `training`",
        "expected": f'"training": {{"{belongs}": …}}',
    }
    assert problem["detail"] == f"/{member}: {error['message']} (expected: {error['expected']})"


@pytest.mark.parametrize(
    ("path", "member", "meant"),
    [
        ("/v1/models", "dataset", "dataset_id"),
        ("/v1/models", "trainig", "training"),
        ("/v1/models/{model}/samples", "row", "rows"),
        ("/v1/models/{model}/samples", "givenrows", "given_rows"),
        ("/v1/models/{model}/scores", "draw", "draws"),
        ("/v1/models/{model}/imputations", "column", "columns"),
        ("/v1/models/{model}/encodings", "row", "rows"),
        ("/v1/models/{model}/dependencies", "rows", "row"),
    ],
)
def test_an_unknown_member_of_a_body_is_answered_with_the_one_that_was_meant(
    service: Running, model: dict[str, Any], path: str, member: str, meant: str
) -> None:
    url = path.format(model=model["id"])
    response = service.http.post(url, json={member: 3})
    problem = assert_problem(response, 422, "invalid-request")
    [error] = [error for error in problem["errors"] if error["pointer"] == f"/{member}"]
    assert error["suggestion"] == meant
    assert error["message"] == f"unknown member {member!r}"
    assert error["expected"].startswith("one of ")


def test_of_a_body_all_that_is_wrong_is_told_beside_its_unknown_members(service: Running) -> None:
    body = {"name": "", "nam": "x", "colour": "red", "training": {"seed": -1}}
    problem = assert_problem(service.http.post("/v1/models", json=body), 422, "invalid-request")
    places = {error["pointer"]: error for error in problem["errors"]}
    assert set(places) == {"/dataset_id", "/name", "/nam", "/colour", "/training/seed"}
    assert "suggestion" not in places["/colour"]
    assert places["/colour"]["expected"] == "one of dataset_id, name, priority, training, scoring"


def test_a_model_of_an_unknown_dataset_is_not_made(service: Running) -> None:
    before = service.traces()
    response = service.http.post("/v1/models", json={"dataset_id": "ds_nobody"})
    problem = assert_problem(response, 404, "not-found")
    same_wording(problem["detail"])
    assert service.traces() == before


def test_a_full_queue_takes_no_more(start: Callable[..., Running], cars: bytes) -> None:
    service = start(max_queued_jobs=1)
    headers = {"Content-Type": "text/csv"}
    dataset = service.http.post("/v1/datasets", content=cars, headers=headers).json()
    first = service.http.post("/v1/models", json={"dataset_id": dataset["id"]}).json()
    before = service.traces()
    response = service.http.post("/v1/models", json={"dataset_id": dataset["id"]})
    problem = assert_problem(response, 429, "queue-full")
    assert problem["setting"] == "GCVAE_MAX_QUEUED_JOBS"
    assert int(response.headers["Retry-After"]) > 0
    assert service.traces() == before
    service.http.post(f"/v1/jobs/{first['job_id']}/cancel")
    assert service.http.post("/v1/models", json={"dataset_id": dataset["id"]}).status_code == 202


def test_a_trained_model_shows_its_record(service: Running, model: dict[str, Any]) -> None:
    assert model["status"] == "ready"
    assert model["record"]["rows"] == 100
    assert model["bound_held_out"] == model["record"]["bound_held_out"]
    job = service.http.get(f"/v1/jobs/{model['job_id']}").json()
    assert (job["status"], job["error"]) == ("succeeded", None)
    assert job["finished_at"] >= job["started_at"] >= job["created_at"]


def test_the_artifact_is_one_file_that_the_library_reads(
    service: Running, model: dict[str, Any], tmp_path: Path
) -> None:
    response = service.http.get(f"/v1/models/{model['id']}/artifact")
    assert hashlib.sha256(response.content).hexdigest() == model["artifact_sha256"]
    assert len(response.content) == model["artifact_bytes"]
    assert f'filename="{model["id"]}.gcvae"' in response.headers["Content-Disposition"]
    path = tmp_path / "model.gcvae"
    path.write_bytes(response.content)
    assert Synthesizer.load(path).schema.to_json() == model["schema"]
    again = {"If-None-Match": response.headers["ETag"]}
    assert service.http.get(response.url.path, headers=again).status_code == 304


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "artifact", None),
        ("POST", "samples", {"rows": 5}),
        ("POST", "scores", {"rows": [{"mpg": 3}]}),
        ("GET", "dependencies", None),
        ("POST", "dependencies", {"row": {}}),
        ("POST", "encodings", {"rows": [{"mpg": 3}]}),
        ("GET", "manifold", None),
    ],
)
def test_a_model_that_is_not_ready_does_nothing_yet(
    service: Running, dataset_id: str, method: str, path: str, body: dict[str, Any] | None
) -> None:
    model = service.http.post("/v1/models", json={"dataset_id": dataset_id}).json()
    before = service.traces()
    response = service.http.request(method, f"/v1/models/{model['id']}/{path}", json=body)
    problem = assert_problem(response, 409, "model-not-ready")
    same_wording(problem["detail"], names=model["id"])
    assert service.traces() == before
    unknown = service.http.request(method, f"/v1/models/mdl_nobody/{path}", json=body)
    assert_problem(unknown, 404, "not-found")


def test_models_are_listed_by_dataset_and_status(
    service: Running, model: dict[str, Any], dataset_id: str
) -> None:
    asked = service.http.post("/v1/models", json={"dataset_id": dataset_id}).json()
    listed = service.http.get("/v1/models", params={"dataset_id": dataset_id}).json()
    assert listed == {"items": [asked], "next_cursor": None}
    ready = service.http.get("/v1/models", params={"status": "ready", "limit": 200}).json()
    assert model["id"] in [item["id"] for item in ready["items"]]
    assert_problem(service.http.get("/v1/models?status=best"), 422, "invalid-request")


def test_a_deleted_model_leaves_nothing_and_its_dataset_stays(
    start: Callable[..., Running], cars: bytes
) -> None:
    service = start()
    trained = train(service, cars)
    sample = service.http.post(f"/v1/models/{trained['id']}/samples", json={"rows": 3})
    assert sample.status_code == 200
    assert service.http.delete(f"/v1/models/{trained['id']}").status_code == 204
    assert_problem(service.http.get(f"/v1/models/{trained['id']}"), 404, "not-found")
    response = service.http.post(f"/v1/models/{trained['id']}/samples", json={"rows": 3})
    assert_problem(response, 404, "not-found")
    collect_garbage(service.resources, service.catalog.orphans.take_due())
    assert [key.split("/")[0] for key in service.traces()["store"]] == ["datasets"]  # type: ignore[attr-defined]


def test_a_failed_training_says_why_and_can_be_tried_again(
    start: Callable[..., Running], cars: bytes
) -> None:
    service = start()
    headers = {"Content-Type": "text/csv"}
    dataset = service.http.post("/v1/datasets", content=cars, headers=headers).json()
    folder = service.settings.home_dir / "store" / "datasets" / dataset["id"]
    (folder / "table.csv").unlink()
    model = service.http.post("/v1/models", json={"dataset_id": dataset["id"]}).json()
    work(service, model["job_id"])
    job = service.http.get(f"/v1/jobs/{model['job_id']}").json()
    assert job["status"] == "failed"
    assert job["error"]["code"] == "input_deleted"
    assert service.http.get(f"/v1/models/{model['id']}").json()["status"] == "failed"
    retried = service.http.post(f"/v1/jobs/{job['id']}/retry")
    assert (retried.status_code, retried.json()["status"]) == (202, "queued")
    assert service.http.get(f"/v1/models/{model['id']}").json()["status"] == "training"
