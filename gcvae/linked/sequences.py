"""Rows that follow each other: a time for each, as its distance from the row before.

    t_1 is a column of the parent,  t_k = t_{k-1} + gap_k
    gap_k ~ p(gap | parent, u, k, n - k, row k-1),   x_k ~ p(x | parent, u, k, n - k, t_k, row k-1)

Times are counted in whole days where all are midnights, else in seconds; numbers as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gcvae.arrays import DAY, TIMES, Codes, Numbers

_SECOND = 1_000_000


@dataclass(frozen=True)
class Clock:
    """How the times of a column are counted.

    Attributes:
        unit: Microseconds in a unit; 0 for numbers.
        is_whole: Whether all counts are whole numbers.
    """

    unit: int
    is_whole: bool

    @classmethod
    def of(cls, times: pd.Series[Any]) -> Clock:
        """The clock of a typed column."""
        if not pd.api.types.is_datetime64_any_dtype(times.dtype):
            numbers = times.to_numpy(dtype=np.float64)
            return cls(0, bool((numbers == np.round(numbers)).all()))
        ticks = times.astype(TIMES).astype("int64").to_numpy()
        return cls(DAY if not (ticks % DAY).any() else _SECOND, True)

    def count(self, times: pd.Series[Any]) -> Numbers:
        """Units since 1970, or the numbers. Shape: (n,)."""
        if not self.unit:
            return times.to_numpy(dtype=np.float64)
        ticks = times.astype(TIMES).astype("int64").to_numpy()
        return np.asarray(ticks / self.unit)

    def times(self, counts: Numbers, dtype: Any) -> pd.Series[Any]:
        """The times of counts, in the column's dtype."""
        whole = np.round(counts) if self.is_whole else counts
        if not self.unit:
            return pd.Series(whole).astype(dtype)
        ticks = (whole * self.unit).astype("int64")
        return pd.Series(ticks.view(TIMES)).astype(dtype)

    def features(self, counts: Numbers, name: str) -> pd.DataFrame:
        """What rows are told of their time: when it is, and its place in the year, week and day."""
        found: dict[str, Any] = {f"{name} now": counts}
        if self.unit:
            times = pd.Series((counts * self.unit).astype("int64").view(TIMES))
            found[f"{name} month"] = times.dt.month.astype(str)
            found[f"{name} weekday"] = times.dt.weekday.astype(str)
            found[f"{name} day"] = times.dt.day.astype(float)
            if self.unit == _SECOND:
                found[f"{name} hour"] = times.dt.hour + times.dt.minute / 60.0
        return pd.DataFrame(found)


@dataclass(frozen=True)
class Ranks:
    """Where rows stand among those of their parent.

    Shape: order (n,): row numbers, parent by parent, in time; place, left (n,): how many of the
    parent's rows come before and after each, in that order; before (n,): the place in `order` of
    the row before, -1 of the first.
    """

    order: Codes
    place: Codes
    left: Codes
    before: Codes

    @classmethod
    def of(cls, parents: Codes, counts: Numbers) -> Ranks:
        """The ranks of rows by their time."""
        order = np.lexsort((counts, parents))
        sorted_parents = parents[order]
        is_first = np.r_[True, sorted_parents[1:] != sorted_parents[:-1]] if len(order) else []
        starts = np.flatnonzero(is_first)
        sizes = np.diff(np.r_[starts, len(order)])
        place = np.arange(len(order)) - np.repeat(starts, sizes)
        left = np.repeat(sizes, sizes) - 1 - place
        before = np.where(place == 0, -1, np.arange(len(order)) - 1)
        return cls(order, place, left, before)
