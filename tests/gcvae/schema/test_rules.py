"""Rules as documents: read back as written, and refused where they do not fit."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from gcvae.errors import SchemaError
from gcvae.profiling.infer_schema import infer_schema
from gcvae.schema.columns import TableSchema
from tests.wordings import refuses

COLUMNS = [
    {"name": "a", "kind": "integer"},
    {"name": "b", "kind": "continuous"},
    {"name": "y", "kind": "ordinal", "levels": [1, 2, 3]},
    {"name": "day", "kind": "datetime", "datetime_format": "%Y-%m-%d"},
    {"name": "word", "kind": "categorical", "levels": ["x", "y"]},
    {"name": "key", "kind": "identifier"},
    {"name": "note", "drop": True},
]
RULES = [
    {"kind": "order", "low": "a", "high": "b", "share": 0.998},
    {"kind": "sum", "column": "y", "terms": {"a": 1, "b": -0.01}, "remainders": [0, 0.5]},
    {"kind": "product", "column": "y", "factors": ["a", "b"], "factor": 0.01, "ties": "away"},
    {"kind": "clock", "column": "y", "start": "a", "minutes": "b", "midnight": 2400},
    {"kind": "date_part", "column": "y", "of": "day", "part": "hour", "zone": "Asia/Tokyo"},
    {"kind": "date_part", "column": "y", "of": "day", "part": "weekday", "monday": 1, "sunday": 7},
    {"kind": "function", "column": "word", "of": ["a", "y"]},
    {"kind": "blanks", "column": "a", "of": "b", "relation": "follows"},
]


def schema(*rules: Any) -> TableSchema:
    """The schema of the columns above with these rules."""
    return TableSchema.from_json({"columns": COLUMNS, "rules": list(rules)})


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["kind"]))
def test_a_rule_comes_back_as_it_was_written(rule: dict[str, Any]) -> None:
    document = rule | {"keep": "demand", "source": "found"}
    read = schema(document)
    assert read.to_json()["rules"] == [document]
    assert TableSchema.from_json(read.to_json()) == read


def test_a_document_without_rules_is_one_where_nobody_looked() -> None:
    assert TableSchema.from_json({"columns": COLUMNS}).rules is None
    assert "rules" not in TableSchema.from_json({"columns": COLUMNS}).to_json()
    assert schema().rules == ()
    assert schema().to_json()["rules"] == []


@pytest.mark.parametrize(
    "rule",
    [
        {"kind": "ordre"},
        RULES[0] | {"hihg": "b"},
        RULES[0] | {"keep": "always"},
        RULES[0] | {"share": 2},
        RULES[0] | {"high": "a"},
        RULES[0] | {"high": "B"},
        RULES[0] | {"high": "day"},
        RULES[0] | {"high": "key"},
        RULES[0] | {"high": "note"},
        RULES[1] | {"terms": {"word": 1}},
        RULES[1] | {"terms": {"a": 0}},
        RULES[1] | {"terms": dict.fromkeys("abcdef", 1)},
        RULES[3] | {"midnight": 12},
        RULES[4] | {"part": "moon"},
        RULES[4] | {"zone": "Asia/Tokio"},
        RULES[5] | {"sunday": 1},
        RULES[6] | {"of": []},
        RULES[7] | {"relation": "before"},
    ],
)
def test_what_does_not_fit_is_named(rule: dict[str, Any]) -> None:
    with refuses(SchemaError):
        schema(rule)


def test_a_column_is_rewritten_once_and_rules_go_in_no_circle() -> None:
    with refuses(SchemaError, "/rules/2"):
        schema(RULES[0], RULES[1], RULES[2])
    schema(RULES[0], RULES[1], RULES[2] | {"keep": "drop"})
    back = {"kind": "function", "column": "a", "of": ["y"]}
    with refuses(SchemaError, "/rules/1"):
        schema(RULES[1], back)


def test_rules_of_a_partial_document_are_checked_against_the_table() -> None:
    rows = [(i % 25, i % 25 + 5, "xyz"[i % 3]) for i in range(75)]
    table = pd.DataFrame(rows, columns=["a", "b", "c"])
    rule = {"kind": "order", "low": "a", "high": "b"}
    inferred = infer_schema(table, {"rules": [rule]}).schema
    assert [r.to_json()["high"] for r in inferred.rules or ()] == ["b"]
    for wrong in ("c", "d"):
        with refuses(SchemaError, "/rules/0"):
            infer_schema(table, {"rules": [rule | {"high": wrong}]})
