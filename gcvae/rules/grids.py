"""Grids: numbers and dates as integer multiples of their column's resolution, whose sums are exact.

The integer is called the index of the number or date.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from gcvae.arrays import DAY, FIRST_TIME, LAST_TIME, TIMES, Mask
from gcvae.cells.grid_units import microseconds
from gcvae.cells.levels import are_numeric
from gcvae.schema.columns import Column
from gcvae.schema.kinds import Outcomes
from gcvae.spelling.date_text import is_time_of_day, read_dates

LARGEST_INDEX = 1 << 52
"""Largest index; the sum of two such indices is exact in float64."""
NO_INDEX = LARGEST_INDEX
"""Index of a cell that is no multiple of the resolution, such as text, if levels are numbers."""
_MOST_DECIMALS = 9
_COUNTED_WIDTH = 1 << 18
"""Maximum range of the numbers that `counted` counts in an array; it sorts those of larger
range."""
NO_LEVEL = -2
"""Index of a level that the schema does not contain."""
_ORDERED = Outcomes.ORDERED_LEVELS
Indices = npt.NDArray[np.int64]
"""Multiples of a column's resolution."""


@dataclass(frozen=True)
class Grid:
    """Converts a column's numbers or dates to integers: index k stands for k times the column's
    resolution, such as 0.01 or a day.

    Attributes:
        per_unit: Number of indices per unit of the column: 10^decimals for numbers, 1 for dates.
        step: Resolution of a column of dates, in microseconds; None for numbers.
        low, high: First and last index within the column's limits.
    """

    column: Column
    per_unit: int
    step: int | None
    low: int
    high: int

    @classmethod
    def of(cls, column: Column) -> Grid | None:
        """Returns the converter between a column's values and multiples of its resolution.

        Returns None if the column has no numbers or dates, or if it has no fixed resolution.
        """
        if column.has_times:
            return cls._of_dates(column)
        is_whole, is_ordered = column.kind.is_whole, column.kind.outcomes is _ORDERED
        if column.kind.is_real and not is_whole and column.decimals is not None:
            ends = [float(end) for end in (column.minimum, column.maximum) if end is not None]
            largest = max((abs(end) for end in ends), default=0.0)
            if column.decimals > _MOST_DECIMALS or largest * 10**column.decimals > LARGEST_INDEX:
                return None
            return cls._of_numbers(column, 10**column.decimals, (column.minimum, column.maximum))
        if is_whole and column.kind.is_real:
            return cls._of_numbers(column, 1, (column.minimum, column.maximum))
        levels = column.levels or ()
        if is_ordered and levels and are_numeric(levels):
            is_of_wholes = all(isinstance(level, int) for level in levels)
            decimals = 0 if is_of_wholes else column.decimals
            if decimals is not None and decimals <= _MOST_DECIMALS:
                return cls._of_numbers(column, 10**decimals, (min(levels), max(levels)))
        return None

    @classmethod
    def _of_numbers(cls, column: Column, per_unit: int, limits: tuple[Any, Any]) -> Grid:
        low, high = limits
        return cls(
            column,
            per_unit,
            None,
            -LARGEST_INDEX if low is None else math.ceil(round(low * per_unit, 6)),
            LARGEST_INDEX if high is None else math.floor(round(high * per_unit, 6)),
        )

    @classmethod
    def _of_dates(cls, column: Column) -> Grid | None:
        written = column.date_format
        if "%d" not in written.replace("%-", "%") and not is_time_of_day(written):
            return None  # months and years have different lengths
        step = microseconds(column)
        low, high = (
            furthest if end is None else read_dates(pa.array([str(end)]), written)[0]
            for end, furthest in ((column.minimum, FIRST_TIME), (column.maximum, LAST_TIME))
        )
        return cls(column, 1, step, *(int(end.astype(np.int64)) // step for end in (low, high)))

    @property
    def has_decimals(self) -> bool:
        """Whether the values are floats rather than whole numbers or dates."""
        if self.column.kind.is_real:
            return self.step is None and not self.column.kind.is_whole
        return any(isinstance(level, float) for level in self.column.levels or ())

    @property
    def log_unit(self) -> float:
        """Log of the resolution in units of the column (days for dates)."""
        if self.step is not None:
            return math.log(self.step / DAY)
        return -math.log(self.per_unit)

    def indices(self, present: pd.Series[Any]) -> Indices:
        """Converts n cells to integer multiples of the column's resolution. Shape: (n,) -> (n,).

        No cell may be missing. If the column has levels, a cell that is no such multiple, such as a
        text among numbers, becomes NO_INDEX.
        """
        if self.step is not None:
            return np.asarray(present, dtype=TIMES).astype(np.int64) // self.step
        if pd.api.types.is_integer_dtype(present.dtype) and not self.has_decimals:
            whole: Indices = present.to_numpy(dtype=np.int64)
            return whole
        cells = pd.to_numeric(present, errors="coerce")  # text among numbers is an unseen level
        numbers = cells.to_numpy(dtype=np.float64, na_value=np.nan) * self.per_unit
        numbers = np.nan_to_num(numbers, nan=NO_INDEX).clip(-LARGEST_INDEX, LARGEST_INDEX)
        nearest: Indices = np.rint(numbers).astype(np.int64)
        if self.column.levels:
            nearest[np.round(numbers, 6) != nearest] = NO_INDEX
        return nearest

    def contains(self, present: pd.Series[Any]) -> Mask:
        """Returns for each of n cells whether it lies within the column's limits. No cell may be
        missing. Shape: (n,) -> (n,)."""
        indices = self.indices(present)
        return np.asarray((indices >= self.low) & (indices <= self.high))

    def values(self, indices: Indices, *, limited: bool = True) -> npt.NDArray[Any]:
        """Converts n multiples of the column's resolution to numbers or dates, clipped to the
        column's limits if `limited`. Shape: (n,) -> (n,)."""
        inside = np.clip(indices, self.low, self.high) if limited else indices
        if self.step is not None:
            first, last = (
                int(end.astype(np.int64)) // self.step for end in (FIRST_TIME, LAST_TIME)
            )
            return (np.clip(inside, first, last) * self.step).astype(TIMES)
        if self.has_decimals:
            decimals = self.column.decimals or 0
            return np.round(inside / self.per_unit, decimals) + 0.0  # no -0.0
        return inside


@dataclass(frozen=True)
class LevelGrid:
    """Converts a column's levels (categories) to integers: index k stands for level k of the
    schema."""

    column: Column

    @property
    def low(self) -> int:
        """Index of the first level, 0."""
        return 0

    @property
    def high(self) -> int:
        """Index of the last level."""
        return len(self.column.typed_levels) - 1

    def indices(self, present: pd.Series[Any]) -> Indices:
        """Converts n cells to the indices of their levels; NO_LEVEL (-2) for a level that the
        schema does not contain. Shape: (n,) -> (n,)."""
        indices = {level: k for k, level in enumerate(self.column.typed_levels)}
        found = [indices.get(level, NO_LEVEL) for level in present.tolist()]
        return np.array(found, dtype=np.int64)

    def values(self, indices: Indices) -> npt.NDArray[Any]:
        """Converts n indices, clipped to the existing ones, to levels. Shape: (n,) -> (n,)."""
        levels = self.column.typed_levels
        taken = np.clip(indices, 0, self.high)
        found = (
            np.array(levels) if not isinstance(levels[0], str) else np.array(levels, dtype=object)
        )
        return np.asarray(found[taken])


def grid_of(column: Column) -> Grid | LevelGrid:
    """Returns the converter between a column's cells and integer indices: multiples of the
    resolution for numbers and dates, indices in the schema for levels."""
    return Grid.of(column) or LevelGrid(column)


def counted(numbers: Indices) -> tuple[Indices, Indices]:
    """Returns (distinct whole numbers in ascending order, their counts). Shape: (n,) -> (U,)
    twice."""
    low, high = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    if high - low > _COUNTED_WIDTH:
        found, counts = np.unique(numbers, return_counts=True)
        return found, counts
    of_all = np.bincount(numbers - low)
    found = np.flatnonzero(of_all)
    return found + low, of_all[found]


def nearest_on_grid(series: pd.Series[Any], column: Column) -> pd.Series[Any]:
    """Rounds n cells to the column's resolution and clips them to its limits; missing cells stay
    missing. Shape: (n,)."""
    grid = Grid.of(column)
    if grid is None:
        return series
    near = series.copy()
    known = series.notna()
    near[known] = grid.values(grid.indices(series[known]))
    return near
