"""Sequences: the ordered rows of a parent, with times modelled as gaps to the previous row.

    t_1 is a column of the parent,  t_k = t_{k-1} + gap_k  <=  last time of the table
    gap_k ~ p(gap | parent, u, k, n - k, row k-1),   x_k ~ p(x | parent, u, k, n - k, t_k, row k-1)

x_k is the k-th of the n rows of a parent, t_k its time, u the random effect that the rows share.
The unit of time is a day if all times are midnights, else a second; an order column of numbers has
no unit. If most gaps are longer than a day, but not whole days, gap_k is modelled as a number of
days and the time of day of t_k. Sequences that end after the last time are generated again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gcvae.arrays import DAY, TIMES, Numbers
from gcvae.rules.grids import Grid
from gcvae.schema.columns import Column

GAP = "gap"
"""Name of the column that contains the time since the previous row of a sequence."""
_FIRST, _TIME_OF_DAY = "first", "time of day"
_SECOND = 1_000_000
_DAY_SECONDS = DAY // _SECOND
_LEAST_SHARE = 0.5
"""Conditions for modelling gaps as days and a time of day: the minimum share of gaps of a day or
more, and the maximum share of gaps with the most frequent remainder modulo a day."""


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
        """Returns the clock whose unit fits the times: days if all are midnights, else seconds.
        Numbers have no unit."""
        if not pd.api.types.is_datetime64_any_dtype(times.dtype):
            numbers = times.to_numpy(dtype=np.float64)
            return cls(0, bool((numbers == np.round(numbers)).all()))
        ticks = times.astype(TIMES).astype("int64").to_numpy()
        return cls(DAY if not (ticks % DAY).any() else _SECOND, True)

    def count(self, times: pd.Series[Any]) -> Numbers:
        """Converts times to numbers of units since 1970. A column of numbers stays unchanged.
        Shape: (n,)."""
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

    def has_times_of_day(self, gaps: Numbers) -> bool:
        """Returns whether n gaps, in units of time, are better modelled as a number of days and a
        time of day: most are a day or longer, but not whole days. Shape: (n,)."""
        if self.unit != _SECOND or (gaps >= _DAY_SECONDS).mean() < _LEAST_SHARE:
            return False
        counts = np.unique(gaps % _DAY_SECONDS, return_counts=True)[1]
        return bool(counts.max() < _LEAST_SHARE * len(gaps))

    def gap_columns(self, gaps: Numbers, before: Numbers, *, of_days: bool) -> pd.DataFrame:
        """Returns the columns that a model of gaps learns: the gaps; or their numbers of days and
        the times of day at which they end.

        Args:
            gaps: Gaps in units of time. Shape: (n,).
            before: Times at which the gaps begin. Shape: (n,).
            of_days: Whether to return days and times of day (`has_times_of_day`).
        """
        found = {GAP: gaps}
        if of_days:
            days, times = np.divmod(before + gaps, _DAY_SECONDS)
            found = {GAP: days - before // _DAY_SECONDS, _TIME_OF_DAY: times}
        return pd.DataFrame(found).astype(np.int64 if self.is_whole else np.float64)

    def after(self, before: Numbers, columns: pd.DataFrame) -> Numbers:
        """Returns the times at which gaps end, given the times `before` at which they begin and the
        `columns` that `gap_columns` describes. Shape: (n,)."""
        gaps = columns[GAP].to_numpy(dtype=np.float64)
        if _TIME_OF_DAY not in columns:
            return np.asarray(before + gaps)
        times = columns[_TIME_OF_DAY].to_numpy(dtype=np.float64)
        return np.asarray((before // _DAY_SECONDS + gaps) * _DAY_SECONDS + times)

    def first_columns(self, times: pd.Series[Any]) -> pd.DataFrame:
        """Converts the time of the first child row of each of n parents to the columns that the
        parents' model learns. Returns one column of times; if the unit is a second, a column of
        dates and one of times of day in seconds. Cells of parents without children are missing."""
        if self.unit != _SECOND:
            return pd.DataFrame({_FIRST: times})
        dates = times.dt.normalize()
        seconds = (times - dates).dt.total_seconds().astype("Int64")
        return pd.DataFrame({_FIRST: dates, f"{_FIRST} {_TIME_OF_DAY}": seconds})

    def first_times(self, parents: pd.DataFrame, child: str) -> pd.Series[Any]:
        """Returns the time of the first row of table `child` for each of n parents, from the
        columns of `first_columns` in `parents`. Shape: (n,)."""
        times = parents[f"{child} {_FIRST}"]
        if self.unit != _SECOND:
            return times
        seconds = parents[f"{child} {_FIRST} {_TIME_OF_DAY}"].astype("Float64")
        found: pd.Series[Any] = times + pd.to_timedelta(seconds, unit="s")
        return found

    def last(self, column: Column) -> float:
        """Returns the largest time that may be generated, in units since 1970, according to the
        schema of the time column; infinity if the column has no limit."""
        grid = Grid.of(column)
        if grid is None or column.maximum is None:
            return np.inf
        return float(self.count(pd.Series(grid.values(np.array([grid.high]))))[0])

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
