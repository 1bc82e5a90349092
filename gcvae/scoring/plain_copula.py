"""Baseline models: independent columns, and one Gaussian copula for the complete table.

    log p(x) = sum_j log p_j(x_j)                       independent columns
    u_j = F_j(x_j), q_j = Phi^-1(u_j), q ~ N(0, R)      plain Gaussian copula

Both use the table encoded by a codec, so that their scores have the units of the model's scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, ndtr, ndtri

from gcvae.arrays import Numbers
from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.quantile_codec import QuantileCodec
from gcvae.codec.table_codec import TableCodec

_MOST_CENTRES = 400
_SHRINKAGE = 1e-3
"""Shrinkage of the correlation matrix, which keeps it positive definite."""
_LEAST, _LEAST_MASS = 1e-12, 1e-300
_LOG_ROOT_TWO_PI = 0.5 * float(np.log(2 * np.pi))


@dataclass(frozen=True)
class PlainMarginal:
    """Marginal distribution of a column: shares of K codes, and a kernel density of numbers.

    Attributes:
        shares: Share of the rows with each integer code (level, missing, frequent number). Shape:
            (K,).
        below: Share of all cells that come before the cells of each code: cells with smaller codes
            or, in a column of numbers, with smaller numbers. Not used for `point_code`. Shape:
            (K,).
        point_code: Code that all numbers with a density share; the kernels estimate the density.
            None for a column without such numbers.
        code_values: In a column of numbers, the number for which each code except `point_code`
            stands; -inf for missing. Shape: (K - 1,).
        centres: Centres of the C kernels. Shape: (C,).
        bandwidth: Standard deviation of the kernels.
    """

    shares: Numbers
    below: Numbers
    point_code: int | None
    code_values: Numbers
    centres: Numbers
    bandwidth: float

    def cells(self, codes: npt.NDArray[np.int64], values: Numbers) -> tuple[Numbers, ...]:
        """Returns (log p, lower end of u, width of u) of each of n encoded cells x, where u = F(x)
        is the CDF; a level covers an interval of u.

        The width is 0 for a number with a density. Shape: (n,) each.
        """
        known = np.maximum(codes, 0)
        log_p = np.log(self.shares[known])
        low, width = self.below[known], self.shares[known]
        if self.point_code is not None:
            at = codes == self.point_code
            if at.any():
                share = self.shares[self.point_code]
                gaps = (values[at, None] - self.centres) / self.bandwidth
                log_kernels = -0.5 * gaps**2 - _LOG_ROOT_TWO_PI - np.log(self.bandwidth)
                top = log_kernels.max(axis=1)
                log_p[at] += top + np.log(np.exp(log_kernels - top[:, None]).mean(axis=1))
                atoms = (self.shares[:-1] * (self.code_values < values[at, None])).sum(axis=1)
                low = np.where(at, 0.0, low)
                low[at] = atoms + share * ndtr(gaps).mean(axis=1)
                width = np.where(at, 0.0, width)
        log_p[codes < 0] = -np.inf
        return log_p, np.clip(low, _LEAST, 1 - _LEAST), width


def fit_marginal(codec: Any, codes: npt.NDArray[np.int64], values: Numbers) -> PlainMarginal:
    """Fits the marginal distribution of a column to n encoded cells. The count of each integer code
    is increased by 0.5, so that no share is 0. Shape: codes and values (n,)."""
    counts = np.bincount(codes[codes >= 0], minlength=codec.n_codes) + 0.5
    shares = counts / counts.sum()
    if not codec.is_real:
        below = np.concatenate([[0.0], np.cumsum(shares)[:-1]])
        return PlainMarginal(shares, below, None, np.zeros(0), np.zeros(1), 1.0)
    point = codec.n_codes - 1
    is_quantile = isinstance(codec, QuantileCodec)
    code_values = codec.code_values if is_quantile else np.full(point, -np.inf)
    found = values[codes == point]
    centres = (
        np.quantile(found, (np.arange(_MOST_CENTRES) + 0.5) / _MOST_CENTRES)
        if len(found) > _MOST_CENTRES
        else (found if len(found) else np.zeros(1))
    )
    spread = float(found.std()) if len(found) > 1 else 1.0
    bandwidth = max(0.9 * spread * max(len(found), 1) ** -0.2, 1e-3)
    order = np.argsort(code_values, kind="stable")
    at_atoms = ndtr((code_values[:, None] - centres) / bandwidth).mean(axis=1)
    before = np.zeros(point)
    before[order] = np.concatenate([[0.0], np.cumsum(shares[order])[:-1]]) if point else []
    below = np.append(before + shares[point] * at_atoms, 0.0)
    return PlainMarginal(shares, below, point, code_values, centres, bandwidth)


@dataclass(frozen=True)
class PlainScores:
    """Log-likelihood of n rows under two baseline models, in nats; densities are per unit of the
    encoded numbers, not of the table's.

    Attributes:
        independent: Log p under a model of independent columns. Shape: (n,).
        copula: Log p under one Gaussian copula of all columns. Shape: (n,).
    """

    independent: Numbers
    copula: Numbers


@dataclass(frozen=True)
class PlainCopula:
    """One Gaussian copula that joins the marginals of all D columns.

    Attributes:
        marginals: Marginal of each column.
        root: Lower triangular Cholesky factor of the correlation matrix R. Shape: (D, D).
    """

    marginals: tuple[PlainMarginal, ...]
    root: Numbers

    @classmethod
    def fit(cls, codec: TableCodec, rows: EncodedTable) -> PlainCopula:
        """Fits the marginals, and the correlation matrix of the normal scores Phi^-1(u), u = F(x).
        A level covers an interval of u, of which the middle is used."""
        codes, values = _arrays(rows)
        marginals = tuple(
            fit_marginal(column, codes[:, j], values[:, j])
            for j, column in enumerate(codec.columns)
        )
        scores = np.empty(values.shape)
        for j, marginal in enumerate(marginals):
            _, low, width = marginal.cells(codes[:, j], values[:, j])
            scores[:, j] = ndtri(np.clip(low + width / 2, _LEAST, 1 - _LEAST))
        scores -= scores.mean(axis=0)
        spread = scores.std(axis=0)
        scores /= np.where(spread > 0, spread, 1.0)
        R = (1 - _SHRINKAGE) * (scores.T @ scores) / len(scores)
        n, d = len(scores), len(marginals)
        R *= n / (n + d)  # with few rows, the matrix would be singular
        np.fill_diagonal(R, 1.0)
        return cls(marginals, np.asarray(np.linalg.cholesky(R), dtype=np.float64))

    def scores(self, rows: EncodedTable, seed: int, n_draws: int = 16) -> PlainScores:
        """Returns log p of rows under both baseline models.

        Log p under the copula is computed by `log_simulated`. It is exact if all columns are
        numbers. Else it contains the log of an estimate, from `n_draws` draws for each row, of the
        probability of the codes.
        """
        codes, values = _arrays(rows)
        cells = [m.cells(codes[:, j], values[:, j]) for j, m in enumerate(self.marginals)]
        log_p, low, width = (np.stack(part, axis=1) for part in zip(*cells, strict=True))
        log_copula = log_simulated(
            low, width, log_p, self.root, n_draws, np.random.default_rng(seed)
        )
        is_unknown = (codes < 0).any(axis=1)
        return PlainScores(log_p.sum(axis=1), np.where(is_unknown, -np.inf, log_copula))


def log_simulated(
    low: Numbers,
    width: Numbers,
    log_p: Numbers,
    root: Numbers,
    n_draws: int,
    random: np.random.Generator,
) -> Numbers:
    """Returns log P(low_j < Phi(q_j) < low_j + width_j for all j), q ~ N(0, R), of n rows, by the
    GHK simulator, whose estimate of the probability is unbiased. Shape: (n,).

    A width of 0 is a point u = low, which contributes the copula's density times exp(log_p). Each
    column is drawn within its interval given the earlier ones, and weighted by the probability of
    the interval.

    Args:
        low: Lower ends, between 0 and 1. Shape: (n, D).
        width: Widths. Shape: (n, D).
        log_p: Log densities of the points. Shape: (n, D).
        root: Lower triangular Cholesky factor of R. Shape: (D, D).
        n_draws: Number of draws for each row.
        random: Generator of the draws.

    Source: Geweke 1991; Hajivassiliou; Keane.
    """
    n, d = low.shape
    noise, log_weight = np.zeros((n, n_draws, d)), np.zeros((n, n_draws))
    start, end = ndtri(low), ndtri(np.minimum(low + width, 1.0))
    for j in range(d):
        mean, scale = noise[:, :, :j] @ root[j, :j], root[j, j]
        at = width[:, j] <= 0.0
        noise[at, :, j] = (start[at, j, None] - mean[at]) / scale
        of_point = log_p[at, j] + start[at, j] ** 2 / 2 - np.log(scale)
        log_weight[at] += of_point[:, None] - noise[at, :, j] ** 2 / 2
        a, b = ((ends[~at, j, None] - mean[~at]) / scale for ends in (start, end))
        noise[~at, :, j], log_mass = _draw_between(a, b, random)
        log_weight[~at] += log_mass
    found: Numbers = logsumexp(log_weight, axis=1) - np.log(n_draws)
    return found


def _draw_between(a: Numbers, b: Numbers, random: np.random.Generator) -> tuple[Numbers, Numbers]:
    """Returns (standard normal draws q between a and b, log P(a < q < b)), computed in the nearer
    tail for precision. All have the same shape."""
    sign = np.where(a + b > 0, -1.0, 1.0)
    a, b = np.where(sign < 0, -b, a), np.where(sign < 0, -a, b)
    below, mass = ndtr(a), np.maximum(ndtr(b) - ndtr(a), _LEAST_MASS)
    u = np.clip(below + random.random(a.shape) * mass, _LEAST_MASS, 1 - 1e-16)
    return sign * ndtri(u), np.log(mass)


def _arrays(rows: EncodedTable) -> tuple[npt.NDArray[np.int64], Numbers]:
    return rows.codes.numpy().astype(np.int64), rows.values.numpy().astype(np.float64)
