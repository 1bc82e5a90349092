"""Derived features that reveal implausible rows: remainders, residuals, calendars, level pairs.

All fits use the training table only, so that held-out real rows and synthetic rows are treated
alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    level_codes,
    measured_columns,
    numbers_of,
)
from gcvae.evaluation.features import Features, fit_features
from gcvae.schema.columns import TableSchema

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
    """Least-squares fit y ≈ intercept + Σ_t slope_t x_t of columns x_t, the terms.

    Residuals are rounded to multiples of `unit`, to hide floating-point errors.
    """

    terms: tuple[str, ...]
    intercept: float
    slopes: Numbers
    unit: float

    def remainder(self, y: Numbers, numbers: Mapping[str, Numbers]) -> Numbers:
        """Returns the residuals of y; NaN where y or a term (of `numbers`, by name) is missing."""
        fit = np.full(len(y), self.intercept)
        for name, slope in zip(self.terms, self.slopes, strict=True):
            fit += slope * numbers[name]
        remainder: Numbers = np.rint((y - fit) / self.unit) * self.unit
        return remainder


@dataclass(frozen=True)
class FineFeatures:
    """Encoder of rows as a matrix of their columns and of features derived from them.

    Attributes:
        plain: Encoder of the columns without derived features.
        train: Training rows.
        decimals: Number of decimals of each number column that is not a date.
        fits: Linear fit of each number column that is not a date.
        date_pairs: Pairs of date columns whose difference is a feature.
        year_pairs: Pairs of a date column and a number column, for the feature year − number.
        level_pairs: Pairs of level columns, for the feature whether another training row has the
            same pair of levels.
    """

    plain: Features
    train: pd.DataFrame
    schema: TableSchema
    decimals: Mapping[str, int]
    fits: Mapping[str, LinearFit]
    date_pairs: tuple[tuple[str, str], ...]
    year_pairs: tuple[tuple[str, str], ...]
    level_pairs: tuple[tuple[str, str], ...]

    def matrix(self, frame: pd.DataFrame, *, are_training_rows: bool) -> npt.NDArray[np.float64]:
        """Returns the encoded columns followed by the derived features; NaN is missing.

        Shape: (n, F) for n rows and F features.

        Args:
            are_training_rows: Whether these are the training rows. Then the row itself does not
                count as an occurrence of its pair of levels.
        """
        derived = self._derived(frame, own=int(are_training_rows))
        return np.column_stack([self.plain.matrix(frame), *derived])

    def _derived(self, frame: pd.DataFrame, own: int) -> Iterator[Numbers]:
        """Yields the derived features; a pair of levels must be in over `own` training rows."""
        numbers = _numbers(frame, self.schema)
        for name, d in self.decimals.items():  # with units of 1, and of the last decimal
            for unit in (1.0, 10.0**-d) if d > 0 else (1.0,):
                yield from (_remainder(numbers[name], m * unit, d) for m in MODULI)
        for name, fit in self.fits.items():
            remainder = fit.remainder(numbers[name], numbers)
            yield from (remainder, np.abs(remainder))
        for name in _dates(self.schema):
            dates = frame[name].dt
            for part in (dates.weekday, dates.day, dates.hour, dates.minute, dates.second):
                yield _floats(part)
        for a, b in self.date_pairs:
            yield numbers[a] - numbers[b]
        for date, number in self.year_pairs:
            yield _floats(frame[date].dt.year) - numbers[number]
        names = {name for pair in self.level_pairs for name in pair}
        codes = {name: level_codes((self.train, frame), self.schema[name]) for name in names}
        for a, b in self.level_pairs:
            width = 1 + max(int(x.max(initial=0)) for x in codes[b])
            known, pairs = (x * width + y for x, y in zip(codes[a], codes[b], strict=True))
            found, counts = np.unique(known, return_counts=True)
            yield np.isin(pairs, found[counts > own]).astype(np.float64)


def fit_fine_features(train: pd.DataFrame, schema: TableSchema) -> FineFeatures:
    """Returns the encoder of columns and derived features, fitted to a training table."""
    numbers, dates = _numbers(train, schema), _dates(schema)
    of_numbers = [name for name in numbers if name not in dates]
    years = {name: _floats(train[name].dt.year) for name in dates}
    levels = {
        column.name: level_codes((train,), column)[0]
        for column in measured_columns(schema)
        if not column.kind.is_real
    }
    return FineFeatures(
        plain=fit_features(train, measured_columns(schema)),
        train=train,
        schema=schema,
        decimals={name: _decimals(numbers[name]) for name in of_numbers},
        fits={name: _linear_fit(name, numbers) for name in of_numbers},
        date_pairs=_strongest(
            {(a, b): abs(correlation(numbers[a], numbers[b])) for a, b in combinations(dates, 2)}
        ),
        year_pairs=_strongest(
            {(a, b): abs(correlation(years[a], numbers[b])) for a in dates for b in of_numbers}
        ),
        level_pairs=_strongest(
            {(a, b): _mutual_information(levels[a], levels[b]) for a, b in combinations(levels, 2)}
        ),
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


def _decimals(x: Numbers) -> int:
    """Returns with how many decimals 90 % of the numbers can be written, at most 12."""
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
    """Fits the first column of `cells` to all others, the terms, after standardising them."""
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


def _mutual_information(a: Codes, b: Codes) -> float:
    """Returns the mutual information in nats, with the Miller-Madow bias correction."""
    n, width = len(a), int(b.max(initial=0)) + 1
    entropies, sizes = [], []
    for codes in (a, b, a * width + b):
        counts = np.unique(codes, return_counts=True)[1]
        shares = counts / max(n, 1)
        entropies.append(-float(shares @ np.log(shares)))
        sizes.append(len(counts))
    chance = (sizes[2] - sizes[0] - sizes[1] + 1) / (2 * max(n, 1))
    return entropies[0] + entropies[1] - entropies[2] - chance
