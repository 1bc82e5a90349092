"""Linear codecs of number and date columns: value = (x - offset) / scale."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from gcvae.arrays import DAY, FIRST_TIME, LAST_TIME, TIMES, Codes, Mask, Numbers
from gcvae.cells.grid_units import microseconds
from gcvae.cells.values import placed_values
from gcvae.codec.column_codec import ColumnCodec
from gcvae.codec.rounding import Rounding, rounded_to
from gcvae.numerics.moments import mean_and_deviation
from gcvae.schema.columns import Bound, Column
from gcvae.schema.kinds import ColumnKind
from gcvae.spelling.date_text import is_time_of_day, read_dates
from gcvae.spelling.number_text import LARGEST_WHOLE

Allowed = Callable[[Numbers], Mask]
"""Function that returns a mask of the allowed values. Shape: (m,) -> (m,)."""
_SMALL_SHARE = 1e-8
"""Numbers smaller than this multiple of the standard deviation lose digits if the mean is
subtracted."""
_LARGEST = float(np.finfo(np.float64).max)
_LARGEST_EXACT = 2.0**53
_WHOLE_LIMIT = 2**62  # int64 holds sums of two such numbers


@dataclass(frozen=True)
class RealCodec(ColumnCodec):
    """Encodes a number or date x as the last integer code and the real value (x - offset) / scale.

    Attributes:
        offset: Number that is subtracted, in the column's units or, for times, in steps of the date
            format. It is an integer if all x are, so that numbers within 2⁵⁰ of it are restored
            exactly.
        scale: Positive number by which the difference is divided, in the same units.
    """

    is_real: ClassVar[bool] = True
    offset: float
    scale: float

    @classmethod
    def fit(cls, series: pd.Series[Any], column: Column) -> Self:
        """Fits the codec to parsed cells; encoded values have a mean of about 0 and a standard
        deviation of about 1."""
        return cls.standardised(series, column).rounding_like(series[series.notna()], 0.0)

    @classmethod
    def fit_to_range(cls, series: pd.Series[Any], column: Column) -> Self:
        """Fits the codec so that the column's minimum is encoded as 0 and its maximum as 1."""
        start = cls._unscaled(series, column)
        low, high = start.limits  # infinite only if the column has no numbers
        offset = start._moved(low) if math.isfinite(low) else start.offset
        scale = high - low if 0.0 < high - low < math.inf else 1.0
        codec = cls(column, start.has_missing, offset, scale)
        return codec.rounding_like(series[series.notna()], 0.0)

    @classmethod
    def standardised(cls, series: pd.Series[Any], column: Column) -> Self:
        """Returns a codec whose offset is about the mean of parsed cells, and whose scale is about
        their standard deviation; other attributes are not fitted."""
        start = cls._unscaled(series, column)
        distances = start._distances(series[series.notna()])
        mean, scale = mean_and_deviation(distances)
        offset = start._moved(mean) if start._can_centre(distances, scale) else start.offset
        return cls(column, start.has_missing, offset, scale if scale > 0 else 1.0)

    @classmethod
    def _unscaled(cls, series: pd.Series[Any], column: Column) -> Self:
        """Returns a codec with scale 1 and an offset near the numbers, so that differences from it
        are exact."""
        present = series[series.notna()]
        has_missing = len(present) < len(series)
        return cls(column, has_missing, cls(column, has_missing, 0, 1.0)._first(present), 1.0)

    def _can_centre(self, distances: Numbers, scale: float) -> bool:
        """Returns whether numbers keep all digits if the mean is subtracted from them. `distances`
        are the numbers minus a preliminary offset, `scale` is their standard deviation."""
        return True

    @property
    def n_codes(self) -> int:
        return 1 + self.has_missing

    @property
    def log_scale(self) -> float:
        """log(dx / dv) for a number x (in days for dates) and its encoded value v."""
        return math.log(self.scale * self._unit)

    def encode(self, series: pd.Series[Any]) -> tuple[npt.NDArray[np.int32], Numbers]:
        present, values = self.positions(series)
        codes = np.where(present, self.n_codes - 1, 0 if self.has_missing else -1)
        values[codes != self.n_codes - 1] = 0.0
        return codes.astype(np.int32), values

    def decode(self, codes: Codes, values: Numbers) -> pd.Series[Any]:
        return self.cells_at(codes >= self.has_missing, values)

    def positions(self, series: pd.Series[Any]) -> tuple[Mask, Numbers]:
        """Returns (mask of the cells that are not missing, encoded value of each cell, 0 if
        missing) for n parsed cells. Shape: (n,) -> (n,), (n,)."""
        present = series.notna().to_numpy()
        values = np.zeros(len(series))
        values[present] = self._distances(series[present]) / self.scale
        return present, values

    def cells_at(self, present: Mask, values: Numbers) -> pd.Series[Any]:
        """Restores n cells from their encoded values, rounded to the column's step and clipped to
        its limits; cells outside the mask `present` become missing. Shape: (n,), (n,) -> (n,)."""
        with np.errstate(over="ignore"):
            found = self._restored(np.where(present, values, 0.0) * self.scale)
        places = np.where(present, np.arange(len(present)), -1)
        return placed_values(found, places, self.nullable)

    def rounding_like(self, present: pd.Series[Any], lost: float) -> Self:
        """Returns a copy that rounds generated numbers so that their numbers of decimals are
        distributed as in given cells. Codecs of integers and dates are returned unchanged.

        Args:
            present: Parsed cells from which the distribution is learned, none of them missing.
            lost: Largest error of encoding and decoding, in units of the encoded value; 0 if
                unknown.
        """
        return self

    def log_units(self, codes: npt.NDArray[np.int32], values: Numbers) -> Numbers:
        return np.where(codes == self.n_codes - 1, self.log_scale, 0.0)

    @property
    def half_step(self) -> float:
        """Half of the rounding step, in units of the encoded value; NaN without rounding."""
        return 0.5 * self._spacing / self.scale

    def rounding_cells(self, values: Numbers) -> Numbers:
        """Returns the ends of the interval of encoded values that are rounded to each of n numbers;
        NaN without rounding. Shape: (n,) -> (n, 2)."""
        return np.stack([values - self.half_step, values + self.half_step], axis=-1)

    def edges(self, low: pd.Series[Any], high: pd.Series[Any]) -> tuple[Numbers, Numbers]:
        """Returns (lower ends, upper ends) of the intervals of encoded values that decode to a
        number from low to high, both included, for n rows. Shape: (n,), (n,) -> (n,), (n,).

        An interval extends by half a rounding step on either side, and to infinity at the column's
        limits, because decoding clips. Without rounding, low = high gives two equal ends.
        """
        half = 0.0 if math.isnan(self._spacing) else 0.5 * self._spacing
        lowest, highest = self._limits
        lower = (self._distances(low) - half) / self.scale
        upper = (self._distances(high) + half) / self.scale
        return (
            np.where(self._numbers(low) <= lowest, -np.inf, lower),
            np.where(self._numbers(high) >= highest, np.inf, upper),
        )

    def codes_between(self, low: pd.Series[Any], high: pd.Series[Any]) -> Mask:
        """Returns, for n rows and K codes, whether each code stands for a single number from low to
        high. It is always False here: one code of a linear codec stands for all numbers. Shape:
        (n,), (n,) -> (n, K)."""
        return np.zeros((len(low), self.n_codes), dtype=bool)

    @property
    def _unit(self) -> float:
        """Column's units (days for dates) per unit of `_distances`."""
        return 1.0

    @property
    def _spacing(self) -> float:
        """Rounding step, in the units of x - offset (see `_distances`); NaN if numbers are not
        rounded."""
        return 1.0

    @property
    def limits(self) -> tuple[float, float]:
        """Encoded values of the column's minimum and maximum; infinite where there is no limit."""
        low, high = self.column.minimum, self.column.maximum
        first, last = self._limit_distances
        return (
            -math.inf if low is None else first / self.scale,
            math.inf if high is None else last / self.scale,
        )

    @property
    @abstractmethod
    def _limit_distances(self) -> tuple[float, float]:
        """Differences of the column's minimum and maximum from the offset."""

    @property
    @abstractmethod
    def _limits(self) -> tuple[float, float]:
        """Column's minimum and maximum, in the units of `_numbers`."""

    @abstractmethod
    def _numbers(self, present: pd.Series[Any]) -> npt.NDArray[Any]:
        """Returns numbers in the column's units, times in steps of the date format."""

    @abstractmethod
    def _first(self, present: pd.Series[Any]) -> float:
        """Returns a preliminary offset near the numbers."""

    @abstractmethod
    def _moved(self, distance: float) -> float:
        """Returns the offset plus a distance. Codecs of whole numbers round the sum."""

    @abstractmethod
    def _distances(self, present: pd.Series[Any]) -> Numbers:
        """Returns x - offset, exact for whole numbers."""

    @abstractmethod
    def _restored(self, distances: Numbers) -> npt.NDArray[Any]:
        """Returns offset + distances, rounded to the column's step and clipped to its limits."""


@dataclass(frozen=True)
class ContinuousCodec(RealCodec):
    """Codec of floating-point numbers, which are rounded to the column's decimals.

    The offset is 0 if some numbers are tiny compared with the standard deviation, because they
    would become equal after the mean is subtracted.

    Attributes:
        rounding: Probabilities of rounding generated numbers to fewer decimals than the column's;
            None if this never happens.
    """

    rounding: Rounding | None = None

    def rounding_like(self, present: pd.Series[Any], lost: float) -> Self:
        numbers = present.to_numpy(dtype=np.float64)
        rounding = Rounding.fit(numbers, self.column.decimals, lost * self.scale)
        return replace(self, rounding=rounding)

    def with_decimals(self, values: Numbers, u: Numbers, are_allowed: Allowed) -> Numbers:
        """Rounds n generated numbers so that the number of decimals is distributed as in the table,
        and returns their encoded values. Shape: (n,).

        Args:
            values: Encoded values of generated numbers. Shape: (n,).
            u: Uniform random numbers in (0, 1), which select the number of decimals. Shape: (n,).
            are_allowed: Function that maps encoded values to a mask: whether a rounded number may
                have this encoded value.
        """
        if self.rounding is None:
            return values
        low, high = self._limits

        def within(numbers: Numbers) -> Mask:
            inside = (numbers >= low) & (numbers <= high)
            return inside & are_allowed(self._distances(numbers) / self.scale)

        with np.errstate(over="ignore"):
            numbers = np.clip(values * self.scale + self.offset, -_LARGEST, _LARGEST)
        rounded = self.rounding.rounded(numbers, u, within)
        return np.where(rounded == numbers, values, self._distances(rounded) / self.scale)

    def _can_centre(self, distances: Numbers, scale: float) -> bool:
        sizes = np.abs(distances[distances != 0.0])
        return not len(sizes) or bool(sizes.min() > _SMALL_SHARE * scale)

    @property
    def _spacing(self) -> float:
        decimals = self.column.decimals
        return math.nan if decimals is None else 10.0**-decimals

    def _first(self, present: pd.Series[Any]) -> float:
        return 0.0

    def _moved(self, distance: float) -> float:
        return self.offset + distance

    def _numbers(self, present: pd.Series[Any]) -> npt.NDArray[Any]:
        return present.to_numpy(dtype=float)

    def _distances(self, present: pd.Series[Any] | Numbers) -> Numbers:
        with np.errstate(over="ignore"):
            distances = np.asarray(present, dtype=np.float64) - self.offset
        return np.clip(distances, -_LARGEST, _LARGEST)

    def _restored(self, distances: Numbers) -> npt.NDArray[Any]:
        with np.errstate(over="ignore"):
            numbers = distances + self.offset
            if self.column.decimals is not None:
                numbers = rounded_to(numbers, self.column.decimals)
            if self.rounding is not None:
                numbers = self.rounding.restored(numbers)
        return np.clip(numbers, *self._limits) + 0.0  # no -0.0

    @property
    def _limit_distances(self) -> tuple[float, float]:
        low, high = self._distances(np.array(self._limits)).tolist()
        return low, high

    @property
    def _limits(self) -> tuple[float, float]:
        low, high = self.column.minimum, self.column.maximum
        return -np.inf if low is None else float(low), np.inf if high is None else float(high)


class IntegerCodec(RealCodec):
    """Codec of whole numbers, whose offset is an integer so that differences are exact."""

    def _first(self, present: pd.Series[Any]) -> float:
        return int(present.iloc[0]) if len(present) else 0

    def _moved(self, distance: float) -> float:
        return self.offset + round(distance)

    def _numbers(self, present: pd.Series[Any]) -> Codes:
        return present.to_numpy(dtype=np.int64)

    def _distances(self, present: pd.Series[Any]) -> Numbers:
        return _differences(self._numbers(present), int(self.offset))

    def _restored(self, distances: Numbers) -> npt.NDArray[Any]:
        return whole_within(distances, int(self.offset), *self._limits)

    @property
    def _limit_distances(self) -> tuple[float, float]:
        low, high = (float(limit - int(self.offset)) for limit in self._limits)
        return low, high

    @cached_property
    def _limits(self) -> tuple[int, int]:
        low, high = self.column.minimum, self.column.maximum
        lowest = -_WHOLE_LIMIT if low is None else math.ceil(Fraction(low))
        return lowest, _WHOLE_LIMIT if high is None else math.floor(Fraction(high))


class DatetimeCodec(IntegerCodec):
    """Codec of times, counted since 1970 in the smallest step of the column's date format."""

    def _first(self, present: pd.Series[Any]) -> float:
        return int(np.median(self._numbers(present))) if len(present) else 0

    def _can_centre(self, distances: Numbers, scale: float) -> bool:
        return bool(np.abs(distances).max(initial=0.0) < _LARGEST_EXACT)

    def _numbers(self, present: pd.Series[Any]) -> Codes:
        return present.to_numpy(dtype=TIMES).astype(np.int64) // self._step

    def _restored(self, distances: Numbers) -> npt.NDArray[Any]:
        times = (super()._restored(distances) * self._step).astype(TIMES)
        return times.astype(f"datetime64[{self._written_unit}]").astype(TIMES)

    def edges(self, low: pd.Series[Any], high: pd.Series[Any]) -> tuple[Numbers, Numbers]:
        """Returns (lower ends, upper ends) of the intervals of encoded values that decode to a time
        from low to high, both included, for n rows. Shape: (n,), (n,) -> (n,), (n,).

        In a date format without days, such as %Y-%m, a cell is stored as the first day of its month
        or year; its interval covers the whole month or year.
        """
        if self._written_unit != "us":
            unit = f"datetime64[{self._written_unit}]"
            ends = high.to_numpy(dtype=TIMES).astype(unit) + 1
            high = pd.Series(ends.astype(TIMES) - np.timedelta64(self._step, "us"))
        return super().edges(low, high)

    @cached_property
    def _written_unit(self) -> str:
        """NumPy's unit of the dates in this format: "us", "M" (months) or "Y" (years)."""
        date_format = (self.column.datetime_format or "%d").replace("%-", "%")
        if "%d" in date_format or is_time_of_day(date_format):
            return "us"
        return "M" if any(token in date_format for token in ("%m", "%b", "%B")) else "Y"

    @property
    def _unit(self) -> float:
        return self._step / DAY

    @cached_property
    def _step(self) -> int:
        return microseconds(self.column)

    @cached_property
    def _limits(self) -> tuple[int, int]:
        low, high = self.column.minimum, self.column.maximum
        return (
            self._step_of(FIRST_TIME if low is None else self._time_of(low)),
            self._step_of(LAST_TIME if high is None else self._time_of(high)),
        )

    def _time_of(self, limit: Bound) -> np.datetime64:
        time: np.datetime64 = read_dates(pa.array([str(limit)]), self.column.date_format)[0]
        return time

    def _step_of(self, time: np.datetime64) -> int:
        return int(time.astype(np.int64)) // self._step


LINEAR_CODECS: dict[ColumnKind, type[RealCodec]] = {
    ColumnKind.CONTINUOUS: ContinuousCodec,
    ColumnKind.INTEGER: IntegerCodec,
    ColumnKind.DATETIME: DatetimeCodec,
}
"""Linear codec of each column kind whose values are numbers or times."""


def whole_within(distances: Numbers, offset: int, lowest: int, highest: int) -> Codes:
    """Returns the integers nearest to offset + distances, clipped to [lowest, highest]. Shape:
    distances (n,) -> (n,)."""
    if max(abs(lowest - offset), abs(highest - offset)) < _WHOLE_LIMIT:
        near = np.clip(np.rint(distances), lowest - offset, highest - offset).astype(np.int64)
        return np.clip(near + offset, lowest, highest)
    near = np.clip(np.rint(distances + offset), -LARGEST_WHOLE, LARGEST_WHOLE).astype(np.int64)
    return np.clip(near, lowest, highest)


def _differences(numbers: Codes, offset: int) -> Numbers:
    """Returns numbers - offset, exact up to 2⁵³."""
    rough = numbers.astype(np.float64) - offset
    exact = numbers - np.int64(offset)  # may wrap around where rough is large
    return np.where(np.abs(rough) < _WHOLE_LIMIT, exact, rough)
