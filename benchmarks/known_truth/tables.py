"""Tables drawn from known distributions, with the true log density of every row.

A component is a Gaussian copula with a one-factor correlation and known marginals of eight columns:

    s ~ N(0, 1),   q_j = (b_j s + eps_j) / psi_j,   psi_j^2 = 1 + b_j^2,   x_j = F_j^-1(Phi(q_j))

Given the factor s the columns are independent, so the mixed density of a row is an integral over
one dimension, of a density for each continuous cell and of a difference of Phi for each other:

    p(x) = int phi(s) prod_G f_g(x_g) psi_g phi(psi_g q_g - b_g s) / phi(q_g)
                      prod_H [Phi(psi_h c_hi - b_h s) - Phi(psi_h c_lo - b_h s)] ds

A table is drawn from one component, or from a mixture of two with other marginals and loadings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri

from gcvae.arrays import Numbers

_NODES = np.linspace(-8.0, 8.0, 401)
_LOG_STEP = float(np.log(_NODES[1] - _NODES[0]))
_DECIMALS = 6
_BLOCK_ROWS = 500

COLUMNS = ("income", "height", "share", "visits", "grade", "region", "member", "metres")
LEVELS = ("north", "east", "south", "west")
SCHEMA: dict[str, Any] = {
    "columns": [
        {"name": "income", "kind": "continuous"},
        {"name": "height", "kind": "continuous"},
        {"name": "share", "kind": "continuous"},
        {"name": "visits", "kind": "integer"},
        {"name": "grade", "kind": "ordinal"},
        {"name": "region", "kind": "categorical"},
        {"name": "member", "kind": "boolean"},
        {"name": "metres", "kind": "integer"},
    ]
}
IS_CONTINUOUS = np.array([True, True, True, False, False, False, False, False])


@dataclass(frozen=True)
class KnownComponent:
    """A one-factor Gaussian copula with these marginals (scipy's frozen distributions).

    Shape: loadings (8,).
    """

    marginals: tuple[Any, ...]
    loadings: Numbers

    def draw(self, n: int, random: np.random.Generator) -> Numbers:
        """Rows as numbers; levels by their code. Shape: (n, 8)."""
        psi = np.sqrt(1.0 + self.loadings**2)
        noise = random.standard_normal((n, len(psi)))
        q = (random.standard_normal((n, 1)) * self.loadings + noise) / psi
        cells = [marginal.ppf(ndtr(q[:, j])) for j, marginal in enumerate(self.marginals)]
        cells = [
            np.round(x, _DECIMALS) if IS_CONTINUOUS[j] else np.round(x) for j, x in enumerate(cells)
        ]
        return np.stack(cells, axis=1)

    def log_density(self, x: Numbers) -> Numbers:
        """log p(x): density of continuous cells, mass of the others. Shape: (n, 8) -> (n,)."""
        with np.errstate(divide="ignore"):
            blocks = [
                self._log_density(x[i : i + _BLOCK_ROWS]) for i in range(0, len(x), _BLOCK_ROWS)
            ]
        return np.concatenate(blocks)

    def _log_density(self, x: Numbers) -> Numbers:
        log_terms = np.broadcast_to(
            -0.5 * _NODES**2 - 0.5 * np.log(2.0 * np.pi), (len(x), len(_NODES))
        )
        for j, marginal in enumerate(self.marginals):
            b = self.loadings[j]
            psi = np.sqrt(1.0 + b**2)
            if IS_CONTINUOUS[j]:
                q = ndtri(marginal.cdf(x[:, j]))
                t = psi * q[:, None] - b * _NODES
                log_cell = np.log(psi) + 0.5 * q[:, None] ** 2 - 0.5 * t**2
                log_terms = log_terms + marginal.logpdf(x[:, j])[:, None] + log_cell
            else:
                high = psi * ndtri(marginal.cdf(x[:, j]))[:, None] - b * _NODES
                low = psi * ndtri(marginal.cdf(x[:, j] - 1.0))[:, None] - b * _NODES
                log_terms = log_terms + _log_interval(low, high)
        found: Numbers = logsumexp(log_terms, axis=1) + _LOG_STEP
        return found


def _log_interval(low: Numbers, high: Numbers) -> Numbers:
    """log [Phi(high) - Phi(low)], from the nearer tail."""
    flip = low > -high
    low, high = np.where(flip, -high, low), np.where(flip, -low, high)
    return log_ndtr(high) + np.log1p(-np.exp(log_ndtr(low) - log_ndtr(high)))


@dataclass(frozen=True)
class KnownTable:
    """A distribution of rows with a density that is known.

    Shape: weights (C,).
    """

    components: tuple[KnownComponent, ...]
    weights: Numbers

    def draw(self, n: int, seed: int) -> pd.DataFrame:
        """Rows as a table. Shape: n rows of 8 columns."""
        random = np.random.default_rng(seed)
        which = random.choice(len(self.weights), n, p=self.weights)
        rows = np.empty((n, len(COLUMNS)))
        for c, component in enumerate(self.components):
            rows[which == c] = component.draw(int((which == c).sum()), random)
        return _frame(rows)

    def log_density(self, frame: pd.DataFrame) -> Numbers:
        """The true log density of each row, in nats, in the measure of scores. Shape: (n,)."""
        rows = numbers(frame)
        terms = [component.log_density(rows) for component in self.components]
        found: Numbers = logsumexp(np.stack(terms, axis=1) + np.log(self.weights), axis=1)
        return found


def _frame(rows: Numbers) -> pd.DataFrame:
    columns: dict[str, Any] = {name: rows[:, j] for j, name in enumerate(COLUMNS)}
    for name in ("visits", "grade", "metres"):
        columns[name] = columns[name].astype(np.int64)
    columns["region"] = np.array(LEVELS)[columns["region"].astype(np.int64)]
    columns["member"] = columns["member"].astype(bool)
    return pd.DataFrame(columns)


def numbers(frame: pd.DataFrame) -> Numbers:
    codes = {level: code for code, level in enumerate(LEVELS)}
    columns = frame.assign(region=frame["region"].map(codes))
    return columns[list(COLUMNS)].to_numpy(dtype=np.float64)


def _levels(*probabilities: float) -> Any:
    return stats.rv_discrete(values=(np.arange(len(probabilities)), probabilities))


ONE_COPULA = KnownTable(
    (
        KnownComponent(
            (
                stats.lognorm(0.6, scale=30_000.0),
                stats.norm(170.0, 9.0),
                stats.beta(2.0, 3.0),
                stats.poisson(6.0),
                _levels(0.1, 0.25, 0.3, 0.25, 0.1),
                _levels(0.4, 0.3, 0.2, 0.1),
                stats.bernoulli(0.3),
                stats.nbinom(3, 0.003),
            ),
            np.array([1.5, -0.8, 0.6, 1.0, -1.2, 0.7, 1.0, 2.0]),
        ),
    ),
    np.array([1.0]),
)
"""One Gaussian copula."""

TWO_COPULAS = KnownTable(
    (
        *ONE_COPULA.components,
        KnownComponent(
            (
                stats.lognorm(0.3, scale=60_000.0),
                stats.norm(185.0, 5.0),
                stats.beta(5.0, 2.0),
                stats.poisson(12.0),
                _levels(0.3, 0.3, 0.2, 0.1, 0.1),
                _levels(0.1, 0.2, 0.3, 0.4),
                stats.bernoulli(0.8),
                stats.nbinom(8, 0.004),
            ),
            np.array([-1.0, 1.5, 0.8, -0.7, 1.0, -1.3, 0.5, 0.6]),
        ),
    ),
    np.array([0.6, 0.4]),
)
"""A mixture of two Gaussian copulas with other marginals and other dependence."""

TABLES = {"one copula": ONE_COPULA, "two copulas": TWO_COPULAS}
