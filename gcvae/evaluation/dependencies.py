"""Finds the strongest dependencies of a table and measures how much of them synthetic rows keep.

A dependency is the mutual information of binned columns in nats, minus its expected value E for
independent columns:

    Σ p(x, y) log (p(x, y) / (p(x) p(y))) − E

Dates are also binned by weekday and hour, so that weekly and daily patterns count.

Source: Vinh, Epps and Bailey (2010) for E.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from gcvae.arrays import Codes
from gcvae.evaluation.columns import (
    is_number,
    level_codes,
    measured_columns,
    numbers_of,
    quantile_edges,
)
from gcvae.schema.columns import Column, TableSchema

_N_BINS = 5
_N_LEVELS = 8
_MOST_FEATURES = 60
_N_PAIRS = 10
_N_SECONDS = 8
"""Number of columns tried as the second of two predictors."""
_LEAST_NATS = 0.05
_ERRORS = 3.0
_HOURS_PER_BIN = 3


@dataclass(frozen=True)
class Dependency:
    """Strength of one dependency between columns, in real and in synthetic rows.

    Attributes:
        columns: Names of two columns, or of a column followed by its two best predictors.
        real: Mutual information in the real rows, minus its expected value for independent
            columns, in nats.
        drawn: The same of the synthetic rows.
        error: Three standard errors of `drawn - real`, in nats.
    """

    columns: tuple[str, ...]
    real: float
    drawn: float
    error: float

    @property
    def kept(self) -> float:
        """Ratio of the mutual information in synthetic rows to that in real rows."""
        return self.drawn / self.real

    @property
    def most_kept(self) -> float:
        """Upper limit of `kept`, which allows for sampling error: (drawn + error) / real."""
        return (self.drawn + self.error) / self.real

    def to_json(self) -> dict[str, Any]:
        """Returns the dependency as a JSON object, a row of a table in the report."""
        figures = {"real": self.real, "drawn": self.drawn, "error": self.error}
        return {"columns": list(self.columns), **{k: round(v, 4) for k, v in figures.items()}}


class _Feature(NamedTuple):
    """Bins of the cells of a column, or of the hours or weekdays of a date column.

    Attributes:
        name: Name of the feature.
        column: Name of the column.
        real, drawn: Bin of each cell in the real and in the synthetic rows. Shape: (n,), (m,).
    """

    name: str
    column: str
    real: Codes
    drawn: Codes


def strongest_dependencies(
    real: pd.DataFrame, drawn: pd.DataFrame, schema: TableSchema
) -> list[Dependency]:
    """Returns the ten strongest pairs of columns, then each column with its two best predictors.

    Both groups are sorted by mutual information, the strongest first. A dependency is left out if
    it has at most 0.05 nats, or at most twice its sampling error (`error`): synthetic rows could
    then lose half of it undetected. At most 60 features are examined: columns, and the hours and
    weekdays of dates.

    Args:
        real: Real rows, with cells of their columns' dtypes.
        drawn: Synthetic rows, as many as real ones.
    """
    features = [f for column in measured_columns(schema) for f in _features(real, drawn, column)]
    features = features[:_MOST_FEATURES]
    strengths = {
        (a, b): _information(x.real, y.real)[0]
        for (a, x), (b, y) in combinations(enumerate(features), 2)
        if x.column != y.column
    }
    chosen = sorted(strengths, key=lambda pair: -strengths[pair])[:_N_PAIRS]
    pairs = [_dependency(features[a], features[b]) for a, b in chosen]
    of_two = []
    for at, feature in enumerate(features):
        found = {sum(pair) - at: nats for pair, nats in strengths.items() if at in pair}
        first, *seconds = sorted(found, key=lambda other: -found[other])[: _N_SECONDS + 1] or [at]
        tried = [_dependency(feature, features[first], features[other]) for other in seconds]
        of_two += [max(tried, key=lambda dependency: dependency.real)] if tried else []
    of_two.sort(key=lambda dependency: -dependency.real)
    return [each for each in (*pairs, *of_two) if each.real > max(_LEAST_NATS, 2 * each.error)]


def least_visible(n_rows: int) -> float:
    """Returns the smallest mutual information of two columns that `n_rows` rows show, in nats."""
    return 2 * _ERRORS * math.sqrt(2 * 2 * (_N_BINS - 1) ** 2) / (2 * max(n_rows, 1))


def _features(real: pd.DataFrame, drawn: pd.DataFrame, column: Column) -> Iterator[_Feature]:
    name, tables = column.name, (real, drawn)
    if not is_number(column):
        codes = level_codes(tables, column)
        frequent = np.argsort(-np.bincount(codes[0]), kind="stable")[:_N_LEVELS]
        coarse = (np.where(np.isin(x, frequent), x, -1) for x in codes)
        yield _Feature(name, name, *coarse)
        return
    numbers = [numbers_of(table, column) for table in tables]
    edges = quantile_edges(numbers[0], _N_BINS)
    if not len(edges):
        return
    yield _Feature(name, name, *(np.searchsorted(edges, x) for x in numbers))
    if not column.has_times:
        return
    for what, length, per_bin in (("hour", 1.0, 24 / _HOURS_PER_BIN), ("weekday", 7.0, 1.0)):
        bins = [np.floor((x % length) * per_bin + 1e-6) for x in numbers]
        if len(np.unique(bins[0][~np.isnan(bins[0])])) > 1:
            whole = [np.where(np.isnan(x), -1, np.nan_to_num(x)).astype(np.int64) for x in bins]
            yield _Feature(f"{name} ({what})", name, *whole)


def _dependency(target: _Feature, *others: _Feature) -> Dependency:
    columns = tuple(feature.name for feature in (target, *others))
    real, real_variance = _information(target.real, _joint([f.real for f in others]))
    drawn, variance = _information(target.drawn, _joint([f.drawn for f in others]))
    return Dependency(columns, real, drawn, _ERRORS * math.sqrt(real_variance + variance))


def _joint(codes: list[Codes]) -> Codes:
    """Returns an integer code for each row's combination of codes. Shape: (n,) each -> (n,)."""
    return np.unique(np.stack(codes), axis=1, return_inverse=True)[1].ravel()


def _information(x: Codes, y: Codes) -> tuple[float, float]:
    """Returns (corrected mutual information in nats, variance of its estimate) of two columns.

    The variance of the mean of log (p(x, y) / (p(x) p(y))) over the rows is near 0 for nearly
    independent columns. The variance of the estimate for independent columns is therefore added.
    """
    from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information

    n, counts = len(x), contingency_matrix(x, y)
    expected = counts.sum(1, keepdims=True) * counts.sum(0, keepdims=True) / n
    occurs = counts > 0
    shares, ratios = counts[occurs] / n, np.log(counts[occurs] / expected[occurs])
    mean = float(shares @ ratios)
    df = max((counts.shape[0] - 1) * (counts.shape[1] - 1), 1)
    variance = (float(shares @ ratios**2) - mean**2) / n + 2 * df / (2 * n) ** 2
    return mean - float(expected_mutual_information(counts, n)), max(variance, 0.0)
