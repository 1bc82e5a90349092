"""Gaussian mixture densities p(v) = sum_m w_m N(v; mu_m, sigma_m^2) of a column's numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor

from gcvae.numerics.normal import (
    LOG_SQRT_2PI,
    log_interval,
    log_normal_cdf,
    normal_cdf,
)

MINIMUM_LOG_SIGMA = -6.0
"""Lower limit of log sigma of a component, with sigma in standard deviations of its column.

A frequent value (atom) would otherwise drive sigma to zero and the likelihood to infinity, which is
not a good fit.

# PAPER-DIFF: the paper does not limit scales. Those of marginals, of mixtures over atoms, of
# omega, of the posterior and of a learned prior are clamped, where the bound has no largest value.
"""
_N_BISECTIONS = 40
_LEAST_UNIFORM = 1e-300
Triple = tuple[Tensor, Tensor, Tensor]


class Marginal:
    """Batch (...) of Gaussian mixtures with M components each.

    Attributes:
        outputs: Logits of weights, means and log sigmas. Shape: (..., 3, M).

    Source: Section 4, p_i(x_i^c), where M is 1.
    """

    def __init__(self, outputs: Tensor) -> None:
        self.outputs = outputs

    @cached_property
    def components(self) -> Triple:
        """Log weights, means and log sigmas of the M components. Shape: (..., M) each."""
        weight, mean, log_sigma = self.outputs.unbind(-2)
        return torch.log_softmax(weight, -1), mean, log_sigma.clamp(min=MINIMUM_LOG_SIGMA)

    def components_in(self, dtype: torch.dtype) -> Triple:
        """Returns the components' log weights, means and log sigmas, converted to a dtype."""
        weight, mean, log_sigma = self.components
        return weight.to(dtype), mean.to(dtype), log_sigma.to(dtype)

    def __getitem__(self, index: Any) -> Self:
        """Returns the densities that an index of the batch dimensions selects, as for a tensor."""
        return type(self)(self.outputs[index])

    def double(self) -> Self:
        """Returns the densities converted to float64."""
        return type(self)(self.outputs.double())

    def column(self, number_index: int) -> Self:
        """Returns the densities of the column at position `number_index` in the list of D_real
        columns of numbers. Shape: batch (N, D_real) -> (N,)."""
        return type(self)(torch.stack([part[:, number_index] for part in self.components], -2))

    def at(self, values: Tensor) -> Numbers:
        """Returns numbers standardised by the mean and deviation of each component, in the dtype of
        `values`. Shape: values (...)."""
        _, mean, log_sigma = self.components_in(values.dtype)
        return Numbers(self, (values[..., None] - mean) * torch.exp(-log_sigma))

    def log_prob(self, values: Tensor) -> Tensor:
        """Returns the log density of each number. Shape: (...) -> (...)."""
        return self.at(values).log_prob

    def cdf(self, values: Tensor) -> Tensor:
        """Returns the mixture's probability P(V < v) for each number v. Shape: (...) -> (...)."""
        weight = self.components_in(values.dtype)[0].exp()
        cdf: Tensor = (weight * normal_cdf(self.at(values).t)).sum(-1)
        return cdf

    def tails(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Returns (P(V < v), P(V > v)), each accurate if it is small. Shape: (...) each."""
        weight, t = self.components_in(values.dtype)[0].exp(), self.at(values).t
        return (weight * normal_cdf(t)).sum(-1), (weight * normal_cdf(-t)).sum(-1)

    def quantile(self, score: Tensor) -> Tensor:
        """Returns the quantile at probability Phi(score), by bisection; for one component in closed
        form. Shape: (...) -> (...), float64."""
        log_weight, mean, log_sigma = self.components_in(torch.float64)
        sigma = log_sigma.exp()
        ends = mean + sigma * score[..., None]
        # The mixture's quantile lies between the components' own.
        low, high = ends.amin(-1), ends.amax(-1)
        if mean.shape[-1] == 1:
            return low
        weight, u = log_weight.exp(), normal_cdf(score)
        for _ in range(_N_BISECTIONS):
            middle = 0.5 * (low + high)
            is_low = (weight * normal_cdf((middle[..., None] - mean) / sigma)).sum(-1) < u
            low, high = torch.where(is_low, middle, low), torch.where(is_low, high, middle)
        return 0.5 * (low + high)

    def sample(self, noise: Tensor) -> Tensor:
        """Samples each of N densities by inversion of uniform noise. Shape: (N,) -> (N,),
        float64."""
        weight, mean, log_sigma = self.components
        m, rest = invert(weight, noise)
        mean, sigma = (t.double().gather(-1, m[:, None])[:, 0] for t in (mean, log_sigma.exp()))
        found: Tensor = mean + sigma * torch.special.ndtri(rest)
        return found

    def log_masses(self, intervals: Tensor) -> Triple:
        """Returns the log probabilities inside, below and above an interval; NaN for NaN ends.

        In float64, because intervals of rounded numbers may be very narrow. Shape: ends (..., 2) ->
        three of (...).
        """
        log_weight, mean, log_sigma = self.components_in(torch.float64)
        low, high = ((end[..., None] - mean) / log_sigma.exp() for end in intervals.unbind(-1))
        return (
            (log_weight + log_interval(low, high)).logsumexp(-1),
            (log_weight + log_normal_cdf(low)).logsumexp(-1),
            (log_weight + log_normal_cdf(-high)).logsumexp(-1),
        )

    def draw_inside(self, low: Tensor, high: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the log probability of an interval (low, high) under each of N densities, and a
        number in it, sampled by inversion of uniform noise. Shape: (N,) each."""
        log_weight, mean, log_sigma = self.components
        ends = [(end[:, None] - mean) / log_sigma.exp() for end in (low, high)]
        log_terms = log_weight + log_interval(*ends)
        m, rest = invert(torch.log_softmax(log_terms, -1), noise)
        low, high, mean, sigma = (
            t.gather(-1, m[:, None])[:, 0] for t in (*ends, mean, log_sigma.exp())
        )
        is_upper = low > -high  # the nearer tail is more accurate
        first, last = torch.where(is_upper, -high, low), torch.where(is_upper, -low, high)
        below, above = normal_cdf(first), normal_cdf(last)
        t = torch.special.ndtri(below + rest * (above - below)).clamp(first, last)
        return log_terms.logsumexp(-1), mean + sigma * torch.where(is_upper, -t, t)

    def within(self, lower: Tensor, upper: Tensor, log_slope: Tensor) -> Within:
        """Returns the N densities restricted to m intervals or points. An interval has a
        probability, a point a density; they are added up as if they were of one kind.

        Args:
            lower: Lower ends. Shape: (N, m) or (1, m).
            upper: Upper ends; equal to `lower` for a point. Shape: as lower.
            log_slope: Log derivative of the column's transform at `lower`, added to the log density
                of points. Shape: as lower.
        """
        log_weight, mean, log_sigma = (t[:, None] for t in self.components_in(torch.float64))
        low, high = ((s[..., None] - mean) * torch.exp(-log_sigma) for s in (lower, upper))
        is_point = (lower == upper)[..., None]
        log_mass = log_interval(low, torch.where(is_point, torch.inf, high))
        log_density = -0.5 * low.square() - LOG_SQRT_2PI - log_sigma + log_slope[..., None]
        log_piece = log_weight + torch.where(is_point, log_density, log_mass)
        return Within(self, lower, upper, log_piece.flatten(1))


@dataclass(frozen=True)
class Numbers:
    """Numbers v standardised by the mean and deviation of each of the M components of a mixture:
    t = (v - mu_m) / sigma_m. Shape: t (..., M)."""

    marginal: Marginal
    t: Tensor

    @property
    def log_prob(self) -> Tensor:
        """Log density of each number under its mixture. Shape: (...)."""
        log_weight, _, log_sigma = self.marginal.components_in(self.t.dtype)
        log_terms = log_weight - 0.5 * self.t.square() - log_sigma
        return log_terms.logsumexp(-1) - LOG_SQRT_2PI

    @property
    def log_tails(self) -> tuple[Tensor, Tensor]:
        """Log P(V < v) and log P(V > v), each accurate if it is small. Shape: (...) each."""
        log_weight = self.marginal.components_in(self.t.dtype)[0]
        below, above = ((log_weight + log_normal_cdf(t)).logsumexp(-1) for t in (self.t, -self.t))
        return below, above

    @property
    def score(self) -> Tensor | None:
        """Normal scores of the numbers if they have a closed form, else None. Shape: (...)."""
        return self.t[..., 0] if self.t.shape[-1] == 1 else None


@dataclass(frozen=True)
class Within:
    """N mixture densities of M components, each restricted to m intervals and points.

    Attributes:
        marginal: The densities.
        lower: Lower ends. Shape: (N, m) or (1, m).
        upper: Upper ends; equal to `lower` for a point. Shape: (N, m) or (1, m).
        log_piece: Log of (weight of the component) * (its probability of the interval, or its
            density at the point), for each interval or point and each component. Shape: (N, m M).
        n_pieces: Number of consecutive intervals into which each requested interval was divided;
            more than 1 if the density has steps (`PiecewiseMarginal.within`).
    """

    marginal: Marginal
    lower: Tensor
    upper: Tensor
    log_piece: Tensor
    n_pieces: int = 1

    @property
    def log_prob(self) -> Tensor:
        """Log of the sum of the probabilities of all intervals and the densities of all points, for
        each of N densities. Shape: (N,)."""
        return self.log_piece.logsumexp(-1)

    def sample(self, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Samples a number from each density by inversion of uniform noise, and returns it with the
        index of the requested interval or point that contains it. Shape: (N,) each."""
        _, mean, log_sigma = self.marginal.components_in(torch.float64)
        _, piece, rest = choose(self.log_piece, noise)
        m, interval = piece % mean.shape[-1], piece // mean.shape[-1]
        mean, sigma = (t.gather(-1, m[:, None])[:, 0] for t in (mean, log_sigma.exp()))
        low, high = ((end_at(end, interval) - mean) / sigma for end in (self.lower, self.upper))
        t = sample_truncated(low, high, rest)
        return mean + sigma * t, interval // self.n_pieces


def end_at(ends: Tensor, at: Tensor) -> Tensor:
    """Returns the entry of each row of `ends` at the row's index in `at`. Shape: ends (N, m) or
    (1, m), at (N,) -> (N,)."""
    return ends.expand(len(at), -1).gather(-1, at[:, None])[:, 0]


def sample_truncated(low: Tensor, high: Tensor, noise: Tensor) -> Tensor:
    """Samples a standard normal truncated to (low, high) by inversion of uniform noise. If the
    interval's probability underflows, the sample is the end nearer to zero. Shape: (N,) each ->
    (N,)."""
    flip = low > -high
    a, b = torch.where(flip, -high, low), torch.where(flip, -low, high)
    u = torch.where(flip, 1.0 - noise, noise)
    start = normal_cdf(a)
    p = start + u * (normal_cdf(b) - start)
    far = p < _LEAST_UNIFORM
    x = torch.where(far, b, torch.special.ndtri(p.clamp(min=_LEAST_UNIFORM)))
    x = torch.minimum(torch.maximum(x, a), b)
    return torch.where(flip, -x, x)


def invert(log_prob: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Samples an index for each row by inversion: the first index whose cumulative probability
    exceeds the noise.

    Returns:
        The indices, and new uniform noise. The new noise is the position of the noise between the
        cumulative probabilities before and after the index, scaled to the range from 0 to 1.

    Shape: log probabilities (N, K), noise (N,) -> (N,) each.
    """
    prob = log_prob.double().exp()
    upper = prob.cumsum(-1)
    noise = noise * upper[:, -1]
    codes = (upper <= noise[:, None]).sum(-1).clamp(max=prob.shape[-1] - 1)[:, None]
    mass = prob.gather(-1, codes)[:, 0]
    rest = (noise - upper.gather(-1, codes)[:, 0] + mass) / mass
    return codes[:, 0], rest.clamp(1e-15, 1.0 - 1e-15)


def choose(log_mass: Tensor, noise: Tensor) -> Triple:
    """Samples an index for each row in proportion to unnormalised probabilities, by inversion.

    Returns:
        The log of the sum of the probabilities, the index, and new uniform noise (see `invert`). If
        all probabilities are zero, the log is -inf and the index arbitrary.

    Shape: logarithms (N, K), noise (N,) -> (N,) each.
    """
    total = log_mass.logsumexp(-1)
    is_empty = torch.isneginf(total)[:, None]
    relative = torch.where(is_empty, 0.0, log_mass - torch.where(is_empty, 0.0, total[:, None]))
    return (total, *invert(relative, noise))
