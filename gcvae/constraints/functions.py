"""The functions of expressions: each says what it takes and gives, and computes whole columns.

    round(x, 2)  floor(x)  ceil(x)  abs(x)  min(x, y, ...)  max(x, y, ...)        numbers
    year(d)  quarter(d)  month(d)  day(d)  weekday(d)  hour(d)  minute(d)         parts of a date
    days(d, e)  months(d, e)  years(d, e)                                completed, from d to e
    lower(t)  upper(t)  prefix(t, 2)  concat(t, u, ...)                           texts
    is_missing(c)                                                                 of any column

A function of a blank is blank, but for `is_missing`. Parts of a date are those of the clock by
which its column is written; `weekday` is its English name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timezone
from enum import StrEnum
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.constraints.rounded_numbers import UNKNOWN, Amount, Truths, truths
from gcvae.schema.columns import Column
from gcvae.spelling.date_text import DAY_NANOSECONDS, is_time_of_day, offset_of, resolution

NO_DATE = -(2**63)
"""NaT, a blank date."""
_LONGEST = 1_000_000
"""Characters of a prefix."""
Times = npt.NDArray[np.int64]
Texts = npt.NDArray[Any]


class Type(StrEnum):
    """What a term is."""

    NUMBER = "a number"
    DATE = "a date"
    TEXT = "text"
    TRUTH = "true or false"


@dataclass(frozen=True)
class Function:
    """A function of an expression.

    Attributes:
        takes: The type of each argument.
        gives: The type of its value.
        compute: The value of the arguments' values.
        is_repeated: The last argument may come any number of times.
        optional: So many of the last arguments may be left out.
        by_clock: It asks for the column of its date (`column`), which says by which clock.
    """

    takes: tuple[Type, ...]
    gives: Type
    compute: Callable[..., Any]
    is_repeated: bool = False
    optional: int = 0
    by_clock: bool = False

    def check(self, name: str, types: Sequence[Type]) -> None:
        """Checks the number and the types of arguments.

        Raises:
            ValueError: They are others than it takes.
        """
        least, most = len(self.takes) - self.optional, len(self.takes)
        if len(types) < least or (len(types) > most and not self.is_repeated):
            wanted = ", ".join(self.takes)
            more = ", ..." if self.is_repeated else ""
            raise ValueError(f"{name} takes ({wanted}{more}), not {len(types)} arguments")
        for number, found in enumerate(types):
            kind = self.takes[min(number, most - 1)]
            if found is not kind:
                raise ValueError(f"{name} takes {kind} as argument {number + 1}, not {found}")


# Numbers


def _rounded(x: Amount, digits: Amount | None = None) -> Amount:
    """The nearest number of so many decimals; of two that are as near it equals either."""
    with np.errstate(all="ignore"):
        scale = 10.0 ** (0.0 if digits is None else digits.values.astype(np.float64))
        values, error = (part * scale for part in x.rounded)
        nearest = np.rint(values)
        is_tie = np.abs(np.abs(values - nearest) - 0.5) <= error
        known = x.known if digits is None else np.logical_and(x.known, digits.known)
        slack = np.where(is_tie, 0.5, 0.0) + np.abs(nearest) * np.finfo(np.float64).eps
        return Amount(np.where(is_tie, values, nearest) / scale, slack / scale, known)


def _stepped(step: Callable[[Any], Any]) -> Callable[[Amount], Amount]:
    """Rounding down or up, of what is within the error of a whole number to that one."""

    def stepped(x: Amount) -> Amount:
        values, error = x.rounded
        nearest = np.rint(values)
        return Amount(
            np.where(np.abs(values - nearest) <= error, nearest, step(values)), 0.0, x.known
        )

    return stepped


def _extreme(choose: Callable[[Any, Any], Any]) -> Callable[..., Amount]:
    def both(a: Amount, b: Amount) -> Amount:
        values = choose(a.values, b.values)
        return Amount(values, np.maximum(a.error, b.error), np.logical_and(a.known, b.known))

    return lambda *amounts: reduce(both, amounts)


# Dates


def zone_of(column: Column) -> Any:
    """The zone of the clock by which a column of dates is written; UTC of one without."""
    zone = re.search(r"tz=([^\]]+)\]", column.parquet_type or "")
    return timezone(offset_of(column.date_format)) if zone is None else zone[1]


def check_part(name: str, column: Column | None) -> None:
    """Checks that the dates of a column have the part that a function of them asks for.

    Raises:
        ValueError: They have not.
    """
    if column is None:
        return
    is_of_clock = name in ("hour", "minute")
    has_clock = resolution(column.date_format, column.decimals) < np.timedelta64(1, "D")
    if is_of_clock and not has_clock:
        raise ValueError(f"column {column.name!r} has no time of day, which {name} asks for")
    if not is_of_clock and is_time_of_day(column.date_format):
        raise ValueError(f"column {column.name!r} has no date, which {name} asks for")


def _clock(times: Times, column: Column | None) -> pd.DatetimeIndex:
    """The times by the clock of their column; NaT where they are blank."""
    index = pd.DatetimeIndex(np.atleast_1d(times).view("datetime64[ns]"))
    if column is None:
        return index
    return index.tz_localize("UTC").tz_convert(zone_of(column)).tz_localize(None)


def _part(name: str) -> Callable[..., Amount]:
    def part(times: Times, *, column: Column | None = None) -> Amount:
        found = getattr(_clock(times, column), name).to_numpy(dtype=np.float64)
        return _numbers(found.reshape(np.shape(times)))

    return part


def _weekday(times: Times, *, column: Column | None = None) -> Texts:
    names = [None if pd.isna(name) else name for name in _clock(times, column).day_name()]
    return np.array(names, dtype=object).reshape(np.shape(times))


def _days(first: Times, last: Times) -> Amount:
    is_known = (first != NO_DATE) & (last != NO_DATE)
    with np.errstate(over="ignore"):
        return _numbers(np.where(is_known, (last - first) // DAY_NANOSECONDS, np.nan))


def _months(first: Times, last: Times) -> Amount:
    """Completed months: a month is over on the same day of the next, or behind its last day."""
    first, last = np.broadcast_arrays(first, last)
    a, b = _clock(first, None), _clock(last, None)
    months = 12.0 * (b.year - a.year) + (b.month - a.month)
    time_of_day = first % DAY_NANOSECONDS, last % DAY_NANOSECONDS
    is_short = (b.day < a.day) | ((b.day == a.day) & (time_of_day[1] < time_of_day[0]).ravel())
    return _numbers(np.asarray(months - is_short, dtype=np.float64).reshape(first.shape))


def _years(first: Times, last: Times) -> Amount:
    months = _months(first, last)
    return replace(months, values=np.floor(months.values / 12.0))


def _numbers(values: npt.NDArray[Any]) -> Amount:
    """Whole numbers without an error; NaN is blank."""
    return Amount(values, 0.0, ~np.isnan(values))


# Texts


def _mapped(change: Callable[..., str]) -> Callable[..., Texts]:
    """A text of texts, in each row; blank where one of these is."""

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


# Missing cells


def are_missing(value: Any, kind: Type) -> Truths:
    """Which values are blank. Shape: (n,)."""
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
    "floor": Function((_N,), _N, _stepped(np.floor)),
    "ceil": Function((_N,), _N, _stepped(np.ceil)),
    "abs": Function((_N,), _N, lambda x: replace(x, values=np.abs(x.values))),
    "min": Function((_N, _N), _N, _extreme(np.minimum), is_repeated=True),
    "max": Function((_N, _N), _N, _extreme(np.maximum), is_repeated=True),
    **{
        name: Function((_D,), _N, _part(name), by_clock=True)
        for name in ("year", "quarter", "month", "day", "hour", "minute")
    },
    "weekday": Function((_D,), _T, _weekday, by_clock=True),
    "days": Function((_D, _D), _N, _days),
    "months": Function((_D, _D), _N, _months),
    "years": Function((_D, _D), _N, _years),
    "lower": Function((_T,), _T, _mapped(str.lower)),
    "upper": Function((_T,), _T, _mapped(str.upper)),
    "prefix": Function((_T, _N), _T, _prefix),
    "concat": Function((_T, _T), _T, _mapped(lambda *texts: "".join(texts)), is_repeated=True),
}
"""By name; `is_missing`, which takes a column of any type, is beside them."""
