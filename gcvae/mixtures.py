"""Mixtures of Gaussians over the numbers of a column: densities, masses and quantiles."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcvae.normal import LOG_SQRT_2PI, log_interval, log_normal_cdf, normal_cdf

_N_BISECTIONS = 40
Triple = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True)
class MarginalParameters:
    """Parameters of the marginals at some z; log_beta[j, k] = log P(code of column j is k).

    The numbers of a column are a mixture of M Gaussians with these log weights, means and log
    standard deviations; the paper's marginals have M = 1.

    Shape: log_beta, for each group of columns, (..., D_group, K_group); the others
    (..., D_real, M).
    """

    log_beta: tuple[Tensor, ...]
    log_weight: Tensor
    mean: Tensor
    log_sigma: Tensor


def log_mixture_density(t: Tensor, parameters: MarginalParameters) -> Tensor:
    """log sum_m w_m N(x; mu_m, sigma_m^2) with t_m = (x - mu_m) / sigma_m.

    Shape: (..., D_real, M) -> (..., D_real).
    """
    log_terms = parameters.log_weight - 0.5 * t.square() - parameters.log_sigma
    return log_terms.logsumexp(-1) - LOG_SQRT_2PI


def mixture_tails(parameters: MarginalParameters, intervals: Tensor) -> Triple:
    """(log mass of an interval, log mass below it, log mass above it) under the mixtures.

    In float64: a rounding cell is a small part of a deviation. NaN where the interval is.

    Shape: (..., D_real, 2) -> three of (..., D_real).
    """
    mean, sigma = parameters.mean.double(), parameters.log_sigma.double().exp()
    low, high = ((end[..., None] - mean) / sigma for end in intervals.unbind(-1))
    log_weight = parameters.log_weight.double()
    return (
        (log_weight + log_interval(low, high)).logsumexp(-1),
        (log_weight + log_normal_cdf(low)).logsumexp(-1),
        (log_weight + log_normal_cdf(-high)).logsumexp(-1),
    )


def mixture_quantile(parameters: MarginalParameters, score: Tensor) -> Tensor:
    """The number whose mixture cdf is Phi(score), by bisection; exact for a single Gaussian.

    Shape: score (..., D_real) float64 -> (..., D_real).
    """
    mean, sigma = parameters.mean.double(), parameters.log_sigma.double().exp()
    ends = mean + sigma * score[..., None]
    # The mixture's quantile lies between the components' own.
    low, high = ends.amin(-1), ends.amax(-1)
    if mean.shape[-1] == 1:
        return low
    weight, u = parameters.log_weight.double().exp(), normal_cdf(score)
    for _ in range(_N_BISECTIONS):
        middle = 0.5 * (low + high)
        is_low = (weight * normal_cdf((middle[..., None] - mean) / sigma)).sum(-1) < u
        low, high = torch.where(is_low, middle, low), torch.where(is_low, high, middle)
    return 0.5 * (low + high)
