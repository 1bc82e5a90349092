"""Rules as documents: read back as written, and refused where they do not fit."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from gcvae.errors import SchemaError
from gcvae.profiling.infer import infer_schema
from gcvae.schema.columns import TableSchema
from gcvae.schema.expressions import written
from gcvae.schema.rules import Condition, Dependency, Formula, Missingness, Rule
from tests.wordings import refuses

COLUMNS = [
    {"name": "a", "kind": "integer"},
    {"name": "b", "kind": "continuous"},
    {"name": "y", "kind": "ordinal", "levels": [1, 2, 3]},
    {"name": "day", "kind": "datetime", "datetime_format": "%Y-%m-%d"},
    {"name": "due", "kind": "datetime", "datetime_format": "%Y-%m-%d"},
    {"name": "word", "kind": "categorical", "levels": ["x", "y"]},
    {"name": "net price", "kind": "continuous"},
    {"name": "税`率", "kind": "continuous"},
    {"name": "class", "kind": "continuous"},
    {"name": "key", "kind": "identifier"},
    {"name": "note", "drop": True},
]
RATE = {"rate": {"x": 0.02, "y": 1}, "名": {"1": "low", "2": "high"}}


def schema(*rules: str | dict[str, Any]) -> TableSchema:
    """The schema of the columns above with these rules."""
    listed = [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]
    return TableSchema.from_json({"columns": COLUMNS, "rules": listed})


def read(rule: str | dict[str, Any]) -> Rule:
    [found] = schema(rule).rules or ()
    return found


@pytest.mark.parametrize(
    ("text", "columns", "form"),
    [
        ("y == a + b", ("y", "a", "b"), Formula),
        ("2 * a - b == y", ("y", "a", "b"), Formula),
        ("b ≈ a ± 0.5", ("b", "a"), Formula),
        ("b ~= a +- 0.5", ("b", "a"), Formula),
        ("due >= day", ("due", "day"), Formula),
        ("min(a, b) <= y or y == 3 or y == -1", ("y", "a", "b"), Formula),
        ("due >= day or due == '2099-12-31'", ("due", "day"), Formula),
        ("b == rate[word] * a", ("b", "word", "a"), Formula),
        ("determines(a, y; word)", ("word", "a", "y"), Dependency),
        ("is_missing(a) if is_missing(b)", ("a", "b"), Missingness),
        ("is_missing(a) == is_missing(b)", ("a", "b"), Missingness),
        ("is_missing(a) if not is_missing(b)", ("a", "b"), Missingness),
        ("is_missing(a) != is_missing(b)", ("a", "b"), Missingness),
        ("a > b if word == 'x; ≈'", ("a", "b", "word"), Condition),
        ("`net price` == `税``率` * `class`", ("net price", "税`率", "class"), Formula),
        ("determines(`net price`, `class`; `税``率`)", ("税`率", "net price", "class"), Dependency),
        ("is_missing(`class`) if is_missing(`net price`)", ("class", "net price"), Missingness),
    ],
)
def test_a_rule_says_something_of_its_column_and_comes_back_as_it_was_written(
    text: str, columns: tuple[str, ...], form: type
) -> None:
    tables = {"tables": RATE} if "rate" in text else {}
    document = {"rule": text, **tables, "keep": "hard", "source": "found", "share": 0.998}
    found = schema(document)
    [rule] = found.rules or ()
    assert (rule.columns, type(rule.form)) == (columns, form)
    assert found.to_json()["rules"] == [document]
    assert TableSchema.from_json(found.to_json()) == found


def test_a_rule_is_soft_and_given_where_its_document_does_not_say() -> None:
    assert read("y == a") == Rule("y == a", keep="soft", source="given", share=None, tables={})
    assert read("y == a").to_json() == {"rule": "y == a", "keep": "soft", "source": "given"}


@pytest.mark.parametrize(
    ("text", "relation", "tolerance", "beside"),
    [
        ("y == a", "==", 0.0, ()),
        ("b ≈ a / 3 ± 1e-3", "≈", 0.001, ()),
        ("a + 1 >= b", "<=", 0.0, ()),
        ("due >= day or due == '2099-12-31'", ">=", 0.0, ("2099-12-31",)),
        ("b <= a or b == -1 or b == 0.5", "<=", 0.0, (-1, 0.5)),
    ],
)
def test_a_formula_is_read_with_its_column_first(
    text: str, relation: str, tolerance: float, beside: tuple[Any, ...]
) -> None:
    form = read(text).form
    assert isinstance(form, Formula)
    assert (form.relation, form.tolerance, form.exempt) == (relation, tolerance, beside)


@pytest.mark.parametrize(
    ("text", "turned"),
    [
        ("due >= day", "day <= due"),
        ("`net price` ≈ `class` ± 0.5", "`class` ≈ `net price` ± 0.5"),
        ("a == `税``率`", "`税``率` == a"),
        ("due >= day + 1", None),
        ("due >= day or due == '2099-12-31'", None),
        ("determines(a; y)", None),
    ],
)
def test_a_rule_of_two_columns_as_they_are_can_be_turned(text: str, turned: str | None) -> None:
    rule = read(text)
    assert rule.reversed_text == turned
    if turned is not None:
        assert read(turned).columns == rule.columns[::-1]
        assert read(turned).reversed_text == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("y == a + b", "y == a + b"),
        ("determines(a; word)", "a determines word"),
        ("determines(`net price`, y; word)", "net price and y determine word"),
        ("is_missing(a) if is_missing(b)", "a is missing wherever b is"),
        ("is_missing(a) == is_missing(b)", "a is missing exactly where b is"),
        ("is_missing(a) if not is_missing(b)", "a is missing wherever b has a value"),
        ("is_missing(a) != is_missing(b)", "a is missing exactly where b has a value"),
    ],
)
def test_a_rule_is_read_aloud(text: str, words: str) -> None:
    assert str(read(text)) == words


def test_a_document_without_rules_is_one_where_nobody_looked() -> None:
    assert TableSchema.from_json({"columns": COLUMNS}).rules is None
    assert "rules" not in TableSchema.from_json({"columns": COLUMNS}).to_json()
    assert schema().rules == ()
    assert schema().to_json()["rules"] == []


@pytest.mark.parametrize(
    "text",
    [
        "y = a",
        "y => a",
        "y == (a + b",
        "y == a ≥ ≥ b",
        "class == a",
        "y == a.b",
        "y == a if b > 0 else b",
        "3 == 4",
        "y ≈ a",
        "y ≈ a ± b",
        "y ≈ 3 ± 1",
        "y > a ± 1",
        "y >= a or y ≈ b ± 1",
        "determines(a, b)",
        "determines(a)",
        "determines(a; a)",
        "determines(a, a; y)",
        "determines(a; y, b)",
        "determines(a + 1; y)",
        "determined(a; y)",
    ],
)
def test_text_that_can_not_be_read_is_refused(text: str) -> None:
    with refuses(SchemaError, "/rules/1"):
        schema("b == a", text)


@pytest.mark.parametrize(
    "more",
    [
        {"hihg": "b"},
        {"kind": "order"},
        {"rule": None},
        {"rule": ["y == a"]},
        {"keep": "always"},
        {"keep": 1},
        {"keep": ["soft"]},
        {"source": "me"},
        {"share": 2},
        {"share": float("nan")},
        {"tables": ["rate"]},
        {"tables": {"rate": 0.02}},
        {"tables": {"rate": {}}},
        {"tables": {"rate": {"x": 0.02, "y": "low"}}},
        {"tables": {"rate": {"x": 1, "y": True}}},
        {"tables": {"rate": {"x": [1]}}},
        {"tables": {"rate": {"x": float("nan")}}},
        pytest.param({"tables": {"rate": {"x": 10**400}}}, id="a number beyond float64"),
        {"tables": {"the rate": {"x": 1}}},
        {"rule": "b >= a or b == 0 or b == 1 or b == 2 or b == 3"},
    ],
    ids=str,
)
def test_a_malformed_document_is_refused(more: dict[str, Any]) -> None:
    with refuses(SchemaError, "/rules/0"):
        schema({"rule": "y == a"} | more)


@pytest.mark.parametrize(
    "item",
    [
        "y == a",
        None,
        {"kind": "sum"},
    ],
    ids=str,
)
def test_what_is_no_document_of_a_rule_is_refused(item: Any) -> None:
    with refuses(SchemaError, "/rules/0"):
        TableSchema.from_json({"columns": COLUMNS, "rules": [item]})


def test_rules_stand_in_a_list() -> None:
    with refuses(SchemaError, "/rules"):
        TableSchema.from_json({"columns": COLUMNS, "rules": {"rule": "y == a"}})


@pytest.mark.parametrize(
    "text", ["Y == a", "y == key", "note == a", "is_missing(key)", "determines(a; note)"]
)
def test_a_column_that_no_rule_can_hold_is_named(text: str) -> None:
    with refuses(SchemaError, "/rules/0"):
        schema({"rule": text, "keep": "hard"})


@pytest.mark.parametrize(
    "text", ["y > a", "a < b < y", "word == 'x'", "y >= a or b == 0", "y == y + a", "y == a if b"]
)
def test_a_condition_may_be_hard_or_off_and_not_soft(text: str) -> None:
    with refuses(SchemaError, "/rules/0"):
        schema(text)
    for keep in ("hard", "off"):
        assert isinstance(read({"rule": text, "keep": keep}).form, Condition)


def test_a_column_is_computed_once() -> None:
    with refuses(SchemaError, "/rules/2"):
        schema("b >= a", "y == a + b", "y ≈ 2 * a ± 1")
    schema("y == a + b", {"rule": "y ≈ 2 * a ± 1", "keep": "off"})
    schema("y == a + b", "y >= a", "y >= b", "determines(word; y)")


def test_rules_go_in_no_circle() -> None:
    with refuses(SchemaError, "/rules/1"):
        schema("y == a + b", "determines(y; a)")
    with refuses(SchemaError, "/rules/2"):
        schema("b == 2 * a", "`class` == 3 * b", "a == `class` / 6 + y")
    schema("y == a + b", {"rule": "determines(y; a)", "keep": "off"})
    schema("y == a + b", "is_missing(a) if is_missing(y)", {"rule": "a < y", "keep": "hard"})
    schema("a >= b", "a <= y", "b <= y")  # between two columns either depends on the other


def test_rules_of_a_partial_document_are_checked_against_the_table() -> None:
    rows = [(i % 25, i % 25 + 5, "xyz"[i % 3], f"2024-01-{i % 25 + 1:02}") for i in range(75)]
    table = pd.DataFrame(rows, columns=["a", "b", "c", "day"])
    inferred = infer_schema(table, {"rules": [{"rule": "b >= a"}]}).schema
    assert inferred.rules == (Rule("b >= a", share=1.0),)
    for wrong in (
        "c >= a",
        "d >= a",
        "day == a",
        "day >= a",
        "b >= a or b == 'never'",
        "day >= day2",
        "b == round(c)",
        "b == rounded(a)",
        "b == rate[c]",
        "c == a",
    ):
        with refuses(SchemaError, "/rules/0"):
            infer_schema(table, {"rules": [{"rule": wrong}]})


@pytest.mark.parametrize("word", ["only if", "x else y", "a; b", "≈ ± 3"])
def test_words_of_the_language_within_quotes_are_text(word: str) -> None:
    rule = Rule(f"note == '{word}'", keep="hard")
    assert rule.columns == ("note",)
    assert Rule(f"`{word}` == price").form == Formula(word, "==", rule.form.tree, ("price",))
    assert isinstance(Rule(f"is_missing(note) if note != '{word}'", keep="hard").form, Condition)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "the expression is empty"),
        ("a == b and", "something is missing at the end"),
        ("a ==\n  b + ", "at character 11; something is missing at the end"),
        ("`a`b` <= y", "a backtick has no partner; one within a name is doubled"),
        ("a`b <= y", "a backtick has no partner; one within a name is doubled"),
        ("if a > 3: b > 50", "a premise follows its rule: b > 50 if a > 3"),
        ("a between 3 and 5", "a range is written 3 <= a <= 5"),
        ("a is not None", "is_missing(x) is true where x is missing"),
        ("net.price > 3", "a name with a full stop stands in backticks"),
        ("net price > 3", "stands in backticks"),
    ],
)
def test_the_hint_of_an_unreadable_expression_is_about_its_slip(text: str, hint: str) -> None:
    with pytest.raises(ValueError, match=r"the expression|not allowed") as raised:
        Rule(text)
    assert str(raised.value).endswith(hint if hint != "stands in backticks" else f"class, {hint}")


@pytest.mark.parametrize("text", ["y == (a == 'x', b'", "a == (b", "a == b)"])
def test_a_bracket_or_quote_without_a_partner_is_all_that_is_said(text: str) -> None:
    with pytest.raises(ValueError, match=r"at character [0-9]+$"):
        Rule(text)


@pytest.mark.parametrize("text", ["y ==\n  a\r\n + b", "y == a # net\n + b", "\n y == a + b"])
def test_a_rule_may_stand_in_several_lines(text: str) -> None:
    form = Rule(text).form
    assert isinstance(form, Formula)
    assert (written(form.value), form.parents) == ("a + b", ("a", "b"))


@pytest.mark.parametrize("premise", ["a == b", "a > b"])
def test_a_soft_rule_on_missing_cells_names_the_form_that_may_be_soft(premise: str) -> None:
    rule = {"rule": f"is_missing(y) if {premise}"}
    rows = pd.DataFrame({"y": ["", "1", "2"] * 9, "a": range(27), "b": range(9, 36)}).astype(str)
    with refuses(SchemaError, "/rules/0") as raised:
        infer_schema(rows.assign(a=rows["a"].str[-1], b=rows["b"].str[-1]), {"rules": [rule]})
    assert "is_missing(y) if is_missing(x)" in str(raised.value)
