"""Sequences: the ordered rows of a parent, with times modelled as gaps to the previous row.

    t_1 is a column of the parent,  t_k = t_{k-1} + gap_k
    gap_k ~ p(gap | parent, u, k, n - k, row k-1),   x_k ~ p(x | parent, u, k, n - k, t_k, row k-1)

x_k is the k-th of n rows, t_k its time, u the random effect that they share. The unit of time is a
day if all times are midnights, else a second; an order of numbers has no unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gcvae.arrays import DAY, TIMES, Numbers

_SECOND = 1_000_000


@dataclass(frozen=True)
class Clock:
    """Converts the time column of a sequence to numbers and back.

    Attributes:
        unit: Microseconds per unit of time; 0 for a column of numbers.
        is_whole: Whether all times are whole numbers of units.
    """

    unit: int
    is_whole: bool

    @classmethod
    def of(cls, times: pd.Series[Any]) -> Clock:
        """Returns the clock whose unit fits the times: days if all are midnights, else seconds."""
        if not pd.api.types.is_datetime64_any_dtype(times.dtype):
            numbers = times.to_numpy(dtype=np.float64)
            return cls(0, bool((numbers == np.round(numbers)).all()))
        ticks = times.astype(TIMES).astype("int64").to_numpy()
        return cls(DAY if not (ticks % DAY).any() else _SECOND, True)

    def count(self, times: pd.Series[Any]) -> Numbers:
        """Converts times to units since 1970. A column of numbers stays unchanged. Shape: (n,)."""
        if not self.unit:
            return times.to_numpy(dtype=np.float64)
        ticks = times.astype(TIMES).astype("int64").to_numpy()
        return np.asarray(ticks / self.unit)

    def times(self, counts: Numbers, dtype: Any) -> pd.Series[Any]:
        """Converts units since 1970 back to times of the given dtype."""
        whole = np.round(counts) if self.is_whole else counts
        if not self.unit:
            return pd.Series(whole).astype(dtype)
        ticks = (whole * self.unit).astype("int64")
        return pd.Series(ticks.view(TIMES)).astype(dtype)

    def features(self, counts: Numbers, name: str) -> pd.DataFrame:
        """Returns columns that describe times, on which a model depends: time, month, weekday, day
        and hour.

        Args:
            counts: Times in units since 1970. Shape: (n,).
            name: Name of the time column, a prefix of the columns' names.
        """
        found: dict[str, Any] = {f"{name} now": counts}
        if self.unit:
            times = pd.Series((counts * self.unit).astype("int64").view(TIMES))
            found[f"{name} month"] = times.dt.month.astype(str)
            found[f"{name} weekday"] = times.dt.weekday.astype(str)
            found[f"{name} day"] = times.dt.day.astype(float)
            if self.unit == _SECOND:
                found[f"{name} hour"] = times.dt.hour + times.dt.minute / 60.0
        return pd.DataFrame(found)
