"""Models that give no scores, or flags alone, at every door of the service."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gcvae import Synthesizer
from tests.running_service import Running, assert_problem, library, train, work
from tests.wordings import same_wording

ROWS = [
    {"mpg": 20.1, "cylinders": 4, "fuel": "petrol", "sold": True},
    {"mpg": 990.5, "cylinders": 6, "fuel": "diesel", "sold": False},
]
CSV = {"Content-Type": "text/csv"}
MANY = b"mpg,cylinders,fuel,sold\n" + b"20.1,4,petrol,yes\n" * 150
"""More than are scored at once."""
OWN_WORDS = "log_likelihood"


@pytest.fixture
def trained(service: Running, cars: bytes) -> dict[str, Any]:
    """A model of one's own, which may be changed."""
    return train(service, cars)


def restrict(service: Running, model: dict[str, Any], scoring: str) -> Any:
    return service.http.patch(f"/v1/models/{model['id']}", json={"scoring": scoring})


def scored_as_a_job(service: Running, model: dict[str, Any]) -> dict[str, Any]:
    """The result of MANY, once its job is over."""
    path = f"/v1/models/{model['id']}/scores?draws=3&format=json"
    asked = service.http.post(path, content=MANY, headers=CSV).json()
    work(service, asked["job_id"])
    return dict(service.http.get(f"/v1/scores/{asked['id']}").json())


def test_scoring_is_made_stricter_and_never_looser(
    service: Running, trained: dict[str, Any]
) -> None:
    assert trained["scoring"] == "full"
    assert trained["record"]["held_out_scores"]
    for scoring in ("flag", "flag", "off"):
        changed = restrict(service, trained, scoring).json()
        assert changed["scoring"] == scoring
        assert "held_out_scores" not in changed["record"]
    problem = assert_problem(restrict(service, trained, "flag"), 409, "conflict")
    same_wording(problem["detail"])
    artifact = f"/v1/models/{trained['id']}/artifact"
    looser = service.http.get(artifact, params={"scoring": "flag"})
    same_wording(assert_problem(looser, 409, "conflict")["detail"])
    same_wording(problem["detail"])
    assert service.http.get(f"/v1/models/{trained['id']}").json()["scoring"] == "off"
    assert_problem(restrict(service, trained, "on"), 422, "invalid-request")


def test_a_model_without_scores_refuses_them_at_every_door(
    service: Running, trained: dict[str, Any]
) -> None:
    path = f"/v1/models/{trained['id']}"
    whole = scored_as_a_job(service, trained)
    assert whole["summary"][OWN_WORDS] < 0
    late = service.http.post(f"{path}/scores?draws=3", content=MANY, headers=CSV).json()
    drawn = service.http.post(f"{path}/samples", json={"rows": 3, "given": {"cylinders": 4}})
    assert float(drawn.headers["Gcvae-Probability"]) > 0
    restrict(service, trained, "off")
    for asked in (
        service.http.post(f"{path}/scores", json={"rows": ROWS}),
        service.http.post(f"{path}/scores", content=MANY, headers=CSV),
        service.http.get(f"{whole['content']}"),
    ):
        problem = assert_problem(asked, 403, "scoring-off")
        assert problem["errors"][0]["expected"]
    work(service, late["job_id"])
    job = service.http.get(f"/v1/jobs/{late['job_id']}").json()
    assert job["status"] == "failed"
    assert "scoring is off" in job["error"]["message"]
    assert service.http.get(f"/v1/scores/{whole['id']}").json()["summary"] == {
        "rows": 150, "n_impossible": 0,
    }  # fmt: skip
    again = service.http.post(f"{path}/samples", json={"rows": 3, "given": {"cylinders": 4}})
    assert again.status_code == 200
    assert "Gcvae-Probability" not in again.headers
    assert "Gcvae-Effective-Sample-Size" in again.headers


def test_a_flagging_model_says_at_once_and_as_a_job_whether_rows_are_rare(
    service: Running, trained: dict[str, Any]
) -> None:
    whole = scored_as_a_job(service, trained)
    restrict(service, trained, "flag")
    path = f"/v1/models/{trained['id']}/scores"
    answer = service.http.post(path, json={"rows": ROWS})
    assert [set(score) for score in answer.json()["scores"]] == [{"is_rare"}] * 2
    assert answer.json()["scores"][1]["is_rare"] is True
    assert answer.json()["totals"]["rows"] == 2
    assert "log_likelihood" not in answer.text
    found = scored_as_a_job(service, trained)
    assert set(found["summary"]) == {"rows", "n_rare", "n_unknown"}
    assert service.http.get(found["content"]).json()["scores"][0] == {"is_rare": False}
    assert_problem(service.http.get(whole["content"]), 403, "scoring-off")
    refused = service.http.post(f"{path}?measure=pmf", json={"rows": ROWS})
    same_wording(assert_problem(refused, 422, "invalid-request")["detail"])


def test_a_model_can_be_trained_without_scores(
    service: Running, dataset_id: str, trained: dict[str, Any], tmp_path: Path
) -> None:
    body = {"dataset_id": dataset_id, "scoring": "off", "training": trained["training"]}
    model = service.http.post("/v1/models", json=body).json()
    assert model["scoring"] == "off"
    work(service, model["job_id"])
    model = service.http.get(f"/v1/models/{model['id']}").json()
    assert (model["status"], model["scoring"]) == ("ready", "off")
    file = tmp_path / "model.gcvae"
    file.write_bytes(service.http.get(f"/v1/models/{model['id']}/artifact").content)
    assert Synthesizer.load(file).scoring == "off"
    brought = service.http.post(
        "/v1/models/import", files={"file": ("m.gcvae", file.read_bytes())}
    ).json()
    assert brought["scoring"] == "off"


def test_a_minimal_artifact_is_what_the_library_writes_and_can_be_brought_in(
    service: Running, model: dict[str, Any]
) -> None:
    path = f"/v1/models/{model['id']}/artifact"
    whole = service.http.get(path)
    minimal = service.http.get(path, params={"minimal": True})
    assert minimal.content == library(service, model).to_bytes(minimal=True)
    assert len(minimal.content) < len(whole.content)
    assert minimal.headers["ETag"] != whole.headers["ETag"] == f'"{model["artifact_sha256"]}"'
    part = service.http.get(path, params={"minimal": True}, headers={"Range": "bytes=10-29"})
    assert (part.status_code, part.content) == (206, minimal.content[10:30])
    flagging = service.http.get(path, params={"scoring": "flag"})
    assert flagging.content == library(service, model).to_bytes(scoring="flag")
    assert_problem(service.http.get(path, params={"scoring": "some"}), 422, "invalid-request")

    brought = service.http.post(
        "/v1/models/import", files={"file": ("m.gcvae", minimal.content)}
    ).json()
    assert brought["status"] == "ready"
    assert brought["bound_held_out"] is None
    assert brought["record"]["is_minimal"] is True
    place = f"/v1/models/{brought['id']}"
    scores = service.http.post(f"{place}/scores?draws=3", json={"rows": ROWS}).json()["scores"]
    assert [score["percentile"] for score in scores] == [None, None]
    refused = service.http.get(f"{place}/dependencies", params={"kind": "data"})
    assert_problem(refused, 422, "left-out")
    assert service.http.get(f"{place}/dependencies").status_code == 200
    drawn = service.http.post(f"{place}/samples", json={"rows": 5, "seed": 1})
    assert len(drawn.text.splitlines()) == 6
