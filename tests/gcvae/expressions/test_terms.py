"""What expressions over columns mean: their types, their values, their blanks."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcvae.expressions.rounded_numbers import FALSE, TRUE, UNKNOWN, Amount, compare, compute
from gcvae.expressions.terms import Rows, column_values, compile_condition
from gcvae.schema.columns import Column, Missing, TableSchema
from gcvae.schema.expressions import parse_expression
from gcvae.schema.kinds import ColumnKind
from gcvae.spelling.forms import NumberFormat
from tests.lengths import tries
from tests.wordings import refuses

BLANKS = Missing(allowed=True, markers=("",))
SCHEMA = TableSchema(
    (
        Column("a", ColumnKind.CONTINUOUS, BLANKS),
        Column("b", ColumnKind.INTEGER, BLANKS),
        Column("net price", ColumnKind.CONTINUOUS, BLANKS, decimals=2),
        Column(
            "fee", ColumnKind.CONTINUOUS, BLANKS, number_format=NumberFormat(",", ".", suffix=" €")
        ),
        Column("rate", ColumnKind.INTEGER, BLANKS, number_format=NumberFormat(suffix=" %")),
        Column("seen", ColumnKind.DATETIME, BLANKS, datetime_format="%Y-%m-%d %H:%M:%S"),
        Column("start", ColumnKind.DATETIME, BLANKS, datetime_format="%d.%m.%Y"),
        Column("end", ColumnKind.DATETIME, BLANKS, datetime_format="%d.%m.%Y"),
        Column("colour", ColumnKind.CATEGORICAL, BLANKS, levels=("blue", "red")),
        Column("door", ColumnKind.CATEGORICAL, BLANKS, levels=(2, 4)),
        Column("grade", ColumnKind.ORDINAL, BLANKS, levels=("low", "mid", "high")),
        Column("goal", ColumnKind.ORDINAL, BLANKS, levels=("low", "mid", "high")),
        Column("stars", ColumnKind.ORDINAL, BLANKS, levels=(1, 2, 3)),
        Column("smoker", ColumnKind.BOOLEAN, BLANKS, levels=("no", "yes")),
        Column("unit", ColumnKind.CONSTANT, levels=("cm",)),
        Column("nothing", ColumnKind.CONSTANT),
    )
)
ROW = {
    "a": 0.3,
    "b": 4,
    "net price": 0.1,
    "fee": 1299.99,
    "rate": 23,
    "seen": pd.Timestamp("2024-02-29 13:00"),
    "start": pd.Timestamp("2024-01-30"),
    "end": pd.Timestamp("2024-02-29"),
    "colour": "red",
    "door": 4,
    "grade": "mid",
    "goal": "high",
    "stars": 2,
    "smoker": True,
    "unit": "cm",
}
DTYPES = {"b": "Int64", "door": "Int64", "stars": "Int64", "smoker": "boolean"}


def value_of(expression: str, **cells: Any) -> int:
    """FALSE, UNKNOWN or TRUE of one row, which is ROW but for these cells."""
    row = ROW | cells
    series = {
        name: pd.Series([cell], dtype=DTYPES.get(name))
        if name not in ("start", "end", "seen")
        else pd.Series([cell], dtype="datetime64[ns]")
        for name, cell in row.items()
    }
    rows = Rows({name: column_values(cells, SCHEMA[name]) for name, cells in series.items()})
    [found] = np.broadcast_to(
        compile_condition(parse_expression(expression), SCHEMA).evaluate(rows), 1
    )
    return int(found)


# Laws


NUMBERS = st.floats(-1e6, 1e6).map(lambda x: round(x, 3)) | st.integers(-1000, 1000)
OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@tries(100)
@given(a=NUMBERS, b=NUMBERS, kind=st.sampled_from(sorted(OPERATORS, key=str)))
def test_arithmetic_is_that_of_python_within_its_stated_error(
    a: float, b: float, kind: type[ast.operator]
) -> None:
    found = compute(kind(), Amount(np.array([a])), Amount(np.array([b])))
    if kind is ast.Div and b == 0:
        assert np.isnan(found.values[0])
        return
    assert found.values[0] == pytest.approx(OPERATORS[kind](a, b), rel=1e-12)
    assert compare(ast.Eq(), found, Amount(np.array([OPERATORS[kind](a, b)])))[0] == TRUE


@tries(100)
@given(cents=st.lists(st.integers(-(10**7), 10**7), min_size=2, max_size=6))
def test_sums_of_decimals_are_equal_where_they_are_on_paper(cents: list[int]) -> None:
    total = Amount(np.array([cents[0] / 100]))
    for cent in cents[1:]:
        total = compute(ast.Add(), total, Amount(np.array([cent / 100])))
    on_paper, a_cent_more = (Amount(np.array([(sum(cents) + more) / 100])) for more in (0, 1))
    assert compare(ast.Eq(), total, on_paper)[0] == TRUE
    assert compare(ast.GtE(), total, a_cent_more)[0] == FALSE


@tries(50)
@given(a=st.integers(-(2**62), 2**62), b=st.integers(-(2**62), 2**62))
def test_whole_numbers_are_compared_exactly(a: int, b: int) -> None:
    found = compare(ast.Lt(), Amount(np.array([a])), Amount(np.array([b])))
    assert found[0] == (TRUE if a < b else FALSE)


@tries(100)
@given(
    a=st.none() | st.booleans(), b=st.none() | st.booleans(), word=st.sampled_from(["and", "or"])
)
def test_truths_join_as_in_sql(a: bool | None, b: bool | None, word: str) -> None:
    """Unknown is whatever both true and false would not agree on."""
    possible = {
        (x and y) if word == "and" else (x or y)
        for x in ([True, False] if a is None else [a])
        for y in ([True, False] if b is None else [b])
    }
    expected = UNKNOWN if len(possible) == 2 else TRUE if possible.pop() else FALSE
    cells = {
        "smoker": a,
        "colour": None if b is None else "red" if b else "blue",
    }
    assert value_of(f"smoker {word} colour == 'red'", **cells) == expected


# Examples


@pytest.mark.parametrize(
    "expression",
    [
        "a > 0.25",
        "0.2 < a <= 0.3 < b",
        "`net price` + 0.2 == a",
        "a - `net price` >= 0.2",
        "a % `net price` == 0",
        "a // `net price` == 3",
        "-b < +a",
        "b ** 0.5 == 2",
        "(b + 1) * 2 == 10",
        "start < end",
        "end - start == 30",
        "start + 30 == end",
        "10 + start < end",
        "end - 30 == start",
        "start == '30.01.2024'",
        "start >= '2024-01-30'",
        "start == '2024-01' and end != '2024-01' and '2024-02' == end",
        "'2024-01' >= start and start <= '2024-01' and not start < '2024-01'",
        "'2024-01' < end and not start > '2024-01' and start in ('2023', '2024-Q1')",
        "seen == '2024-02-29' and seen <= '2024-02-29' and seen < '2024-02-29 13:01'",
        "end ≥ start and 'red' ≠ 'blue' and a × 2 − b ≤ b ÷ 2",
        "fee == '1.299,99 €' and fee > '1.299,98'",
        "rate == 23 % and rate == '23 %' and rate in (19 %, 23 %)",
        "b * 25 % == 1 and b % 3 == 1 and 400 % + b * 0 == b",
        "`net price` == 0.104 + 0 * a and smoker",
        "not `net price` == 0.106 + 0 * a and not `net price` == 0.104",
        "(b == a * 14.9 or smoker == 'no') and b != a * 15.1",
        "end == start + 30.4 and smoker",
        "end - '2024-02-01' == 28",
        "start in ('30.01.2024', '31.01.2024')",
        "colour == 'red'",
        "colour != 'blue'",
        "colour in ['red', 'blue']",
        "colour not in ['blue']",
        "door == 4",
        "door in (2, 4)",
        "grade >= 'mid'",
        "grade < goal",
        "'low' < grade < 'high'",
        "stars * 2 == b",
        "smoker",
        "smoker == 'yes'",
        "smoker == True",
        "not smoker == 'no'",
        "not (smoker and b > 5)",
        "(a > 1) != smoker",
        "unit == 'cm' or a > 1",
        "b == 0 or a / b < 1",
        "b in (1, 2 + 2)",
    ],
)
def test_an_expression_is_true_of_a_row(expression: str) -> None:
    assert value_of(expression) == TRUE
    assert value_of(f"not ({expression})") == FALSE


@pytest.mark.parametrize(
    ("expression", "blank"),
    [
        ("a > 100", "a"),
        ("b > 100", "b"),
        ("start > end", "start"),
        ("end - start > 100", "end"),
        ("start + b > '2030-01-01'", "b"),
        ("colour == 'blue'", "colour"),
        ("colour not in ('blue', 'red')", "colour"),
        ("grade > goal", "grade"),
        ("smoker == 'no'", "smoker"),
        ("not smoker", "smoker"),
    ],
)
def test_a_comparison_with_a_blank_is_unknown(expression: str, blank: str) -> None:
    assert value_of(expression) == FALSE
    assert value_of(expression, **{blank: None}) == UNKNOWN
    assert value_of(f"{expression} and 1 > 2", **{blank: None}) == FALSE


def test_what_is_divided_by_zero_has_no_value() -> None:
    assert value_of("a / b > 7", b=0) == UNKNOWN
    assert value_of("b == 0 or a / b > 7", b=0) == TRUE
    assert value_of("start + a / b > end", b=0) == UNKNOWN


def test_a_date_beyond_all_dates_is_the_last_one() -> None:
    assert value_of("start + 10 ** 9 > end") == TRUE
    assert value_of("start - 10 ** 30 < end") == TRUE


@pytest.mark.parametrize(
    "expression",
    [
        "a + colour > 1",
        "door + 1 > 2",
        "-colour == 'red'",
        "colour < 'red'",
        "door < 4",
        "smoker < 'yes'",
        "grade < colour",
        "colour == 'rot'",
        "smoker == 'maybe'",
        "colour == 1",
        "a == 'one'",
        "start > 5",
        "start > 'soon'",
        "start > '10000-12-31'",
        "start + end > a",
        "a - start > end",
        "start * 2 > end",
        "a",
        "not a",
        "smoker and b",
        "a in 3",
        "a in ()",
        "(a, b) == 3",
        "nothing > 1",
        "a == 1" + "0" * 400,
    ],
)
def test_what_has_no_meaning_is_said(expression: str) -> None:
    with refuses(ValueError):
        compile_condition(parse_expression(expression), SCHEMA)


def test_the_expressions_of_the_documentation_have_a_meaning() -> None:
    page = (Path(__file__).parents[3] / "docs" / "rules.md").read_text()
    [listed] = re.findall(r"(?ms)^```expressions\n(.*?)^```$", page)
    numbers = ("area", "rooms", "total", "price", "tax", "monthly rent")
    schema = TableSchema(
        (
            *(Column(name, ColumnKind.CONTINUOUS) for name in numbers),
            Column("start", ColumnKind.DATETIME, datetime_format="%d.%m.%Y"),
            Column("end", ColumnKind.DATETIME, datetime_format="%d.%m.%Y"),
            Column("city", ColumnKind.CATEGORICAL, levels=("Paris", "Rome")),
            Column("furnished", ColumnKind.BOOLEAN, levels=("no", "yes")),
            Column("grade", ColumnKind.ORDINAL, levels=("bad", "good")),
        )
    )
    assert len(listed.splitlines()) == 6
    for line in listed.splitlines():
        compile_condition(parse_expression(line), schema)


def test_an_inequality_is_a_comparison_of_its_columns() -> None:
    cells = Rows({"a": Amount(np.array([1.0, 2.0, 3.0])), "b": Amount(np.array([2, 2, 2]))})
    assert compile_condition(parse_expression("a <= b"), SCHEMA).evaluate(cells).tolist() == [
        2,
        2,
        0,
    ]
    strict = compile_condition(parse_expression("a < b"), SCHEMA)
    assert strict.evaluate(cells).tolist() == [2, 0, 0]
    with refuses(ValueError):
        compile_condition(parse_expression("a <= start"), SCHEMA)


def test_a_text_that_is_too_long_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(ValueError, match="at most 20,000 are read") as refused:
        parse_expression(" and ".join(["a > 0"] * 100_000))
    assert len(str(refused.value)) < 200
