"""Bodies in JSON: what is wrong is named with its place, on every call that reads them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from service.errors import RequestError
from service.http.json_bodies import read_json
from tests.running_service import Running, assert_problem
from tests.wordings import same_wording

CALLS = [
    ("POST", "/v1/models"),
    ("POST", "/v1/models/{model}/samples"),
    ("POST", "/v1/models/{model}/dependencies"),
    ("PUT", "/v1/datasets/{dataset}/schema"),
    ("PATCH", "/v1/datasets/{dataset}/schema"),
]
"""They read nothing but JSON."""

CALLS_OF_ROWS = [
    ("POST", f"/v1/models/{{model}}/{what}") for what in ("scores", "imputations", "encodings")
]

BROKEN = [
    (b'{"a": \n\t1,}', 2),
    (b'{"a": "\xff"}', 1),
    (b"[" * 300, 1),
    (b'{"e": 1,\n "b~/c": [{}, {"x": 1, "x": 2}]}', 2),
    (b"", 1),
    ('{"a": 1}'.encode("utf-16-le"), 1),
    (b'{"a": "\\ud800"}', 1),
    (b'{"NaN": 1,\n "a": [NaN]}', 2),
    (b'{"a": -Infinity}', 1),
    (b"1" * 5000, 1),
]


@pytest.mark.parametrize(("text", "line"), BROKEN)
def test_what_is_wrong_is_told_with_its_place(text: bytes, line: int) -> None:
    with pytest.raises(RequestError) as refusal:
        read_json(text)
    [problem] = refusal.value.problems
    assert problem.line == line
    same_wording(str(problem))


@pytest.mark.parametrize(
    "value",
    [{"a": [{"b": 1}, {"b": 1}]}, [[], {}, "{", '"', '\\"'], "x", None, {"a": {"a": {"a": "a"}}}],
)
def test_what_is_right_is_read(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=1, ensure_ascii=False)):
        assert read_json(text.encode()) == value
        assert read_json(b"\xef\xbb\xbf" + text.encode()) == value


def filled(service: Running, model: dict[str, Any], path: str) -> str:
    return path.format(model=model["id"], dataset=model["dataset_id"])


@pytest.mark.parametrize(("method", "path"), [*CALLS, *CALLS_OF_ROWS])
@pytest.mark.parametrize("text", [b'{"a": "\xff"}', b"[" * 9000, b'{"a": 1, "a": 2}'])
def test_no_call_takes_a_broken_text(
    service: Running, model: dict[str, Any], method: str, path: str, text: bytes
) -> None:
    headers = {"Content-Type": "application/json"}
    url = filled(service, model, path)
    response = service.http.request(method, url, content=text, headers=headers)
    problem = assert_problem(response, 422, "invalid-request")
    assert problem["errors"][0]["line"] == 1
    assert problem["errors"][0]["expected"]


@pytest.mark.parametrize(("method", "path"), [*CALLS, *CALLS_OF_ROWS])
@pytest.mark.parametrize("kind", ["text/html", "application/x-www-form-urlencoded", None])
def test_a_body_of_another_kind_is_refused_by_the_kinds_that_are_read(
    service: Running, model: dict[str, Any], method: str, path: str, kind: str | None
) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    url = filled(service, model, path)
    response = service.http.request(method, url, content=b'{"rows": 5}', headers=headers)
    problem = assert_problem(response, 415, "unsupported-media-type")
    assert "application/json" in problem["readable"]
    assert ("text/csv" in problem["readable"]) is ((method, path) in CALLS_OF_ROWS)
    assert (kind or "no Content-Type") in problem["detail"]


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_no_body_is_told_to_be_none(
    service: Running, model: dict[str, Any], method: str, path: str
) -> None:
    response = service.http.request(method, filled(service, model, path))
    problem = assert_problem(response, 422, "invalid-request")
    assert "required" in problem["errors"][0]["message"]


def test_a_kind_of_json_is_json(service: Running, model: dict[str, Any]) -> None:
    url = filled(service, model, "/v1/models/{model}/samples")
    for kind in ("application/json; charset=utf-8", "application/vnd.team+json"):
        asked = {"content": b'{"rows": 2}', "headers": {"Content-Type": kind}}
        assert service.http.post(url, **asked).status_code == 200


def test_a_schema_beside_a_table_is_read_as_strictly(service: Running, cars: bytes) -> None:
    text = '{"columns": [{"name": "mpg", "kind": "continuous", "kind": "integer"}]}'
    form = {"files": {"file": ("cars.csv", cars)}, "data": {"schema": text}}
    bare = {"content": cars, "headers": {"Content-Type": "text/csv"}, "params": {"schema": text}}
    for asked, place in ((form, "/schema"), (bare, "?schema")):
        response = service.http.post("/v1/datasets", **asked)
        problem = assert_problem(response, 422, "invalid-request")
        assert problem["errors"][0]["pointer"] == place
        same_wording(problem["detail"])


@pytest.mark.parametrize(
    ("path", "body", "pointer"),
    [
        ("/v1/datasets", {}, "/connection"),
        ("/v1/models", {}, "/dataset_id"),
        ("/v1/models", {"dataset_id": "ds_1", "training": "fast"}, "/training"),
        ("/v1/models", [], ""),
    ],
)
def test_what_a_body_lacks_is_told_with_an_example(
    service: Running, path: str, body: Any, pointer: str
) -> None:
    refused = service.http.post(path, json=body)
    problem = assert_problem(refused, 422, "invalid-request")
    assert problem["errors"][0]["pointer"] == pointer
    assert "Field" not in problem["detail"]
    same_wording(problem["detail"])


def test_a_body_without_content_type_is_told(service: Running) -> None:
    refused = service.http.post("/v1/datasets", content=b"")
    same_wording(assert_problem(refused, 415, "unsupported-media-type")["detail"])
