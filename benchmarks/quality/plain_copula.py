"""A baseline: one Gaussian copula for the whole table, over smoothed marginals of its cells."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from benchmarks.quality.cell_marginals import Marginal, fit_marginal
from gcvae.arrays import Numbers
from gcvae.cells.values import parse_table
from gcvae.evaluation.columns import measured_columns
from gcvae.schema.columns import Column, TableSchema

_DRAWS = 100
_BLOCK_ROWS = 256
_SMALLEST = 1e-300
_NARROW = 1e-6
_SHRINKAGE = 1e-3
"""Of the correlations, so that they stay positive definite."""


class PlainGaussianCopula:
    """u_j = Φ(q_j), q ~ N(0, R): R is the correlation of the cells' mid-interval normal scores."""

    def __init__(self, seed: int) -> None:
        """Keeps the seed of the scores' draws."""
        self._seed = seed

    def fit(self, train: pd.DataFrame, schema: TableSchema) -> None:
        """Counts the cells and correlates their scores."""
        typed = parse_table(train, schema)
        self._schema = schema
        self._columns: tuple[Column, ...] = measured_columns(schema)
        self._marginals: list[Marginal] = [fit_marginal(typed, c) for c in self._columns]
        lower, width = self._intervals(typed)
        scores = pd.DataFrame(ndtri(lower + width / 2))
        correlation = scores.corr(min_periods=2).fillna(0.0).to_numpy()
        self._correlation = (1 - _SHRINKAGE) * self._nearest(correlation)
        np.fill_diagonal(self._correlation, 1.0)

    def sample(self, n_rows: int, seed: int) -> pd.DataFrame:
        """Rows of the copula; cells are missing at random, each by itself."""
        random = np.random.default_rng(seed)
        scores = random.standard_normal((n_rows, len(self._columns)))
        u = ndtr(scores @ np.linalg.cholesky(self._correlation).T)
        cells = {}
        for j, (column, marginal) in enumerate(zip(self._columns, self._marginals, strict=True)):
            series = marginal.quantile(u[:, j])
            is_missing = random.random(n_rows) < marginal.missing_share
            cells[column.name] = series.mask(is_missing) if is_missing.any() else series
        return pd.DataFrame(cells)

    def log_masses(self, rows: pd.DataFrame) -> Numbers:
        """log P(row): the probability of a box under N(0, R), by 100 draws of the GHK simulator.

        Source: Geweke (1991), Hajivassiliou and Keane; the mean of the draws is unbiased, so that
        its logarithm is a bound from below, and close.
        """
        lower, width = self._intervals(parse_table(rows, self._schema))
        observed = ~np.isnan(lower)
        total = np.zeros(len(rows))
        patterns, pattern_of_row = np.unique(observed, axis=0, return_inverse=True)
        for i, pattern in enumerate(patterns):
            index = np.flatnonzero(pattern_of_row.ravel() == i)
            known = np.flatnonzero(pattern)
            # Narrow boxes first: they leave nothing to chance, and so the noise is least.
            known = known[np.argsort(np.mean(width[np.ix_(index, known)], axis=0))]
            root = np.linalg.cholesky(self._correlation[np.ix_(known, known)])
            random = np.random.default_rng([self._seed, i])
            for start in range(0, len(index), _BLOCK_ROWS):
                block = index[start : start + _BLOCK_ROWS]
                box = lower[np.ix_(block, known)], width[np.ix_(block, known)]
                total[block] = _log_box_probability(*box, root, random)
        return total

    def _intervals(self, typed: pd.DataFrame) -> tuple[Numbers, Numbers]:
        """Lower end and width of every cell's interval of u. Shape: (n, D), (n, D)."""
        intervals = [marginal.intervals(typed) for marginal in self._marginals]
        lower, width = (np.stack(part, axis=1) for part in zip(*intervals, strict=True))
        return lower, width

    def _nearest(self, correlation: Numbers) -> Numbers:
        """The matrix without its negative eigenvalues, which pairwise correlations can have."""
        values, vectors = np.linalg.eigh(correlation)
        fixed = (vectors * np.maximum(values, _SHRINKAGE)) @ vectors.T
        scale = np.sqrt(np.diag(fixed))
        nearest: Numbers = fixed / np.outer(scale, scale)
        return nearest


def _log_box_probability(
    lower: Numbers, width: Numbers, root: Numbers, random: np.random.Generator
) -> Numbers:
    """log P(lower < Φ(q) < lower + width), q ~ N(0, root rootᵀ).

    A narrow interval is a point q of density width / φ(q) in u.

    Shape: lower, width (n, D), root (D, D) -> (n,).
    """
    n, d = lower.shape
    noise = np.zeros((n, _DRAWS, d))
    log_weight = np.zeros((n, _DRAWS))
    start, end = ndtri(lower), ndtri(np.minimum(lower + width, 1.0))
    point = ndtri(np.clip(lower + width / 2, _SMALLEST, 1 - 1e-16))
    for j in range(d):
        mean = noise[:, :, :j] @ root[j, :j]
        narrow = width[:, j] < _NARROW
        at_point = (point[narrow, j, None] - mean[narrow]) / root[j, j]
        noise[narrow, :, j] = at_point
        log_weight[narrow] += (
            np.log(width[narrow, j, None] / root[j, j])
            + (point[narrow, j, None] ** 2 - at_point**2) / 2
        )
        a, b = ((z[~narrow, j, None] - mean[~narrow]) / root[j, j] for z in (start, end))
        noise[~narrow, :, j], log_mass = _draw_between(a, b, random)
        log_weight[~narrow] += log_mass
    largest = log_weight.max(axis=1)
    weights = np.exp(log_weight - largest[:, None])
    result: Numbers = largest + np.log(weights.mean(axis=1))
    return result


def _draw_between(a: Numbers, b: Numbers, random: np.random.Generator) -> tuple[Numbers, Numbers]:
    """Standard normal draws between a and b, and log P(a < q < b). Shape: all alike."""
    sign = np.where(a + b > 0, -1.0, 1.0)  # the left tail has the digits
    a, b = np.where(sign < 0, -b, a), np.where(sign < 0, -a, b)
    below, mass = ndtr(a), np.maximum(ndtr(b) - ndtr(a), _SMALLEST)
    u = np.clip(below + random.random(a.shape) * mass, _SMALLEST, 1 - 1e-16)
    return sign * ndtri(u), np.log(mass)
