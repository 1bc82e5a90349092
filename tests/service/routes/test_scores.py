"""Scores: rows in every form, one score a row, in the data's own measure."""

from __future__ import annotations

import csv
import io
from typing import Any

import pandas as pd
import pytest

from tests.running_service import Running, assert_problem, work

ROWS = [
    {"mpg": 20.1, "cylinders": 4, "fuel": "petrol", "sold": True},
    {"mpg": 22.5, "cylinders": 6, "fuel": None, "sold": False},
    {"mpg": 30.0, "cylinders": 8, "fuel": "diesel", "sold": "yes"},
]
TEXT = b"mpg,cylinders,fuel,sold\n20.1,4,petrol,yes\n22.5,6,?,no\n30.0,8,diesel,yes\n"


def parquet(text: bytes) -> bytes:
    buffer = io.BytesIO()
    pd.read_csv(io.BytesIO(text)).replace("?", None).to_parquet(buffer)
    return buffer.getvalue()


def test_rows_score_alike_in_every_form(service: Running, model: dict[str, Any]) -> None:
    path = f"/v1/models/{model['id']}/scores?draws=20&seed=1"
    kinds = {"text/csv": TEXT, "application/vnd.apache.parquet": parquet(TEXT)}
    answers = [
        service.http.post(path, json={"rows": ROWS}),
        service.http.post(path, files={"file": ("rows.csv", TEXT)}),
        *(
            service.http.post(path, content=content, headers={"Content-Type": kind})
            for kind, content in kinds.items()
        ),
    ]
    assert [answer.status_code for answer in answers] == [200] * 4, answers[-1].text
    first = answers[0].json()
    assert all(answer.json()["scores"] == first["scores"] for answer in answers)
    assert (first["draws"], first["seed"], first["model_id"]) == (20, 1, model["id"])
    assert "nats" in first["measure"]
    bounds = [score["log_likelihood"] for score in first["scores"]]
    assert len(bounds) == first["totals"]["rows"] == 3
    assert first["totals"]["log_likelihood"] == pytest.approx(sum(bounds))
    assert all(0 <= score["percentile"] <= 100 for score in first["scores"])
    assert all(score["standard_error"] >= 0 for score in first["scores"])


def test_without_draws_a_tolerance_rules(service: Running, model: dict[str, Any]) -> None:
    path = f"/v1/models/{model['id']}/scores"
    by_default = service.http.post(path, json={"rows": ROWS}).json()
    assert by_default["options"]["tolerance"] == 0.1
    assert "draws" not in by_default["options"]
    fine = service.http.post(path, json={"rows": ROWS}, params={"tolerance": 0.02}).json()
    for coarse, score in zip(by_default["scores"], fine["scores"], strict=True):
        assert 0.0 < score["standard_error"] < min(0.05, coarse["standard_error"])
        error = (coarse["standard_error"] ** 2 + score["standard_error"] ** 2) ** 0.5
        assert abs(coarse["log_likelihood"] - score["log_likelihood"]) < 5.0 * error


def test_contributions_add_up_and_the_answer_says_what_they_are(
    service: Running, model: dict[str, Any]
) -> None:
    body = {"rows": ROWS, "draws": 10, "measure": "rounding_cell", "score_missingness": True}
    answer = service.http.post(f"/v1/models/{model['id']}/scores", json=body).json()
    options = {"draws": 10, "seed": 0}
    assert answer["options"] == options | {"measure": "rounding_cell", "score_missingness": True}
    assert "rounding cell" in answer["measure"]
    assert "probability of being missing" in answer["measure"]
    assert any("chain-rule" in note and "mpg" in note for note in answer["notes"])
    for score in answer["scores"]:
        assert set(score["contributions"]) == set(ROWS[0])
        total = sum(float(term) for term in score["contributions"].values())
        assert float(score["log_likelihood"]) == pytest.approx(total)
    by_query = service.http.post(
        f"/v1/models/{model['id']}/scores?measure=rounding_cell&score_missingness=true&draws=10",
        json={"rows": ROWS},
    )
    assert by_query.json() == answer


def test_an_unseen_level_scores_minus_infinity_and_is_no_error(
    service: Running, model: dict[str, Any]
) -> None:
    rows = [ROWS[0] | {"fuel": "steam"}, ROWS[1]]
    answer = service.http.post(f"/v1/models/{model['id']}/scores", json={"rows": rows}).json()
    assert answer["scores"][0]["log_likelihood"] == "-Infinity"
    assert (answer["totals"]["rows"], answer["totals"]["n_impossible"]) == (2, 1)
    assert float(answer["totals"]["log_likelihood"]) == float("-inf")


def test_scores_come_as_csv_by_accept_or_by_format(service: Running, model: dict[str, Any]) -> None:
    path = f"/v1/models/{model['id']}/scores"
    by_accept = service.http.post(path, json={"rows": ROWS}, headers={"Accept": "text/csv"})
    by_format = service.http.post(f"{path}?format=csv", json={"rows": ROWS})
    assert by_accept.text == by_format.text
    header, *lines = csv.reader(io.StringIO(by_accept.text))
    assert header[:3] == ["log_likelihood", "standard_error", "percentile"]
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("request_", "status", "name", "place"),
    [
        ({"json": {}}, 422, "invalid-request", "/rows"),
        ({"json": {"rows": []}}, 422, "invalid-request", "/rows"),
        ({"json": {"rows": [[1]]}}, 422, "invalid-request", "/rows/0"),
        ({"json": {"rows": [{"mpg": [1]}]}}, 422, "invalid-request", "/rows/0/mpg"),
        ({"json": {"rows": ROWS, "draws": 0}}, 422, "invalid-request", "/draws"),
        ({"json": {"rows": ROWS, "tolerance": 0}}, 422, "invalid-request", "/tolerance"),
        ({"json": {"rows": ROWS, "tolerance": "x"}}, 422, "invalid-request", "/tolerance"),
        ({"json": {"rows": ROWS, "tolerance": "inf"}}, 422, "invalid-request", "/tolerance"),
        ({"json": {"rows": ROWS}, "params": {"tolerance": "inf"}}, 422, "invalid-request",
         "?tolerance"),
        ({"json": {"rows": ROWS}, "params": {"tolerance": "x"}}, 422, "invalid-request",
         "?tolerance"),
        ({"json": {"rows": ROWS, "tolerance": 1, "draws": 2}}, 422, "invalid-request",
         "/tolerance"),
        ({"json": {"rows": ROWS, "draws": 10**6}}, 422, "limit-exceeded",
         "GCVAE_MAX_SCORE_DRAWS"),
        ({"json": {"rows": [{"hp": 3}]}}, 422, "unknown-column", "/rows/0/hp"),
        ({"content": b"{", "headers": {"Content-Type": "application/json"}}, 422,
         "invalid-request", "JSON"),
        ({"content": TEXT.replace(b"sold", b"bought"), "headers": {"Content-Type": "text/csv"}},
         422, "unknown-column", "bought"),
        ({"content": TEXT.replace(b"20.1", b"many"), "headers": {"Content-Type": "text/csv"}},
         422, "invalid-table", "line 2"),
        ({"content": TEXT, "headers": {"Content-Type": "text/html"}}, 415,
         "unsupported-media-type", "text/html"),
        ({"json": {"rows": ROWS}, "params": {"format": "xml"}}, 422, "invalid-request",
         "?format"),
        ({"json": {"rows": ROWS}, "params": {"draws": 0}}, 422, "invalid-request", "?draws"),
        ({"json": {"rows": ROWS, "draws": "5"}}, 422, "invalid-request", "/draws"),
        ({"json": {"rows": ROWS, "measure": "mass"}}, 422, "invalid-request", "/measure"),
        ({"json": {"rows": ROWS}, "params": {"measure": "mass"}}, 422, "invalid-request",
         "?measure"),
        ({"json": {"rows": ROWS}, "headers": {"Accept": "image/png"}}, 406, "not-acceptable",
         "image/png"),
    ],
)  # fmt: skip
def test_rows_that_can_not_be_scored_are_refused_by_their_place(
    service: Running,
    model: dict[str, Any],
    request_: dict[str, Any],
    status: int,
    name: str,
    place: str,
) -> None:
    before = service.traces()
    response = service.http.post(f"/v1/models/{model['id']}/scores", **request_)
    problem = assert_problem(response, status, name)
    assert place in problem["detail"]
    assert service.traces() == before


def test_many_rows_are_a_job_that_comes_to_the_same_scores(
    service: Running, model: dict[str, Any], cars: bytes
) -> None:
    path = f"/v1/models/{model['id']}/scores?draws=10"
    headers = {"Content-Type": "text/csv"}
    inline = service.http.post(path, content=cars, headers=headers).json()["scores"]
    response = service.http.post(path, content=cars + b"20.1,4,petrol,yes\n", headers=headers)
    result = response.json()
    assert response.status_code == 202
    assert result["id"].startswith("scr_")
    options = {"draws", "tolerance", "seed", "measure", "score_missingness"}
    table = {"table_sha256", "table_format", "table_encoding"}
    assert set(result["request"]) == {*table, "format", *options}
    work(service, result["job_id"])
    done = service.http.get(f"/v1/scores/{result['id']}").json()
    assert (done["status"], done["rows"]) == ("succeeded", 101)
    scores = service.http.get(done["content"]).json()["scores"]
    # Rows are scored in blocks with a generator each: whole blocks have the same scores.
    assert scores[:64] == inline[:64]
