"""Dependency maps beside a known truth.

    python -m benchmarks.known_truth.dependence total [--rows 50000] [--seed 0] [--preset default]
    python -m benchmarks.known_truth.dependence factor [--seed 0]
    python -m benchmarks.known_truth.dependence atoms [--seed 0]

`total`: eight mixed columns from a known Gaussian copula, and from a two-component mixture of such;
prints the largest difference between the model's tau-b (`total`) and the true one, over all pairs.
The truth is scipy's tau-b of 200,000 fresh rows (standard error at most 0.003).

`factor`: one Gaussian factor, whose tau must show in `expected` when z has little to do.

`atoms`: two numbers of a Gaussian copula, each with an atom amid the others; its tau must show in
`expected`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import expon, gamma, kendalltau, poisson

from gcvae import Synthesizer
from gcvae.cells.values import parse_table
from gcvae.dependence.maps import ranks

Numbers = NDArray[np.float64]
TRUE_ROWS = 200_000
N_COLUMNS = 8


def mixed(q: Numbers) -> pd.DataFrame:
    """Eight mixed columns, each a monotone function of its normal score. Shape: q (n, 8)."""
    u = np.clip(ndtr(q), 1e-12, 1.0 - 1e-12)
    return pd.DataFrame(
        {
            "height": (170.0 + 10.0 * q[:, 0]).round(1),
            "income": np.exp(10.0 + 0.8 * q[:, 1]).round(2),
            "visits": poisson.ppf(u[:, 2], 4.0).astype(int),
            "gain": np.where(u[:, 3] < 0.4, 0.0, expon.ppf(u[:, 3], scale=900.0)).round(1),
            "duration": gamma.ppf(u[:, 4], 2.0, scale=30.0).round(3),
            "member": np.where(u[:, 5] < 0.3, "yes", "no"),
            "grade": np.searchsorted([0.1, 0.35, 0.7, 0.9], u[:, 6]) + 1,
            "region": np.array(["north", "east", "south", "west"])[
                np.searchsorted([0.2, 0.5, 0.85], u[:, 7])
            ],
        }
    )


def correlation(seed: int) -> Numbers:
    """A correlation matrix of two factors and noise. Shape: (8, 8)."""
    loadings = np.random.default_rng(seed).normal(size=(N_COLUMNS, 2))
    covariance = loadings @ loadings.T + 0.7 * np.eye(N_COLUMNS)
    scale = np.sqrt(np.diag(covariance))
    return covariance / np.outer(scale, scale)


def one_copula(n: int, random: np.random.Generator) -> pd.DataFrame:
    """Rows of one Gaussian copula."""
    return mixed(random.multivariate_normal(np.zeros(N_COLUMNS), correlation(1), n))


def two_copulas(n: int, random: np.random.Generator) -> pd.DataFrame:
    """Rows of a mixture of two, whose means and correlations differ."""
    middle = 0.6 * np.array([1, -1, 1, 1, -1, 1, -1, 1.0])
    first = random.multivariate_normal(middle, 0.6 * correlation(2), n)
    second = random.multivariate_normal(-0.7 * middle, 0.8 * correlation(3), n)
    return mixed(np.where(random.random((n, 1)) < 0.4, first, second))


def true_tau(synthesizer: Synthesizer, fresh: pd.DataFrame) -> Numbers:
    """scipy's tau-b, columns ordered as the model orders them: the region by what it learned."""
    typed = parse_table(fresh, synthesizer.schema)
    cells = ranks(typed, synthesizer.codec.encode(typed), synthesizer.codec).numpy()
    tau = np.eye(cells.shape[1])
    for i, j in combinations(range(cells.shape[1]), 2):
        tau[i, j] = tau[j, i] = kendalltau(cells[:, i], cells[:, j]).statistic
    return tau


def show_total(rows: int, seed: int, preset: str) -> None:
    """Prints how far `total` is from the truth, for both kinds of data."""
    draws: list[Callable[[int, np.random.Generator], pd.DataFrame]] = [one_copula, two_copulas]
    for draw in draws:
        random = np.random.default_rng(seed)
        started = time.monotonic()
        synthesizer = Synthesizer.fit(draw(rows, random), preset=preset, seed=seed)
        truth = true_tau(synthesizer, draw(TRUE_ROWS, random))
        total, data = synthesizer.dependencies("total"), synthesizer.dependencies("data")
        off = np.abs(total.tau - truth)
        i, j = np.unravel_index(off.argmax(), off.shape)
        print(
            f"{draw.__name__}, {rows} rows, {preset}, seed {seed}: largest |total - truth| "
            f"{off.max():.4f} ({total.columns[i]}, {total.columns[j]}), of the table's own rows "
            f"{np.abs(data.tau - truth).max():.4f}; {time.monotonic() - started:.0f} s",
            flush=True,
        )


def one_factor(n: int, random: np.random.Generator) -> tuple[pd.DataFrame, Numbers]:
    """Five numbers that share one Gaussian factor, and the correlations of their scores."""
    loadings = np.array([1.2, -0.9, 0.8, 0.6, -0.4])
    scores = random.normal(size=(n, 1)) * loadings + random.normal(size=(n, 5))
    scale = np.sqrt(1.0 + loadings**2)
    rho = np.outer(loadings / scale, loadings / scale)
    np.fill_diagonal(rho, 1.0)
    return pd.DataFrame(scores / scale, columns=list("abcde")), rho


LITTLE_USE_FOR_Z = {"d_latent": 1, "d_hidden": 16, "prior": "normal", "kl_warm_up": 0.0}


def show_factor(seed: int) -> None:
    """Prints how far `expected` is from the truth."""
    frame, rho = one_factor(5_000, np.random.default_rng(seed))
    synthesizer = Synthesizer.fit(frame, preset="gcvae", settings=LITTLE_USE_FOR_Z, seed=seed)
    expected = synthesizer.dependencies("expected").tau
    off = np.abs(expected - 2.0 / np.pi * np.arcsin(rho)).max()
    print(f"one factor, seed {seed}: largest |expected - true tau| {off:.4f}", flush=True)


ATOMS_RHO = 0.6
COPULA_ALONE = LITTLE_USE_FOR_Z | {
    "encoding": "quantile",
    "n_components": 4,
    "learning_rate": 0.02,
    "batch_size": 256,
    "max_steps": 200,
    "score_gradient": True,
    "averaging": 0.98,
}
"""Of the preset paper-gcvae, for two columns: the copula is learned in seconds."""


def atoms_amid(n: int, random: np.random.Generator) -> pd.DataFrame:
    """Two numbers of a Gaussian copula: a quarter and a fifth of the rows are an atom amid them."""
    q = random.multivariate_normal([0.0, 0.0], [[1.0, ATOMS_RHO], [ATOMS_RHO, 1.0]], n)
    u, numbers = ndtr(q), (100.0 + 20.0 * q).round(3)
    numbers[:, 0] = np.where((u[:, 0] > 0.35) & (u[:, 0] < 0.6), 98.7, numbers[:, 0])
    numbers[:, 1] = np.where((u[:, 1] > 0.3) & (u[:, 1] < 0.5), 94.9, numbers[:, 1])
    return pd.DataFrame(numbers, columns=["x", "y"])


def show_atoms(seed: int) -> None:
    """Prints the tau of `expected` beside the truth, trained by jitter and exactly."""
    truth = 2.0 / np.pi * np.arcsin(ATOMS_RHO)
    frame = atoms_amid(4_000, np.random.default_rng(seed))
    for objective in ("jitter", "exact"):
        settings = COPULA_ALONE | {"objective": objective}
        synthesizer = Synthesizer.fit(frame, preset="paper-gcvae", settings=settings, seed=seed)
        tau = synthesizer.dependencies("expected").tau[0, 1]
        print(
            f"atoms amid, {objective}, seed {seed}: expected {tau:.3f}, truth {truth:.3f}",
            flush=True,
        )


def main() -> None:
    """Runs what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["total", "factor", "atoms"])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--preset", default="default")
    asked = parser.parse_args()
    if asked.what == "total":
        show_total(asked.rows, asked.seed, asked.preset)
    elif asked.what == "factor":
        show_factor(asked.seed)
    else:
        show_atoms(asked.seed)


if __name__ == "__main__":
    main()
