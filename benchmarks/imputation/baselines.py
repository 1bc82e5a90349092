"""The baselines: scikit-learn's imputers, fitted to the rows that the model learned from."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401  (it enables the next one)
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from benchmarks.imputation.measures import BlankedTable


def most_frequent(table: BlankedTable) -> pd.DataFrame:
    """The most frequent level; of numbers the mean, and the median for the absolute error."""
    n = len(table.truth)
    columns = {name: [table.train[name].mode().iloc[0]] * n for name in table.levels}
    filled = pd.DataFrame(columns)
    for name in table.numbers:
        numbers = table.train[[name]].astype(float)
        blanks = pd.DataFrame({name: np.full(n, np.nan)})
        for strategy, title in (("mean", name), ("median", f"{name} median")):
            filled[title] = SimpleImputer(strategy=strategy).fit(numbers).transform(blanks)[:, 0]
    return filled


def iterative(table: BlankedTable, seed: int) -> pd.DataFrame:
    """IterativeImputer (Bayesian ridge) for numbers, given numbers and one-hot levels.

    It regresses, so levels are left to the most frequent one, as is usual beside it. A blank level
    is a row of zeros. In training a fifth of the cells is blanked too, for it learns only columns
    that have blanks.
    """
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False, min_frequency=50)
    encoder.fit(table.train[table.levels].astype(str))
    random = np.random.default_rng(seed)
    holes = random.random(table.train.shape) < 0.2
    known = table.truth.notna().to_numpy() & ~table.taken
    train = _numbers_and_levels(table, table.train, ~holes & table.train.notna(), encoder)
    test = _numbers_and_levels(table, table.truth, known, encoder)
    imputer = IterativeImputer(random_state=seed, max_iter=10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        filled = imputer.fit(train).transform(test)
    result = most_frequent(table)[table.levels]
    for j, name in enumerate(table.numbers):
        result[name] = filled[:, j]
    return result


def _numbers_and_levels(
    table: BlankedTable,
    frame: pd.DataFrame,
    known: np.ndarray | pd.DataFrame,
    encoder: OneHotEncoder,
) -> np.ndarray:
    """Numbers, NaN where unknown, then one-hot levels. Shape: (n, D_real + number of levels)."""
    shown = frame.where(known)
    numbers = shown[table.numbers].astype(float).to_numpy()
    levels = shown[table.levels].astype(object).fillna("").astype(str)
    return np.concatenate([numbers, encoder.transform(levels)], axis=1)
