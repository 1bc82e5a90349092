"""Parts of numbers and dates: one to one, readable, and asked for by a schema document."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae.cells.values import own_dtype, parse_table
from gcvae.errors import SchemaError
from gcvae.rules.splits import Split, splits_of
from gcvae.schema.columns import Column, Missing, TableSchema
from gcvae.schema.kinds import ColumnKind
from tests.wordings import refuses

SECONDS = "%Y-%m-%d %H:%M:%S"


def number(name: str = "x", decimals: int | None = None, **fields: Any) -> Column:
    kind = ColumnKind.INTEGER if decimals is None else ColumnKind.CONTINUOUS
    return Column(name, kind, decimals=decimals, **fields)


def date(name: str = "t", datetime_format: str = SECONDS, **fields: Any) -> Column:
    return Column(name, ColumnKind.DATETIME, datetime_format=datetime_format, **fields)


def cells_of(column: Column, texts: list[str]) -> pd.DataFrame:
    return parse_table(pd.DataFrame({column.name: texts}), TableSchema((column,)))


def moments(n: int, step: str) -> list[str]:
    """Moments from 1899 to 2100, all multiples of a step."""
    r = np.random.default_rng(3)
    times = pd.Timestamp("1899-12-31") + pd.to_timedelta(r.integers(0, 73_000, n), "D")
    within = pd.to_timedelta(r.integers(0, 86_400, n), "s")
    return list((times + within).floor(step).strftime(SECONDS))


EXAMPLES = {
    "hundreds": (number(steps=(100, 1)), ["-250", "-1", "0", "99", "100", "12345"]),
    "cents": (number(decimals=2, steps=(1, 0.01)), ["-0.01", "0.00", "19.99", "20.00", "7.5"]),
    "quarters": (number(decimals=2, steps=(0.25,)), ["-0.25", "0", "12.75", "3.5"]),
    "all end in .99": (number(decimals=2, steps=(1,), endings=(".99",)), ["0.99", "-1.01"]),
    "three": (number(decimals=2, steps=(100, 1, 0.01)), ["12345.67", "-0.01", "99.99"]),
    "weeks": (date(steps=("1 week", "1 day", "5 minutes", "1 second")), moments(500, "s")),
    "hours": (date(steps=("1 hour",)), moments(500, "h")),
    "hours of days": (date(steps=("1 day", "1 hour")), moments(500, "h")),
    "months": (date(steps=("1 month", "1 day", "1 hour")), moments(500, "h")),
    "months from their end": (
        date(steps=("1 month", "1 day", "1 second"), endings=("month end",)),
        moments(500, "s"),
    ),
    "month ends": (
        date(datetime_format="%Y-%m-%d", steps=("1 month",), endings=("month end",)),
        ["2024-02-29", "2023-02-28", "1969-12-31"],
    ),
    "the 25th at nine": (
        date(steps=("1 month",), endings=("25 09:00",)),
        ["2024-02-25 09:00:00", "1950-01-25 09:00:00"],
    ),
    "Mondays": (date(steps=("1 week",), endings=("Monday",)), ["2024-01-01 00:00:00"]),
    "times of day": (date(datetime_format="%H:%M", steps=("15 minutes",)), ["00:00", "23:45"]),
}


DAYS = "%Y-%m-%d"
DATED = [x for x, (column, _) in EXAMPLES.items() if column.datetime_format in (DAYS, SECONDS)]


@pytest.mark.parametrize("name", EXAMPLES)
def test_parts_join_to_the_cells_they_are_of(name: str) -> None:
    column, texts = EXAMPLES[name]
    frame, split = cells_of(column, texts), Split.of(column)
    assert split is not None
    parts = pd.DataFrame(split.reduced(frame, blanks_unknown=False))
    assert list(parts) == [part.name for part in split.parts]
    for part in split.parts:
        assert str(parts[part.name].dtype) == own_dtype(part)
        if part.minimum is not None and part.name != column.name:
            assert parts[part.name].between(part.minimum, part.maximum).all()
        if part.kind is ColumnKind.CONSTANT:
            assert (parts[part.name] == (part.levels or ())[0]).all()
    pd.testing.assert_series_equal(
        split.restored(frame, parts).rename(column.name), frame[column.name]
    )


@pytest.mark.parametrize("name", DATED)
def test_the_parts_of_any_date_make_it_again(name: str) -> None:
    column, texts = EXAMPLES[name]
    far = ["0001-01-01 09:00:00", "9999-12-31 23:59:59"]
    if column.datetime_format == DAYS:
        far = [text[:10] for text in far]
    column = replace(column, minimum=far[0], maximum=far[1])
    frame, split = cells_of(column, [*far, texts[0]]), Split.of(column)
    assert split is not None
    if split.has_ending:  # other dates have other endings
        frame = frame[2:].reset_index(drop=True)
    parts = pd.DataFrame(split.reduced(frame, blanks_unknown=False))
    pd.testing.assert_series_equal(
        split.restored(frame, parts).rename(column.name), frame[column.name]
    )


def test_a_missing_cell_is_missing_in_every_part() -> None:
    column = number(steps=(100, 1), missing=Missing(True, ("",)))
    frame, split = cells_of(column, ["250", "", "7"]), Split.of(column)
    assert split is not None
    parts = pd.DataFrame(split.reduced(frame, blanks_unknown=False))
    assert parts.isna().all(axis=1).tolist() == [False, True, False]
    assert split.restored(frame, parts).equals(frame["x"])
    assert all(part.missing.allowed for part in split.parts)


def test_a_weekday_is_one_of_seven_and_a_monday_the_first() -> None:
    column = date("seen", "%Y-%m-%d", steps=("1 week", "1 day"))
    split = Split.of(column)
    assert split is not None
    parts = split.reduced(cells_of(column, ["2024-01-01", "2024-01-07"]), blanks_unknown=False)
    assert parts["seen (weekday)"].tolist() == [0, 6]
    assert parts["seen"].tolist() == [2818, 2818]  # whole weeks since 1969-12-29
    assert split.parts[1].levels == tuple(range(7))


def test_a_day_that_a_month_does_not_have_is_its_last() -> None:
    column = date(datetime_format="%Y-%m-%d", steps=("1 month", "1 day"))
    split = Split.of(column)
    assert split is not None
    parts = pd.DataFrame({"t": [12 * 53 + 1], split.part_names[1]: [30]})
    assert split.restored(parts, parts).tolist() == [pd.Timestamp("2023-02-28")]


def test_names_of_parts_are_none_of_the_table() -> None:
    price = number("价格", decimals=2, steps=(1, 0.01))
    schema = TableSchema((price, number("价格 (remainder of 1)")))
    [split] = splits_of(schema)
    assert split.part_names == ("价格", "价格 (remainder of 1) 2")


def test_the_first_part_has_the_columns_limits() -> None:
    split = Split.of(number(decimals=2, minimum=-0.5, maximum=99.99, steps=(1, 0.01)))
    assert split is not None
    assert (split.parts[0].minimum, split.parts[0].maximum) == (-1, 99)


def test_units_of_parts_multiply_to_the_written_one() -> None:
    split = Split.of(date(steps=("1 week", "1 day", "1 hour")))
    assert split is not None
    found = sum(split.log_unit(part.name) for part in split.parts)
    assert found == pytest.approx(-math.log(86_400))


@pytest.mark.parametrize("steps", [None, (), (1,), (0.01,)])
def test_nothing_is_split_that_nobody_asks_for(steps: Any) -> None:
    column = number(decimals=2 if steps == (0.01,) else None, steps=steps)
    assert Split.of(column) is None


def test_an_ending_alone_stands_for_its_power_of_ten() -> None:
    split = Split.of(number(decimals=2, endings=(".99", ".95")))
    assert split is not None
    assert split.steps == (100, 1)
    alone, named = (Split.of(number(endings=("95",), steps=steps)) for steps in (None, (100, 1)))
    assert alone is not None
    assert named is not None
    assert alone.steps == named.steps


@pytest.mark.parametrize(
    "column",
    [
        number(steps=(7, 2)),
        number(steps=(0.5,)),
        number(steps=("1 hour",)),
        number(endings=("x",)),
        number(endings=(".5",)),
        number(steps=(100,), endings=("95", "99")),
        date(steps=("1 millisecond",)),
        date(steps=(5,)),
        date(steps=("1 month", "1 hour")),
        date(steps=("1 day",), endings=("Monday",)),
        date(steps=("1 day",), endings=("month end",)),
    ],
)
def test_steps_that_do_not_fit_are_refused_with_what_would(column: Column) -> None:
    with refuses(SchemaError, column=column.name):
        Split.of(column)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_split_comes_back_from_its_document(name: str) -> None:
    column, _ = EXAMPLES[name]
    split = Split.of(column, {"a", "b"})
    assert split is not None
    assert Split.from_json(split.to_json(), TableSchema((column,))) == split
