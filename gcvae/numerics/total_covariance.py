"""Law of total covariance: splits dependence into a part due to the latent vector z and the rest.

    Cov[s] = E_z Cov[s | z]  (within)  +  Cov_z E[s | z]  (between)

s_j = Phi^-1(mid-rank / (n + 1)) is the normal score of column j in generated rows, so the parts can
be computed for any decoder. Rows generated from the same z form a group, and the parts are
estimated as in a one-way analysis of variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

N_GROUPS = 10
"""Number of groups of latent vectors for the jackknife standard error."""


@dataclass(frozen=True)
class CovarianceParts:
    """Correlation of normal scores, split into the parts within and between latent vectors.

    `within` and `between` add up to the correlation. The diagonal is the part's share of each
    column's variance. Entries of columns with only one value are NaN.

    Attributes:
        within: E_z Cov[s | z] of the normal scores s, scaled to correlations. Shape: (D, D), for D
            columns.
        between: Cov_z E[s | z], scaled to correlations. Shape: (D, D).
        within_error: Standard errors of `within`. Shape: (D, D).
        between_error: Standard errors of `between`. Shape: (D, D).
    """

    within: Matrix
    between: Matrix
    within_error: Matrix
    between_error: Matrix


def covariance_parts(scores: NDArray[np.float64]) -> CovarianceParts:
    """Splits the correlation of normal scores s of D columns into parts within and between latent
    vectors, given n rows for each of M latent vectors z_m.

    within = sum_mi (s_mi - s_m)(s_mi - s_m)^T / (M (n - 1)),
    between = sum_m (s_m - s)(s_m - s)^T / M - within / n,
    each divided by the standard deviations of s, with s_mi the scores of row i of z_m, s_m their
    mean over i and s the total mean. The sum of the parts is the covariance of all M n rows with
    weights 1 / (M n). Standard errors are jackknife estimates over ten groups of z.

    Args:
        scores: Normal scores. Shape: (M, n, D), n >= 2.

    Source: law of total covariance; Searle, Casella & McCulloch, Variance Components (1992), 3.
    """
    m, n, _ = scores.shape
    means = scores.mean(1)
    scale = scores.std((0, 1))
    scale = np.where(scale > 0.0, scale, np.nan)
    parts = [
        (_square(inside), _square(between_means), float(len(index)))
        for index in np.array_split(np.arange(m), min(N_GROUPS, m))
        for inside, between_means in [_deviations(scores[index], means[index], means.mean(0))]
    ]
    whole = _parts(parts, n, scale)
    left_out = np.array([_parts(parts[:g] + parts[g + 1 :], n, scale) for g in range(len(parts))])
    shrink = (len(parts) - 1) / len(parts)
    errors = np.sqrt(shrink * ((left_out - left_out.mean(0)) ** 2).sum(0))
    return CovarianceParts(whole[0], whole[1], errors[0], errors[1])


def _deviations(scores: Matrix, means: Matrix, mean: Matrix) -> tuple[Matrix, Matrix]:
    """Returns (rows minus the mean of their z, means of z minus the total mean)."""
    inside = scores - means[:, None]
    return inside.reshape(-1, scores.shape[-1]), means - mean


def _square(rows: Matrix) -> Matrix:
    product: Matrix = rows.T @ rows
    return product


def _parts(parts: list[tuple[Matrix, Matrix, float]], n: int, scale: Matrix) -> Matrix:
    """Returns (within, between), scaled to correlations, from sums over groups of z.

    Shape: (2, D, D).
    """
    m = sum(count for _, _, count in parts)
    within = sum(inside for inside, _, _ in parts) / (m * (n - 1))
    between = sum(outside for _, outside, _ in parts) / m - within / n
    correlations: Matrix = np.stack([within, between]) / np.outer(scale, scale)
    return correlations
