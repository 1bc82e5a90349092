"""Rules as documents: read back as written, and refused where they do not fit."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from gcvae.errors import SchemaError
from gcvae.profiling.infer_schema import infer_schema
from gcvae.schema.columns import TableSchema

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
    ("rule", "message"),
    [
        ({"kind": "ordre"}, "/rules/0: unknown kind of rule; did you mean 'order'?"),
        (RULES[0] | {"hihg": "b"}, "/rules/0: malformed order (expected: "),
        (RULES[0] | {"keep": "always"}, "/rules/0: keep is none of model, demand, drop"),
        (RULES[0] | {"share": 2}, "/rules/0: share is no number from 0 to 1"),
        (RULES[0] | {"high": "a"}, "/rules/0: a column is named twice"),
        (RULES[0] | {"high": "B"}, "column 'B': there is no such column; did you mean 'b'?"),
        (RULES[0] | {"high": "day"}, "column 'day' is of kind datetime (expected: a column of num"),
        (RULES[0] | {"high": "key"}, "/rules/0: column 'key' is of kind identifier: no rule holds"),
        (RULES[0] | {"high": "note"}, "/rules/0: column 'note' is dropped: no rule holds it"),
        (RULES[1] | {"terms": {"word": 1}}, "column 'word' is of kind categorical (expected: a c"),
        (RULES[1] | {"terms": {"a": 0}}, "/rules/0: terms are no object of columns and"),
        (RULES[1] | {"terms": dict.fromkeys("abcdef", 1)}, "a sum has from 1 to 5 terms"),
        (RULES[3] | {"midnight": 12}, "/rules/0: midnight is none of 0, 2400"),
        (RULES[4] | {"part": "moon"}, "/rules/0: part is none of year, quarter, month"),
        (RULES[4] | {"zone": "Asia/Tokio"}, "/rules/0: there is no time zone 'Asia/Tokio'"),
        (RULES[5] | {"sunday": 1}, "/rules/0: monday and sunday do not go together"),
        (RULES[6] | {"of": []}, "/rules/0: of has not 1 to 3 columns"),
        (RULES[7] | {"relation": "before"}, "/rules/0: relation is none of same, follows"),
    ],
)
def test_what_does_not_fit_is_named(rule: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError) as raised:
        schema(rule)
    assert message in str(raised.value)


def test_a_column_is_rewritten_once_and_rules_go_in_no_circle() -> None:
    with pytest.raises(SchemaError, match=r"/rules/2: column 'y' follows from /rules/1"):
        schema(RULES[0], RULES[1], RULES[2])
    schema(RULES[0], RULES[1], RULES[2] | {"keep": "drop"})
    back = {"kind": "function", "column": "a", "of": ["y"]}
    with pytest.raises(SchemaError, match=r"/rules/1: the rules go in a circle: "):
        schema(RULES[1], back)


def test_rules_of_a_partial_document_are_checked_against_the_table() -> None:
    rows = [(i % 25, i % 25 + 5, "xyz"[i % 3]) for i in range(75)]
    table = pd.DataFrame(rows, columns=["a", "b", "c"])
    rule = {"kind": "order", "low": "a", "high": "b"}
    inferred = infer_schema(table, {"rules": [rule]}).schema
    assert [r.to_json()["high"] for r in inferred.rules or ()] == ["b"]
    for wrong, message in (("c", "column 'c' is of kind categorical"), ("d", "no such column")):
        with pytest.raises(SchemaError, match=message):
            infer_schema(table, {"rules": [rule | {"high": wrong}]})
