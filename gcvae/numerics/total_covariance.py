"""Law of total covariance: splits dependence into a part due to the latent vector z and the rest.

    Cov[s] = E_z Cov[s | z]  (within)  +  Cov_z E[s | z]  (between)

s_j = Phi^-1(mid-rank / (n + 1)) is the normal score of column j in generated rows, so the parts can
be computed for any decoder. Rows generated from the same z form a group, and the parts are
estimated as in a one-way analysis of variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcvae.arrays import Numbers

N_GROUPS = 10
"""Number of groups of latent vectors for the jackknife standard error."""


@dataclass(frozen=True)
class CovarianceParts:
    """Correlation of normal scores s, split into the parts within and between latent vectors, which
    add up to it.

    The diagonal is the part's share of each column's variance. Columns with only one value are NaN.

    Attributes:
        within: E_z Cov[s | z], scaled to correlations. Shape: (D, D).
        between: Cov_z E[s | z], scaled to correlations. Shape: (D, D).
        within_error: Standard errors of `within`. Shape: (D, D).
        between_error: Standard errors of `between`. Shape: (D, D).
    """

    within: Numbers
    between: Numbers
    within_error: Numbers
    between_error: Numbers


def covariance_parts(scores: Numbers) -> CovarianceParts:
    """Splits the correlation of normal scores, given n >= 2 rows for each of M latent vectors z_m.
    Shape: scores (M, n, D).

    within = sum_mi (s_mi - s_m)(s_mi - s_m)^T / (M (n - 1)),
    between = sum_m (s_m - s)(s_m - s)^T / M - within / n,

    each divided by the standard deviations of s, with s_mi the scores of row i of z_m, s_m their
    mean over i and s the total mean. The sum of the parts is the covariance of all rows with
    weights 1 / (M n). Standard errors are jackknife estimates over ten groups of z.

    Source: law of total covariance; Searle, Casella & McCulloch, Variance Components (1992), 3.
    """
    m, n, _ = scores.shape
    means = scores.mean(1)
    scale = scores.std((0, 1))
    scale = np.where(scale > 0.0, scale, np.nan)
    parts = []
    for index in np.array_split(np.arange(m), min(N_GROUPS, m)):
        inside = (scores[index] - means[index, None]).reshape(-1, scores.shape[-1])
        outside = means[index] - means.mean(0)
        parts.append((inside.T @ inside, outside.T @ outside, float(len(index))))
    whole = _parts(parts, n, scale)
    left_out = np.array([_parts(parts[:g] + parts[g + 1 :], n, scale) for g in range(len(parts))])
    shrink = (len(parts) - 1) / len(parts)
    errors = np.sqrt(shrink * ((left_out - left_out.mean(0)) ** 2).sum(0))
    return CovarianceParts(whole[0], whole[1], errors[0], errors[1])


def _parts(parts: list[tuple[Numbers, Numbers, float]], n: int, scale: Numbers) -> Numbers:
    """Returns (within, between), scaled to correlations, from sums over groups of z."""
    m = sum(count for _, _, count in parts)
    within = sum(inside for inside, _, _ in parts) / (m * (n - 1))
    between = sum(outside for _, outside, _ in parts) / m - within / n
    correlations: Numbers = np.stack([within, between]) / np.outer(scale, scale)
    return correlations
