"""Steps are found where people round, and nowhere by chance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from gcvae.cells.values import parse_table
from gcvae.files.tables import read_table
from gcvae.profiling.infer import infer_schema
from gcvae.rules.splits import Split, splits_of
from gcvae.rules.step_search import with_steps
from gcvae.schema.columns import Column
from gcvae.schema.kinds import ColumnKind

N = 3_000
SECONDS = "%Y-%m-%d %H:%M:%S"
R = np.random.Generator


def stepped(cells: Any, column: Column) -> Column:
    """The column with the steps of these cells."""
    codes, values = pd.factorize(pd.Series(cells))
    return with_steps(pd.Series(values), codes, column)


def number(values: npt.NDArray[Any], decimals: int | None = None) -> Column:
    kind = ColumnKind.INTEGER if decimals is None else ColumnKind.CONTINUOUS
    return stepped(values, Column("x", kind, decimals=decimals))


def date(times: Any, datetime_format: str = SECONDS) -> Column:
    series = pd.Series(times).astype("datetime64[ns]").reset_index(drop=True)
    return stepped(series, Column("t", ColumnKind.DATETIME, datetime_format=datetime_format))


def days(r: R, n: int = N, span: int = 7_000) -> pd.Series[Any]:
    return pd.Series(pd.Timestamp("2001-01-01") + pd.to_timedelta(r.integers(0, span, n), "D"))


def test_salaries_on_hundreds() -> None:
    r = np.random.default_rng(1)
    salaries = np.exp(r.normal(10.8, 0.4, N))
    rounded = np.where(r.random(N) < 0.91, np.round(salaries, -2), np.round(salaries))
    assert number(rounded.astype(np.int64)).steps == (100, 1)


def test_prices_that_end_in_99() -> None:
    r = np.random.default_rng(2)
    prices = np.floor(np.exp(r.normal(3.4, 0.8, N)))
    column = number(np.round(prices + np.where(r.random(N) < 0.85, 0.99, r.random(N)), 2), 2)
    assert (column.steps, column.endings) == ((1, 0.01), (".99",))
    all_of_them = number(np.round(np.floor(np.exp(r.normal(5, 1, N))) + 0.99, 2), 2)
    assert (all_of_them.steps, all_of_them.endings) == ((1,), (".99",))


def test_fares_on_quarters_and_a_cell_with_six_decimals() -> None:
    r = np.random.default_rng(3)
    fares = np.round(r.gamma(3, 30, N) * 4) / 4
    assert number(fares, 2).steps == (0.25,)
    assert number(np.where(r.random(N) < 0.97, fares, np.round(fares + 0.07, 2)), 2).steps == (
        0.25,
        0.01,
    )
    fares[0] = 12.345678
    assert number(fares, 6).steps == (0.25, 0.01, 1e-06)


def test_clock_times_as_numbers_have_sixty_remainders_of_a_hundred() -> None:
    minutes = np.random.default_rng(4).integers(0, 1_440, N)
    assert number(minutes // 60 * 100 + minutes % 60).steps == (100, 1)


def test_office_hours_on_weekdays() -> None:
    r = np.random.default_rng(5)
    day = days(r, span=1_500)
    day = day - pd.to_timedelta(np.maximum(day.dt.dayofweek - 4, 0), "D")
    clock = np.clip(np.round(r.normal(13, 2.5, N) * 12) * 300, 8 * 3_600, 18 * 3_600)
    times = day + pd.to_timedelta(clock, "s")
    assert date(times).steps == ("1 week", "1 day", "5 minutes")
    times[::20] += pd.Timedelta(7, "s")
    assert date(times).steps == ("1 week", "1 day", "5 minutes", "1 second")


def test_due_dates_at_the_end_of_months() -> None:
    r = np.random.default_rng(6)
    day = days(r)
    due = (day + pd.offsets.MonthEnd(0)).where(pd.Series(r.random(N) < 0.8), day)
    column = date(due, "%Y-%m-%d")
    assert (column.steps, column.endings) == (("1 month", "1 day"), ("month end",))
    ends = date(day + pd.offsets.MonthEnd(0), "%Y-%m-%d")
    assert (ends.steps, ends.endings) == (("1 month",), ("month end",))
    firsts = date(day.dt.to_period("M").dt.to_timestamp() + pd.Timedelta(6, "h"))
    assert (firsts.steps, firsts.endings) == (("1 month",), ("1 06:00",))


def test_the_first_of_most_months_is_a_day_of_the_month() -> None:
    r = np.random.default_rng(7)
    day = days(r)
    paid = day.dt.to_period("M").dt.to_timestamp().where(pd.Series(r.random(N) < 0.5), day)
    column = date(paid, "%Y-%m-%d")
    assert (column.steps, column.endings) == (("1 month", "1 day"), None)


def test_mondays_at_six_and_whole_hours() -> None:
    day = days(np.random.default_rng(8), span=7_000)
    mondays = day - pd.to_timedelta(day.dt.dayofweek, "D") + pd.Timedelta(6, "h")
    column = date(mondays)
    assert (column.steps, column.endings) == (("1 week",), ("Monday 06:00",))
    hours = np.random.default_rng(9).integers(0, 24, N)
    assert date(day + pd.to_timedelta(hours, "h")).steps == ("1 hour",)
    at_nine = date(day + pd.Timedelta(9, "h"))
    assert (at_nine.steps, at_nine.endings) == (("1 day",), ("09:00",))


def test_times_of_day_on_quarters_of_an_hour() -> None:
    r = np.random.default_rng(10)
    minutes = r.integers(0, 1_440, N)
    minutes = np.where(r.random(N) < 0.7, minutes // 15 * 15, minutes)
    times = pd.Timestamp("1900-01-01") + pd.to_timedelta(minutes, "min")
    assert date(times, "%H:%M").steps is None  # most are atoms: 96 values of many rows
    seconds = minutes * 60 + np.where(r.random(N) < 0.5, 0, r.integers(0, 60, N))
    times = pd.Timestamp("1900-01-01") + pd.to_timedelta(seconds, "s")
    assert date(times, "%H:%M:%S").steps == ("15 minutes", "1 second")


SMOOTH: list[Callable[[R, int], npt.NDArray[np.float64]]] = [
    lambda r, n: r.normal(50, 20, n),
    lambda r, n: r.exponential(300, n),
    lambda r, n: np.exp(r.normal(3, 1.5, n)),
    lambda r, n: r.uniform(0, 1_000, n),
    lambda r, n: r.gamma(2, 5_000, n),
    lambda r, n: 100 * r.standard_t(3, n),
    lambda r, n: np.abs(r.normal(0, 40, n)),
    lambda r, n: 100 * r.pareto(1.5, n),
]


def test_twenty_tables_of_twenty_smooth_columns_have_none() -> None:
    with_one = 0
    for table in range(20):
        r = np.random.default_rng([20, table])
        found = []
        for j in range(20):
            values, decimals = SMOOTH[j % len(SMOOTH)](r, 1_000), j % 4
            if j % 5 == 4:
                seconds = np.abs(np.round(values * 3_600))
                times = pd.Timestamp("2020-01-01") + pd.to_timedelta(seconds, "s")
                found.append(date(times).steps)
            elif decimals:
                found.append(number(np.round(values, decimals), decimals).steps)
            else:
                found.append(number(np.round(values).astype(np.int64)).steps)
        with_one += any(found)
    assert with_one <= 1


def test_a_far_date_adds_a_step_and_spoils_none() -> None:
    random = np.random.default_rng(0)
    days = np.datetime64("2020-01-06") + random.integers(0, 500, 2000) * np.timedelta64(3, "D")
    times = days.astype("M8[us]")
    times[random.random(2000) < 0.2] = np.datetime64("9999-12-31T23:59:59.999999")
    column = Column("t", ColumnKind.DATETIME, datetime_format="%Y-%m-%d %H:%M:%S.%f", decimals=6)
    values, codes = np.unique(times, return_inverse=True)
    found = with_steps(pd.Series(values), codes, column)
    assert found.steps == ("1 day", "1 microsecond")
    split = Split.of(found)
    assert split is not None
    assert split.keeps(split.grid.indices(pd.Series(values))).all()


def test_few_values_and_few_rows_have_none() -> None:
    r = np.random.default_rng(11)
    assert number(10 * r.integers(0, 40, N)).steps is None
    assert number(100 * r.integers(0, 10_000, 50)).steps is None
    assert number(np.array([], dtype=np.int64)).steps is None


@pytest.mark.slow
def test_flights_and_adult(data_dir: Path) -> None:
    table = read_table(data_dir / "flights.csv")
    schema = infer_schema(table).schema
    assert schema["time_hour"].steps == ("1 week", "1 day", "1 hour")
    assert schema["sched_arr_time"].steps == (100, 1)
    assert schema["distance"].steps is None
    typed = parse_table(table, schema)
    for split in splits_of(schema):
        parts = pd.DataFrame(split.reduced(typed, blanks_unknown=False))
        assert split.restored(typed, parts).equals(typed[split.column])
    adult = infer_schema(read_table(data_dir / "adult_train.csv")).schema
    assert not any(column.steps for column in adult)


def test_what_a_schema_says_is_not_looked_for() -> None:
    values = pd.Series(100 * np.random.default_rng(12).integers(0, 10_000, N))
    assert stepped(values, Column("x", ColumnKind.INTEGER)).steps == (100,)
    assert stepped(values, Column("x", ColumnKind.INTEGER, steps=())).steps == ()


@pytest.mark.parametrize(
    ("given", "steps", "endings"),
    [
        ({"steps": []}, (), None),
        ({"steps": [0.25]}, (0.25,), None),
        ({"steps": [1]}, (1, 0.01), None),  # not every cell is whole
        ({"steps": [5, 0.25]}, (5, 0.25), None),
        ({"endings": [".75"]}, None, (".75",)),
        ({"steps": [1], "endings": [".75"]}, (1, 0.01), (".75",)),
    ],
)
def test_given_steps_are_taken_and_reach_every_cell(given: Any, steps: Any, endings: Any) -> None:
    fares = np.round(np.random.default_rng(13).gamma(3, 30, N) * 4) / 4
    table = pd.DataFrame({"fare": [f"{fare:.2f}" for fare in fares]})
    column = infer_schema(table, {"columns": [{"name": "fare", **given}]}).schema["fare"]
    assert (column.steps, column.endings) == (steps, endings)
