"""What a synthetic table is good for: models trained on it, judged on real rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.errors import TableError
from gcvae.evaluation.columns import is_number, measured_columns, numbers_of
from gcvae.evaluation.features import Features, fit_features
from gcvae.schema.columns import Column, TableSchema


@dataclass(frozen=True)
class Utility:
    """How well boosted trees predict a column of real rows they have not seen.

    Attributes:
        value: Trained on the synthetic table.
        real: Trained on the real training table: what `value` is to come near to.
        measure: `auc` (two classes), `macro-auc` (more: one against the rest, averaged over the
            classes) or `r2` (numbers).
    """

    value: float
    real: float
    measure: str


def utility(
    train: pd.DataFrame,
    synthetic: pd.DataFrame,
    test: pd.DataFrame,
    schema: TableSchema,
    target: str,
    *,
    seed: int = 0,
) -> Utility:
    """Train on synthetic, test on real, beside train on real, test on real.

    Histogram gradient boosting with scikit-learn's defaults on all other measured columns; numbers
    go in as numbers, levels as categories, missing cells as missing. Rows without the target are
    left out.

    Args:
        train: The real rows that the synthetic ones were learned from.
        synthetic: Rows of the model.
        test: Real rows that neither saw.
        schema: Of all three.
        target: The column to predict.
        seed: Of the trees.

    Raises:
        UnknownColumnError: There is no such target.
        TableError: The test rows have one class only.

    Source: Esteban, Hyland and Rätsch, Real-valued medical time series generation with recurrent
    conditional GANs (2017): TSTR and TRTR.
    """
    column = schema[target]
    others = tuple(c for c in measured_columns(schema) if c.name != target)
    features = fit_features(train, others)
    test = test[test[target].notna()]
    judge = _explained_variance if is_number(column) else _mean_area
    value, real = (
        judge(table[table[target].notna()], test, features, column, seed)
        for table in (synthetic, train)
    )
    if is_number(column):
        return Utility(value, real, "r2")
    return Utility(value, real, "auc" if test[target].nunique() == 2 else "macro-auc")


def _explained_variance(
    table: pd.DataFrame, test: pd.DataFrame, features: Features, column: Column, seed: int
) -> float:
    """R² on the test rows of trees trained on the table."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.metrics import r2_score

    trees = HistGradientBoostingRegressor(
        categorical_features=features.are_levels, random_state=seed
    )
    trees.fit(features.matrix(table), numbers_of(table, column))
    predicted = trees.predict(features.matrix(test))
    return float(r2_score(numbers_of(test, column), predicted))


def _mean_area(
    table: pd.DataFrame, test: pd.DataFrame, features: Features, column: Column, seed: int
) -> float:
    """Area under the ROC curve on the test rows, averaged over their classes."""
    from sklearn.metrics import roc_auc_score

    classes = list(test[column.name].astype(object).unique())
    if len(classes) < 2:
        raise TableError(f"the test rows have one class of {column.name!r} only")
    chances = _class_chances(table, test, features, column, seed)
    truth = test[column.name].astype(object).to_numpy()
    nothing = np.zeros(len(test))  # a class that the table does not have
    areas = [roc_auc_score(truth == c, chances.get(c, nothing)) for c in classes]
    return float(np.mean(areas))


def _class_chances(
    table: pd.DataFrame, test: pd.DataFrame, features: Features, column: Column, seed: int
) -> dict[Any, npt.NDArray[np.float64]]:
    """The probability of each class of the table, for each test row."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    codes, classes = pd.factorize(table[column.name].astype(object))
    if len(classes) < 2:  # nothing to learn: every row is the one class
        return {c: np.ones(len(test)) for c in classes}
    trees = HistGradientBoostingClassifier(
        categorical_features=features.are_levels,
        random_state=seed,
        # The held-out rows of early stopping are drawn by class: each class must have two rows.
        early_stopping="auto" if np.bincount(codes).min() > 1 else False,
    )
    trees.fit(features.matrix(table), codes)
    chances = trees.predict_proba(features.matrix(test))
    return {c: chances[:, i] for i, c in enumerate(classes)}
