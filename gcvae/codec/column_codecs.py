"""The codecs of columns of numbers and dates, on a line under one standardised value."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from gcvae.arrays import Codes, Mask, Numbers
from gcvae.cells.values import placed_values
from gcvae.codec.rounding import Rounding, rounded_to
from gcvae.numerics.moments import mean_and_deviation
from gcvae.schema.columns import Column
from gcvae.schema.kinds import ColumnKind
from gcvae.spelling.date_text import DAY_NANOSECONDS, is_time_of_day, read_dates, resolution
from gcvae.spelling.never_dates import are_never, stand_ins
from gcvae.spelling.number_text import LARGEST_WHOLE

Allowed = Callable[[Numbers], Mask]
"""Values -> which of them may be."""
_SMALL_SHARE = 1e-8
"""Of the deviation, under which a number loses its digits beside the mean."""
_ROUNDING_ERROR = 1e-12
"""Of a distance, that it may have lost."""
_LARGEST = float(np.finfo(np.float64).max)
_WHOLE_LIMIT = 2**62  # int64 holds sums of two such numbers


@dataclass(frozen=True)
class RealCodec(ABC):
    """Numbers as value = (x - offset) / scale under the last code.

    Attributes:
        offset: In the column's units, in steps for times; whole where the numbers are whole, so
            that numbers up to 2⁵⁰ from it come back to the digit.
        scale: In the same units, positive.
    """

    column: Column
    has_missing: bool
    offset: float
    scale: float

    @classmethod
    def fit(cls, series: pd.Series[Any], column: Column) -> Self:
        """Returns the codec of these typed cells."""
        return cls.line_of(series, column).rounding_like(series[series.notna()], 0.0)

    @classmethod
    def fit_to_range(cls, series: pd.Series[Any], column: Column) -> Self:
        """Returns the codec with 0 at the column's smallest number and 1 at its largest."""
        start = cls._at_first_of(series, column)
        low, high = start.limits  # infinite only where the column has no numbers
        offset = start._moved(low) if math.isfinite(low) else start.offset
        scale = high - low if 0.0 < high - low < math.inf else 1.0
        codec = cls(column, start.has_missing, offset, scale)
        return codec.rounding_like(series[series.notna()], 0.0)

    @classmethod
    def line_of(cls, series: pd.Series[Any], column: Column) -> Self:
        """Returns the line of these typed cells: offset near their mean, scale their deviation."""
        start = cls._at_first_of(series, column)
        present = series[series.notna().to_numpy() & ~are_never(series)]
        distances = start._distances(present)
        mean, scale = mean_and_deviation(distances)
        offset = start._moved(mean) if start._can_move(distances, scale) else start.offset
        return cls(column, start.has_missing, offset, scale if scale > 0 else 1.0)

    @classmethod
    def _at_first_of(cls, series: pd.Series[Any], column: Column) -> Self:
        """Returns a line in the column's units, from one of the numbers that the others are not far
        of."""
        is_present = series.notna().to_numpy()
        present = series[is_present & ~are_never(series)]
        has_missing = not is_present.all()
        return cls(column, has_missing, cls(column, has_missing, 0, 1.0)._first(present), 1.0)

    def _can_move(self, distances: Numbers, scale: float) -> bool:
        """Returns whether no number loses its digits when the mean is taken from it."""
        return True

    @property
    def name(self) -> str:
        """The column's name."""
        return self.column.name

    @property
    def n_codes(self) -> int:
        """One for missing cells where there were any, one for each date for never, one for
        numbers."""
        return 1 + self.has_missing + len(self.never)

    @cached_property
    def never(self) -> Numbers:
        """Where the times lie that stand in for the column's dates for never. Shape: (k,)."""
        return np.zeros(0)

    @property
    def is_real(self) -> bool:
        """True: the last code has a value."""
        return True

    @property
    def log_scale(self) -> float:
        """log of the column's units (days for dates) per unit of value."""
        return math.log(self.scale * self._unit)

    def encode(self, series: pd.Series[Any]) -> tuple[npt.NDArray[np.int32], Numbers]:
        """Codes and values of typed cells; -1 for missing where the codec has no such level."""
        present, values = self.positions(series)
        codes = np.where(present, self.n_codes - 1, 0 if self.has_missing else -1)
        for i, place in enumerate(self.never):
            codes[present & (values == place)] = self.has_missing + i
        values[codes != self.n_codes - 1] = 0.0
        return codes.astype(np.int32), values

    def decode(self, codes: Codes, values: Numbers) -> pd.Series[Any]:
        """Typed cells of codes and values, rounded to the column's step and within its limits."""
        for i, place in enumerate(self.never):
            values = np.where(codes == self.has_missing + i, place, values)
        return self.cells_at(codes >= self.has_missing, values)

    def positions(self, series: pd.Series[Any]) -> tuple[Mask, Numbers]:
        """Returns (Which cells have a value, where it lies; 0 where there is none). Shape: (n,)
        twice."""
        present = series.notna().to_numpy()
        values = np.zeros(len(series))
        values[present] = self._distances(series[present]) / self.scale
        return present, values

    def cells_at(self, present: Mask, values: Numbers) -> pd.Series[Any]:
        """Typed cells at these positions, missing where there is none. Shape: (n,) twice."""
        with np.errstate(over="ignore"):
            found = self._restored(np.where(present, values, 0.0) * self.scale)
        nullable = self.has_missing or self.column.missing.allowed
        places = np.where(present, np.arange(len(present)), -1)
        return placed_values(found, places, nullable)

    def rounding_like(self, present: pd.Series[Any], lost: float) -> Self:
        """Returns the codec, whose drawn numbers are rounded as these are; whole ones stay as they
        are.

        Args:
            present: Typed cells, none missing.
            lost: What an encoding of values may lose of them; 0 where that is not known.
        """
        return self

    def log_units(self, codes: npt.NDArray[np.int32], values: Numbers) -> Numbers:
        """`log_scale` at every number, 0 at missing cells."""
        return np.where(codes == self.n_codes - 1, self.log_scale, 0.0)

    @property
    def half_step(self) -> float:
        """Half of what numbers are rounded to, in values; NaN where they are not."""
        return 0.5 * self._spacing / self.scale

    def rounding_cells(self, values: Numbers) -> Numbers:
        """Ends of the values that are rounded to these; NaN without rounding. (n,) -> (n, 2)."""
        return np.stack([values - self.half_step, values + self.half_step], axis=-1)

    def edges(self, low: pd.Series[Any], high: pd.Series[Any]) -> tuple[Numbers, Numbers]:
        """Ends of the values that decode to the numbers from low to high, both included.

        The rounding cells of both belong; at the column's limits, where decoding clips, there is no
        end. Where numbers are not rounded, low = high gives two equal ends.

        Args:
            low: Typed cells, none missing. Shape: (n,).
            high: Typed cells, none missing, no lower. Shape: (n,).
        """
        half = 0.0 if math.isnan(self._spacing) else 0.5 * self._spacing
        at_low, at_high = self._are_limits(low, high)
        lower = np.where(at_low, -np.inf, (self._distances(low) - half) / self.scale)
        upper = np.where(at_high, np.inf, (self._distances(high) + half) / self.scale)
        return lower, upper

    def codes_between(self, low: pd.Series[Any], high: pd.Series[Any]) -> Mask:
        """Which codes, but the last, are numbers from low to high. Shape: (n,) twice -> (n, K)."""
        return np.zeros((len(low), self.n_codes), dtype=bool)

    def to_json(self) -> dict[str, Any]:
        """Returns the document that `from_json` reads together with the schema's column."""
        return {"has_missing": self.has_missing, "offset": self.offset, "scale": self.scale}

    @classmethod
    def from_json(cls, column: Column, document: Mapping[str, Any]) -> Self:
        """Returns the codec of a document that `to_json` wrote."""
        return cls(column, document["has_missing"], document["offset"], document["scale"])

    @property
    def _unit(self) -> float:
        """One unit of a distance, in the units that densities are per."""
        return 1.0

    @property
    def _spacing(self) -> float:
        """Distance of two neighbouring numbers, in the units of distances; NaN if there is none."""
        return 1.0

    @property
    def limits(self) -> tuple[float, float]:
        """Values of the column's smallest and largest number; infinite where it has no limit."""
        low, high = self.column.minimum, self.column.maximum
        first, last = self._limit_distances
        return (
            -math.inf if low is None else first / self.scale,
            math.inf if high is None else last / self.scale,
        )

    @property
    @abstractmethod
    def _limit_distances(self) -> tuple[float, float]:
        """The distances of the column's limits from the offset."""

    @abstractmethod
    def _are_limits(self, low: pd.Series[Any], high: pd.Series[Any]) -> tuple[Mask, Mask]:
        """Where low is the smallest number of the column, and high the largest. Shape: (n,)."""

    @abstractmethod
    def _first(self, present: pd.Series[Any]) -> float:
        """Returns a first offset: one of the numbers, from which the others are not far."""

    @abstractmethod
    def _moved(self, distance: float) -> float:
        """Returns the offset at that distance from this one."""

    @abstractmethod
    def _distances(self, present: pd.Series[Any]) -> Numbers:
        """x - offset, exactly where the numbers are whole."""

    @abstractmethod
    def _restored(self, distances: Numbers) -> npt.NDArray[Any]:
        """Returns the numbers at these distances from the offset, rounded and within limits."""


@dataclass(frozen=True)
class ContinuousCodec(RealCodec):
    """Numbers rounded to the column's decimals.

    Numbers that are small beside their deviation stay where they are: moved to their mean, those of
    many decades would all be one.

    Attributes:
        rounding: How often drawn numbers are rounded to fewer decimals; None for never.
    """

    rounding: Rounding | None = None

    def rounding_like(self, present: pd.Series[Any], lost: float) -> Self:
        """Returns the codec, whose drawn numbers have as many decimals as these, as often."""
        numbers = present.to_numpy(dtype=np.float64)
        rounding = Rounding.fit(numbers, self.column.decimals, lost * self.scale)
        return replace(self, rounding=rounding)

    def with_decimals(self, values: Numbers, u: Numbers, are_allowed: Allowed) -> Numbers:
        """Values of drawn numbers, rounded to the decimals that u chooses. Shape: (n,) twice.

        Args:
            values: Values of drawn numbers. Shape: (n,).
            u: Uniform on (0, 1). Shape: (n,).
            are_allowed: Values -> which of them may be. Shape: (m,) -> (m,).
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

    def _can_move(self, distances: Numbers, scale: float) -> bool:
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

    def _are_limits(self, low: pd.Series[Any], high: pd.Series[Any]) -> tuple[Mask, Mask]:
        lowest, highest = self._limits
        return low.to_numpy(dtype=float) <= lowest, high.to_numpy(dtype=float) >= highest

    @property
    def _limit_distances(self) -> tuple[float, float]:
        low, high = self._distances(np.array(self._limits)).tolist()
        return low, high

    @property
    def _limits(self) -> tuple[float, float]:
        low, high = self.column.minimum, self.column.maximum
        return -np.inf if low is None else float(low), np.inf if high is None else float(high)

    def to_json(self) -> dict[str, Any]:
        """Returns the document that `from_json` reads together with the schema's column."""
        rounding = None if self.rounding is None else self.rounding.to_json()
        return super().to_json() | {"rounding": rounding}

    @classmethod
    def from_json(cls, column: Column, document: Mapping[str, Any]) -> Self:
        """Returns the codec of a document that `to_json` wrote."""
        codec, own = super().from_json(column, document), document["rounding"]
        return replace(codec, rounding=None if own is None else Rounding.from_json(own))


class IntegerCodec(RealCodec):
    """Whole numbers; the offset is whole, so that the distances are exact."""

    def _first(self, present: pd.Series[Any]) -> float:
        return int(present.iloc[0]) if len(present) else 0

    def _moved(self, distance: float) -> float:
        return self.offset + round(distance)

    def _distances(self, present: pd.Series[Any]) -> Numbers:
        return _differences(present.to_numpy(dtype=np.int64), int(self.offset))

    def _restored(self, distances: Numbers) -> npt.NDArray[Any]:
        return whole_within(distances, int(self.offset), *self._limits)

    def _are_limits(self, low: pd.Series[Any], high: pd.Series[Any]) -> tuple[Mask, Mask]:
        lowest, highest = self._limits
        return low.to_numpy(dtype=np.int64) <= lowest, high.to_numpy(dtype=np.int64) >= highest

    @property
    def _limit_distances(self) -> tuple[float, float]:
        low, high = (float(limit - int(self.offset)) for limit in self._limits)
        return low, high

    @cached_property
    def _limits(self) -> tuple[int, int]:
        low, high = self.column.minimum, self.column.maximum
        lowest = -_WHOLE_LIMIT if low is None else math.ceil(Fraction(low))
        return lowest, _WHOLE_LIMIT if high is None else math.floor(Fraction(high))


class DatetimeCodec(RealCodec):
    """Times in steps of what the column's format can write, counted from 1970."""

    def _first(self, present: pd.Series[Any]) -> float:
        return int(self._steps(present)[0]) if len(present) else 0

    def _moved(self, distance: float) -> float:
        return self.offset + round(distance)

    def _distances(self, present: pd.Series[Any]) -> Numbers:
        return _differences(self._steps(present), int(self.offset))

    @cached_property
    def never(self) -> Numbers:
        """Where the times lie that stand in for the column's dates for never. Shape: (k,)."""
        return self._distances(pd.Series(self._stand_ins)) / self.scale

    @property
    def _stand_ins(self) -> npt.NDArray[np.datetime64]:
        return stand_ins(self.column.never, self.column.date_format)

    def _restored(self, distances: Numbers) -> npt.NDArray[Any]:
        steps = whole_within(distances, int(self.offset), *self._limits)
        times = (steps * self._step).astype("datetime64[ns]")
        for place, stand_in in zip(self.never * self.scale, self._stand_ins, strict=True):
            times[np.isclose(distances, place, rtol=_ROUNDING_ERROR, atol=0.5)] = stand_in
        return times.astype(f"datetime64[{self._written_unit}]").astype("datetime64[ns]")

    def edges(self, low: pd.Series[Any], high: pd.Series[Any]) -> tuple[Numbers, Numbers]:
        """Ends of the values that decode to the times from low to high.

        A format without days writes the first of a month or year for all its days.
        """
        if self._written_unit != "ns":
            unit = f"datetime64[{self._written_unit}]"
            ends = high.to_numpy(dtype="datetime64[ns]").astype(unit) + 1
            high = pd.Series(ends.astype("datetime64[ns]") - np.timedelta64(self._step, "ns"))
        lower, upper = super().edges(low, high)
        # No number lies beyond the column's limits, where only dates for never are.
        ahead = are_never(low) & ~self._are_limits(low, low)[0]
        behind = are_never(high) & ~self._are_limits(high, high)[1]
        return np.where(ahead, np.inf, lower), np.where(behind, -np.inf, upper)

    def codes_between(self, low: pd.Series[Any], high: pd.Series[Any]) -> Mask:
        """Returns the mask of the codes that are dates for never between these; see
        `RealCodec.codes_between`."""
        first, last = (self.positions(cells)[1][:, None] for cells in (low, high))
        found = super().codes_between(low, high)
        found[:, self.has_missing : self.n_codes - 1] = (first <= self.never) & (self.never <= last)
        return found

    def _are_limits(self, low: pd.Series[Any], high: pd.Series[Any]) -> tuple[Mask, Mask]:
        lowest, highest = self._limits
        return self._steps(low) <= lowest, self._steps(high) >= highest

    @cached_property
    def _written_unit(self) -> str:
        """What of a time the format writes: to the nanosecond, or the month or the year only."""
        date_format = (self.column.datetime_format or "%d").replace("%-", "%")
        if "%d" in date_format or is_time_of_day(date_format):
            return "ns"
        return "M" if any(token in date_format for token in ("%m", "%b", "%B")) else "Y"

    def _steps(self, present: pd.Series[Any]) -> Codes:
        return present.to_numpy(dtype="datetime64[ns]").astype(np.int64) // self._step

    @property
    def _unit(self) -> float:
        return self._step / DAY_NANOSECONDS

    @cached_property
    def _step(self) -> int:
        step = resolution(self.column.date_format, self.column.decimals)
        return int(step.astype("timedelta64[ns]").astype(np.int64))

    @property
    def _limit_distances(self) -> tuple[float, float]:
        low, high = (float(limit - int(self.offset)) for limit in self._limits)
        return low, high

    @cached_property
    def _limits(self) -> tuple[int, int]:
        low, high = self.column.minimum, self.column.maximum
        furthest = _WHOLE_LIMIT // self._step
        return (
            -furthest if low is None else self._steps_of(str(low)),
            furthest if high is None else self._steps_of(str(high)),
        )

    def _steps_of(self, text: str) -> int:
        times = read_dates(pa.array([text]), self.column.date_format)
        return int(self._steps(pd.Series(times))[0])


LINES: dict[ColumnKind, type[RealCodec]] = {
    ColumnKind.CONTINUOUS: ContinuousCodec,
    ColumnKind.INTEGER: IntegerCodec,
    ColumnKind.DATETIME: DatetimeCodec,
}
"""How the outcomes of each kind whose outcomes lie on a line become positions on it."""


def whole_within(distances: Numbers, offset: int, lowest: int, highest: int) -> Codes:
    """Returns the whole numbers nearest to offset + distances, within limits."""
    if max(abs(lowest - offset), abs(highest - offset)) < _WHOLE_LIMIT:
        near = np.clip(np.rint(distances), lowest - offset, highest - offset).astype(np.int64)
        return np.clip(near + offset, lowest, highest)
    near = np.clip(np.rint(distances + offset), -LARGEST_WHOLE, LARGEST_WHOLE).astype(np.int64)
    return np.clip(near, lowest, highest)


def _differences(numbers: Codes, offset: int) -> Numbers:
    """numbers - offset, exact up to 2⁵³."""
    rough = numbers.astype(np.float64) - offset
    exact = numbers - np.int64(offset)  # may wrap around where rough is large
    return np.where(np.abs(rough) < _WHOLE_LIMIT, exact, rough)
