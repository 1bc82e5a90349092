"""Marginals of numbers: p(v) of a column's values, for cells whose code is the point code.

Density, quantiles, draws, truncation and calibration all use the interface of `Marginal`, whatever
its kind.
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
    """p(v) = sum_m w_m p((v - mu_m) / sigma_m) / sigma_m of each number of a batch (...).

    A subclass defines p by its density, cdf and quantiles, as static methods. p is symmetric about
    zero.

    Attributes:
        outputs: Outputs of a network: weights, means and log deviations before they are made into
            such. Shape: (..., 3, M).
    """

    LOG_NORMALISER: float

    def __init__(self, outputs: Tensor) -> None:
        self.outputs = outputs

    @staticmethod
    @abstractmethod
    def log_shape(t: Tensor, /) -> Tensor:
        """log p(t) + LOG_NORMALISER. Shape: as t."""

    @staticmethod
    @abstractmethod
    def cdf_of(t: Tensor, /) -> Tensor:
        """F(t), to the last digits in the lower tail. Shape: as t."""

    @staticmethod
    @abstractmethod
    def log_cdf_of(t: Tensor, /) -> Tensor:
        """log F(t). Shape: as t."""

    @staticmethod
    @abstractmethod
    def log_interval_of(low: Tensor, high: Tensor, /) -> Tensor:
        """log [F(high) - F(low)], for low < high, either of which may be infinite."""

    @staticmethod
    @abstractmethod
    def quantile_of(u: Tensor, /) -> Tensor:
        """F^-1(u). Shape: as u."""

    @classmethod
    def of_score(cls, score: Tensor) -> Tensor:
        """F^-1(Phi(score)). Shape: as the score."""
        return cls.quantile_of(normal_cdf(score))

    @staticmethod
    def to_score(t: Tensor) -> Tensor | None:
        """Phi^-1 of the cdf, where it is known without the way through it. Shape: (..., M)."""
        return None

    @cached_property
    def components(self) -> Triple:
        """(log weight, mean, log sigma). Shape: (..., M) each."""
        weight, mean, log_sigma = self.outputs.unbind(-2)
        return torch.log_softmax(weight, -1), mean, log_sigma.clamp(min=MINIMUM_LOG_SIGMA)

    def components_in(self, dtype: torch.dtype) -> Triple:
        """Returns the components as numbers of this type."""
        weight, mean, log_sigma = self.components
        return weight.to(dtype), mean.to(dtype), log_sigma.to(dtype)

    def __getitem__(self, place: Any) -> Self:
        """Some of the marginals, or their batch with another dimension, as of a tensor."""
        return type(self)(self.outputs[place])

    def double(self) -> Self:
        """Returns the marginals of the same outputs in float64."""
        return type(self)(self.outputs.double())

    def column(self, place: int) -> Self:
        """Returns the marginals of one column. Shape: batch (N, D_real) -> (N,)."""
        return type(self)(torch.stack([part[:, place] for part in self.components], -2))

    def at(self, values: Tensor) -> Numbers:
        """Returns numbers before these marginals, computed in the numbers' dtype. Shape: (...)."""
        _, mean, log_sigma = self.components_in(values.dtype)
        return Numbers(self, (values[..., None] - mean) * torch.exp(-log_sigma))

    def log_prob(self, values: Tensor) -> Tensor:
        """Returns log p(v). Shape: (...) -> (...)."""
        return self.at(values).log_prob

    def cdf(self, values: Tensor) -> Tensor:
        """P(V < v). Shape: (...) -> (...)."""
        weight = self.components_in(values.dtype)[0].exp()
        cdf: Tensor = (weight * self.cdf_of(self.at(values).t)).sum(-1)
        return cdf

    def tails(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Returns (P(V < v), P(V > v)), each by itself. Shape: (...) -> (...) twice."""
        weight, t = self.components_in(values.dtype)[0].exp(), self.at(values).t
        return (weight * self.cdf_of(t)).sum(-1), (weight * self.cdf_of(-t)).sum(-1)

    def quantile(self, score: Tensor) -> Tensor:
        """Returns the number whose cdf is Phi(score), by bisection; exact for a single component.

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
        """Returns numbers at uniform noise. Shape: (N,) -> (N,), float64."""
        weight, mean, log_sigma = self.components
        m, rest = inverted(weight, noise)
        mean, sigma = (t.double().gather(-1, m[:, None])[:, 0] for t in (mean, log_sigma.exp()))
        return mean + sigma * self.quantile_of(rest)

    def log_masses(self, intervals: Tensor) -> Triple:
        """log of the masses inside, below and above intervals; NaN where the interval is.

        In float64: a rounding cell is a small part of a deviation.

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
        """N marginals, each cut down to an interval of positive width. Shape: (N,), (N,)."""
        log_weight, mean, log_sigma = self.components
        ends = torch.stack([(s[:, None] - mean) / log_sigma.exp() for s in (low, high)], dim=-1)
        return Inside(self, log_weight + self.log_interval_of(*ends.unbind(-1)), ends)

    def within(self, lower: Tensor, upper: Tensor, log_slope: Tensor) -> Within:
        """N marginals, each cut down to m intervals, of which those with equal ends are points.

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
    """sum_m w_m N(v; mu_m, sigma_m^2). Source: Section 4, p_i(x_i^c), where M is 1."""

    LOG_NORMALISER = LOG_SQRT_2PI
    cdf_of = staticmethod(normal_cdf)
    log_cdf_of = staticmethod(log_normal_cdf)
    log_interval_of = staticmethod(log_interval)
    quantile_of = staticmethod(torch.special.ndtri)

    @staticmethod
    def log_shape(t: Tensor) -> Tensor:
        """-t^2 / 2."""
        return -0.5 * t.square()

    @classmethod
    def of_score(cls, score: Tensor) -> Tensor:
        """Returns the score itself."""
        return score

    @staticmethod
    def to_score(t: Tensor) -> Tensor | None:
        """t itself with one Gaussian: never through Phi and its inverse."""
        return t[..., 0] if t.shape[-1] == 1 else None


@dataclass(frozen=True)
class Numbers:
    """Numbers that lie t_m deviations from the mean of each component. Shape: t (..., M)."""

    marginal: Marginal
    t: Tensor

    @property
    def log_prob(self) -> Tensor:
        """log p(v). Shape: (...)."""
        log_weight, _, log_sigma = self.marginal.components_in(self.t.dtype)
        log_terms = log_weight + self.marginal.log_shape(self.t) - log_sigma
        return log_terms.logsumexp(-1) - self.marginal.LOG_NORMALISER

    @property
    def log_tails(self) -> tuple[Tensor, Tensor]:
        """(log P(V < v), log P(V > v)), each by itself. Shape: (...)."""
        log_weight = self.marginal.components_in(self.t.dtype)[0]
        below, above = (
            (log_weight + self.marginal.log_cdf_of(t)).logsumexp(-1) for t in (self.t, -self.t)
        )
        return below, above

    @property
    def score(self) -> Tensor | None:
        """Normal scores of the numbers, if they are known without their tails. Shape: (...)."""
        return self.marginal.to_score(self.t)


@dataclass(frozen=True)
class Inside:
    """N marginals, each cut down to one interval.

    Shape: log_terms (N, M), the components' log masses of the interval; ends (N, M, 2), in their
    deviations.
    """

    marginal: Marginal
    log_terms: Tensor
    ends: Tensor

    @property
    def log_prob(self) -> Tensor:
        """log of the interval's mass. Shape: (N,)."""
        return self.log_terms.logsumexp(-1)

    def sample(self, noise: Tensor) -> Tensor:
        """Returns numbers in the interval, at uniform noise. Shape: (N,)."""
        _, mean, log_sigma = self.marginal.components
        m, rest = inverted(torch.log_softmax(self.log_terms, -1), noise)
        low, high = self.ends[torch.arange(len(m)), m].unbind(-1)
        mean, sigma = (t.gather(-1, m[:, None])[:, 0] for t in (mean, log_sigma.exp()))
        is_upper = low > -high  # the nearer tail has the digits
        first, last = torch.where(is_upper, -high, low), torch.where(is_upper, -low, high)
        below, above = self.marginal.cdf_of(first), self.marginal.cdf_of(last)
        t = self.marginal.quantile_of(below + rest * (above - below)).clamp(first, last)
        return mean + sigma * torch.where(is_upper, -t, t)


@dataclass(frozen=True)
class Within:
    """N marginals, each cut down to m intervals and points.

    Shape: lower and upper (N, m) or (1, m); log_piece (N, m M), the log mass of each interval under
    each component, of a point the density.

    Attributes:
        n_pieces: So many of the m in a row are pieces of one interval.
    """

    marginal: Marginal
    lower: Tensor
    upper: Tensor
    log_piece: Tensor
    n_pieces: int = 1

    @property
    def log_prob(self) -> Tensor:
        """log of the mass of all intervals, and of the points' density. Shape: (N,)."""
        return self.log_piece.logsumexp(-1)

    def sample(self, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Returns (number, which interval it lies in) at uniform noise. Shape: (N,) twice."""
        _, mean, log_sigma = self.marginal.components_in(torch.float64)
        _, piece, rest = chosen(self.log_piece, noise)
        m, interval = piece % mean.shape[-1], piece // mean.shape[-1]
        mean, sigma = (t.gather(-1, m[:, None])[:, 0] for t in (mean, log_sigma.exp()))
        low, high = ((taken(end, interval) - mean) / sigma for end in (self.lower, self.upper))
        t = truncated(low, high, rest, self.marginal.cdf_of, self.marginal.quantile_of)
        return mean + sigma * t, interval // self.n_pieces


def taken(ends: Tensor, at: Tensor) -> Tensor:
    """Returns the ends of one interval for each of N rows. Shape: (N, m) or (1, m), (N,)
    -> (N,)."""
    return ends.expand(len(at), -1).gather(-1, at[:, None])[:, 0]


def truncated(
    low: Tensor,
    high: Tensor,
    noise: Tensor,
    cdf: Callable[[Tensor], Tensor] = normal_cdf,
    quantile: Callable[[Tensor], Tensor] = torch.special.ndtri,
) -> Tensor:
    """Draws between low and high, by inversion from the nearer tail of a symmetric distribution.

    Beyond the range of the doubles it is the end that is nearer to the middle. Shape: (N,) each.
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


def inverted(log_prob: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Returns (code, what is left of the noise): the code whose stretch of (0, 1) the noise falls
    into.

    Given the code, where in its stretch the noise fell is uniform again.

    Shape: (N, K), (N,) -> (N,), (N,).
    """
    prob = log_prob.double().exp()
    upper = prob.cumsum(-1)
    noise = noise * upper[:, -1]
    codes = (upper <= noise[:, None]).sum(-1).clamp(max=prob.shape[-1] - 1)[:, None]
    mass = prob.gather(-1, codes)[:, 0]
    rest = (noise - upper.gather(-1, codes)[:, 0] + mass) / mass
    return codes[:, 0], rest.clamp(1e-15, 1.0 - 1e-15)


def chosen(log_mass: Tensor, noise: Tensor) -> Triple:
    """Returns (log of the total, which part the noise falls into, what is left of it).

    Where there is nothing to choose from, any part, with a total of -inf. Shape: (N, K), (N,).
    """
    total = log_mass.logsumexp(-1)
    is_empty = torch.isneginf(total)[:, None]
    relative = torch.where(is_empty, 0.0, log_mass - torch.where(is_empty, 0.0, total[:, None]))
    return (total, *inverted(relative, noise))
