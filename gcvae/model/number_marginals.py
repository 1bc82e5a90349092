"""Marginal densities p(v) of a column's numbers.

    p(v) = sum_m w_m p((v - mu_m) / sigma_m) / sigma_m

Density, quantiles, sampling, truncation and calibration use the interface of `Marginal`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor

from gcvae.numerics.normal import LOG_SQRT_2PI, log_interval, log_normal_cdf, normal_cdf

MINIMUM_LOG_SIGMA = -6.0
"""log sigma of a component, in standard deviations of its column, is held above this.

A column with a heavy value (an atom) would otherwise drive sigma to zero and the bound to
infinity, which is not a good fit.

# PAPER-DIFF: the paper sets no limits to scales. Those of marginals, of mixtures over atoms, of
# omega, of the posterior and of a learned prior are clamped, where the bound has no largest value.
"""
_N_BISECTIONS = 40
_LEAST_UNIFORM = 1e-300
Triple = tuple[Tensor, Tensor, Tensor]


class Marginal(ABC):
    """Mixture density of each number of a batch (...).

    Subclasses define the density p of a component, symmetric about zero, by static methods: log
    density, CDF and quantiles.

    Attributes:
        outputs: Network outputs for weights, means and log deviations. Shape: (..., 3, M).
    """

    LOG_NORMALISER: float

    def __init__(self, outputs: Tensor) -> None:
        self.outputs = outputs

    @staticmethod
    @abstractmethod
    def log_shape(t: Tensor, /) -> Tensor:
        """Returns log p(t) + LOG_NORMALISER. Shape: as t."""

    @staticmethod
    @abstractmethod
    def cdf_of(t: Tensor, /) -> Tensor:
        """Returns F(t), accurate in the lower tail. Shape: as t."""

    @staticmethod
    @abstractmethod
    def log_cdf_of(t: Tensor, /) -> Tensor:
        """Returns log F(t). Shape: as t."""

    @staticmethod
    @abstractmethod
    def log_interval_of(low: Tensor, high: Tensor, /) -> Tensor:
        """Returns log [F(high) - F(low)], for low < high; both may be infinite."""

    @staticmethod
    @abstractmethod
    def quantile_of(u: Tensor, /) -> Tensor:
        """Returns F^-1(u). Shape: as u."""

    @classmethod
    def of_score(cls, score: Tensor) -> Tensor:
        """Returns F^-1(Phi(score)). Shape: as the score."""
        return cls.quantile_of(normal_cdf(score))

    @staticmethod
    def to_score(t: Tensor) -> Tensor | None:
        """Returns Phi^-1 of the CDF if it has a closed form, else None. Shape: (..., M)."""
        return None

    @cached_property
    def components(self) -> Triple:
        """Returns (log weight, mean, log sigma). Shape: (..., M) each."""
        weight, mean, log_sigma = self.outputs.unbind(-2)
        return torch.log_softmax(weight, -1), mean, log_sigma.clamp(min=MINIMUM_LOG_SIGMA)

    def components_in(self, dtype: torch.dtype) -> Triple:
        """Returns the components in this dtype."""
        weight, mean, log_sigma = self.components
        return weight.to(dtype), mean.to(dtype), log_sigma.to(dtype)

    def __getitem__(self, place: Any) -> Self:
        """Returns some of the marginals, or the batch with another dimension, as for a tensor."""
        return type(self)(self.outputs[place])

    def double(self) -> Self:
        """Returns the marginals of the same outputs in float64."""
        return type(self)(self.outputs.double())

    def column(self, place: int) -> Self:
        """Returns the marginals of one column. Shape: batch (N, D_real) -> (N,)."""
        return type(self)(torch.stack([part[:, place] for part in self.components], -2))

    def at(self, values: Tensor) -> Numbers:
        """Returns the numbers standardised by each component, in the numbers' dtype. Shape:
        (...)."""
        _, mean, log_sigma = self.components_in(values.dtype)
        return Numbers(self, (values[..., None] - mean) * torch.exp(-log_sigma))

    def log_prob(self, values: Tensor) -> Tensor:
        """Returns log p(v). Shape: (...) -> (...)."""
        return self.at(values).log_prob

    def cdf(self, values: Tensor) -> Tensor:
        """Returns P(V < v). Shape: (...) -> (...)."""
        weight = self.components_in(values.dtype)[0].exp()
        cdf: Tensor = (weight * self.cdf_of(self.at(values).t)).sum(-1)
        return cdf

    def tails(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Returns (P(V < v), P(V > v)), each computed directly. Shape: (...) -> (...) twice."""
        weight, t = self.components_in(values.dtype)[0].exp(), self.at(values).t
        return (weight * self.cdf_of(t)).sum(-1), (weight * self.cdf_of(-t)).sum(-1)

    def quantile(self, score: Tensor) -> Tensor:
        """Returns the number with CDF Phi(score), by bisection; exact for a single component.

        Shape: (...) -> (...), float64.
        """
        log_weight, mean, log_sigma = self.components_in(torch.float64)
        sigma = log_sigma.exp()
        ends = mean + sigma * self.of_score(score)[..., None]
        # The mixture's quantile lies between the components' own.
        low, high = ends.amin(-1), ends.amax(-1)
        if mean.shape[-1] == 1:
            return low
        weight, u = log_weight.exp(), normal_cdf(score)
        for _ in range(_N_BISECTIONS):
            middle = 0.5 * (low + high)
            is_low = (weight * self.cdf_of((middle[..., None] - mean) / sigma)).sum(-1) < u
            low, high = torch.where(is_low, middle, low), torch.where(is_low, high, middle)
        return 0.5 * (low + high)

    def sample(self, noise: Tensor) -> Tensor:
        """Returns samples by inversion of uniform noise. Shape: (N,) -> (N,), float64."""
        weight, mean, log_sigma = self.components
        m, rest = invert(weight, noise)
        mean, sigma = (t.double().gather(-1, m[:, None])[:, 0] for t in (mean, log_sigma.exp()))
        return mean + sigma * self.quantile_of(rest)

    def log_masses(self, intervals: Tensor) -> Triple:
        """Returns log probabilities inside, below and above intervals; NaN for NaN intervals.

        Computed in float64, because rounding cells are narrow compared with the deviation.

        Shape: (..., 2) -> three of (...).
        """
        log_weight, mean, log_sigma = self.components_in(torch.float64)
        low, high = ((end[..., None] - mean) / log_sigma.exp() for end in intervals.unbind(-1))
        return (
            (log_weight + self.log_interval_of(low, high)).logsumexp(-1),
            (log_weight + self.log_cdf_of(low)).logsumexp(-1),
            (log_weight + self.log_cdf_of(-high)).logsumexp(-1),
        )

    def inside(self, low: Tensor, high: Tensor) -> Inside:
        """Returns the marginals truncated to an interval of positive width each. Shape: (N,),
        (N,)."""
        log_weight, mean, log_sigma = self.components
        ends = torch.stack([(s[:, None] - mean) / log_sigma.exp() for s in (low, high)], dim=-1)
        return Inside(self, log_weight + self.log_interval_of(*ends.unbind(-1)), ends)

    def within(self, lower: Tensor, upper: Tensor, log_slope: Tensor) -> Within:
        """Returns the marginals truncated to m intervals each; equal ends are a point.

        A point counts with its density times exp(log_slope), the slope of its axis.

        Shape: (N, m) or (1, m), three times.
        """
        log_weight, mean, log_sigma = (t[:, None] for t in self.components_in(torch.float64))
        low, high = ((s[..., None] - mean) * torch.exp(-log_sigma) for s in (lower, upper))
        is_point = (lower == upper)[..., None]
        log_mass = self.log_interval_of(low, torch.where(is_point, torch.inf, high))
        log_density = self.log_shape(low) - self.LOG_NORMALISER - log_sigma + log_slope[..., None]
        log_piece = log_weight + torch.where(is_point, log_density, log_mass)
        return Within(self, lower, upper, log_piece.flatten(1))


class GaussianMarginal(Marginal):
    """Gaussian mixture sum_m w_m N(v; mu_m, sigma_m^2). Source: Section 4, p_i(x_i^c), where M is
    1."""

    LOG_NORMALISER = LOG_SQRT_2PI
    cdf_of = staticmethod(normal_cdf)
    log_cdf_of = staticmethod(log_normal_cdf)
    log_interval_of = staticmethod(log_interval)
    quantile_of = staticmethod(torch.special.ndtri)

    @staticmethod
    def log_shape(t: Tensor) -> Tensor:
        """Returns -t^2 / 2."""
        return -0.5 * t.square()

    @classmethod
    def of_score(cls, score: Tensor) -> Tensor:
        """Returns the score itself."""
        return score

    @staticmethod
    def to_score(t: Tensor) -> Tensor | None:
        """Returns t for a single Gaussian, without computing Phi; else None."""
        return t[..., 0] if t.shape[-1] == 1 else None


@dataclass(frozen=True)
class Numbers:
    """Numbers as t_m deviations from the mean of each component. Shape: t (..., M)."""

    marginal: Marginal
    t: Tensor

    @property
    def log_prob(self) -> Tensor:
        """Returns log p(v). Shape: (...)."""
        log_weight, _, log_sigma = self.marginal.components_in(self.t.dtype)
        log_terms = log_weight + self.marginal.log_shape(self.t) - log_sigma
        return log_terms.logsumexp(-1) - self.marginal.LOG_NORMALISER

    @property
    def log_tails(self) -> tuple[Tensor, Tensor]:
        """Returns (log P(V < v), log P(V > v)), each computed directly. Shape: (...)."""
        log_weight = self.marginal.components_in(self.t.dtype)[0]
        below, above = (
            (log_weight + self.marginal.log_cdf_of(t)).logsumexp(-1) for t in (self.t, -self.t)
        )
        return below, above

    @property
    def score(self) -> Tensor | None:
        """Returns normal scores of the numbers if they have a closed form, else None. Shape:
        (...)."""
        return self.marginal.to_score(self.t)


@dataclass(frozen=True)
class Inside:
    """N marginals, each truncated to one interval.

    Shape: log_terms (N, M), the components' log probabilities of the interval; ends (N, M, 2), in
    deviations of the components.
    """

    marginal: Marginal
    log_terms: Tensor
    ends: Tensor

    @property
    def log_prob(self) -> Tensor:
        """Returns the log probability of the interval. Shape: (N,)."""
        return self.log_terms.logsumexp(-1)

    def sample(self, noise: Tensor) -> Tensor:
        """Returns samples in the interval, by inversion of uniform noise. Shape: (N,)."""
        _, mean, log_sigma = self.marginal.components
        m, rest = invert(torch.log_softmax(self.log_terms, -1), noise)
        low, high = self.ends[torch.arange(len(m)), m].unbind(-1)
        mean, sigma = (t.gather(-1, m[:, None])[:, 0] for t in (mean, log_sigma.exp()))
        is_upper = low > -high  # the nearer tail has the digits
        first, last = torch.where(is_upper, -high, low), torch.where(is_upper, -low, high)
        below, above = self.marginal.cdf_of(first), self.marginal.cdf_of(last)
        t = self.marginal.quantile_of(below + rest * (above - below)).clamp(first, last)
        return mean + sigma * torch.where(is_upper, -t, t)


@dataclass(frozen=True)
class Within:
    """N marginals, each truncated to m intervals and points.

    Shape: lower and upper (N, m) or (1, m); log_piece (N, m M), the log probability of each
    interval under each component, for a point the log density.

    Attributes:
        n_pieces: Number of consecutive entries of the m that are pieces of one interval.
    """

    marginal: Marginal
    lower: Tensor
    upper: Tensor
    log_piece: Tensor
    n_pieces: int = 1

    @property
    def log_prob(self) -> Tensor:
        """Returns the log of the total probability of intervals and density of points. Shape:
        (N,)."""
        return self.log_piece.logsumexp(-1)

    def sample(self, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Returns (number, index of its interval) by inversion of uniform noise. Shape: (N,)
        twice."""
        _, mean, log_sigma = self.marginal.components_in(torch.float64)
        _, piece, rest = choose(self.log_piece, noise)
        m, interval = piece % mean.shape[-1], piece // mean.shape[-1]
        mean, sigma = (t.gather(-1, m[:, None])[:, 0] for t in (mean, log_sigma.exp()))
        low, high = ((end_at(end, interval) - mean) / sigma for end in (self.lower, self.upper))
        t = sample_truncated(low, high, rest, self.marginal.cdf_of, self.marginal.quantile_of)
        return mean + sigma * t, interval // self.n_pieces


def end_at(ends: Tensor, at: Tensor) -> Tensor:
    """Returns the end of one interval for each of N rows. Shape: (N, m) or (1, m), (N,) -> (N,)."""
    return ends.expand(len(at), -1).gather(-1, at[:, None])[:, 0]


def sample_truncated(
    low: Tensor,
    high: Tensor,
    noise: Tensor,
    cdf: Callable[[Tensor], Tensor] = normal_cdf,
    quantile: Callable[[Tensor], Tensor] = torch.special.ndtri,
) -> Tensor:
    """Returns samples between low and high of a symmetric distribution, from the nearer tail.

    If the interval's probability underflows, returns the end that is nearer to the centre. Shape:
    (N,) each.
    """
    flip = low > -high
    a, b = torch.where(flip, -high, low), torch.where(flip, -low, high)
    u = torch.where(flip, 1.0 - noise, noise)
    start = cdf(a)
    p = start + u * (cdf(b) - start)
    far = p < _LEAST_UNIFORM
    x = torch.where(far, b, quantile(p.clamp(min=_LEAST_UNIFORM)))
    x = torch.minimum(torch.maximum(x, a), b)
    return torch.where(flip, -x, x)


def invert(log_prob: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Returns (code, remaining noise): the code at which the cumulative probability reaches the
    noise.

    The remaining noise is its relative position in the code's interval, which is again uniform.

    Shape: (N, K), (N,) -> (N,), (N,).
    """
    prob = log_prob.double().exp()
    upper = prob.cumsum(-1)
    noise = noise * upper[:, -1]
    codes = (upper <= noise[:, None]).sum(-1).clamp(max=prob.shape[-1] - 1)[:, None]
    mass = prob.gather(-1, codes)[:, 0]
    rest = (noise - upper.gather(-1, codes)[:, 0] + mass) / mass
    return codes[:, 0], rest.clamp(1e-15, 1.0 - 1e-15)


def choose(log_mass: Tensor, noise: Tensor) -> Triple:
    """Returns (log total, index chosen by the noise, remaining noise).

    If all masses are zero, the total is -inf and the index arbitrary. Shape: (N, K), (N,).
    """
    total = log_mass.logsumexp(-1)
    is_empty = torch.isneginf(total)[:, None]
    relative = torch.where(is_empty, 0.0, log_mass - torch.where(is_empty, 0.0, total[:, None]))
    return (total, *invert(relative, noise))
