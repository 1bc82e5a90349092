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
from gcvae.scoring.plain_copula import log_simulated

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
        """log P(row): the probability of a box under N(0, R), by 100 draws of `log_simulated`;
        a bound from below, and close.

        A narrow interval is a point of density width / φ(q) in u.
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
                low, wide = lower[np.ix_(block, known)], width[np.ix_(block, known)]
                is_point = wide < _NARROW
                middle = np.clip(low + wide / 2, _SMALLEST, 1 - 1e-16)
                total[block] = log_simulated(
                    np.where(is_point, middle, low),
                    np.where(is_point, 0.0, wide),
                    np.log(np.maximum(wide, _SMALLEST)),
                    root,
                    _DRAWS,
                    random,
                )
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
