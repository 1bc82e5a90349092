"""Measures of the benchmark beside those of `gcvae.evaluation`: floors, utility, DCR and copies."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.errors import TableError
from gcvae.evaluation.columns import (
    is_number,
    level_codes,
    measured_columns,
    numbers_of,
    row_keys,
    with_outcome,
)
from gcvae.evaluation.features import Features, fit_features
from gcvae.evaluation.fidelity import Errors
from gcvae.evaluation.report.utility import mean_area
from gcvae.schema.columns import Column, TableSchema

Measure = Callable[[pd.DataFrame, pd.DataFrame, TableSchema], Errors]
Rows = tuple[npt.NDArray[Any], ...]
"""Columns of encoded rows. Shape: (n,) each."""
_CHUNK_CELLS = 4_000_000
"""Maximum number of distances in memory."""


@dataclass(frozen=True)
class Floor:
    """Error that a perfect model would have, estimated from bootstrap samples.

    Attributes:
        value: Mean error.
        standard_deviation: Standard deviation of the error of one sample.
        n_bootstraps: Number of bootstrap samples.
    """

    value: float
    standard_deviation: float
    n_bootstraps: int


@dataclass(frozen=True)
class Utility:
    """Scores of boosted trees that predict a column, tested on unseen real rows.

    Attributes:
        value: Score of trees that were trained on the synthetic table.
        real: Score of trees that were trained on the real table, for comparison.
        measure: Name of the score: `auc` (two classes), `macro-auc` (several classes, the mean of
            one-against-rest AUCs) or `r2` (numbers).
    """

    value: float
    real: float
    measure: str


@dataclass(frozen=True)
class DcrShare:
    """Share of synthetic rows whose closest real row is a training row (DCR share).

    Attributes:
        value: The share; ties count half. About 0.5 if the model has not memorised training rows.
        standard_error: Standard error of the share, over the synthetic rows.
        n_rows: Number of synthetic rows.
    """

    value: float
    standard_error: float
    n_rows: int


def floor(
    train: pd.DataFrame,
    schema: TableSchema,
    measure: Measure,
    *,
    n_bootstraps: int = 20,
    seed: int = 0,
) -> Floor:
    """Estimates the error that rows from the true distribution would have, as many as in the table.

    The estimate is √2 times the mean error of bootstrap samples against the table: a bootstrap
    sample differs from the table by one sampling error, rows from the true distribution by two. For
    `trend_error` on a table with outliers the estimate is too low, because most bootstrap samples
    contain the outliers that determine the bins.

    Args:
        train: The real table.
        measure: `shape_error`, `trend_error` or `two_way_tv`.
        n_bootstraps: Number of bootstrap samples.
    """
    random = np.random.default_rng(seed)
    errors = [
        measure(train, train.iloc[random.integers(0, len(train), len(train))], schema).value
        for _ in range(n_bootstraps)
    ]
    scaled = np.sqrt(2.0) * np.array(errors)
    return Floor(float(scaled.mean()), float(scaled.std()), n_bootstraps)


def utility(
    train: pd.DataFrame,
    synthetic: pd.DataFrame,
    test: pd.DataFrame,
    schema: TableSchema,
    target: str,
    *,
    seed: int = 0,
) -> Utility:
    """Returns how well trees predict a column of real rows after training on synthetic rows.

    The trees are scikit-learn's histogram gradient boosting with default settings; they predict the
    target from all other measured columns. Missing cells stay missing, and rows with a missing
    target are left out.

    Args:
        train: The real rows that the model was trained on.
        test: Real rows that were not used in training.
        target: Name of the column to predict.

    Raises:
        UnknownColumnError: The schema does not contain the target.
        TableError: The test rows contain only one class of the target.

    Source: Esteban, Hyland and Rätsch, Real-valued medical time series generation with recurrent
    conditional GANs (2017): TSTR and TRTR.
    """
    column = schema[target]
    others = tuple(c for c in measured_columns(schema) if c.name != target)
    features = fit_features(train, others)
    test = with_outcome(test, target)
    judge = _of_number if is_number(column) else _of_classes
    value, real = (
        judge(with_outcome(table, target), test, features, column, seed)
        for table in (synthetic, train)
    )
    if is_number(column):
        return Utility(value, real, "r2")
    return Utility(value, real, "auc" if test[target].nunique() == 2 else "macro-auc")


def dcr_share(
    seen: pd.DataFrame,
    unseen: pd.DataFrame,
    synthetic: pd.DataFrame,
    schema: TableSchema,
    *,
    n_rows: int = 5_000,
    seed: int = 0,
) -> DcrShare:
    """Returns the share of synthetic rows that are closer to a training row than to an unseen row.

    The distance of two rows is a sum over columns: |x − y| / range for numbers, 0 or 1 for equal or
    different levels, and 1 if only one of the two cells is missing. The larger of the two real
    tables is subsampled to the size of the smaller one.

    Args:
        seen: Real rows that the model was trained on.
        unseen: Real rows of the same source that were not used in training.
        n_rows: Maximum number of synthetic rows to examine.

    Source: the DCR share of Zhang et al., TabSyn (2024); distances as in DCROverfittingProtection
    of SDMetrics.
    """
    random = np.random.default_rng(seed)
    n_real = min(len(seen), len(unseen))
    halves = [half.iloc[random.permutation(len(half))[:n_real]] for half in (seen, unseen)]
    looked_at = synthetic.iloc[random.permutation(len(synthetic))[:n_rows]]
    *real, drawn = _encoded_rows((*halves, looked_at), schema)
    to_seen, to_unseen = (_to_closest(drawn, half) for half in real)
    counts = np.where(to_seen == to_unseen, 0.5, to_seen < to_unseen)
    standard_error = float(counts.std()) / math.sqrt(len(counts))
    return DcrShare(float(counts.mean()), standard_error, len(counts))


def exact_copies(
    seen: pd.DataFrame, unseen: pd.DataFrame, synthetic: pd.DataFrame, schema: TableSchema
) -> tuple[float, float]:
    """Returns the shares of synthetic rows, and of unseen real rows, that equal a training row in
    every measured column.

    The tables may have different numbers of rows, because the expected shares do not depend on
    them.
    """
    known, held_out, made = row_keys((seen, unseen, synthetic), schema)
    return float(np.isin(made, known).mean()), float(np.isin(held_out, known).mean())


def _of_number(
    table: pd.DataFrame, test: pd.DataFrame, features: Features, column: Column, seed: int
) -> float:
    from sklearn.ensemble import HistGradientBoostingRegressor

    trees = HistGradientBoostingRegressor(
        categorical_features=features.are_levels, random_state=seed
    )
    x, x_test = features.matrix(table), features.matrix(test)
    trees.fit(x, numbers_of(table, column))
    return float(trees.score(x_test, numbers_of(test, column)))


def _of_classes(
    table: pd.DataFrame, test: pd.DataFrame, features: Features, column: Column, seed: int
) -> float:
    from sklearn.ensemble import HistGradientBoostingClassifier

    labels, truth = (part[column.name].astype(object).to_numpy() for part in (table, test))
    classes = list(pd.unique(truth))
    if len(classes) < 2:
        raise TableError(f"the test rows have one class of {column.name!r} only")
    trees = HistGradientBoostingClassifier(
        categorical_features=features.are_levels,
        random_state=seed,
        # The held-out rows of early stopping are drawn by class: each class must have two rows.
        early_stopping="auto" if pd.Series(labels).value_counts().min() > 1 else False,
    )
    x, x_test = features.matrix(table), features.matrix(test)
    return mean_area(trees, x, labels, x_test, truth, classes)


def _encoded_rows(tables: tuple[pd.DataFrame, ...], schema: TableSchema) -> list[Rows]:
    """Returns the cells of each table, column by column: numbers, then codes of levels.

    Numbers are divided by their range in all tables but the last.
    """
    numbers, codes = [], []
    for column in measured_columns(schema):
        if not is_number(column):
            codes.append(level_codes(tables, column))
            continue
        cells = [numbers_of(table, column) for table in tables]
        real = np.concatenate(cells[:-1])
        real = real[~np.isnan(real)]
        width = float(np.ptp(real)) if len(real) else 0.0
        scaled = (x / (width if width > 0 else 1.0) for x in cells)
        numbers.append(tuple(x.astype(np.float32) for x in scaled))
    return list(zip(*numbers, *codes, strict=True))


def _to_closest(rows: Rows, real: Rows) -> npt.NDArray[np.float32]:
    """Returns the distance between each row and its nearest real row. Shape: (n,)."""
    n_at_once = max(1, _CHUNK_CELLS // len(real[0]))
    starts = range(0, len(rows[0]), n_at_once)
    parts = (tuple(x[i : i + n_at_once] for x in rows) for i in starts)
    return np.concatenate([_distances(part, real).min(axis=1) for part in parts])


def _distances(rows: Rows, real: Rows) -> npt.NDArray[np.float32]:
    """Returns the distance between each of n rows and each of m real rows. Shape: (n, m)."""
    total = np.zeros((len(rows[0]), len(real[0])), dtype=np.float32)
    for x, y in zip(rows, real, strict=True):
        if x.dtype.kind == "i":
            total += x[:, None] != y[None, :]
            continue
        gap = np.abs(x[:, None] - y[None, :])
        if np.isnan(x).any() or np.isnan(y).any():
            one_missing = np.isnan(x)[:, None] != np.isnan(y)[None, :]
            gap = np.where(np.isnan(gap), one_missing, gap)
        total += gap
    return total
