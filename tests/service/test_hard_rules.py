"""Hard rules between columns, from the upload to the rows and their scores."""

from __future__ import annotations

import io
import json
from typing import Any

import pandas as pd
import pytest

from tests.running_service import Running, assert_problem, work

HARD_RULES = [
    {"rule": "cylinders < mpg", "keep": "hard"},
    {"rule": "combinations(fuel, sold)", "keep": "hard"},
    {"rule": "cylinders + 7 <= mpg", "keep": "hard"},
]


def upload(service: Running, table: bytes, hard_rules: list[dict[str, Any]]) -> Any:
    parts = {
        "file": ("cars.csv", table),
        "schema": (None, json.dumps({"rules": hard_rules, "find_rules": True})),
    }
    return service.http.post("/v1/datasets", files=parts)


@pytest.fixture(scope="module")
def constrained(service: Running, cars: bytes) -> dict[str, Any]:
    """A ready model under hard rules."""
    dataset = upload(service, cars, HARD_RULES).json()
    quick = {"device": "cpu", "max_steps": 20, "evaluate_every_steps": 10}
    asked = {"dataset_id": dataset["id"], "training": quick}
    model = service.http.post("/v1/models", json=asked).json()
    work(service, model["job_id"])
    return dict(service.http.get(f"/v1/models/{model['id']}").json())


def breaches(rows: pd.DataFrame) -> int:
    """How many rows break HARD_RULES."""
    known = [("petrol", "yes"), ("diesel", "no"), ("?", "yes"), ("petrol", "no")]
    pairs = pd.Series(list(zip(rows["fuel"], rows["sold"], strict=True)))
    return int((~pairs.isin(known) | (rows["cylinders"] + 7 > rows["mpg"])).sum())


def test_a_model_says_how_many_of_its_rows_satisfy_its_hard_rules(
    constrained: dict[str, Any],
) -> None:
    kept = [{name: r[name] for name in ("rule", "keep")} for r in constrained["schema"]["rules"]]
    assert kept[:3] == HARD_RULES
    acceptance = constrained["record"]["hard_rule_acceptance"]
    assert 0 < acceptance["share"] < 1
    assert len(acceptance["rules"]) == 3
    assert "fuel" in {moved["column"] for moved in acceptance["moved"]}


def test_rows_drawn_at_once_and_by_a_job_satisfy_the_hard_rules(
    service: Running, constrained: dict[str, Any]
) -> None:
    path = f"/v1/models/{constrained['id']}/samples"
    inline = service.http.post(path, json={"rows": 4500, "seed": 2})
    made = service.http.post(path, json={"rows": 5500, "seed": 2}).json()
    work(service, made["job_id"])
    by_job = service.http.get(f"/v1/samples/{made['id']}/content")
    for content, n in ((inline.content, 4500), (by_job.content, 5500)):
        rows = pd.read_csv(io.BytesIO(content), keep_default_na=False)
        assert len(rows) == n
        assert breaches(rows) == 0
    assert by_job.content.startswith(inline.content)


def test_a_row_that_breaks_a_hard_rule_scores_minus_infinity(
    service: Running, constrained: dict[str, Any]
) -> None:
    good = {"mpg": 20.1, "cylinders": 4, "fuel": "petrol", "sold": True}
    rows = [good, good | {"cylinders": 8, "mpg": 14.5}, good | {"fuel": "diesel"}]
    answer = service.http.post(f"/v1/models/{constrained['id']}/scores", json={"rows": rows}).json()
    scores = [row["log_likelihood"] for row in answer["scores"]]
    assert isinstance(scores[0], float)
    assert scores[1:] == ["-Infinity", "-Infinity"]
    assert "breaks a hard rule" in answer["measure"]


def test_a_table_that_contradicts_its_hard_rules_is_refused_at_the_door(
    service: Running, cars: bytes
) -> None:
    wrong = [{"rule": "mpg <= cylinders", "keep": "hard"}]
    before = service.traces()
    problem = assert_problem(upload(service, cars, wrong), 422, "invalid-schema")
    [error] = problem["errors"]
    assert (error["pointer"], error["line"]) == ("/rules/0", 2)
    assert error["message"].startswith("100 of 100 rows break mpg <= cylinders: lines 2, 3")
    assert service.traces() == before
