"""Gaussian mixtures with full covariances, fitted by expectation maximisation.

The log density of a Gaussian is linear in 1, x_i and x_i x_j. One matrix product of these moments
therefore gives the log densities of all points under all components, and one product with the
responsibilities gives all means and covariances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

_MOST_STEPS = 60
_LEAST_RISE = 1e-3
"""Fitting stops when a step raises the mean log density by less, in nats per point."""
_RIDGE = 1e-4
"""Added to variances."""
_LEAST_POINTS = 1e-10


@dataclass(frozen=True)
class GaussianMixture:
    """Gaussian mixture with density sum_c w_c N(x; m_c, L_c L_c^T), C components in K dimensions.

    Attributes:
        weight: Weights w_c, which sum to 1. Shape: (C,), float64.
        mean: Means m_c. Shape: (C, K), float64.
        factor: Lower Cholesky factors L_c of the covariances. Shape: (C, K, K), float64.
    """

    weight: Tensor
    mean: Tensor
    factor: Tensor

    def log_terms(self, moments: Tensor) -> Tensor:
        """Returns log(w_c N(x; m_c, L_c L_c^T)) for every point x and component c. `moments` are
        the F numbers 1, x_i and x_i x_j, with i <= j, of each point. Shape: (n, F) -> (n, C)."""
        d = self.mean.shape[1]
        precision = torch.cholesky_inverse(self.factor)
        slope = (precision @ self.mean[..., None])[..., 0]
        log_det = self.factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        constant = self.weight.log() - log_det - 0.5 * d * math.log(2.0 * math.pi)
        constant -= 0.5 * (slope * self.mean).sum(-1)
        i, j = _pairs(d)
        square = -precision[:, i, j] * torch.where(i == j, 0.5, 1.0)
        return moments @ torch.cat([constant[:, None], slope, square], dim=1).T


def fit_gaussian_mixture(
    x: Tensor, n_components: int, generator: torch.Generator
) -> GaussianMixture:
    """Fits a mixture to points by maximum likelihood, initialised by k-means++. Shape: x (n, K),
    with K > 0 and n at least `n_components`.

    Source: Dempster, Laird & Rubin 1977; Arthur & Vassilvitskii 2007.
    """
    x = x.double()
    moments = _moments(x)
    nearest = _distances(x, _spread_centres(x, n_components, generator)).argmin(1)
    shares = torch.nn.functional.one_hot(nearest, n_components).double()
    before = -math.inf
    for _ in range(_MOST_STEPS):
        mixture = _of_shares(shares, moments, x.shape[1])
        log_terms = mixture.log_terms(moments)
        log_prob = log_terms.logsumexp(1)
        mean = float(log_prob.mean())
        if mean - before < _LEAST_RISE:
            break
        before, shares = mean, log_terms.sub_(log_prob[:, None]).exp_()
    return mixture


def _of_shares(shares: Tensor, moments: Tensor, d: int) -> GaussianMixture:
    """Returns the maximum likelihood mixture given the responsibilities `shares` (M step).
    `moments` are 1, x_i and x_i x_j of each d-dimensional point. Shape: (n, C), (n, F)."""
    sums = shares.T @ moments
    count = sums[:, 0].clamp(min=_LEAST_POINTS)
    means = sums / count[:, None]
    mean, (i, j) = means[:, 1 : d + 1], _pairs(d)
    covariance = means.new_zeros(len(means), d, d)
    covariance[:, i, j] = covariance[:, j, i] = means[:, d + 1 :]
    covariance -= mean[:, :, None] * mean[:, None]
    covariance.diagonal(dim1=-2, dim2=-1).clamp_(min=0.0).add_(_RIDGE)
    return GaussianMixture(count / count.sum(), mean, torch.linalg.cholesky(covariance))


def _moments(x: Tensor) -> Tensor:
    i, j = _pairs(x.shape[1])
    return torch.cat([torch.ones_like(x[:, :1]), x, x[:, i] * x[:, j]], dim=1)


def _pairs(d: int) -> tuple[Tensor, Tensor]:
    i, j = torch.triu_indices(d, d)
    return i, j


def _spread_centres(x: Tensor, n: int, generator: torch.Generator) -> Tensor:
    """Returns n of the points as initial centres, by greedy k-means++."""
    n_tries = 2 + int(math.log(n))
    chosen = [int(torch.randint(len(x), (1,), generator=generator))]
    distance = _distances(x, x[chosen])[:, 0]
    for _ in range(n - 1):
        weights = distance if float(distance.sum()) > 0.0 else torch.ones_like(distance)
        tries = torch.multinomial(weights, n_tries, replacement=True, generator=generator)
        left = torch.minimum(distance[:, None], _distances(x, x[tries]))
        best = int(left.sum(0).argmin())
        chosen.append(int(tries[best]))
        distance = left[:, best]
    return x[chosen]


def _distances(x: Tensor, centres: Tensor) -> Tensor:
    """Returns squared distances of points and centres."""
    cross = x @ centres.T
    square: Tensor = x.square().sum(1, keepdim=True) - 2.0 * cross + centres.square().sum(1)
    return square.clamp_(min=0.0)
