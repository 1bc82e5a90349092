"""What a rule says of a column: g(parents), on the column's own grid.

The grid of a column is the whole multiples of 10^-decimals, of a date those of the smallest unit of
its format. A prediction is rounded to it in whole multiples, so that y - g is a whole multiple too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from gcvae.arrays import Mask, Numbers
from gcvae.cells.values import own_dtype
from gcvae.schema.columns import Column
from gcvae.schema.rules import (
    BlanksRule,
    ClockRule,
    DatePartRule,
    OrderRule,
    ProductRule,
    Rule,
    SumRule,
    Ties,
)
from gcvae.spelling.date_text import resolution
from gcvae.spelling.never_dates import read_times, without_never

DAY_MINUTES = 24 * 60
_NOISE_DIGITS = 6
"""Digits of a grid unit that count: 0.1 + 0.2 is 0.3, and 2.675 is half way."""
_LARGEST = 2.0**53
"""Whole numbers up to here are float64's own."""


def predicted(rule: Rule, frame: pd.DataFrame, column: Column) -> pd.Series[Any]:
    """g(parents) of each row: what the rule says of its dependent column y.

    Order: the least number of y's grid that is no less than `low`. Sum: Σ c x + constant, rounded.
    Product: factor · a · b, rounded. Clock: the time of day `minutes` after `start`. Date part:
    that part. A sum's remainders are not added.

    Shape: (n,), in y's typed dtype (Int64 where a whole number is missing), with the frame's index.
    Missing where a parent is, or is never, and where the numbers are too large to be exact.

    Args:
        rule: Of a kind that rewrites its column.
        frame: The typed columns of the parents.
        column: y.
    """
    if isinstance(rule, OrderRule) and column.has_times:
        return _lower_time(frame[rule.low], column)
    with np.errstate(over="ignore", invalid="ignore"):  # what is too large is missing
        values = _said(rule, frame, column)
    return _typed(values, column).set_axis(frame.index)


def _said(rule: Rule, frame: pd.DataFrame, column: Column) -> Numbers:
    """g(parents) as `quantities`, of anything but orders of dates. Shape: (n,)."""
    if isinstance(rule, OrderRule):
        return _on_grid(quantities(frame[rule.low]), column, np.ceil)
    if isinstance(rule, SumRule):
        return rounded(_sum(rule, frame), column, rule.ties)
    if isinstance(rule, ProductRule):
        a, b = (quantities(frame[name]) for name in rule.factors)
        return rounded(rule.factor * a * b, column, rule.ties)
    if isinstance(rule, ClockRule):
        return _clock(rule, frame)
    assert isinstance(rule, DatePartRule), "only rules that rewrite predict"
    return date_part(frame[rule.of], rule)


def agrees(rule: Rule, values: Numbers, said: Numbers, column: Column) -> Mask:
    """Whether each value keeps a rule that says so much of it. Shape: (n,), (n,) -> (n,).

    At least that much in an order, or what stands beside it; of a sum that, or a remainder more;
    else that. A value on a grid agrees to half a unit, one of a column without a grid to nine
    digits.

    Args:
        rule: Of a kind that rewrites its column.
        values: Of the column, as `quantities`.
        said: What is predicted of it, as `quantities`.
        column: y.
    """
    unit = grid_unit(column)
    tolerance = np.maximum(np.abs(values), np.abs(said)) * 1e-9 if unit is None else unit / 2
    if isinstance(rule, OrderRule):
        stands_beside = np.isin(values, quantities(beside(rule, column)))
        return np.asarray((values > said - tolerance) | stands_beside)
    remainders = rule.remainders if isinstance(rule, SumRule) else ()
    off = values - said
    found = np.zeros(len(off), dtype=bool)
    for remainder in remainders or (0.0,):
        found |= (np.abs(off - remainder) < tolerance) | (off == remainder)
    return found


def keeps(rule: Rule, frame: pd.DataFrame, column: Column) -> tuple[Mask, Mask]:
    """(all columns of the rule are known, the row keeps it) for each row. Shape: (n,), (n,).

    Args:
        rule: Of a kind that rewrites its column, or of blanks: there "known" is where a blank asks
            for another.
        frame: The typed columns of the rule.
        column: y.
    """
    if isinstance(rule, BlanksRule):
        here, there = (frame[name].isna().to_numpy() for name in rule.columns)
        return (there if rule.relation == "follows" else here | there), here & there
    values = quantities(frame[rule.column])
    said = quantities(predicted(rule, frame, column))
    known = ~(np.isnan(values) | np.isnan(said))
    return known, known & agrees(rule, values, said, column)


def beside(rule: Rule, column: Column) -> pd.Series[Any]:
    """The typed cells of a column that stand beside its rule: those that an order names, and dates
    for never. Shape: (k,)."""
    values = rule.beside if isinstance(rule, OrderRule) else ()
    if not column.has_times:
        return pd.Series(np.array(values, dtype=np.float64))
    texts = list(dict.fromkeys([*map(str, values), *column.never]))
    date_format = column.date_format
    return pd.Series(read_times(pa.array(texts, pa.string()), date_format, column.never))


def quantities(series: pd.Series[Any]) -> Numbers:
    """Typed cells as float64, dates in seconds; NaN where missing, or never. Shape: (n,)."""
    if series.dtype.kind != "M":
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    series = without_never(series)
    return np.where(series.isna(), np.nan, series.to_numpy("datetime64[ns]").view("i8") / 1e9)


def grid_unit(column: Column) -> float | None:
    """What the values of a column are whole multiples of, of dates in seconds; None for none."""
    if column.has_times:
        return _nanoseconds(column) / 1e9
    decimals = _decimals(column)
    return None if decimals is None else 10.0**-decimals


def _nanoseconds(column: Column) -> int:
    """The smallest unit of a date's format."""
    step = resolution(column.date_format, column.decimals)
    return int(step / np.timedelta64(1, "ns"))


def rounded(values: Numbers, column: Column, ties: Ties) -> Numbers:
    """Quantities on the column's grid. Shape: (n,)."""
    return _on_grid(values, column, np.rint if ties == "even" else _away_from_zero)


def _sum(rule: SumRule, frame: pd.DataFrame) -> Numbers:
    total = np.full(len(frame), float(rule.constant))
    for name, factor in rule.terms:
        total += factor * quantities(frame[name])
    return total


def _lower_time(low: pd.Series[Any], column: Column) -> pd.Series[Any]:
    """The first time of the column's grid that is not before `low`, in whole nanoseconds."""
    unit = np.int64(_nanoseconds(column))
    low = without_never(low)
    times = low.to_numpy("datetime64[ns]").view("i8")
    found = (-(-times // unit) * unit).view("datetime64[ns]")
    return pd.Series(np.where(low.isna(), np.datetime64("NaT", "ns"), found), low.index)


def _on_grid(values: Numbers, column: Column, to_whole: Callable[[Numbers], Numbers]) -> Numbers:
    """Quantities as multiples of the grid's unit, made whole. Shape: (n,)."""
    decimals = _decimals(column)
    if column.has_times:
        scale = 1e9 / _nanoseconds(column)
    elif decimals is not None:
        scale = 10.0**decimals  # k / 10^d is the float64 that the text of k / 10^d reads as
    else:
        return values
    whole = to_whole(np.round(values * scale, _NOISE_DIGITS))
    return np.where(np.abs(whole) < _LARGEST, whole, np.nan) / scale


def _away_from_zero(values: Numbers) -> Numbers:
    return np.copysign(np.floor(np.abs(values) + 0.5), values)


def _decimals(column: Column) -> int | None:
    if column.kind.is_whole:
        return 0
    if column.levels and all(isinstance(level, int) for level in column.levels):
        return 0
    return column.decimals


def _clock(rule: ClockRule, frame: pd.DataFrame) -> Numbers:
    """minutes(y) = minutes(start) + minutes modulo 1440, written as hours and minutes."""
    start = quantities(frame[rule.start])
    at = start // 100 * 60 + start % 100 + quantities(frame[rule.minutes])
    minutes = np.where(at == np.floor(at), at % DAY_MINUTES, np.nan)
    written = minutes // 60 * 100 + minutes % 60
    return np.where(minutes == 0, rule.midnight, written)


def date_part(times: pd.Series[Any], rule: DatePartRule) -> Numbers:
    """The part of each time that the rule names; NaN where there is none. Shape: (n,)."""
    times = without_never(times)
    if rule.zone is not None:
        times = times.dt.tz_localize("UTC").dt.tz_convert(rule.zone)
    if rule.part == "week":
        found = times.dt.isocalendar().week
    elif rule.part == "weekday":
        days = times.dt.dayofweek  # of Monday 0
        found = (days + (rule.monday or 0)).where(days != 6, rule.sunday).where(days.notna())
    else:
        found = getattr(times.dt, _PARTS.get(rule.part, rule.part))
    return found.to_numpy(dtype=np.float64, na_value=np.nan)  # type: ignore[no-any-return]


_PARTS = {"day_of_year": "dayofyear"}


def _typed(values: Numbers, column: Column) -> pd.Series[Any]:
    """Quantities in the dtype of the column's cells."""
    missing = ~np.isfinite(values)
    known = np.where(missing, 0.0, values)
    if column.has_times:
        unit = _nanoseconds(column)
        times = (np.rint(known * (1e9 / unit)).astype(np.int64) * unit).view("datetime64[ns]")
        return pd.Series(np.where(missing, np.datetime64("NaT", "ns"), times))
    dtype = own_dtype(column)
    if dtype.lower() != "int64":
        return pd.Series(np.where(missing, np.nan, values))
    whole = pd.Series(pd.arrays.IntegerArray(known.astype(np.int64), missing))
    return whole if missing.any() or dtype == "Int64" else whole.astype("int64")
