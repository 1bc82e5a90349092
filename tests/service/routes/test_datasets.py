"""Datasets: every way in, and what is refused leaves no trace."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from collections.abc import Callable
from typing import Any

import httpx
import pandas as pd
import pytest

from tests.running_service import Running, assert_problem
from tests.wordings import same_wording

CSV = {"Content-Type": "text/csv"}


def parquet(**columns: list[Any]) -> bytes:
    buffer = io.BytesIO()
    pd.DataFrame(columns).to_parquet(buffer)
    return buffer.getvalue()


def dataset_of(response: httpx.Response) -> dict[str, Any]:
    """The dataset of an answer that says what changed."""
    return {name: value for name, value in response.json().items() if name != "changes"}


def form(content: bytes, filename: str = "cars.csv", **fields: str) -> dict[str, Any]:
    return {"files": {"file": (filename, content)}, "data": fields}


@pytest.mark.parametrize("way", ["form", "bare", "gzip", "form of gzip", "parquet"])
def test_a_table_comes_in_by_every_way(service: Running, cars: bytes, way: str) -> None:
    packed = gzip.compress(cars, mtime=0)
    typed = parquet(x=[1.5, 2.5, 3.5], y=["a", "b", "a"])
    requests: dict[str, tuple[bytes, dict[str, Any]]] = {
        "form": (cars, form(cars)),
        "bare": (cars, {"content": cars, "headers": CSV}),
        "gzip": (packed, {"content": packed, "headers": {"Content-Type": "application/gzip"}}),
        "form of gzip": (packed, form(packed, "cars.csv.gz")),
        "parquet": (
            typed,
            {"content": typed, "headers": {"Content-Type": "application/vnd.apache.parquet"}},
        ),
    }
    content, request = requests[way]
    response = service.http.post("/v1/datasets", **request)
    dataset = response.json()
    assert response.status_code == 201, dataset
    assert response.headers["Location"] == f"/v1/datasets/{dataset['id']}"
    assert dataset["sha256"] == hashlib.sha256(content).hexdigest()
    assert (dataset["rows"], dataset["columns"]) == ((3, 2) if way == "parquet" else (100, 4))
    assert service.http.get(response.headers["Location"]).json() == dataset
    key = f"datasets/{dataset['id']}/table.{dataset['format']}"
    assert service.store.read(key, dataset["sha256"]) == content


def test_a_chunked_body_is_streamed_in(service: Running, cars: bytes) -> None:
    pieces = (cars[first : first + 100] for first in range(0, len(cars), 100))
    response = service.http.post("/v1/datasets", content=pieces, headers=CSV)
    assert response.status_code == 201


def test_the_name_is_given_or_the_files_own(service: Running, cars: bytes) -> None:
    names = [
        service.http.post("/v1/datasets", **request).json()["name"]
        for request in (
            form(cars, "folder/märz.csv.gz"),
            form(cars, name="Spring"),
            {"content": cars, "headers": CSV, "params": {"name": "Summer"}},
            {"content": cars, "headers": CSV},
        )
    ]
    assert names == ["märz", "Spring", "Summer", "table"]


def test_what_the_user_says_of_a_column_wins(service: Running, cars: bytes) -> None:
    given = {"columns": [{"name": "cylinders", "kind": "integer"}]}
    dataset = service.http.post("/v1/datasets", **form(cars, schema=json.dumps(given))).json()
    kinds = {column["name"]: column["kind"] for column in dataset["schema"]["columns"]}
    assert kinds == {
        "mpg": "continuous", "cylinders": "integer", "fuel": "categorical", "sold": "boolean",
    }  # fmt: skip


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"a,b\n", id="no rows"),
        pytest.param(b"a,b\n1,2\n3\n4,5\n6,7,8\n", id="ragged"),
        pytest.param("a,b\né,2\n".encode("latin-1"), id="encoding"),
        pytest.param("a,b\n1,2\n".encode("utf-16"), id="utf-16"),
        pytest.param(b"a,b,a\n1,2,3\n", id="duplicate header"),
        pytest.param(b",,\n1,2,3\n", id="empty header"),
        pytest.param(b"a,b\n1,2\n1,2\n", id="all constant"),
        pytest.param(b'{"a": 1}', id="json"),
        pytest.param(b"<html></html>", id="html"),
        pytest.param(b"\x00\x01\x02" * 99, id="binary"),
        pytest.param(b"PAR1 and no more", id="broken parquet"),
        pytest.param(gzip.compress(b"a,b\n1,2\n", mtime=0)[:15], id="broken gzip"),
    ],
)
def test_what_is_no_table_is_refused_by_its_place_and_leaves_no_trace(
    service: Running, content: bytes
) -> None:
    before = service.traces()
    answer = service.http.post("/v1/datasets", content=content, headers=CSV)
    problem = assert_problem(answer, 422, "invalid-table")
    same_wording(problem["detail"])
    assert all(error["message"] for error in problem["errors"])
    assert service.traces() == before


def test_every_ragged_line_is_named(service: Running) -> None:
    content = b"a,b\n1,2\n3\n4,5\n6,7,8\n"
    problem = service.http.post("/v1/datasets", content=content, headers=CSV).json()
    assert [error["line"] for error in problem["errors"]] == [3, 5]
    assert {error["expected"] for error in problem["errors"]} == {
        "2 cells; a ',' within a cell needs quotes around it"
    }


@pytest.mark.parametrize(
    ("schema", "status", "name", "pointer"),
    [
        ("{", 422, "invalid-request", "/schema"),
        ("[]", 422, "invalid-request", "/schema"),
        ('{"columns": [{"name": "mpg", "kind": "datetime"}]}', 422, "invalid-schema",
         "/columns/0/kind"),
        ('{"columns": [{"name": "hp"}]}', 422, "invalid-schema", "/columns/0/name"),
        ('{"columns": [{"name": "mpg", "kind": "metric"}]}', 422, "invalid-schema",
         "/columns/0/kind"),
        ('{"columns": [{"name": "fuel", "kind": "categorical", "levels": ["petrol"]}]}', 422,
         "invalid-schema", "/columns/0/levels"),
    ],
)  # fmt: skip
def test_a_schema_that_does_not_fit_is_refused_by_its_pointer(
    service: Running, cars: bytes, schema: str, status: int, name: str, pointer: str
) -> None:
    before = service.traces()
    response = service.http.post("/v1/datasets", **form(cars, schema=schema))
    problem = assert_problem(response, status, name)
    assert problem["errors"][0]["pointer"] == pointer
    assert service.traces() == before


@pytest.mark.parametrize(
    ("request_", "status", "name"),
    [
        ({"content": b"x", "headers": {"Content-Type": "image/png"}}, 415,
         "unsupported-media-type"),
        ({"content": b"x"}, 415, "unsupported-media-type"),
        ({"files": {"table": ("t.csv", b"a\n1\n")}}, 422, "invalid-request"),
        ({"files": {"name": ("t.csv", b"a\n1\n"), "file": ("t", b"")}}, 422, "invalid-request"),
        ({"data": {"file": "a,b"}, "files": {"schema": ("s", b"{}")}}, 422, "invalid-request"),
        ({"data": {"name": ["a", "b"]}, "files": {"file": ("t.csv", b"a\n1\n")}}, 422,
         "invalid-request"),
        ({"content": b"no parts", "headers": {"Content-Type": "multipart/form-data; boundary=x"}},
         400, "bad-request"),
        ({"content": b"x", "headers": {"Content-Type": "multipart/form-data"}}, 400,
         "bad-request"),
    ],
)  # fmt: skip
def test_a_request_that_brings_no_table_says_what_would_be_right(
    service: Running, request_: dict[str, Any], status: int, name: str
) -> None:
    before = service.traces()
    assert_problem(service.http.post("/v1/datasets", **request_), status, name)
    assert service.traces() == before


@pytest.mark.parametrize(
    ("settings", "content", "status", "setting"),
    [
        ({"max_upload_bytes": 99}, b"a,b\n" + b"1,2\n" * 50, 413, "GCVAE_MAX_UPLOAD_BYTES"),
        ({"max_table_bytes": 99}, gzip.compress(b"a,b\n" + b"1,2\n" * 50, mtime=0), 413,
         "GCVAE_MAX_TABLE_BYTES"),
        ({"max_rows": 2}, b"a,b\n1,2\n2,3\n3,4\n", 422, "GCVAE_MAX_ROWS"),
        ({"max_rows": 2}, parquet(a=[1, 2, 3]), 422, "GCVAE_MAX_ROWS"),
        ({"max_columns": 1}, b"a,b\n1,2\n2,3\n", 422, "GCVAE_MAX_COLUMNS"),
        ({"max_cells": 5}, b"a,b\n1,2\n2,3\n3,4\n", 422, "GCVAE_MAX_CELLS"),
        ({"max_levels": 2}, b"a\n" + b"x\ny\nz\n" * 9, 422, "GCVAE_MAX_LEVELS"),
    ],
)  # fmt: skip
def test_a_limit_names_itself_and_its_setting(
    start: Callable[..., Running],
    settings: dict[str, int],
    content: bytes,
    status: int,
    setting: str,
) -> None:
    service = start(**settings)
    before = service.traces()
    for request in ({"content": content, "headers": CSV}, form(content)):
        response = service.http.post("/v1/datasets", **request)
        kind = "too-large" if status == 413 else "limit-exceeded"
        problem = assert_problem(response, status, kind)
        assert problem["setting"] == setting
        assert problem["limit"] == next(iter(settings.values()))
    assert service.traces() == before


def test_a_body_without_announced_length_is_cut_off_at_the_limit(
    start: Callable[..., Running],
) -> None:
    service = start(max_upload_bytes=1000)
    blocks = (b"1,2\n" * 100 for _ in range(100))
    response = service.http.post("/v1/datasets", content=blocks, headers=CSV)
    assert_problem(response, 413, "too-large")


def test_json_has_a_limit_of_its_own(start: Callable[..., Running]) -> None:
    service = start(max_json_bytes=100)
    response = service.http.post("/v1/models", json={"dataset_id": "x" * 200})
    problem = assert_problem(response, 413, "too-large")
    assert problem["setting"] == "GCVAE_MAX_JSON_BYTES"


def test_an_upload_that_breaks_off_leaves_no_trace(service: Running) -> None:
    before = service.traces()

    def broken() -> Any:
        yield b"a,b\n1,2\n"
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="disk"):
        service.http.post("/v1/datasets", content=broken(), headers=CSV)
    assert service.traces() == before


def test_a_schema_is_replaced_and_what_it_leaves_open_is_inferred(
    service: Running, dataset_id: str
) -> None:
    path = f"/v1/datasets/{dataset_id}"
    given = {"columns": [{"name": "mpg", "kind": "continuous", "minimum": 0}]}
    replaced = service.http.put(f"{path}/schema", json=given)
    assert replaced.status_code == 200
    columns = {column["name"]: column for column in replaced.json()["schema"]["columns"]}
    assert columns["mpg"]["minimum"] == 0
    assert columns["fuel"]["levels"] == ["diesel", "petrol"]
    assert service.http.get(path).json() == dataset_of(replaced)


def test_a_schema_that_contradicts_the_table_changes_nothing(
    service: Running, dataset_id: str
) -> None:
    path = f"/v1/datasets/{dataset_id}"
    before = service.http.get(path).json()
    given = {"columns": [{"name": "fuel", "kind": "continuous"}]}
    response = service.http.put(f"{path}/schema", json=given)
    problem = assert_problem(response, 422, "invalid-schema")
    assert problem["errors"][0]["column"] == "fuel"
    assert service.http.get(path).json() == before


def test_a_schema_stays_while_a_model_is_trained_under_it(
    service: Running, dataset_id: str
) -> None:
    service.http.post("/v1/models", json={"dataset_id": dataset_id})
    path = f"/v1/datasets/{dataset_id}"
    assert_problem(service.http.put(f"{path}/schema", json={}), 409, "conflict")
    assert_problem(service.http.delete(path), 409, "conflict")


def test_the_profile_tells_what_each_column_holds(service: Running, dataset_id: str) -> None:
    response = service.http.get(f"/v1/datasets/{dataset_id}/profile")
    profile = {column["name"]: column for column in response.json()["columns"]}
    assert profile["mpg"]["quantiles"]["0.5"] == pytest.approx(23, abs=1.5)
    assert sum(profile["mpg"]["histogram"]["counts"]) == 100
    assert profile["fuel"]["missing_share"] == pytest.approx(0.25)
    levels = {item["level"]: item["count"] for item in profile["fuel"]["levels"]}
    assert levels == {"petrol": 50, "diesel": 25}
    assert profile["sold"]["kind"] == "boolean"


def test_the_rules_of_a_table_are_shown_and_steered(service: Running) -> None:
    net = [100 + i * 37 % 91 for i in range(200)]
    tax = [i * 53 % 29 for i in range(200)]
    totals = [a + b + (17 if i == 44 else 0) for i, (a, b) in enumerate(zip(net, tax, strict=True))]
    rows = [f"{a},{b},{c}" for a, b, c in zip(net, tax, totals, strict=True)]
    table = "\n".join(["net,tax,total", *rows, ""]).encode()
    dataset = service.http.post("/v1/datasets", content=table, headers=CSV).json()
    place = f"/v1/datasets/{dataset['id']}"
    [found] = service.http.get(f"{place}/rules").json()["rules"]
    assert found["formula"] == "total == net + tax"
    assert (found["rows"], found["kept"]) == (200, 199)
    assert found["exceptions"] == [{"row": 44, "line": 46}]
    assert found["columns"] == ["total", "net", "tax"]
    assert found["rule"] == dataset["schema"]["rules"][0]
    assert service.http.get(f"{place}/profile").json()["rules"] == [found]

    patch = {"Content-Type": "application/merge-patch+json"}
    hard = json.dumps({"rules": [found["rule"] | {"keep": "hard"}]})
    refused = service.http.patch(f"{place}/schema", content=hard, headers=patch)
    assert_problem(refused, 422, "invalid-schema")
    assert "1 of 200 rows break total == net + tax: lines 46" in refused.text
    assert "/rules/0" in refused.text

    off = json.dumps({"rules": [found["rule"] | {"keep": "off"}]})
    answer = service.http.patch(f"{place}/schema", content=off, headers=patch).json()
    assert answer["changes"]["summary"] == [
        "the rule total == net + tax (off) is added",
        "the rule total == net + tax is removed",
    ]
    assert answer["schema"]["rules"][0]["keep"] == "off"
    kept = service.http.patch(f"{place}/schema", content='{"columns": {}}', headers=patch).json()
    assert kept["schema"]["rules"] == answer["schema"]["rules"]
    again = service.http.patch(f"{place}/schema", content='{"rules": null}', headers=patch).json()
    assert again["schema"]["rules"] == dataset["schema"]["rules"]


def test_a_table_that_breaks_a_hard_rule_of_its_schema_is_refused(
    service: Running, cars: bytes
) -> None:
    schema = {"rules": [{"rule": "mpg <= cylinders", "keep": "hard"}], "find_rules": True}
    parts = {"file": ("cars.csv", cars), "schema": (None, json.dumps(schema))}
    before = service.traces()
    refused = service.http.post("/v1/datasets", files=parts)
    [error] = assert_problem(refused, 422, "invalid-schema")["errors"]
    assert (error["pointer"], error["line"]) == ("/rules/0", 2)
    assert error["message"].startswith("100 of 100 rows break mpg <= cylinders: lines 2, 3")
    assert service.traces() == before


def test_a_profile_that_did_not_change_is_not_sent_again(service: Running, dataset_id: str) -> None:
    path = f"/v1/datasets/{dataset_id}/profile"
    tag = service.http.get(path).headers["ETag"]
    assert service.http.get(path, headers={"If-None-Match": tag}).status_code == 304
    service.http.put(f"/v1/datasets/{dataset_id}/schema",
                     json={"columns": [{"name": "cylinders", "kind": "continuous"}]})  # fmt: skip
    assert service.http.get(path, headers={"If-None-Match": tag}).status_code == 200


def test_a_dropped_column_leaves_its_name_and_nothing_else(start: Callable[..., Running]) -> None:
    service = start(max_levels=5)
    content = b"x,note,day\n" + b"".join(
        b"%d,secret note %d %s,2024-01-%d\n" % (i % 9, i % 30, b"y" * (1001 * (i == 7)), i)
        for i in range(60)
    )
    given = {"columns": [{"name": "note", "kind": "categorical", "drop": True},
                         {"name": "day", "drop": True},
                         {"name": "x", "kind": "integer"}]}  # fmt: skip
    answer = service.http.post("/v1/datasets", **form(content, schema=json.dumps(given)))
    dataset = answer.json()
    assert answer.status_code == 201, dataset
    bare = [{"name": name, "drop": True} for name in ("note", "day")]
    assert dataset["schema"]["columns"][1:] == bare
    assert dataset["warnings"] == []
    profile = service.http.get(f"/v1/datasets/{dataset['id']}/profile")
    for column, known in zip(profile.json()["columns"][1:], bare, strict=True):
        assert {name: value for name, value in column.items() if value is not None} == known
    assert "secret" not in profile.text + answer.text


def test_a_deleted_dataset_is_gone_with_its_bytes(start: Callable[..., Running]) -> None:
    service = start()
    before = service.traces()
    dataset = service.http.post("/v1/datasets", content=b"a\n1\n2\n", headers=CSV).json()
    path = f"/v1/datasets/{dataset['id']}"
    deleted = service.http.delete(path)
    assert (deleted.status_code, deleted.content) == (204, b"")
    for request in ("get", "delete"):
        assert_problem(getattr(service.http, request)(path), 404, "not-found")
    assert service.traces() == before


def test_damaged_bytes_are_no_answer(start: Callable[..., Running], cars: bytes) -> None:
    service = start()
    dataset = service.http.post("/v1/datasets", content=cars, headers=CSV).json()
    file = service.settings.home_dir / "store" / "datasets" / dataset["id"] / "table.csv"
    file.write_bytes(cars.replace(b"petrol", b"Petrol", 1))
    response = service.http.get(f"/v1/datasets/{dataset['id']}/profile")
    assert_problem(response, 500, "stored-bytes-damaged")
