"""Reports over REST: made after training, read in two forms, made again, and refused by name."""

from __future__ import annotations

import hashlib
import json
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer, read_table
from gcvae.training.held_back import report_rows
from gcvae_client import Client
from gcvae_client.errors import NotFoundError
from tests.running_service import Running, assert_problem, library, train, work
from tests.wordings import refuses, same_wording

CSV = {"Content-Type": "text/csv"}
PARTS = ("fidelity", "utility", "likelihood", "privacy")
N_ROWS = 1_200
SEED = 4
HELD_BACK = report_rows(N_ROWS, 0.1, SEED)
ONCE = int(HELD_BACK[7])
"""A row that is held back: it alone has the shop `Ürün`, and the largest price."""


def _table() -> bytes:
    random = np.random.default_rng(0)
    shops = random.choice(["Kiel", "Lund", "Bern"], N_ROWS).astype(object)
    price = random.gamma(3.0, 20.0, N_ROWS).round(2)
    shops[ONCE], price[ONCE] = "Ürün", 9999.99
    many = price > np.median(price)
    frame = pd.DataFrame({"price": price, "shop": shops, "paid": np.where(many, "yes", "no")})
    return frame.to_csv(index=False).encode()


TABLE = _table()


def job_of_report(service: Running, model: dict[str, Any]) -> dict[str, Any]:
    """The newest job that makes, or made, the report of a model."""
    jobs = service.http.get(f"/v1/jobs?kind=report&model_id={model['id']}").json()["items"]
    return dict(jobs[0])


def report_path(model: dict[str, Any]) -> str:
    return f"/v1/models/{model['id']}/report"


@pytest.fixture(scope="module")
def waiting(service: Running) -> dict[str, Any]:
    """A model of 1,200 rows, ready, whose report waits to be made."""
    model = train(service, TABLE, seed=SEED)
    assert model["report"] is None
    problem = assert_problem(service.http.get(report_path(model)), 404, "no-report")
    job = job_of_report(service, model)
    assert (job["kind"], job["status"], job["dataset_id"]) == (
        "report", "queued", model["dataset_id"],
    )  # fmt: skip
    assert (problem["job_id"], problem["is_under_way"]) == (job["id"], True)
    assert "makes it and is queued" in problem["detail"]
    return model


@pytest.fixture(scope="module")
def reported(service: Running, waiting: dict[str, Any]) -> dict[str, Any]:
    """The same model, once its report is there."""
    work(service, job_of_report(service, waiting)["id"])
    return dict(service.http.get(f"/v1/models/{waiting['id']}").json())


def test_the_report_comes_by_itself_after_a_training_that_held_back_a_tenth(
    service: Running, reported: dict[str, Any]
) -> None:
    job = job_of_report(service, reported)
    assert (job["status"], job["progress"]["fraction"]) == ("succeeded", 1.0), job
    assert reported["training"]["report_share"] == 0.1
    assert reported["record"]["rows"] == N_ROWS - len(HELD_BACK) == 1_080
    answer = service.http.get(report_path(reported))
    assert answer.headers["Content-Type"] == "application/json"
    report = answer.json()
    words = {"green", "amber", "red", "not_measured"}
    assert {report[part]["verdict"] for part in PARTS} <= words
    summary = reported["report"]
    assert summary["verdicts"] == {part: report[part]["verdict"] for part in PARTS}
    assert summary["decisions"] == {one["of"]: one["verdict"] for one in report["decisions"]}
    assert set(summary["decisions"]) == {"rows", "model"}
    assert summary["sentences"] == {part: report[part]["sentence"] for part in PARTS}
    assert (summary["id"], summary["job_id"]) == (job["result_id"], job["id"])
    listed = service.http.get(f"/v1/models?dataset_id={reported['dataset_id']}").json()["items"]
    assert [model["report"] for model in listed] == [summary]
    content = service.http.get(f"/v1/reports/{summary['id']}/content")
    assert content.json() == report
    headers = {"If-None-Match": answer.headers["ETag"]}
    assert service.http.get(report_path(reported), headers=headers).status_code == 304


@pytest.mark.parametrize(
    ("query", "accept"), [("", "text/html"), ("?format=html", "*/*"), ("?format=html", "image/png")]
)
def test_the_report_is_a_page_too_that_asks_no_host(
    service: Running, reported: dict[str, Any], query: str, accept: str
) -> None:
    page = service.http.get(report_path(reported) + query, headers={"Accept": accept})
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert page.headers["Vary"] == "Accept"
    assert "<script" not in page.text
    for sentence in reported["report"]["sentences"].values():
        assert escape(sentence) in page.text


def test_a_form_that_a_report_has_not_is_refused(
    service: Running, reported: dict[str, Any]
) -> None:
    path = report_path(reported)
    assert_problem(service.http.get(f"{path}?format=pdf"), 422, "invalid-request")
    assert_problem(service.http.get(path, headers={"Accept": "image/png"}), 406, "not-acceptable")


def test_a_dossier_states_its_purpose_and_the_digests_of_model_table_and_report(
    service: Running, reported: dict[str, Any]
) -> None:
    path = f"/v1/models/{reported['id']}/dossier"
    told = {"purpose": "tests of <a shop>", "retention": "a year"}
    page = service.http.get(path, params=told)
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    dataset = service.http.get(f"/v1/datasets/{reported['dataset_id']}").json()
    artifact = service.http.get(f"/v1/models/{reported['id']}/artifact").content
    report = service.http.get(f"/v1/reports/{reported['report']['id']}/content").content
    digests = [hashlib.sha256(content).hexdigest() for content in (artifact, report)]
    shown = "tests of &lt;a shop&gt;", "a year", "Singling out", dataset["sha256"], *digests
    assert [text for text in shown if text not in page.text] == []
    assert page.text.split("Annex: the report")[1].count("<section") >= len(PARTS)
    with Client(service.url) as client:
        assert client.dossier(reported, **told) == page.content
    for wrong in ({}, {"purpose": " "}, {"purpose": "x" * 2_001}):
        problem = assert_problem(service.http.get(path, params=wrong), 422, "invalid-request")
        assert problem["errors"][0]["pointer"] == "?purpose"


def test_library_and_service_report_the_same_figures(
    service: Running, reported: dict[str, Any]
) -> None:
    synthesizer = library(service, reported)
    table = read_table(TABLE)
    of_service = service.http.get(report_path(reported)).json()
    of_library = synthesizer.report(table, seed=SEED).to_json()
    assert of_service == json.loads(json.dumps(of_library))
    assert of_service["rows"]["unseen"] == len(HELD_BACK)


def test_a_model_knows_nothing_of_the_rows_that_were_held_back(
    service: Running, reported: dict[str, Any]
) -> None:
    dataset = service.http.get(f"/v1/datasets/{reported['dataset_id']}").json()
    shown, learnt = ({c["name"]: c for c in it["schema"]["columns"]} for it in (dataset, reported))
    assert shown["shop"]["levels"] == ["Bern", "Kiel", "Lund", "Ürün"]
    assert learnt["shop"]["levels"] == ["Bern", "Kiel", "Lund"]
    assert (shown["price"]["maximum"], learnt["price"]["maximum"] < 1_000) == (9999.99, True)
    artifact = service.http.get(f"/v1/models/{reported['id']}/artifact").content
    assert "Ürün".encode() not in artifact
    assert b"9999.99" not in artifact
    table = read_table(TABLE)
    others = table.assign(price=table["price"].mask(table.index.isin(HELD_BACK), "1.00"))
    quick = {"max_steps": 20, "evaluate_every_steps": 10, "report_share": 0.1}
    fitted = Synthesizer.fit(
        others.assign(shop=others["shop"].replace("Ürün", "Bern")),
        preset="paper-vae", seed=SEED, device="cpu", settings=quick,
    )  # fmt: skip
    trained = library(service, reported).model.state_dict()
    weights = fitted.model.state_dict()
    assert all(weights[name].equal(tensor) for name, tensor in trained.items())


def test_a_report_that_is_made_again_takes_the_place_of_the_first(
    service: Running, reported: dict[str, Any]
) -> None:
    path, before = report_path(reported), service.http.get(report_path(reported)).json()
    asked: dict[str, Any] = {"json": {"seed": 9, "columns": ["paid"]}}
    headers = {"Idempotency-Key": "report again"}
    answers = [service.http.post(path, headers=headers, **asked) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].json() == answers[1].json()
    made = answers[0].json()
    assert answers[0].headers["Location"] == f"/v1/jobs/{made['job_id']}"
    assert made["request"] == {
        "dataset_id": reported["dataset_id"], "seed": 9, "holdout_dataset_id": None,
        "columns": ["paid"],
    }  # fmt: skip
    assert service.http.get(path).json() == before, "until the other is there"
    job = f"/v1/jobs/{made['job_id']}"
    assert service.http.post(f"{job}/cancel").json()["status"] == "cancelled"
    assert service.http.post(f"{job}/retry").status_code == 202
    work(service, made["job_id"])
    report = service.http.get(path).json()
    assert (before["seed"], report["seed"]) == (SEED, 9)
    assert report["rows"]["unseen"] == len(HELD_BACK), "the same rows are held back"
    model = service.http.get(f"/v1/models/{reported['id']}").json()
    assert model["report"]["id"] == made["id"] != reported["report"]["id"]
    first = service.http.get(f"/v1/reports/{reported['report']['id']}")
    assert_problem(first, 404, "not-found")
    assert service.http.delete(f"/v1/reports/{made['id']}").status_code == 204
    problem = assert_problem(service.http.get(path), 404, "no-report")
    same_wording(problem["detail"])
    assert problem["advice"] == "create one with POST to this URL"


@pytest.mark.parametrize(
    ("body", "name", "pointer"),
    [
        ({"columns": ["prise"]}, "invalid-request", "/columns/0"),
        ({"columns": []}, "invalid-request", "/columns"),
        ({"colums": ["price"]}, "invalid-request", "/colums"),
        ({"seed": -1}, "invalid-request", "/seed"),
        ({"dataset_id": "cars"}, "invalid-request", "/dataset_id"),
        ({"holdout_dataset_id": "cars"}, "invalid-request", "/holdout_dataset_id"),
        ({"holdout_dataset_id": "own"}, "invalid-request", "/holdout_dataset_id"),
        ({"dataset_id": "ds_none"}, "not-found", None),
    ],
)
def test_what_can_not_be_reported_on_is_refused_by_its_place(
    service: Running,
    waiting: dict[str, Any],
    dataset_id: str,
    body: dict[str, Any],
    name: str,
    pointer: str | None,
) -> None:
    tables = {"cars": dataset_id, "own": waiting["dataset_id"]}
    asked = {key: tables.get(str(value), value) for key, value in body.items()}
    answer = service.http.post(report_path(waiting), json=asked)
    problem = assert_problem(answer, 404 if name == "not-found" else 422, name)
    same_wording(problem["detail"])
    if pointer is not None:
        assert problem["errors"][0]["pointer"] == pointer


def test_a_small_table_has_a_report_when_it_is_asked_for(service: Running, cars: bytes) -> None:
    model = train(service, cars)
    assert "report_share" not in model["training"]
    problem = assert_problem(service.http.get(report_path(model)), 404, "no-report")
    assert (problem["job_id"], problem["is_under_way"]) == (None, False)
    same_wording(problem["detail"])
    made = service.http.post(report_path(model)).json()
    work(service, made["job_id"])
    report = service.http.get(report_path(model)).json()
    assert report["fidelity"]["verdict"] != "not_measured"
    assert report["privacy"]["verdict"] == "not_measured", "no row was held back"

    asked = train(service, cars, report_share=0.2)
    assert asked["record"]["rows"] == 80
    assert job_of_report(service, asked)["status"] == "queued"


def test_a_report_that_nobody_wants_is_not_made(service: Running) -> None:
    model = train(service, TABLE, report_share=0)
    assert model["record"]["rows"] == N_ROWS
    jobs = service.http.get(f"/v1/jobs?kind=report&model_id={model['id']}").json()["items"]
    assert jobs == []
    for share in (-0.1, 1.5, "much"):
        body = {"dataset_id": model["dataset_id"], "training": {"report_share": share}}
        problem = service.http.post("/v1/models", json=body).json()
        assert problem["errors"][0]["pointer"] == "/training/report_share"


def test_an_imported_model_is_reported_on_once_its_table_is_named(
    service: Running, cars: bytes
) -> None:
    original = train(service, cars, report_share=0.2)
    artifact = service.http.get(f"/v1/models/{original['id']}/artifact").content
    headers = {"Content-Type": "application/octet-stream"}
    model = service.http.post("/v1/models/import", content=artifact, headers=headers).json()
    problem = assert_problem(service.http.get(report_path(model)), 404, "no-report")
    same_wording(problem["detail"])
    refused = assert_problem(service.http.post(report_path(model)), 422, "invalid-request")
    assert refused["errors"][0]["pointer"] == "/dataset_id"
    same_wording(refused["detail"])
    body = {"dataset_id": original["dataset_id"]}
    made = service.http.post(report_path(model), json=body).json()
    work(service, made["job_id"])
    report = service.http.get(report_path(model)).json()
    assert report["rows"]["unseen"] == 20, "its record says what was held back"
    service.http.delete(f"/v1/models/{model['id']}")
    assert_problem(service.http.get(f"/v1/reports/{made['id']}"), 404, "not-found")


def test_a_report_whose_table_is_deleted_fails_and_says_what_to_do(service: Running) -> None:
    model = train(service, TABLE, seed=SEED)
    job = job_of_report(service, model)
    assert service.http.delete(f"/v1/datasets/{model['dataset_id']}").status_code == 204
    work(service, job["id"])
    failed = service.http.get(f"/v1/jobs/{job['id']}").json()
    assert (failed["status"], failed["error"]["code"]) == ("failed", "input_deleted")
    assert model["dataset_id"] in failed["error"]["message"]
    problem = assert_problem(service.http.get(report_path(model)), 404, "no-report")
    assert problem["job_id"] == job["id"]
    same_wording(problem["detail"])
    assert_problem(service.http.post(f"/v1/jobs/{job['id']}/retry"), 409, "conflict")
    refused = assert_problem(service.http.post(report_path(model)), 422, "invalid-request")
    same_wording(refused["detail"])


def test_a_table_that_the_model_can_not_read_fails_by_its_cell(
    service: Running, waiting: dict[str, Any]
) -> None:
    words = TABLE.replace(b"price,shop", b"price,shop").decode().splitlines()
    words[5] = "dear" + words[5][words[5].index(",") :]
    dataset = service.http.post(
        "/v1/datasets", content="\n".join(words).encode(), headers=CSV
    ).json()
    body = {"holdout_dataset_id": dataset["id"]}
    made = service.http.post(report_path(waiting), json=body).json()
    work(service, made["job_id"])
    job = service.http.get(f"/v1/jobs/{made['job_id']}").json()
    assert (job["status"], job["error"]["code"]) == ("failed", "input"), job
    assert "'dear'" in job["error"]["message"]


def test_the_client_waits_for_a_report_that_is_under_way(service: Running, cars: bytes) -> None:
    seen: list[str] = []

    def do(job: dict[str, Any]) -> None:
        seen.append(job["kind"])
        if job["status"] == "queued":
            work(service, job["id"])

    with Client(service.url) as client:
        quick = {"max_steps": 20, "evaluate_every_steps": 10, "report_share": 0.2}
        model = client.train(client.upload(cars), preset="paper-vae", device="cpu", **quick)
        report = client.report(model, on_progress=do)
        assert isinstance(report, dict)
        assert set(PARTS) <= set(report)
        assert list(dict.fromkeys(seen)) == ["train", "report"]
        page = client.report(model, format="html")
        assert isinstance(page, bytes)
        assert page.startswith(b"<!doctype html>")
        client.delete(client.model(model)["report"])
        with refuses(NotFoundError):
            client.report(model)
        again = client.make_report(model, columns=["sold"], seed=8)
        assert again["request"]["columns"] == ["sold"]
        client.cancel(again)
        with refuses(NotFoundError):
            client.report(model)
