"""Imputations and conditions over REST: the library's own rows, at once or by a job."""

from __future__ import annotations

import io
from typing import Any

import pandas as pd
import pytest

from gcvae import read_table
from gcvae.imputation_stream import stream_completed
from gcvae.table_stream import stream_table
from tests.running_service import Running, assert_problem, library, work

TEXT = b"mpg,cylinders,fuel,sold\n20.1,,petrol,yes\n,6,,no\n30.0,8,diesel,\n"
ROWS = [
    {"mpg": 20.1, "cylinders": None, "fuel": "petrol", "sold": True},
    {"cylinders": 6, "sold": False},
    {"mpg": "30.0", "cylinders": 8, "fuel": "diesel"},
]


def test_a_table_is_completed_as_the_library_does_it(
    service: Running, model: dict[str, Any]
) -> None:
    synthesizer = library(service, model)
    for form in ("csv", "parquet", "json", "jsonl"):
        path = f"/v1/models/{model['id']}/imputations?draws=2&seed=3&format={form}"
        answer = service.http.post(path, content=TEXT, headers={"Content-Type": "text/csv"})
        assert answer.status_code == 200, answer.text
        blocks = synthesizer.impute_blocks(read_table(TEXT), draws=2, seed=3)
        expected = b"".join(stream_completed(blocks, synthesizer.schema, form))
        assert answer.content == expected
    assert service.http.post(path, json={"rows": ROWS}).content == expected


def test_many_rows_are_a_job(service: Running, model: dict[str, Any], cars: bytes) -> None:
    path = f"/v1/models/{model['id']}/imputations?draws=2"
    answer = service.http.post(path, content=cars, headers={"Content-Type": "text/csv"})
    result = answer.json()
    assert answer.status_code == 202
    assert result["id"].startswith("imp_")
    work(service, result["job_id"])
    done = service.http.get(f"/v1/imputations/{result['id']}").json()
    assert (done["status"], done["rows"]) == ("succeeded", 200)
    synthesizer = library(service, model)
    blocks = synthesizer.impute_blocks(read_table(cars), draws=2)
    expected = b"".join(stream_completed(blocks, synthesizer.schema, "csv"))
    assert service.http.get(done["content"]).content == expected


@pytest.mark.parametrize(
    ("request_", "name", "place"),
    [
        ({"json": {"rows": []}}, "invalid-request", "/rows"),
        ({"json": {"rows": ROWS, "draws": 0}}, "invalid-request", "/draws"),
        ({"json": {"rows": ROWS, "draws": 1000}}, "limit-exceeded", "GCVAE_MAX_IMPUTATION_DRAWS"),
        ({"json": {"rows": [{"hp": 3}]}}, "unknown-column", "/rows/0/hp"),
        ({"content": b"mpg\n1\n", "headers": {"Content-Type": "text/csv"}}, "invalid-table",
         "cylinders"),
    ],
)  # fmt: skip
def test_what_can_not_be_completed_is_refused_by_its_place(
    service: Running, model: dict[str, Any], request_: dict[str, Any], name: str, place: str
) -> None:
    response = service.http.post(f"/v1/models/{model['id']}/imputations", **request_)
    assert place in assert_problem(response, 422, name)["detail"]


@pytest.mark.parametrize(
    "conditions",
    [
        {"given": {"fuel": "diesel", "mpg": {"min": 20}}},
        {"given": {"fuel": None}},
        {"distribution": {"fuel": {"diesel": 0.5, "petrol": 0.5}}},
    ],
)
def test_rows_under_a_condition_are_the_library_s(
    service: Running, model: dict[str, Any], conditions: dict[str, Any]
) -> None:
    synthesizer = library(service, model)
    path = f"/v1/models/{model['id']}/samples"
    answer = service.http.post(path, json={"rows": 300, "seed": 2, **conditions})
    assert answer.status_code == 200, answer.text
    sampler = synthesizer.sampler(2, **conditions)
    told = sampler.summary(300)
    assert float(answer.headers["Gcvae-Probability"]) == told["probability"]
    assert float(answer.headers["Gcvae-Effective-Sample-Size"]) == told["effective_sample_size"]
    expected = stream_table(sampler.blocks(300), synthesizer.schema, "csv")
    assert answer.content == b"".join(expected)


def test_a_long_conditioned_sample_is_a_job_that_tells_the_same(
    service: Running, model: dict[str, Any]
) -> None:
    path = f"/v1/models/{model['id']}/samples"
    body = {"rows": 5001, "given": {"cylinders": [4, 8]}}
    result = service.http.post(path, json=body).json()
    work(service, result["job_id"])
    done = service.http.get(f"/v1/samples/{result['id']}").json()
    assert done["status"] == "succeeded"
    assert 0.3 < done["summary"]["probability"] < 1.0
    assert done["summary"]["effective_sample_size"] > 1000
    rows = pd.read_csv(io.BytesIO(service.http.get(done["content"]).content))
    assert len(rows) == 5001
    assert set(rows["cylinders"]) == {4, 8}


def test_one_row_is_drawn_around_each_row_of_known_cells(
    service: Running, model: dict[str, Any]
) -> None:
    path = f"/v1/models/{model['id']}/samples"
    body = {"given_rows": ROWS, "format": "json"}
    answer = service.http.post(path, json=body)
    assert answer.status_code == 200, answer.text
    rows = answer.json()
    assert (rows[0]["mpg"], rows[1]["cylinders"], rows[2]["fuel"]) == (20.1, 6, "diesel")
    assert float(answer.headers["Gcvae-Effective-Particles"]) > 1


@pytest.mark.parametrize("action", ["scores", "imputations", "encodings", "dependencies"])
def test_a_wrong_cell_of_a_json_row_has_a_pointer(
    service: Running, model: dict[str, Any], action: str
) -> None:
    is_map = action == "dependencies"
    body = {"row": {"mpg": "x"}} if is_map else {"rows": [{"fuel": "pe\ntrol"}, {"mpg": "x"}]}
    response = service.http.post(f"/v1/models/{model['id']}/{action}", json=body)
    error = assert_problem(response, 422, "invalid-table")["errors"][0]
    assert error["pointer"] == ("/row/mpg" if is_map else "/rows/1/mpg")
    assert "line" not in error
    assert "line" not in response.json()["detail"]


@pytest.mark.parametrize(
    ("body", "name", "pointer"),
    [
        ({"rows": 5, "given": {"hp": 3}}, "invalid-condition", "/given/hp"),
        ({"rows": 5, "given": {"fuel": "steam"}}, "invalid-condition", "/given/fuel"),
        ({"rows": 9000, "given": {"fuel": "steam"}}, "invalid-condition", "/given/fuel"),
        ({"rows": 5, "distribution": {"fuel": {"diesel": 0.2}}}, "invalid-condition",
         "/distribution/fuel"),
        ({"rows": 5, "given_rows": ROWS}, "invalid-request", "/rows"),
        ({"rows": 5, "given_rows": ROWS, "given": {}}, "invalid-request", "/given_rows"),
        ({"rows": 1, "given_rows": [{"hp": 1}]}, "unknown-column", "/given_rows/0/hp"),
        ({"rows": 2, "given_rows": [{}, {"mpg": "x"}]}, "invalid-table", "/given_rows/1/mpg"),
        ({"rows": 2, "given_rows": [{"fuel": "petrol\n"}, {"fuel": "steam"}]},
         "invalid-condition", "/given_rows/0/fuel"),
    ],
)  # fmt: skip
def test_a_condition_that_can_not_be_met_is_refused_before_a_row_goes_out(
    service: Running, model: dict[str, Any], body: dict[str, Any], name: str, pointer: str
) -> None:
    before = service.traces()
    response = service.http.post(f"/v1/models/{model['id']}/samples", json=body)
    problem = assert_problem(response, 422, name)
    assert problem["errors"][0]["pointer"] == pointer
    assert service.traces() == before
