"""Utility of synthetic rows: the quality of predictors trained on them and tested on real rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.arrays import Numbers
from gcvae.errors import TableError
from gcvae.evaluation.columns import is_number, measured_columns, numbers_of, with_outcome
from gcvae.evaluation.features import Features, fit_features
from gcvae.schema.columns import Column, TableSchema


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


def explained_variance(
    learner: Any, x: Numbers, y: Numbers, x_test: Numbers, y_test: Numbers
) -> float:
    """Fits a scikit-learn regressor and returns its R² on the test rows. Shape: x (n, d), y (n,),
    x_test (m, d), y_test (m,) for d features."""
    from sklearn.metrics import r2_score

    return float(r2_score(y_test, learner.fit(x, y).predict(x_test)))


def mean_area(
    learner: Any,
    x: Numbers,
    labels: npt.NDArray[Any],
    x_test: Numbers,
    truth: npt.NDArray[Any],
    classes: Sequence[Any],
) -> float:
    """Fits a scikit-learn classifier and returns its mean one-against-rest ROC AUC on test rows.

    A class without training rows counts with an AUC of 0.5.

    Args:
        learner: Classifier with `fit` and `predict_proba`.
        x: The d features of the training rows. Shape: (n, d).
        labels: Classes of the training rows. Shape: (n,).
        x_test: Features of the test rows. Shape: (m, d).
        truth: Classes of the test rows. Shape: (m,).
        classes: Classes over which the AUC is averaged.
    """
    from sklearn.metrics import roc_auc_score

    codes, known = pd.factorize(labels)
    if len(known) < 2:  # every training row has the same class
        return 0.5
    columns = learner.fit(x, codes).predict_proba(x_test).T
    chances = dict(zip(known, columns, strict=True))
    nothing = np.zeros(len(truth))
    return float(np.mean([roc_auc_score(truth == c, chances.get(c, nothing)) for c in classes]))


def _of_number(
    table: pd.DataFrame, test: pd.DataFrame, features: Features, column: Column, seed: int
) -> float:
    from sklearn.ensemble import HistGradientBoostingRegressor

    trees = HistGradientBoostingRegressor(
        categorical_features=features.are_levels, random_state=seed
    )
    x, x_test = features.matrix(table), features.matrix(test)
    return explained_variance(trees, x, numbers_of(table, column), x_test, numbers_of(test, column))


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
