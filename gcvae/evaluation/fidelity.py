"""Fidelity measures: compare columns, pairs of columns and rows of a synthetic and a real table.

Errors range from 0 (equal) to 1 (disjoint). Even a perfect model does not reach 0, because its rows
are a second sample of the same distribution.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from gcvae.arrays import Codes, Numbers
from gcvae.errors import TableError
from gcvae.evaluation.columns import (
    correlation,
    is_number,
    level_codes,
    measured_columns,
    numbers_of,
    quantile_edges,
    total_variation,
)
from gcvae.evaluation.features import fit_features
from gcvae.schema.columns import Column, TableSchema

N_BINS = 10
"""Number of bins for numbers, and of levels that are not merged, in two-way tables."""

_HUGE = 1e300


@dataclass(frozen=True)
class Errors:
    """Errors of columns by name, or of pairs of columns by both names."""

    each: Mapping[Any, float]

    @property
    def value(self) -> float:
        """Mean error; 0 if there is none."""
        return _mean(self.each.values())


@dataclass(frozen=True)
class TwoSampleAuc:
    """ROC AUC of a classifier that distinguishes synthetic from real rows.

    Attributes:
        value: Mean AUC over the cross-validation folds; 0.5 is chance.
        folds: AUC of each fold.
        n_rows: Number of rows of each table that were used.
    """

    value: float
    folds: tuple[float, ...]
    n_rows: int


def shape_error(real: pd.DataFrame, synthetic: pd.DataFrame, schema: TableSchema) -> Errors:
    """Returns the distance between a column's distribution in both tables, for each column.

        numbers and dates   sup_x |P(X ≤ x) − Q(X ≤ x)| (Kolmogorov-Smirnov); probabilities are
                            shares of all rows, so that different shares of missing cells count
        levels              ½ Σ_k |P(k) − Q(k)|, with missing as a level (total variation)

    P is the distribution in the real table, Q that in the synthetic table.

    Source: 1 − KSComplement and 1 − TVComplement of SDMetrics, which exclude missing cells.
    """
    errors = {}
    for column in measured_columns(schema):
        if is_number(column):
            cells = numbers_of(real, column), numbers_of(synthetic, column)
            errors[column.name] = _largest_gap(*cells)
        else:
            errors[column.name] = total_variation(*level_codes((real, synthetic), column))
    return Errors(errors)


def trend_error(real: pd.DataFrame, synthetic: pd.DataFrame, schema: TableSchema) -> Errors:
    """Returns the difference in dependence between both tables, for each pair of columns.

        two numbers   ½ |r_real − r_synthetic|, with Pearson's r over the rows where neither cell
                      is missing; r of a constant column is 0
        otherwise     ½ Σ |P(k, l) − Q(k, l)|, with the shares P (real) and Q (synthetic) of rows
                      with bin k of one and bin l of the other column; numbers are in 10 bins of
                      equal width, from the minimum to the maximum of each table

    A single extreme value changes the bins of its column, and so all errors of this column. The
    errors of `two_way_tv` hardly change, because its bins are quantiles.

    Source: 1 − CorrelationSimilarity and 1 − ContingencySimilarity, combined as the column pair
    trends of SDMetrics' quality report, without its association thresholds.
    """
    columns = measured_columns(schema)
    numbers = {
        c.name: (numbers_of(real, c), numbers_of(synthetic, c)) for c in columns if is_number(c)
    }
    codes = {
        c.name: tuple(map(_equal_width_codes, numbers[c.name]))
        if c.name in numbers
        else level_codes((real, synthetic), c)
        for c in columns
    }
    errors = {}
    for a, b in combinations([column.name for column in columns], 2):
        if a in numbers and b in numbers:
            in_real, in_synthetic = (
                correlation(x, y) for x, y in zip(numbers[a], numbers[b], strict=True)
            )
            errors[a, b] = abs(in_real - in_synthetic) / 2
        else:
            errors[a, b] = _joint_total_variation(codes[a], codes[b])
    return Errors(errors)


def two_way_tv(real: pd.DataFrame, synthetic: pd.DataFrame, schema: TableSchema) -> Errors:
    """Returns the total variation distance ½ Σ |P(k, l) − Q(k, l)| of each pair of columns.

    P(k, l) and Q(k, l) are the shares of real and of synthetic rows with bin k of one column and
    bin l of the other. Numbers are binned at the deciles of the real table; of levels, the 10 most
    frequent are kept and all others are merged; missing is a bin. Equal deciles are merged. Bins
    are closed above, (low, high], so that a frequent minimum has a bin of its own.
    """
    columns = measured_columns(schema)
    codes = {column.name: _binned(real, synthetic, column) for column in columns}
    return Errors(
        {(a, b): _joint_total_variation(codes[a], codes[b]) for a, b in combinations(codes, 2)}
    )


def classifier_two_sample_auc(
    real: pd.DataFrame,
    synthetic: pd.DataFrame,
    schema: TableSchema,
    *,
    n_folds: int = 5,
    n_repeats: int = 1,
    seed: int = 0,
) -> TwoSampleAuc:
    """Returns how well boosted trees distinguish synthetic from real rows (C2ST).

    The result is the cross-validated ROC AUC: 0.5 if they are indistinguishable, 1 if they are told
    apart without error. The trees are scikit-learn's histogram gradient boosting with default
    settings; folds are stratified, and missing cells stay missing. The longer table is subsampled
    to the length of the shorter one.

    Args:
        n_repeats: Number of cross-validations, averaged to reduce variance for small tables.

    Raises:
        TableError: A table has fewer rows than there are folds.

    Source: Lopez-Paz and Oquab, Revisiting Classifier Two-Sample Tests (2017), with AUC in place of
    accuracy.
    """
    rows = pd.concat(_subsampled((real, synthetic), n_folds, seed), ignore_index=True)
    features = fit_features(rows, measured_columns(schema))
    return _auc(features.matrix(rows), features.are_levels, n_folds, n_repeats, seed)


def _subsampled(
    tables: tuple[pd.DataFrame, pd.DataFrame], n_folds: int, seed: int
) -> list[pd.DataFrame]:
    n_rows = min(map(len, tables))
    if n_rows < n_folds:
        raise TableError(f"a table of {n_rows} rows cannot be cut into {n_folds} folds")
    random = np.random.default_rng(seed)
    return [table.iloc[random.permutation(len(table))[:n_rows]] for table in tables]


def _auc(
    x: Numbers, are_levels: list[bool], n_folds: int, n_repeats: int, seed: int
) -> TwoSampleAuc:
    """Returns the AUC of boosted trees that separate the real rows, the first half of `x`, from the
    synthetic rows, the second half. Shape: (2 n, columns)."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import RepeatedStratifiedKFold

    y = np.repeat([0, 1], len(x) // 2)
    folds = RepeatedStratifiedKFold(n_splits=n_folds, n_repeats=n_repeats, random_state=seed)
    areas = []
    for fit, judge in folds.split(x, y):
        trees = HistGradientBoostingClassifier(categorical_features=are_levels, random_state=seed)
        chances = trees.fit(x[fit], y[fit]).predict_proba(x[judge])[:, 1]
        areas.append(float(roc_auc_score(y[judge], chances)))
    return TwoSampleAuc(_mean(areas), tuple(areas), len(x) // 2)


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return float(np.mean(listed)) if listed else 0.0


def _largest_gap(real: Numbers, synthetic: Numbers) -> float:
    """Returns the Kolmogorov-Smirnov distance; NaN counts as larger than every number."""
    from scipy.stats import ks_2samp

    numbers = (np.where(np.isnan(x), np.inf, x) for x in (real, synthetic))
    return float(ks_2samp(*numbers, method="asymp").statistic)


def _equal_width_codes(numbers: Numbers) -> Codes:
    """Returns the bin of each number, from 1 to 10. Bins exclude their upper edge, so the maximum
    itself has the code 11. Missing numbers have 12. If all numbers are equal, their code is 6."""
    missing = np.isnan(numbers)
    present = numbers[~missing]
    largest = float(np.abs(present).max(initial=0.0))
    unit = largest if largest > _HUGE else 1.0  # the range must not overflow to infinity
    low, high = (present.min() / unit, present.max() / unit) if len(present) else (0.0, 0.0)
    if low == high:
        codes = np.full(len(numbers), (N_BINS + 2) // 2)
    else:
        codes = np.digitize(numbers / unit, np.linspace(low, high, N_BINS + 1))
    return np.where(missing, N_BINS + 2, codes).astype(np.int64)


def _binned(real: pd.DataFrame, synthetic: pd.DataFrame, column: Column) -> tuple[Codes, ...]:
    """Returns the bin of each cell in (real, synthetic) for `two_way_tv`; 0 is missing."""
    if is_number(column):
        numbers = numbers_of(real, column), numbers_of(synthetic, column)
        edges = quantile_edges(numbers[0], N_BINS)
        return tuple(np.where(np.isnan(x), 0, 1 + np.searchsorted(edges, x)) for x in numbers)
    codes = level_codes((real, synthetic), column)
    counts = np.bincount(codes[0], minlength=1 + max(int(x.max(initial=0)) for x in codes))
    by_frequency = np.argsort(-counts[1:], kind="stable")
    rank = np.argsort(by_frequency) + 1
    bins = np.append(0, np.minimum(rank, N_BINS + 1))
    return tuple(bins[x] for x in codes)


def _joint_total_variation(a: tuple[Codes, ...], b: tuple[Codes, ...]) -> float:
    """Returns the total variation distance between real and synthetic pairs of codes of two
    columns. `a` and `b` are the (real, synthetic) codes of one column each."""
    width = 1 + max(int(codes.max(initial=0)) for codes in b)
    real, synthetic = (x * width + y for x, y in zip(a, b, strict=True))
    return total_variation(real, synthetic)
