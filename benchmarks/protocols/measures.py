"""The measures of the published protocols.

`detection` and `held_out_detection` separate real from synthetic rows by XGBoost: 0.5 is best. Text
is read as pandas reads a CSV file, because the kind of a column decides its encoding.
"""

from __future__ import annotations

import io
from itertools import combinations
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.metrics import mutual_info_score, r2_score, roc_auc_score, root_mean_squared_error
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, RobustScaler
from xgboost import XGBClassifier, XGBRegressor

from gcvae.evaluation.columns import (
    correlation,
    is_number,
    level_codes,
    measured_columns,
    numbers_of,
    total_variation,
    with_outcome,
)
from gcvae.evaluation.features import fit_features
from gcvae.evaluation.report.utility import mean_area
from gcvae.schema.columns import TableSchema
from gcvae.schema.kinds import ColumnKind

Matrix = npt.NDArray[np.float64]
N_BINS = 10
_N_LEVELS_OF_ALPHA = 30


def detection(train: pd.DataFrame, synthetic: pd.DataFrame, schema: TableSchema) -> float:
    """Returns the AUC of TabPC's protocol (arXiv 2603.23016): synthetic against training rows.

    Three stratified folds, XGBoost's defaults, the mean over folds of max(AUC, 1/2). Source: the
    detection metrics of SDMetrics 0.24, whose score is 2 (1 - AUC).

    Args:
        train: Text cells.
        synthetic: Text cells.
        schema: Schema of both; it tells dates.
    """
    x, y = np.concatenate(encoded(train, synthetic, schema)), _labels(train, synthetic)
    areas = []
    for fit, judge in StratifiedKFold(3, shuffle=True, random_state=0).split(x, y):
        trees = XGBClassifier(
            eval_metric="logloss", enable_categorical=True, random_state=0, n_jobs=1
        )
        chances = make_pipeline(RobustScaler(), trees).fit(x[fit], y[fit]).predict_proba(x[judge])
        areas.append(max(0.5, roc_auc_score(y[judge], chances[:, 1])))
    return float(np.mean(areas))


def held_out_detection(
    test: pd.DataFrame, synthetic: pd.DataFrame, schema: TableSchema, seed: int
) -> float:
    """Returns the AUC of the held-out protocol: as many synthetic as test rows, against these.

    Five stratified folds, 300 trees of depth 6, learning rate 0.1, 0.9 of rows and of columns for
    each tree; levels are numbered in the order of their texts; one AUC over the predictions of all
    folds, and 1 - AUC if that is larger.

    Args:
        test: Typed rows that the model has not seen.
        synthetic: Typed rows.
        schema: Schema of both.
        seed: Seed of the subsample, the folds and the trees.
    """
    random, n = np.random.default_rng(seed), min(len(test), len(synthetic))
    parts = [table.iloc[random.permutation(len(table))[:n]] for table in (test, synthetic)]
    rows = pd.concat(parts, ignore_index=True)
    x = np.column_stack(
        [
            numbers_of(rows, column)
            if is_number(column)
            else rows[column.name].astype(str).rank(method="dense").to_numpy()
            for column in measured_columns(schema)
        ]
    )
    y, chances = _labels(*parts), np.empty(2 * n)
    for fit, judge in StratifiedKFold(5, shuffle=True, random_state=seed).split(x, y):
        trees = XGBClassifier(
            n_estimators=300, max_depth=6, learning_rate=0.1, subsample=0.9, colsample_bytree=0.9,
            tree_method="hist", eval_metric="logloss", random_state=seed, n_jobs=1,
        )  # fmt: skip
        chances[judge] = trees.fit(x[fit], y[fit]).predict_proba(x[judge])[:, 1]
    area = float(roc_auc_score(y, chances))
    return max(area, 1 - area)


def permuted(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Returns the table with each column permuted by itself: its marginals without dependence."""
    random = np.random.default_rng(seed)
    return pd.DataFrame({name: random.permutation(frame[name].array) for name in frame})


def encoded(
    real: pd.DataFrame, synthetic: pd.DataFrame, schema: TableSchema, *, by_schema: bool = False
) -> tuple[Matrix, Matrix]:
    """Returns both tables as SDMetrics' detection metrics encode them, fitted to the real one.

    Columns of text are one-hot, a missing cell is a level; a level that no real row has is all
    zeros, where SDMetrics fails. Numbers stand as they are, dates in nanoseconds, booleans as 0
    and 1; missing ones get the mean, booleans the mode, of real rows.

    Args:
        real: Text cells. Shape: (n, columns).
        synthetic: Text cells. Shape: (m, columns).
        schema: Schema of both; it tells dates.
        by_schema: One-hot are all columns of levels, also those that are written as numbers.
    """
    dates = [column.name for column in schema if column.kind is ColumnKind.DATETIME]
    text = pd.concat([real, synthetic[real.columns]]).to_csv(index=False)
    rows, n, parts = pd.read_csv(io.StringIO(text), parse_dates=dates), len(real), []
    for name in rows:
        kind = rows[name].dropna().infer_objects().dtype.kind
        if kind == "O" or (by_schema and not is_number(schema[str(name)])):
            encoder = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
            parts.append(encoder.fit(rows[[name]][:n]).transform(rows[[name]]))
            continue
        numbers = pd.to_numeric(rows[name]).astype(float).mask(rows[name].isna())
        of_real = numbers[:n]
        filled = numbers.fillna(of_real.mode()[0] if kind == "b" else of_real.mean())
        parts.append(filled.to_numpy()[:, None])
    cells = np.concatenate(parts, axis=1)
    return cells[:n], cells[n:]


def trend(
    train: pd.DataFrame,
    synthetic: pd.DataFrame,
    schema: TableSchema,
    bins_of: Literal["real", "pooled"],
) -> float:
    """Returns 1 - the mean error of pairs of columns, with the same bins of numbers in both tables.

    Two numbers: half the difference of Pearson's r. Otherwise: total variation of the two-way
    tables, numbers in 10 bins of equal width over the range of the real rows, the outer ones open,
    or of both tables. `gcvae.evaluation.fidelity.trend_error` bins each table by itself.
    """
    columns = measured_columns(schema)
    codes = {c.name: _codes((train, synthetic), c, bins_of) for c in columns}
    errors = []
    for a, b in combinations(columns, 2):
        if is_number(a) and is_number(b):
            in_each = [correlation(*(numbers_of(t, c) for c in (a, b))) for t in (train, synthetic)]
            errors.append(abs(in_each[0] - in_each[1]) / 2)
        else:
            width = 1 + max(int(part.max()) for part in codes[b.name])
            joint = [x * width + y for x, y in zip(codes[a.name], codes[b.name], strict=True)]
            errors.append(total_variation(*joint))
    return 1 - float(np.mean(errors))


def weighted_nmi(train: pd.DataFrame, synthetic: pd.DataFrame, schema: TableSchema) -> float:
    """Returns wNMI (arXiv 2603.23016): 1 - the mean |NMI - NMI'| of pairs, weighted by NMI + NMI'.

    NMI is 2 I(a; b) / (H(a) + H(b)), numbers in 10 bins of equal width over the real rows.
    """
    columns = measured_columns(schema)
    codes = {c.name: _codes((train, synthetic), c, "real") for c in columns}
    pairs = np.array(
        [
            [_nmi(x, y) for x, y in zip(codes[a.name], codes[b.name], strict=True)]
            for a, b in combinations(columns, 2)
        ]
    )
    return 1 - float(np.average(np.abs(pairs[:, 0] - pairs[:, 1]), weights=pairs.sum(axis=1)))


def alpha_precision_and_beta_recall(
    train: pd.DataFrame, synthetic: pd.DataFrame, schema: TableSchema
) -> tuple[float, float]:
    """Returns alpha-precision and beta-recall of rows scaled to the ranges of the real ones.

    With 30 levels alpha: P(alpha) is the share of synthetic rows within the alpha-quantile of real
    rows' distances to their centre. R(beta) is the share of real rows whose nearest synthetic row
    is no farther than their nearest real one and lies within the beta-quantile of such rows'
    distances to the synthetic centre. Each score is 1 - sum |curve - level| / sum of levels.

    Source: Alaa et al., How faithful is your synthetic data? (2022), on cells instead of a learnt
    representation, as the published comparisons have it.
    """
    x, z = encoded(train, synthetic, schema, by_schema=True)
    scaler = MinMaxScaler().fit(x)
    x, z = (scaler.transform(part).astype(np.float32) for part in (x, z))
    levels = np.linspace(0, 1, _N_LEVELS_OF_ALPHA)
    of_real, of_synthetic = (np.linalg.norm(part - x.mean(axis=0), axis=1) for part in (x, z))
    precision = _shares(of_synthetic, np.quantile(of_real, levels))
    to_real = NearestNeighbors(n_neighbors=2, n_jobs=1).fit(x).kneighbors(x)[0][:, 1]
    distances, nearest = NearestNeighbors(n_neighbors=1, n_jobs=1).fit(z).kneighbors(x)
    to_centre = np.linalg.norm(z[nearest[:, 0]] - z.mean(axis=0), axis=1)
    is_near = distances[:, 0] <= to_real
    recall = _shares(np.where(is_near, to_centre, np.inf), np.quantile(to_centre, levels))
    scores = (
        1 - float(np.abs(curve - levels).sum() / levels.sum()) for curve in (precision, recall)
    )
    return next(scores), next(scores)


def efficacy(
    rows: pd.DataFrame, test: pd.DataFrame, schema: TableSchema, target: str
) -> dict[str, float]:
    """Returns how well XGBoost's defaults, trained on typed rows, predict the target of test rows.

    `auc` for classes; for numbers `r2`, and `rmse_log`, the root mean squared error of log
    max(y, 1) of a second fit. The published comparisons choose among 36 sets of settings.
    """
    columns = tuple(c for c in measured_columns(schema) if c.name != target)
    features = fit_features(rows, columns)
    rows, test = with_outcome(rows, target), with_outcome(test, target)
    x, x_test = features.matrix(rows), features.matrix(test)
    if not is_number(schema[target]):
        truth = test[target].astype(object).to_numpy()
        labels = rows[target].astype(object).to_numpy()
        trees = XGBClassifier(random_state=0, n_jobs=1)
        return {"auc": mean_area(trees, x, labels, x_test, truth, list(pd.unique(truth)))}
    y, y_test = (numbers_of(part, schema[target]) for part in (rows, test))
    made = XGBRegressor(random_state=0, n_jobs=1).fit(x, y).predict(x_test)
    log, log_test = (np.log(np.maximum(part, 1)) for part in (y, y_test))
    made_log = XGBRegressor(random_state=0, n_jobs=1).fit(x, log).predict(x_test)
    rmse = root_mean_squared_error(log_test, made_log)
    return {"r2": float(r2_score(y_test, made)), "rmse_log": float(rmse)}


def _labels(real: pd.DataFrame, synthetic: pd.DataFrame) -> npt.NDArray[np.int64]:
    return np.repeat([1, 0], [len(real), len(synthetic)])


def _shares(distances: Any, limits: Any) -> Matrix:
    shares: Matrix = (distances[:, None] <= limits[None, :]).mean(axis=0)
    return shares


def _codes(
    tables: tuple[pd.DataFrame, pd.DataFrame], column: Any, bins_of: Literal["real", "pooled"]
) -> tuple[npt.NDArray[np.int64], ...]:
    """Returns levels, or bins of equal width, of both tables' cells; missing has its own code."""
    if not is_number(column):
        return level_codes(tables, column)
    cells = [numbers_of(table, column) for table in tables]
    known = np.concatenate(cells[: 1 if bins_of == "real" else 2])
    inner = np.histogram_bin_edges(known[~np.isnan(known)], N_BINS)[1:-1]
    return tuple(np.where(np.isnan(x), N_BINS, np.digitize(x, inner)) for x in cells)


def _nmi(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> float:
    entropies = mutual_info_score(a, a) + mutual_info_score(b, b)
    return 2 * float(mutual_info_score(a, b)) / entropies if entropies > 0 else 0.0
