"""Imputations and conditions over REST: the library's own rows, at once or by a job."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from gcvae import read_table
from gcvae.files.table_stream import stream_table
from gcvae.sampling.imputation_stream import stream_completed
from tests.running_service import Running, assert_problem, library, train, work

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


@pytest.mark.parametrize("call", ["imputations", "scores", "encodings"])
def test_a_table_may_lack_columns_as_documents_may(
    service: Running, model: dict[str, Any], call: str
) -> None:
    path = f"/v1/models/{model['id']}/{call}?format=json"
    text = b"fuel,cylinders\npetrol,\n,6\ndiesel,8\n"
    rows = [{"fuel": "petrol"}, {"cylinders": 6}, {"fuel": "diesel", "cylinders": 8}]
    answer = service.http.post(path, content=text, headers={"Content-Type": "text/csv"})
    assert answer.status_code == 200, answer.text
    assert answer.json() == service.http.post(path, json={"rows": rows}).json()
    other = service.http.post(path, content=b"a,b\n1,2\n", headers={"Content-Type": "text/csv"})
    assert_problem(other, 422, "unknown-column")


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
        ({"content": b"mpg\nmany\n", "headers": {"Content-Type": "text/csv"}}, "invalid-table",
         "mpg"),
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


PART = 'Größe, "netto"'
NAMES = '"Größe, ""netto""",气缸'
"""Both names as a list with commas between."""
HOLES = (f"{NAMES},fuel,sold\n" + "20.1,,petrol,yes\n,6,,no\n,?,diesel,\n" * 9).encode()


@pytest.fixture(scope="module", name="renamed")
def _renamed(service: Running, cars: bytes) -> dict[str, Any]:
    """A model whose columns have names with commas, quotes and letters of other scripts."""
    return train(service, cars.replace(b"mpg,cylinders", NAMES.encode(), 1))


def test_only_the_named_columns_are_filled_and_kept_blanks_stay(
    service: Running, renamed: dict[str, Any]
) -> None:
    synthesizer = library(service, renamed)
    path = f"/v1/models/{renamed['id']}/imputations"
    headers = {"Content-Type": "text/csv"}
    query = {"columns": NAMES, "keep_missing": "fuel", "format": "csv"}
    asked = {"columns": [PART, "气缸"], "keep_missing": ["fuel"]}
    answer = service.http.post(path, params=query, content=HOLES, headers=headers)
    blocks = synthesizer.impute_blocks(read_table(HOLES), **asked)
    assert answer.content == b"".join(stream_completed(blocks, synthesizer.schema, "csv"))
    completed = read_table(answer.content)
    assert not (completed[[PART, "气缸"]].isin(["", "?"])).any(axis=None)
    assert (completed["fuel"] == read_table(HOLES)["fuel"]).all()
    rows = [{PART: 20.1, "fuel": "petrol", "sold": True}, {"气缸": 6, "sold": None}]
    answer = service.http.post(f"{path}?format=json", json={"rows": rows, **asked}).json()
    assert [row["fuel"] for row in answer] == ["petrol", None]
    assert [row["sold"] for row in answer] == [True, None]
    assert None not in [row[name] for row in answer for name in (PART, "气缸")]


def test_a_job_in_shards_fills_the_same_columns(
    service: Running, renamed: dict[str, Any], start: Callable[..., Running]
) -> None:
    other = start(score_shard_rows=4096, home_dir=service.settings.home_dir)
    header, _, rows = HOLES.partition(b"\n")
    table = header + b"\n" + rows * 160  # 4,320 rows, one shard and a bit
    path = f"/v1/models/{renamed['id']}/imputations"
    query = {"columns": f'"{"气缸"}"', "keep_missing": '"Größe, ""netto"""'}
    headers = {"Content-Type": "text/csv"}
    answer = other.http.post(path, params=query, content=table, headers=headers)
    assert answer.status_code == 202
    result = answer.json()
    assert result["request"]["columns"] == ["气缸"]
    work(other, result["job_id"])
    done = other.http.get(f"/v1/imputations/{result['id']}").json()
    synthesizer = library(service, renamed)
    blocks = synthesizer.impute_blocks(read_table(table), columns=["气缸"], keep_missing=[PART])
    expected = b"".join(stream_completed(blocks, synthesizer.schema, "csv"))
    assert other.http.get(done["content"]).content == expected


@pytest.mark.parametrize(
    ("query", "body", "name", "pointer"),
    [
        ({"columns": "气,fuell"}, {}, "unknown-column", "?columns"),
        ({"columns": '"a'}, {}, "invalid-request", "?columns"),
        ({"columns": ""}, {}, "invalid-request", "?columns"),
        ({}, {"columns": ["fuel", "fuell"]}, "unknown-column", "/columns/1"),
        ({}, {"columns": []}, "invalid-request", "/columns"),
        ({}, {"columns": "fuel"}, "invalid-request", "/columns"),
        ({}, {"columns": ["fuel"], "keep_missing": ["fuel"]}, "invalid-request", "/keep_missing/0"),
        ({"keep_missing": "fuel"}, {"columns": ["fuel"]}, "invalid-request", "?keep_missing"),
    ],
)  # fmt: skip
def test_columns_that_can_not_be_filled_are_refused_by_their_place(
    service: Running,
    renamed: dict[str, Any],
    query: dict[str, str],
    body: dict[str, Any],
    name: str,
    pointer: str,
) -> None:
    path = f"/v1/models/{renamed['id']}/imputations"
    document = {"rows": [{"fuel": "petrol"}], **body}
    response = service.http.post(path, params=query, json=document)
    problem = assert_problem(response, 422, name)
    assert problem["errors"][0]["pointer"] == pointer
