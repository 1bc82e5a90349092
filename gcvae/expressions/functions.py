"""Functions of expressions: the types of their arguments and results, and vectorised evaluation.

    round(x, 2)  floor(x)  ceil(x)  abs(x)  min(x, y, ...)  max(x, y, ...)        numbers
    year(d)  quarter(d)  month(d)  day(d)  weekday(d)  hour(d)  minute(d)  second(d)  week(d)
    day_of_year(d)  day_of_week(d)                                                parts of a date
    date(d)  start_of_week(d)  start_of_month(d)  start_of_quarter(d)  start_of_year(d)    midnights
    days(d, e)  months(d, e)  years(d, e)                                completed, from d to e
    add_months(d, n)                       n months later, at most on the last day of the month
    days_in_month(year, month)                              28 to 31, of the Gregorian calendar
    bracket(x, 50, 75, 90)                      how many of the limits x reaches: 0, 1, 2 or 3
    clock(t, minutes)                     the time of day `minutes` after t, written 517 for 05:17
    lower(t)  upper(t)  prefix(t, 2)  concat(t, u, ...)                           texts
    is_missing(c)                                                                 of any column

A function returns a missing value if an argument is missing, except `is_missing`. Parts of a date
refer to the column's time zone, or to a named one: `hour(d, "Europe/Berlin")`. `weekday` is the
English name; `day_of_week` counts from Monday, 0. `concat` also accepts whole numbers.
"""

from __future__ import annotations

import ast
import zoneinfo
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.arrays import DAY, FIRST_TIME, LAST_TIME, TIMES
from gcvae.expressions.rounded_numbers import TRUE, UNKNOWN, Amount, Truths, compare, truths
from gcvae.schema.columns import Column
from gcvae.schema.suggestions import nearest
from gcvae.spelling.date_text import WEEKDAYS, is_time_of_day, resolution

NO_DATE = -(2**63)
"""Value of a missing date (NaT) in microseconds."""
_MOST_MONTHS = 12 * 10_000
_LONGEST = 1_000_000
"""Maximum length of a prefix."""
Times = npt.NDArray[np.int64]
Texts = npt.NDArray[Any]


class Type(StrEnum):
    """Type of the value of an expression or a part of it: number, date, text or truth value."""

    NUMBER = "a number"
    DATE = "a date"
    TEXT = "text"
    TRUTH = "true or false"


@dataclass(frozen=True)
class Function:
    """A function that expressions over columns may call, such as round or month.

    Attributes:
        takes: Type of each argument.
        gives: Type of the result.
        compute: Computes the result from the values of the arguments.
        is_repeated: Whether there may be further arguments of the last one's type, as of min(x, y,
            ...).
        optional: Number of trailing arguments that may be omitted.
        by_clock: Whether the result depends on a time zone. `compute` then takes the argument
            `zone`: that of the date's column, or one that the expression names as last argument.
        writes_numbers: Whether numbers are accepted as arguments and converted to text.
    """

    takes: tuple[Type, ...]
    gives: Type
    compute: Callable[..., Any]
    is_repeated: bool = False
    optional: int = 0
    by_clock: bool = False
    writes_numbers: bool = False

    def check(self, name: str, types: Sequence[Type]) -> None:
        """Checks the number and types of the arguments of a call; `name` is shown in the error.

        Raises:
            ValueError: The number or a type does not match.
        """
        least, most = len(self.takes) - self.optional, len(self.takes)
        if len(types) < least or (len(types) > most and not self.is_repeated):
            wanted = ", ".join(self.takes)
            more = ", ..." if self.is_repeated else ""
            raise ValueError(f"{name} takes ({wanted}{more}), not {len(types)} arguments")
        for number, found in enumerate(types):
            kind = self.takes[min(number, most - 1)]
            if self.writes_numbers and found is Type.NUMBER:
                continue
            if found is not kind:
                raise ValueError(f"{name} takes {kind} as argument {number + 1}, not {found}")


# Numbers


def _rounded(x: Amount, digits: Amount | None = None) -> Amount:
    """Rounds numbers to `digits` decimals (0 if None).

    A number that may lie half way between two results, within its error bound, is not rounded. Its
    error bound becomes half a unit of the last decimal, so that it compares equal to either result.
    """
    with np.errstate(all="ignore"):
        scale = 10.0 ** (0.0 if digits is None else digits.values.astype(np.float64))
        values, error = (part * scale for part in x.rounded)
        nearest = np.rint(values)
        is_tie = np.abs(np.abs(values - nearest) - 0.5) <= error
        known = x.known if digits is None else np.logical_and(x.known, digits.known)
        slack = np.where(is_tie, 0.5, 0.0) + np.abs(nearest) * np.finfo(np.float64).eps
        return Amount(np.where(is_tie, values, nearest) / scale, slack / scale, known)


def _rounded_by(step: Callable[[Any], Any]) -> Callable[[Amount], Amount]:
    """Returns np.floor or np.ceil (`step`) with tolerance: a number that differs from a whole
    number by at most its error bound becomes that number."""

    def stepped(x: Amount) -> Amount:
        values, error = x.rounded
        nearest = np.rint(values)
        return Amount(
            np.where(np.abs(values - nearest) <= error, nearest, step(values)), 0.0, x.known
        )

    return stepped


def _pairwise(choose: Callable[[Any, Any], Any]) -> Callable[..., Amount]:
    def both(a: Amount, b: Amount) -> Amount:
        values = choose(a.values, b.values)
        return Amount(values, np.maximum(a.error, b.error), np.logical_and(a.known, b.known))

    return lambda *amounts: reduce(both, amounts)


# Dates


def known_zone(name: str) -> str:
    """Returns `name` after checking that it is a time zone of the IANA database.

    Raises:
        ValueError: There is no such zone.
    """
    if name not in zoneinfo.available_timezones():
        meant = nearest(name, zoneinfo.available_timezones())
        raise ValueError(
            f"there is no time zone {name!r}" + (f"; did you mean {meant}?" if meant else "")
        )
    return name


def check_part(name: str, column: Column | None) -> None:
    """Checks that dates of a column contain a part such as "hour", which the function `name`
    returns.

    If `column` is None, the dates are not those of a column and are not checked.

    Raises:
        ValueError: The column has no time of day, or no date.
    """
    if column is None:
        return
    is_of_clock = name in ("hour", "minute", "second")
    has_clock = resolution(column.date_format, column.decimals) < np.timedelta64(1, "D")
    if is_of_clock and not has_clock:
        raise ValueError(f"column {column.name!r} has no time of day, which {name} asks for")
    if not is_of_clock and is_time_of_day(column.date_format):
        raise ValueError(f"column {column.name!r} has no date, which {name} asks for")


def _by_clock(times: Times, zone: Any) -> pd.DatetimeIndex:
    index = pd.DatetimeIndex(np.atleast_1d(times).view(TIMES))
    if zone is None:
        return index
    return index.tz_localize("UTC").tz_convert(zone).tz_localize(None)


def _part(name: str) -> Callable[..., Amount]:
    def part(times: Times, *, zone: Any = None) -> Amount:
        clock = _by_clock(times, zone)
        found = clock.isocalendar().week if name == "week" else getattr(clock, name)
        return _numbers(found.to_numpy(dtype=np.float64, na_value=np.nan).reshape(np.shape(times)))

    return part


def _weekday(times: Times, *, zone: Any = None) -> Texts:
    names = np.array([*WEEKDAYS, None], dtype=object)  # None if missing
    days = np.nan_to_num(_by_clock(times, zone).dayofweek.to_numpy(dtype=np.float64), nan=7)
    return np.asarray(names[days.astype(np.int64)]).reshape(np.shape(times))


def _start(period: str) -> Callable[..., Times]:
    """Returns a function that computes the midnight at which the period of a time begins: D, W, M,
    Q or Y, from day to year."""

    def start(times: Times, *, zone: Any = None) -> Times:
        days = _by_clock(times, zone).to_numpy().astype("datetime64[D]")
        if period == "W":  # from Monday
            days = days - (days.astype(np.int64) + 3) % 7
        elif period == "Q":
            months = days.astype("datetime64[M]")
            days = months - months.astype(np.int64) % 3
        else:
            days = days.astype(f"datetime64[{period}]")
        known = ~np.isnat(days)
        found = np.where(known, days.astype(TIMES).astype(np.int64), NO_DATE)
        return np.asarray(found.reshape(np.shape(times)))

    return start


STARTS = {
    "date": "D",
    "start_of_week": "W",
    "start_of_month": "M",
    "start_of_quarter": "Q",
    "start_of_year": "Y",
}
"""Names of the functions that return the beginning of a period, with the letter of the period."""


def _days(first: Times, last: Times) -> Amount:
    is_known = (first != NO_DATE) & (last != NO_DATE)
    with np.errstate(over="ignore"):
        return _numbers(np.where(is_known, (last - first) // DAY, np.nan))


def _months(first: Times, last: Times) -> Amount:
    """Returns the number of completed months from `first` to `last`. A month is complete at the
    same time on the same day of the next month or, if that month lacks the day, when that month is
    over."""
    first, last = np.broadcast_arrays(first, last)
    a, b = _by_clock(first, None), _by_clock(last, None)
    months = 12.0 * (b.year - a.year) + (b.month - a.month)
    time_of_day = first % DAY, last % DAY
    is_short = (b.day < a.day) | ((b.day == a.day) & (time_of_day[1] < time_of_day[0]).ravel())
    return _numbers(np.asarray(months - is_short, dtype=np.float64).reshape(first.shape))


def _add_months(times: Times, months: Amount) -> Times:
    """Returns dates n months later; in a month without the date's day, its last day. The result is
    missing if n is not whole."""
    times, n = np.broadcast_arrays(times, np.asarray(months.values, dtype=np.float64))
    known = (times != NO_DATE) & months.known & (n == np.floor(n)) & (np.abs(n) < _MOST_MONTHS)
    moved = np.where(known, n, 0).astype(np.int64)
    days = np.where(known, times // DAY, 0).astype("datetime64[D]")
    month = days.astype("datetime64[M]")
    target = month + moved
    last = (target + 1).astype("datetime64[D]") - np.timedelta64(1, "D")
    found = np.minimum(
        target.astype("datetime64[D]") + (days - month.astype("datetime64[D]")), last
    )
    in_range = (found >= FIRST_TIME) & (found <= LAST_TIME)
    return np.where(known & in_range, found.astype(np.int64) * DAY + times % DAY, NO_DATE)


def _years(first: Times, last: Times) -> Amount:
    months = _months(first, last)
    return replace(months, values=np.floor(months.values / 12.0))


def _days_in_month(year: Amount, month: Amount) -> Amount:
    y, m = np.broadcast_arrays(year.values.astype(np.float64), month.values.astype(np.float64))
    known = np.logical_and(year.known, month.known) & np.isin(m, np.arange(1, 13))
    first = 12 * (np.where(known, np.floor(y), 1970) - 1970) + np.where(known, m, 1) - 1
    begins, ends = (
        months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
        for months in (first.astype(np.int64), first.astype(np.int64) + 1)
    )
    return Amount(np.where(known, ends - begins, np.nan), 0.0, known)


def _clock(start: Amount, minutes: Amount, midnight: Amount | None = None) -> Amount:
    """Returns the time of day that is `minutes` after `start`. 05:17 is written as 517, and 00:00
    as the number `midnight`, such as 2400 (0 if None)."""
    begin = start.values.astype(np.float64)
    at = begin // 100 * 60 + begin % 100 + minutes.values
    whole = np.where(at == np.floor(at), at % 1440, np.nan)
    written = np.where(
        whole == 0, 0.0 if midnight is None else midnight.values, whole // 60 * 100 + whole % 60
    )
    known = np.logical_and(start.known, minutes.known) & ~np.isnan(whole)
    return Amount(np.where(known, written, np.nan), 0.0, known)


def _bracket(x: Amount, *limits: Amount) -> Amount:
    reached = [compare(ast.GtE(), x, limit) for limit in limits]
    known = np.logical_and.reduce([truth != UNKNOWN for truth in reached])
    return Amount(np.sum([truth == TRUE for truth in reached], axis=0), 0.0, known)


def _numbers(values: npt.NDArray[Any]) -> Amount:
    return Amount(values, 0.0, ~np.isnan(values))


# Texts


def _mapped(change: Callable[..., str]) -> Callable[..., Texts]:
    """Returns a vectorised version of a function of texts, whose result is missing if an argument
    is."""

    def mapped(*texts: Texts) -> Texts:
        rows = np.broadcast_arrays(*texts)
        found = [
            None if any(pd.isna(part) for part in parts) else change(*parts)
            for parts in zip(*(row.ravel().tolist() for row in rows), strict=True)
        ]
        return np.array(found, dtype=object).reshape(rows[0].shape)

    return mapped


def _prefix(text: Texts, length: Amount) -> Texts:
    lengths = np.clip(length.values.astype(np.float64), 0, _LONGEST).astype(object)
    return _mapped(lambda own, n: own[: int(n)])(text, lengths)


def _written(value: Texts | Amount) -> Texts:
    """Converts numbers to text, whole ones without a decimal point; texts are unchanged."""
    if not isinstance(value, Amount):
        return value
    numbers = value.values.astype(np.float64)
    known = np.broadcast_to(np.logical_and(value.known, ~np.isnan(numbers)), numbers.shape)
    texts = [
        f"{x:.0f}" if x == round(x) else f"{x:.12g}" for x in np.where(known, numbers, 0.0).ravel()
    ]
    written = np.array(texts, dtype=object).reshape(numbers.shape)
    written[~known] = None
    return written


def _concat(*parts: Texts | Amount) -> Texts:
    return _mapped(lambda *texts: "".join(texts))(*map(_written, parts))


# Missing cells


def are_missing(value: Any, kind: Type) -> Truths:
    """Returns a truth value for each of n values of an expression of type `kind`: TRUE if it is
    missing, else FALSE. Shape: (n,)."""
    if kind is Type.DATE:
        blank = value == NO_DATE
    elif kind is Type.TEXT:
        blank = pd.isna(value)
    elif kind is Type.TRUTH:
        blank = value == UNKNOWN
    else:
        blank = np.isnan(value.values) | ~np.broadcast_to(value.known, value.values.shape)
    return truths(np.asarray(blank, dtype=bool), True)


_N, _D, _T = Type.NUMBER, Type.DATE, Type.TEXT
FUNCTIONS: dict[str, Function] = {
    "round": Function((_N, _N), _N, _rounded, optional=1),
    "floor": Function((_N,), _N, _rounded_by(np.floor)),
    "ceil": Function((_N,), _N, _rounded_by(np.ceil)),
    "abs": Function((_N,), _N, lambda x: replace(x, values=np.abs(x.values))),
    "min": Function((_N, _N), _N, _pairwise(np.minimum), is_repeated=True),
    "max": Function((_N, _N), _N, _pairwise(np.maximum), is_repeated=True),
    **{
        name: Function((_D, _T), _N, _part(part), optional=1, by_clock=True)
        for name, part in (
            *((name, name) for name in ("year", "quarter", "month", "day", "hour", "minute")),
            ("second", "second"),
            ("week", "week"),
            ("day_of_year", "dayofyear"),
            ("day_of_week", "dayofweek"),
        )
    },
    "weekday": Function((_D, _T), _T, _weekday, optional=1, by_clock=True),
    **{
        name: Function((_D, _T), _D, _start(period), optional=1, by_clock=True)
        for name, period in STARTS.items()
    },
    "clock": Function((_N, _N, _N), _N, _clock, optional=1),
    "days": Function((_D, _D), _N, _days),
    "months": Function((_D, _D), _N, _months),
    "years": Function((_D, _D), _N, _years),
    "add_months": Function((_D, _N), _D, _add_months),
    "days_in_month": Function((_N, _N), _N, _days_in_month),
    "bracket": Function((_N, _N), _N, _bracket, is_repeated=True),
    "lower": Function((_T,), _T, _mapped(str.lower)),
    "upper": Function((_T,), _T, _mapped(str.upper)),
    "prefix": Function((_T, _N), _T, _prefix),
    "concat": Function((_T, _T), _T, _concat, is_repeated=True, writes_numbers=True),
}
"""Functions by name, without `is_missing`, which takes columns of any type."""
