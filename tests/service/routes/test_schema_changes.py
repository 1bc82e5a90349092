"""Schemas of datasets, replaced by PUT and changed by PATCH: what was said, what changed, races."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from gcvae_client import Client
from tests.running_service import Running, assert_problem
from tests.wordings import same_wording

MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}
ORDER = {"rule": "low <= high", "keep": "hard"}
TABLE = b"low,high,age,note,/~x\n" + b"".join(
    b"%d,%d,%d,secret note %d,%d\n" % (i % 31, i % 31 + i % 7, 20 + i % 50, i % 9, i % 3)
    for i in range(150)
)


@pytest.fixture(scope="module")
def refusing(service: Running) -> str:
    """Path of a dataset that no test changes."""
    return upload(service)


@pytest.fixture
def path(service: Running) -> str:
    """Of a dataset of which something was said already."""
    return upload(service)


def upload(service: Running) -> str:
    given = {
        "columns": [
            {"name": "age", "kind": "continuous", "minimum": 0},
            {"name": "note", "drop": True},
        ],
        "rules": [ORDER],
        "find_rules": True,
    }
    answer = service.http.post(
        "/v1/datasets", files={"file": ("t.csv", TABLE)}, data={"schema": json.dumps(given)}
    )
    return f"/v1/datasets/{answer.json()['id']}"


def patch(service: Running, path: str, body: object, **headers: str) -> httpx.Response:
    return service.http.patch(
        f"{path}/schema", content=json.dumps(body), headers=MERGE_PATCH | headers
    )


def column(dataset: dict[str, Any], name: str) -> dict[str, Any]:
    return next(c for c in dataset["schema"]["columns"] if c["name"] == name)


def test_a_patch_keeps_what_was_said_before_and_infers_the_rest_again(
    service: Running, path: str
) -> None:
    before = service.http.get(path).json()
    answer = patch(service, path, {"columns": {"high": {"kind": "continuous", "maximum": 99}}})
    assert answer.status_code == 200, answer.text
    dataset = answer.json()
    assert column(dataset, "high")["maximum"] == 99
    for name in ("low", "age", "note", "/~x"):
        assert column(dataset, name) == column(before, name)
    assert column(dataset, "age")["minimum"] == 0
    assert column(dataset, "note") == {"name": "note", "drop": True}
    assert ORDER.items() <= dataset["schema"]["rules"][0].items()
    said = {c["name"]: c for c in dataset["given_schema"]["columns"]}
    assert said["high"] == {"name": "high", "kind": "continuous", "maximum": 99}
    assert set(said) == {"age", "note", "high"}
    stored = service.http.get(path)
    assert {**stored.json(), "changes": dataset["changes"]} == dataset
    assert stored.headers["ETag"] == answer.headers["ETag"]


@pytest.mark.parametrize("content_type", ["application/merge-patch+json", "application/json"])
def test_a_column_is_dropped_and_then_inferred_from_its_cells_again(
    service: Running, path: str, content_type: str
) -> None:
    kind = {"Content-Type": content_type}
    patch(service, path, {"columns": {"note": {"drop": None}}}, **kind)
    kept = patch(service, path, {"columns": {"note": {"kind": "categorical"}}}).json()
    assert len(column(kept, "note")["levels"]) == 9
    dropped = patch(service, path, {"columns": {"note": {"drop": True}}}, **kind)
    assert dropped.json()["changes"]["columns"] == {
        "note": {"drop": {"before": None, "after": True}}
    }
    assert dropped.json()["changes"]["summary"] == ["column 'note' is dropped"]
    assert "secret" not in dropped.text + service.http.get(path).text
    back = patch(service, path, {"columns": {"note": {"drop": False}}}).json()
    assert column(back, "note") == column(kept, "note")
    assert back["changes"]["summary"][0].startswith("column 'note' is no longer dropped: kind is c")


def test_null_takes_back_what_was_said_and_asks_the_table_again(
    service: Running, path: str
) -> None:
    ordinal = {"kind": "ordinal", "levels": list(range(20, 80)), "minimum": None}
    said = patch(service, path, {"columns": {"age": ordinal}}).json()
    assert len(column(said, "age")["levels"]) == 60
    assert said["changes"]["columns"]["age"]["levels"]["after"] == [*range(20, 25), "and 55 more"]
    asked = patch(service, path, {"columns": {"age": {"levels": None}}}).json()
    assert len(column(asked, "age")["levels"]) == 50
    forgotten = patch(service, path, {"columns": {"age": None}, "rules": None}).json()
    assert column(forgotten, "age")["kind"] == "integer"
    assert "low <= high" not in [rule["rule"] for rule in forgotten["schema"]["rules"]]
    assert [rule["rule"] for rule in forgotten["changes"]["rules"]["lost"]] == ["low <= high"]
    assert "the rule low <= high (hard) is removed" in forgotten["changes"]["summary"]


def test_put_says_what_it_resets(service: Running, path: str) -> None:
    given = {"columns": [{"name": "high", "kind": "continuous"}]}
    changes = service.http.put(f"{path}/schema", json=given).json()["changes"]
    assert set(changes["columns"]) == {"age", "note", "high"}
    assert changes["columns"]["age"]["kind"] == {"before": "continuous", "after": "integer"}
    assert changes["columns"]["note"]["drop"] == {"before": True, "after": None}
    assert [rule["rule"] for rule in changes["rules"]["lost"]] == ["low <= high"]
    words = "\n".join(changes["summary"])
    assert "column 'age': kind is integer (it was continuous); minimum is 20 (it was 0)" in words
    assert "column 'note' is no longer dropped: kind is categorical" in words
    assert "the rule low <= high (hard) is removed" in words
    again = service.http.put(f"{path}/schema", json=given).json()["changes"]
    assert again["columns"] == {}
    assert again["summary"] == ["nothing changed"]


@pytest.mark.parametrize(
    ("body", "name", "pointer", "message"),
    [
        ({"columns": [{"name": "age"}]}, "invalid-request", "/columns", "not an object"),
        ({"columns": {"age": 5}}, "invalid-request", "/columns/age", "not an object"),
        ({"columns": {"age": {"name": "years"}}}, "invalid-request", "/columns/age/name", "key"),
        ({"columns": {"hp": {"kind": "integer"}}}, "invalid-schema", "/columns/hp", "no such"),
        ({"columns": {"/~x": {"kind": "datetime"}}}, "invalid-schema", "/columns/~1~0x/kind",
         "no one format"),
        ({"columns": {"/~x": {"a/b": 1}}}, "invalid-schema", "/columns/~1~0x/a~1b", "no such"),
        ({"columns": {"high": {}, "low": {"maximum": 3}}}, "invalid-schema",
         "/columns/low/maximum", "maximum is 3"),
        ({"columns": {"age": {"kind": "ordinal"}}}, "invalid-schema", "/columns/age",
         "minimum does not apply to kind ordinal (minimum was set before; null resets it)"),
        ({"columns": {"high": {"drop": True}}}, "invalid-schema", None,
         "'high' is dropped: no rule can use it (rules/0 was set before;"),
        ({"rules": [ORDER, {"rule": "high <= low", "keep": "hard"}], "find_rules": True},
         "invalid-schema", "/rules/1", "rows break"),
        ({"rules": [{"rule": "low <= nil", "keep": "hard"}], "find_rules": True},
         "invalid-schema", "/rules/0", "no such column"),
        ({"hard rule": []}, "invalid-schema", "/hard rule", "no such member"),
        ([], "invalid-request", "", "dictionary"),
    ],
)  # fmt: skip
def test_a_patch_that_does_not_fit_is_refused_whole_by_places_in_its_own_body(
    service: Running, refusing: str, body: object, name: str, pointer: str | None, message: str
) -> None:
    before = service.http.get(refusing)
    problem = assert_problem(patch(service, refusing, body), 422, name)
    assert problem["errors"][0].get("pointer") == pointer
    assert message in problem["errors"][0]["message"]
    assert service.http.get(refusing).json() == before.json()


def test_of_patches_at_once_none_is_lost(service: Running, path: str) -> None:
    said: list[dict[str, Any]] = [
        {"columns": {"age": {"maximum": 200}}}, {"columns": {"high": {"kind": "continuous"}}},
        {"columns": {"low": {"kind": "continuous"}}}, {"columns": {"/~x": {"drop": True}}},
    ]  # fmt: skip
    with ThreadPoolExecutor(len(said)) as pool:
        answers = list(pool.map(lambda body: patch(service, path, body), said))
    assert [answer.status_code for answer in answers] == [200] * len(said)
    dataset = service.http.get(path).json()
    assert column(dataset, "age")["maximum"] == 200
    assert [column(dataset, name)["kind"] for name in ("low", "high")] == ["continuous"] * 2
    assert column(dataset, "/~x") == {"name": "/~x", "drop": True}


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_if_match_refuses_what_changed_since_it_was_read(
    service: Running, path: str, method: str
) -> None:
    tag = service.http.get(path).headers["ETag"]

    def ask(tag: str, body: object) -> httpx.Response:
        return service.http.request(
            method, f"{path}/schema", json=body, headers={"If-Match": f'"other", {tag}'}
        )

    first = ask(tag, {})
    if method == "PATCH":  # which changes nothing
        assert first.headers["ETag"] == tag
        first = ask(tag, {"columns": {"age": None}})
    assert first.status_code == 200
    problem = assert_problem(ask(tag, {"rules": []}), 412, "precondition-failed")
    same_wording(problem["detail"])
    assert ask(first.headers["ETag"], {"rules": []}).status_code == 200


def test_a_schema_is_not_patched_while_a_model_is_trained_under_it(
    service: Running, path: str
) -> None:
    service.http.post("/v1/models", json={"dataset_id": path.rpartition("/")[2]})
    assert_problem(patch(service, path, {}), 409, "conflict")


def test_a_repeated_upload_is_answered_without_what_was_dropped_since(service: Running) -> None:
    request: dict[str, Any] = {
        "content": TABLE, "headers": {"Content-Type": "text/csv", "Idempotency-Key": "notes"}
    }  # fmt: skip
    first = service.http.post("/v1/datasets", **request)
    assert "secret note 7" in first.text
    patch(service, first.headers["Location"], {"columns": {"note": {"drop": True}}})
    again = service.http.post("/v1/datasets", **request)
    assert again.json()["id"] == first.json()["id"]
    assert "secret" not in again.text


def test_the_client_patches_a_schema(service: Running, path: str) -> None:
    with Client(service.url) as client:
        body = {"columns": {"age": {"kind": "ordinal", "minimum": None}}}
        dataset = client.patch_schema(path.rpartition("/")[2], body)
    assert column(dataset, "age")["kind"] == "ordinal"
    assert dataset["changes"]["columns"]["age"]["kind"]["before"] == "continuous"
