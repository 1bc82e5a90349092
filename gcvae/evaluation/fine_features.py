"""Derived features that reveal implausible rows: remainders, residuals, calendars, level pairs.

All fits use the training table only, so that held-out real rows and synthetic rows are treated
alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.arrays import Codes, Numbers
from gcvae.evaluation.columns import (
    correlation,
    is_number,
    measured_columns,
    numbers_of,
)
from gcvae.evaluation.features import Features, fit_features
from gcvae.schema.columns import Column, TableSchema

MODULI = (1, 5, 10, 100)
"""Divisors for remainders, in the number's unit and in units of the column's last decimal."""
MOST_PAIRS = 200
"""Maximum number of column pairs of each kind; those with the strongest dependence are used."""
MOST_TERMS = 50
"""Maximum number of terms of a linear fit; those with the strongest correlation are used."""

_MOST_DECIMALS = 12
_ON_GRID_SHARE = 0.9
_ROWS_PER_TERM = 5
_FEWEST_ROWS = 20


@dataclass(frozen=True)
class LinearFit:
    """Least-squares fit y ≈ intercept + Σ_t slope_t x_t, computed on the training rows.

    Attributes:
        terms: Names of the columns x_t.
        intercept: Intercept, in the unit of y.
        slopes: Slope of each term. Shape: (T,) for T terms.
        unit: Residuals are rounded to multiples of this number, to hide floating-point errors.
    """

    terms: tuple[str, ...]
    intercept: float
    slopes: Numbers
    unit: float

    def remainder(self, y: Numbers, numbers: Mapping[str, Numbers]) -> Numbers:
        """Returns the residuals of y; NaN where y or a term is missing.

        Args:
            y: Values of the fitted column. Shape: (n,).
            numbers: Values of the other columns, by name. Shape: (n,) each.
        """
        fit = np.full(len(y), self.intercept)
        for name, slope in zip(self.terms, self.slopes, strict=True):
            fit += slope * numbers[name]
        remainder: Numbers = np.rint((y - fit) / self.unit) * self.unit
        return remainder


@dataclass(frozen=True)
class KnownPairs:
    """Counts of training rows for each pair of levels of two columns.

    Attributes:
        levels: Integer code of each level, for each of the two columns; missing is a level (None).
        counts: Number of training rows by `a * len(levels[1]) + b` for the codes a and b of a pair.
    """

    levels: tuple[Mapping[Any, int], Mapping[Any, int]]
    counts: Mapping[int, int]

    def in_other_rows(self, a: pd.Series[Any], b: pd.Series[Any], *, own: int) -> Numbers:
        """Returns 1 for each row whose pair of levels occurs in other training rows, else 0.

        Args:
            a: Cells of the first column. Shape: (n,).
            b: Cells of the second column. Shape: (n,).
            own: How often each row itself is among the training rows: 1 or 0.
        """
        pairs = self._keys(_codes(a, self.levels[0]), _codes(b, self.levels[1]))
        distinct, places = np.unique(pairs, return_inverse=True)
        known = [self.counts.get(int(pair), 0) > own for pair in distinct]
        return np.array(known, dtype=np.float64)[places]

    def _keys(self, a: Codes, b: Codes) -> Codes:
        return np.where((a < 0) | (b < 0), -1, a * len(self.levels[1]) + b)


@dataclass(frozen=True)
class FineFeatures:
    """Encoder of rows as a matrix of their columns and of features derived from them.

    Attributes:
        plain: Encoder of the columns without derived features.
        schema: Schema of the table.
        decimals: Number of decimals of each number column that is not a date.
        fits: Linear fit of each number column that is not a date.
        date_pairs: Pairs of date columns whose difference is a feature.
        year_pairs: Pairs of a date column and a number column, for the feature year − number.
        level_pairs: Counts of pairs of levels in the training rows, by pair of level columns.
    """

    plain: Features
    schema: TableSchema
    decimals: Mapping[str, int]
    fits: Mapping[str, LinearFit]
    date_pairs: tuple[tuple[str, str], ...]
    year_pairs: tuple[tuple[str, str], ...]
    level_pairs: Mapping[tuple[str, str], KnownPairs]

    def matrix(self, frame: pd.DataFrame, *, are_training_rows: bool) -> npt.NDArray[np.float64]:
        """Returns the encoded columns followed by the derived features; NaN is missing.

        Shape: (n, F) for n rows and F features.

        Args:
            frame: Rows with the columns of the schema.
            are_training_rows: Whether these are the training rows. Then the row itself does not
                count as an occurrence of its pair of levels.
        """
        numbers = _numbers(frame, self.schema)
        derived = [
            *self._remainders(numbers),
            *self._linear_remainders(numbers),
            *self._calendars(frame, numbers),
            *self._pairs(frame, own=int(are_training_rows)),
        ]
        return np.column_stack([self.plain.matrix(frame), *derived])

    def _remainders(self, numbers: Mapping[str, Numbers]) -> Iterable[Numbers]:
        """Yields x mod m and x mod (m 10^-d) for each number column with d decimals and each
        modulus m."""
        for name, d in self.decimals.items():
            yield from (_remainder(numbers[name], m, d) for m in MODULI)
            if d > 0:
                yield from (_remainder(numbers[name], m * 10.0**-d, d) for m in MODULI)

    def _linear_remainders(self, numbers: Mapping[str, Numbers]) -> Iterable[Numbers]:
        for name, fit in self.fits.items():
            remainder = fit.remainder(numbers[name], numbers)
            yield remainder
            yield np.abs(remainder)

    def _calendars(self, frame: pd.DataFrame, numbers: Mapping[str, Numbers]) -> Iterable[Numbers]:
        """Yields the calendar parts of dates, the differences of dates, and year minus number."""
        for name in _dates(self.schema):
            dates = frame[name].dt
            for part in (dates.weekday, dates.day, dates.hour, dates.minute, dates.second):
                yield _floats(part)
        for a, b in self.date_pairs:
            yield numbers[a] - numbers[b]
        for date, number in self.year_pairs:
            yield _floats(frame[date].dt.year) - numbers[number]

    def _pairs(self, frame: pd.DataFrame, *, own: int) -> Iterable[Numbers]:
        for (a, b), known in self.level_pairs.items():
            yield known.in_other_rows(frame[a], frame[b], own=own)


def fit_fine_features(train: pd.DataFrame, schema: TableSchema) -> FineFeatures:
    """Returns the encoder of columns and derived features, fitted to a training table."""
    numbers = _numbers(train, schema)
    dates = _dates(schema)
    of_numbers = [name for name in numbers if name not in dates]
    years = {name: _floats(train[name].dt.year) for name in dates}
    return FineFeatures(
        plain=fit_features(train, measured_columns(schema)),
        schema=schema,
        decimals={name: _decimals(numbers[name]) for name in of_numbers},
        fits={name: _linear_fit(name, numbers) for name in of_numbers},
        date_pairs=_strongest(
            {(a, b): abs(correlation(numbers[a], numbers[b])) for a, b in combinations(dates, 2)}
        ),
        year_pairs=_strongest(
            {(a, b): abs(correlation(years[a], numbers[b])) for a in dates for b in of_numbers}
        ),
        level_pairs=_level_pairs(train, schema),
    )


def _numbers(frame: pd.DataFrame, schema: TableSchema) -> dict[str, Numbers]:
    columns = [column for column in measured_columns(schema) if is_number(column)]
    return {column.name: numbers_of(frame, column) for column in columns}


def _dates(schema: TableSchema) -> list[str]:
    return [c.name for c in measured_columns(schema) if c.has_times]


def _floats(series: pd.Series[Any]) -> Numbers:
    return series.to_numpy(dtype=np.float64, na_value=np.nan)


def _strongest(strengths: Mapping[tuple[str, str], float]) -> tuple[tuple[str, str], ...]:
    """Returns the pairs with the strongest dependence, in their original order."""
    kept = set(sorted(strengths, key=lambda pair: -strengths[pair])[:MOST_PAIRS])
    return tuple(pair for pair in strengths if pair in kept)


# Remainders


def _decimals(x: Numbers) -> int:
    """Returns the smallest number of decimals with which 90 % of the numbers can be written, at
    most 12."""
    x = x[np.isfinite(x)]
    for d in range(_MOST_DECIMALS):
        scaled = x * 10.0**d
        off = np.abs(scaled - np.rint(scaled))
        if np.sum(off <= 1e-9 * np.maximum(1.0, np.abs(scaled))) >= _ON_GRID_SHARE * len(x):
            return d
    return _MOST_DECIMALS


def _remainder(x: Numbers, modulus: float, decimals: int) -> Numbers:
    """Returns x mod modulus, rounded to two decimals more than those of the column."""
    grid = 10.0 ** (decimals + 2)
    units = np.rint(x * grid)
    with np.errstate(invalid="ignore"):
        return np.mod(units, np.rint(modulus * grid)) / grid


# Residuals


def _linear_fit(name: str, numbers: Mapping[str, Numbers]) -> LinearFit:
    """Fits a number column to the other number columns, on the rows without missing cells.

    While these rows are too few, the term with the most missing cells is dropped.
    """
    y = numbers[name]
    strengths = {other: abs(correlation(y, x)) for other, x in numbers.items() if other != name}
    terms = sorted(strengths, key=lambda other: -strengths[other])[:MOST_TERMS]
    terms = [term for term in numbers if term in terms]
    while True:
        cells = np.column_stack([y, *(numbers[term] for term in terms)])
        whole = np.isfinite(cells).all(axis=1)
        if not terms or whole.sum() >= _FEWEST_ROWS + _ROWS_PER_TERM * len(terms):
            break
        terms.remove(max(terms, key=lambda term: int(np.isnan(numbers[term]).sum())))
    return _least_squares(cells[whole], tuple(terms))


def _least_squares(cells: Numbers, terms: tuple[str, ...]) -> LinearFit:
    """Fits the first column of `cells` to all others, after standardising them.

    Shape of cells: (n, 1 + T) for n rows and T terms.
    """
    if not len(cells):
        return LinearFit((), 0.0, np.zeros(0), 1.0)
    means, deviations = cells.mean(axis=0), cells.std(axis=0)
    deviations = np.where(deviations > 0, deviations, 1.0)
    standard = (cells - means) / deviations
    # terms may be collinear: lstsq returns the solution of least norm
    found = np.linalg.lstsq(standard[:, 1:], standard[:, 0], rcond=1e-9)[0]
    slopes = found * deviations[0] / deviations[1:]
    intercept = float(means[0] - slopes @ means[1:])
    return LinearFit(terms, intercept, slopes, float(1e-8 * deviations[0]))


# Pairs of levels


def _level_pairs(train: pd.DataFrame, schema: TableSchema) -> dict[tuple[str, str], KnownPairs]:
    names = [column.name for column in measured_columns(schema) if _has_levels(column)]
    levels = {name: _levels(train[name]) for name in names}
    codes = {name: _codes(train[name], levels[name]) for name in names}
    information = {
        (a, b): _mutual_information(codes[a], codes[b]) for a, b in combinations(names, 2)
    }
    pairs = {}
    for a, b in _strongest(information):
        keys, counts = np.unique(codes[a] * len(levels[b]) + codes[b], return_counts=True)
        known = dict(zip(keys.tolist(), counts.tolist(), strict=True))
        pairs[a, b] = KnownPairs((levels[a], levels[b]), known)
    return pairs


def _has_levels(column: Column) -> bool:
    return not column.kind.is_real


def _levels(series: pd.Series[Any]) -> dict[Any, int]:
    """Returns the integer code of each level, counted from 1; None, for missing, has code 0."""
    found = series.dropna().astype(object).unique()
    return {None: 0} | {level: code for code, level in enumerate(found, start=1)}


def _codes(series: pd.Series[Any], levels: Mapping[Any, int]) -> Codes:
    """Returns the code of each cell; −1 for levels not in the training rows. Shape: (n,)."""
    places, found = pd.factorize(series.astype(object))
    return np.array([*(levels.get(level, -1) for level in found), levels[None]])[places]


def _mutual_information(a: Codes, b: Codes) -> float:
    """Returns the mutual information of two columns' codes in nats, with the Miller-Madow bias
    correction. Shape: (n,) for a and for b."""
    n, width = len(a), int(b.max(initial=0)) + 1
    entropies, sizes = [], []
    for codes in (a, b, a * width + b):
        counts = np.unique(codes, return_counts=True)[1]
        shares = counts / max(n, 1)
        entropies.append(-float(shares @ np.log(shares)))
        sizes.append(len(counts))
    chance = (sizes[2] - sizes[0] - sizes[1] + 1) / (2 * max(n, 1))
    return entropies[0] + entropies[1] - entropies[2] - chance
