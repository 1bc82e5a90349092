"""Kendall's tau-b and normal scores of all columns at once."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import torch
from scipy.special import ndtri
from torch import Tensor

from gcvae.arrays import Numbers

_PRODUCT_BUDGET = 4e10
_DIFFERENCE_BUDGET = 2e8
"""Maximum numbers of multiplications and of differences for one matrix of tau-b: a second or two on
one core."""


def tau_of_correlation(rho: Tensor) -> Tensor:
    """Returns Kendall's tau = (2/pi) arcsin(rho) of a Gaussian copula with correlation rho.

    >>> round(float(tau_of_correlation(torch.tensor(0.5))), 6)
    0.333333

    Shape: as rho.
    Source: Meyer 2013.
    """
    return (2.0 / math.pi) * torch.arcsin(rho)


def tau_b(ranks: Tensor) -> Numbers:
    """Returns Kendall's tau-b of every pair of D columns; NaN if a column has only one value.

    tau_b(x, y) = sum s_x s_y / sqrt(sum s_x^2 sum s_y^2) over pairs of rows, with s the sign of the
    pair's difference, zero for a tie. Row i is compared with row i + k for a set of shifts k; each
    shift needs one matrix product for all columns. With all shifts the result is exact. If that is
    too expensive, evenly spaced shifts are used; with m pairs of rows, that adds a variance of at
    most 1/m to the sampling variance, which is at least 4/(9n) for n rows.

    Shape: ranks (n, D), numbers that order each column's cells, rows in random order -> (D, D).
    Source: Kendall 1945; balanced incomplete U-statistics, Blom 1976.
    """
    cells = ranks.float()
    n, d = cells.shape
    product = torch.zeros(d, d, dtype=torch.float64)
    for shift in _shifts(n, d):
        # at a shift of n/2 every pair occurs twice
        n_pairs = n // 2 if 2 * shift == n else n
        signs = torch.sign(cells - cells.roll(shift, 0))[:n_pairs]
        product += (signs.T @ signs).double()
    untied = product.diagonal()
    tau = product / (untied[:, None] * untied[None, :]).sqrt()
    return with_unit_diagonal(tau.numpy())


def _shifts(n_rows: int, n_columns: int) -> list[int]:
    """Returns the shifts to use: all of 1 .. n/2, or as many as the time budget allows."""
    pairs = min(_PRODUCT_BUDGET / n_columns**2, _DIFFERENCE_BUDGET / n_columns)
    most = max(1, int(pairs / max(n_rows, 1)))
    last = n_rows // 2
    return np.unique(np.linspace(1, last, min(most, last)).astype(int)).tolist() if last else []


def with_unit_diagonal(matrix: Numbers) -> Numbers:
    """Returns the symmetric part (M + M^T) / 2, clipped to [-1, 1], with ones on the diagonal."""
    symmetric = np.clip((matrix + matrix.T) / 2.0, -1.0, 1.0)
    np.fill_diagonal(symmetric, 1.0)
    return symmetric


def normal_scores(ranks: Tensor) -> Numbers:
    """Returns the normal score Phi^-1(r / (n + 1)) of each cell, with r its rank in its column, the
    mean rank for ties. Shape: (n, D) -> (n, D)."""
    middle = pd.DataFrame(ranks.numpy()).rank().to_numpy()
    scores: Numbers = ndtri(middle / (len(ranks) + 1))
    return scores
