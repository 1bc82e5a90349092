"""Functions of expressions: what they give, of blanks too, and what they refuse."""

from __future__ import annotations

from datetime import date
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcvae import Synthesizer
from gcvae.errors import Problem
from gcvae.expressions.rounded_numbers import FALSE, TRUE, UNKNOWN
from gcvae.expressions.terms import Rows, column_values, compile_condition
from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.expressions import parse_expression
from gcvae.schema.kinds import ColumnKind
from gcvae.schema.rule_documents import read_rules
from gcvae.trial import try_out
from tests.gcvae.expressions.test_terms import SCHEMA, value_of
from tests.wordings import refuses, same_wording


@pytest.mark.parametrize(
    "expression",
    [
        "round(b / 3, 2) == 1.33",
        "round(a) == 0",
        "floor(-a) == -1 and ceil(a) == 1",
        "floor(10 * (a + `net price`)) == 4",
        "abs(-b) == b",
        "min(a, b, `net price`) == `net price` and max(a, b) == 4",
        "year(start) == 2024 and month(start) == 1 and day(start) == 30",
        "quarter(end) == 1",
        "months('1700-01-01', end) == 3889",
        "weekday(start) == 'Tuesday'",
        "days(start, end) == 30 and months(start, end) == 0 and years(start, end) == 0",
        "days_in_month(year(start), 2) == 29 and days_in_month(year(start) - 124, 2) == 28",
        "add_months(start, 1) == '2024-02-29' and add_months(start, b) == '2024-05-30'",
        "date(start) == start and start_of_week(start) == '2024-01-29'",
        "start_of_month(start) == '2024-01-01' and start_of_quarter(end) == '2024-01-01'",
        "start_of_year(end) == '2024-01-01'",
        "add_months(start, -1) == '2023-12-30'",
        "bracket(b, 3, 4, 5) == 2 and bracket(3 * a, 0.9) == 1 and bracket(a, b) == 0",
        "months('2023-01-30', end) == 12 and years('2020-02-29', end) == 4",
        "years('2020-03-01', end) == 3",
        "upper(colour) == 'RED' and lower('X') == 'x'",
        "prefix(colour, 2) == 're'",
        "concat(colour, '-', unit) == 'red-cm'",
        "not is_missing(colour) and not is_missing(start) and not is_missing(smoker)",
    ],
)
def test_a_function_gives_what_its_name_says(expression: str) -> None:
    assert value_of(expression) == TRUE


@pytest.mark.parametrize(
    ("expression", "cells", "expected"),
    [
        ("round(b, 1) == 4", {"b": None}, UNKNOWN),
        ("max(a, b) > 0", {"b": None}, UNKNOWN),
        ("bracket(b, 3, a) == 1", {"b": None}, UNKNOWN),
        ("weekday(start) == 'Monday'", {"start": None}, UNKNOWN),
        ("days(start, end) > 0", {"end": None}, UNKNOWN),
        ("years(start, end) > 0", {"end": None}, UNKNOWN),
        ("start_of_week(start) < end", {"start": None}, UNKNOWN),
        ("add_months(start, b) > end", {"b": None}, UNKNOWN),
        ("add_months(start, 1) > end", {"start": None}, UNKNOWN),
        ("add_months(start, 200000) > end", {}, UNKNOWN),
        ("upper(colour) == 'RED'", {"colour": None}, UNKNOWN),
        ("is_missing(colour)", {"colour": None}, TRUE),
        ("is_missing(b)", {"b": None}, TRUE),
        ("is_missing(a)", {"a": np.nan}, TRUE),
        ("is_missing(start)", {"start": None}, TRUE),
        ("is_missing(smoker)", {"smoker": None}, TRUE),
        ("colour == 'red' or is_missing(end)", {"colour": "blue"}, FALSE),
    ],
)
def test_a_function_of_a_blank_is_blank_but_for_is_missing(
    expression: str, cells: dict[str, object], expected: int
) -> None:
    assert value_of(expression, **cells) == expected


def test_whether_a_cell_is_missing_is_unknown_where_blanks_are_not_known() -> None:
    cells = column_values(pd.Series([1.0, np.nan]), SCHEMA["a"])
    term = compile_condition(parse_expression("is_missing(a)"), SCHEMA)
    assert term.evaluate(Rows({"a": cells})).tolist() == [FALSE, TRUE]
    assert term.evaluate(Rows({"a": cells}, blanks_are_unknown=True)).tolist() == [FALSE, UNKNOWN]


@given(st.integers(-(10**6), 10**6), st.integers(-(10**4), 10**4), st.integers(0, 2))
def test_a_rounded_product_equals_what_any_way_of_rounding_gives(
    cents: int, percent: int, digits: int
) -> None:
    exact = Decimal(cents) / 100 * Decimal(percent) / 100
    for how in (ROUND_HALF_UP, ROUND_HALF_EVEN):
        total = exact.quantize(Decimal(1).scaleb(-digits), rounding=how)
        cells = {"a": cents / 100, "b": percent, "net price": float(total)}
        assert value_of(f"`net price` == round(a * b / 100, {digits})", **cells) == TRUE
        further = cells | {"net price": float(total) + 2.0 * 10.0**-digits}
        assert value_of(f"`net price` == round(a * b / 100, {digits})", **further) == FALSE


@given(st.dates(date(1800, 1, 1), date(2200, 1, 1)), st.dates(date(1800, 1, 1), date(2200, 1, 1)))
def test_completed_years_are_those_of_a_birthday(birth: date, today: date) -> None:
    years = today.year - birth.year - ((today.month, today.day) < (birth.month, birth.day))
    cells = {"start": pd.Timestamp(birth), "end": pd.Timestamp(today), "b": years}
    assert value_of("years(start, end) == b", **cells) == TRUE
    assert value_of("weekday(start) == colour", **cells | {"colour": f"{birth:%A}"}) == TRUE


@pytest.mark.parametrize(
    ("parquet_type", "date_format"),
    [
        ("timestamp[ns, tz=America/New_York]", "%Y-%m-%d %H:%M:%S+00:00"),
        (None, "%Y-%m-%d %H:%M:%S-05:00"),
    ],
)
def test_parts_of_a_date_are_those_of_its_columns_clock(
    parquet_type: str | None, date_format: str
) -> None:
    column = Column(
        "at", ColumnKind.DATETIME, datetime_format=date_format, parquet_type=parquet_type
    )
    cells = column_values(pd.Series(pd.to_datetime(["2024-01-01 02:30"])), column)
    schema = TableSchema((column,))
    text = "hour(at) == 21 and weekday(at) == 'Sunday' and year(at) == 2023 and at < '2024-01-01'"
    assert compile_condition(parse_expression(text), schema).evaluate(Rows({"at": cells})) == TRUE


@pytest.mark.parametrize(
    "expression",
    [
        "rond(a) == 1",
        "round() == 1",
        "round(a, b, 2) == 1",
        "round(colour) == 1",
        "round(door) == 1",
        "year(a) == 2024",
        "weekday(start) == 1",
        "prefix(colour) == 'r'",
        "is_missing(a + b)",
        "is_missing('a')",
        "upper(a) == 'X'",
        "years('x', start) == 1",
        "weekday(start) == 'sunday'",
        "hour(start) == 0",
        "isnull(a)",
        "isfoo(a)",
        "__import__('os') == a",
    ],
)
def test_what_a_function_does_not_take_is_refused(expression: str) -> None:
    with refuses(ValueError):
        compile_condition(parse_expression(expression), SCHEMA)


@pytest.mark.parametrize(
    "expression",
    [
        "a < b.real",
        "  a + (b < 3",
        "`net price` < round(x=a)",
        "a == (lambda: 1)()",
        "`net price` < a and [x for x in b]",
        "a.__class__ == 1",
        "a == f(*b)",
        "a = 3",
        "a => 3",
        "a <> 3",
        "a > 1 AND b > 1",
        "a == None",
    ],
)
def test_what_is_not_allowed_is_refused_at_its_character(expression: str) -> None:
    problems: list[Problem] = []
    assert read_rules([{"rule": expression, "keep": "hard"}], problems) == ()
    [problem] = problems
    assert problem.pointer == "/rules/0"
    assert "at character" in problem.message
    same_wording(problem.message)


def test_a_model_keeps_what_its_functions_say(tmp_path: object) -> None:
    random = np.random.default_rng(0)
    n = 400
    status = random.choice(["returned", "kept"], n)
    ordered = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 300, n), "D")
    table = pd.DataFrame(
        {
            "статус": status,
            "refund": np.where(status == "returned", random.normal(50, 9, n).round(2), np.nan),
            "ordered": ordered,
        }
    )
    table = table[table["ordered"].dt.day_name() != "Sunday"].reset_index(drop=True)
    rules = ["статус == 'returned' or is_missing(refund)", "weekday(ordered) != 'Sunday'"]
    hard_rules = [{"rule": rule, "keep": "hard"} for rule in rules]
    model = Synthesizer.fit(
        table,
        schema={"rules": hard_rules, "find_rules": True},
        preset="fast",
        settings={"max_steps": 60},
    )
    model = Synthesizer.from_bytes(model.to_bytes())
    try_out(model)
    rows = model.sample(500, seed=1)
    assert rows["refund"].isna()[rows["статус"] == "kept"].all()
    assert not (rows["ordered"].dt.day_name() == "Sunday").any()
    filled = model.impute(table.head(30).assign(статус=None), seed=0)
    assert (filled["статус"] == "returned")[filled["refund"].notna()].all()


def test_a_time_of_day_has_no_date_to_ask_for() -> None:
    column = Column("at", ColumnKind.DATETIME, datetime_format="%H:%M:%S")
    for text in ("year(at) == 1900", "weekday(at) == 'Monday'"):
        with refuses(ValueError):
            compile_condition(parse_expression(text), TableSchema((column,)))
    compile_condition(parse_expression("hour(at) >= 8"), TableSchema((column,)))
