"""Ordered rows of a parent, each with a time that is modelled as the gap to the previous row.

    t_1 is a column of the parent,  t_k = t_{k-1} + gap_k
    gap_k ~ p(gap | parent, u, k, n - k, row k-1),   x_k ~ p(x | parent, u, k, n - k, t_k, row k-1)

The unit of time is a day if all times are midnights, else a second; numbers have no unit.
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
    """Conversion between the times of a column and numbers.

    Attributes:
        unit: Microseconds per unit; 0 for numbers.
        is_whole: Whether all times are whole numbers of units.
    """

    unit: int
    is_whole: bool

    @classmethod
    def of(cls, times: pd.Series[Any]) -> Clock:
        """Chooses the clock of a typed column."""
        if not pd.api.types.is_datetime64_any_dtype(times.dtype):
            numbers = times.to_numpy(dtype=np.float64)
            return cls(0, bool((numbers == np.round(numbers)).all()))
        ticks = times.astype(TIMES).astype("int64").to_numpy()
        return cls(DAY if not (ticks % DAY).any() else _SECOND, True)

    def count(self, times: pd.Series[Any]) -> Numbers:
        """Converts times to units since 1970; numbers are unchanged. Shape: (n,)."""
        if not self.unit:
            return times.to_numpy(dtype=np.float64)
        ticks = times.astype(TIMES).astype("int64").to_numpy()
        return np.asarray(ticks / self.unit)

    def times(self, counts: Numbers, dtype: Any) -> pd.Series[Any]:
        """Converts units back to times of the column's dtype."""
        whole = np.round(counts) if self.is_whole else counts
        if not self.unit:
            return pd.Series(whole).astype(dtype)
        ticks = (whole * self.unit).astype("int64")
        return pd.Series(ticks.view(TIMES)).astype(dtype)

    def features(self, counts: Numbers, name: str) -> pd.DataFrame:
        """Returns the context columns of times: the time itself, month, weekday, day and hour."""
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
    """Ranks of rows among the rows of their parent.

    Shape: order (n,): row indices sorted by parent and time; position, n_after (n,): number of the
    parent's rows before and after each row, in that order; before (n,): index in `order` of the
    previous row, -1 for the first row of a parent.
    """

    order: Codes
    position: Codes
    n_after: Codes
    before: Codes

    @classmethod
    def of(cls, parents: Codes, counts: Numbers) -> Ranks:
        """Ranks rows by their times (`counts`)."""
        order = np.lexsort((counts, parents))
        sorted_parents = parents[order]
        is_first = np.r_[True, sorted_parents[1:] != sorted_parents[:-1]] if len(order) else []
        starts = np.flatnonzero(is_first)
        sizes = np.diff(np.r_[starts, len(order)])
        position = np.arange(len(order)) - np.repeat(starts, sizes)
        n_after = np.repeat(sizes, sizes) - 1 - position
        before = np.where(position == 0, -1, np.arange(len(order)) - 1)
        return cls(order, position, n_after, before)
