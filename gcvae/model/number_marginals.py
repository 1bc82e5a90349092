"""Mixture densities p(v) of a column's numbers.

    p(v) = sum_m w_m f((v - mu_m) / sigma_m) / sigma_m

with f the standard density of a component. Subclasses of `Marginal` define f.
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
"""Lower limit of log sigma of a component, with sigma in standard deviations of its column.

A frequent value (atom) would otherwise drive sigma to zero and the likelihood to infinity, which is
not a good fit.

# PAPER-DIFF: the paper does not limit scales. Those of marginals, of mixtures over atoms, of
# omega, of the posterior and of a learned prior are clamped, where the bound has no largest value.
"""
_N_BISECTIONS = 40
_LEAST_UNIFORM = 1e-300
Triple = tuple[Tensor, Tensor, Tensor]


class Marginal(ABC):
    """Batch (...) of mixture densities with M components each.

    Subclasses define the standard density f of a component, symmetric about zero, by static
    methods: log density, CDF F and quantiles.

    Attributes:
        outputs: Logits of weights, means and log sigmas. Shape: (..., 3, M).
        LOG_NORMALISER: Logarithm of the normalising factor, which `log_shape` omits: log f(t) =
            log_shape(t) - LOG_NORMALISER.
    """

    LOG_NORMALISER: float

    def __init__(self, outputs: Tensor) -> None:
        self.outputs = outputs

    @staticmethod
    @abstractmethod
    def log_shape(t: Tensor, /) -> Tensor:
        """Returns log f(t) without its normalising constant, f the density of a standardised
        component.

        Shape: as t.
        """

    @staticmethod
    @abstractmethod
    def cdf_of(t: Tensor, /) -> Tensor:
        """Returns the CDF of a standardised component, accurate in the lower tail. Shape: as
        t."""

    @staticmethod
    @abstractmethod
    def log_cdf_of(t: Tensor, /) -> Tensor:
        """Returns the log of the CDF of a standardised component. Shape: as t."""

    @staticmethod
    @abstractmethod
    def log_interval_of(low: Tensor, high: Tensor, /) -> Tensor:
        """Returns log [F(high) - F(low)] for low < high, F the CDF of a standardised component; the
        limits may be infinite. Shape: as the limits."""

    @staticmethod
    @abstractmethod
    def quantile_of(u: Tensor, /) -> Tensor:
        """Returns the quantile of a standardised component at probability u. Shape: as u."""

    @classmethod
    def of_score(cls, score: Tensor) -> Tensor:
        """Returns a standardised component's quantile at Phi(score). Shape: as
        score."""
        return cls.quantile_of(normal_cdf(score))

    @staticmethod
    def to_score(t: Tensor) -> Tensor | None:
        """Returns the normal score of a number, Phi^-1 of the mixture's CDF, if it has a closed
        form, else None.

        Args:
            t: The number, standardised by each of M components. Shape: (..., M).
        """
        return None

    @cached_property
    def components(self) -> Triple:
        """Log weights, means and log sigmas of the M components. Shape: (..., M) each."""
        weight, mean, log_sigma = self.outputs.unbind(-2)
        return torch.log_softmax(weight, -1), mean, log_sigma.clamp(min=MINIMUM_LOG_SIGMA)

    def components_in(self, dtype: torch.dtype) -> Triple:
        """Returns the components' log weights, means and log sigmas, converted to a dtype."""
        weight, mean, log_sigma = self.components
        return weight.to(dtype), mean.to(dtype), log_sigma.to(dtype)

    def __getitem__(self, place: Any) -> Self:
        """Returns the densities that an index of the batch dimensions selects, as for a tensor."""
        return type(self)(self.outputs[place])

    def double(self) -> Self:
        """Returns the densities converted to float64."""
        return type(self)(self.outputs.double())

    def column(self, place: int) -> Self:
        """Returns the densities of one column for N rows.

        Args:
            place: Index of the column among the D_real columns of numbers.

        Shape: batch (N, D_real) -> batch (N,).
        """
        return type(self)(torch.stack([part[:, place] for part in self.components], -2))

    def at(self, values: Tensor) -> Numbers:
        """Standardises numbers by the mean and sigma of each component, in the numbers' dtype.
        Shape: values (...)."""
        _, mean, log_sigma = self.components_in(values.dtype)
        return Numbers(self, (values[..., None] - mean) * torch.exp(-log_sigma))

    def log_prob(self, values: Tensor) -> Tensor:
        """Returns the log density of each number under its mixture. Shape: (...) ->
        (...)."""
        return self.at(values).log_prob

    def cdf(self, values: Tensor) -> Tensor:
        """Returns the mixture's probability P(V < v) for each number v. Shape: (...) -> (...)."""
        weight = self.components_in(values.dtype)[0].exp()
        cdf: Tensor = (weight * self.cdf_of(self.at(values).t)).sum(-1)
        return cdf

    def tails(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Returns (P(V < v), P(V > v)), each accurate if it is small. Shape: (...) each."""
        weight, t = self.components_in(values.dtype)[0].exp(), self.at(values).t
        return (weight * self.cdf_of(t)).sum(-1), (weight * self.cdf_of(-t)).sum(-1)

    def quantile(self, score: Tensor) -> Tensor:
        """Returns the quantile at probability Phi(score), by bisection; exact for one component.

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
        """Samples each of N densities by inversion of uniform noise. Shape: (N,) -> (N,),
        float64."""
        weight, mean, log_sigma = self.components
        m, rest = invert(weight, noise)
        mean, sigma = (t.double().gather(-1, m[:, None])[:, 0] for t in (mean, log_sigma.exp()))
        return mean + sigma * self.quantile_of(rest)

    def log_masses(self, intervals: Tensor) -> Triple:
        """Returns the log probabilities inside, below and above an interval of each density; NaN
        for intervals with NaN ends.

        They are computed in float64, because intervals of rounded numbers may be very narrow.
        Shape: lower and upper ends (..., 2) -> three of (...).
        """
        log_weight, mean, log_sigma = self.components_in(torch.float64)
        low, high = ((end[..., None] - mean) / log_sigma.exp() for end in intervals.unbind(-1))
        return (
            (log_weight + self.log_interval_of(low, high)).logsumexp(-1),
            (log_weight + self.log_cdf_of(low)).logsumexp(-1),
            (log_weight + self.log_cdf_of(-high)).logsumexp(-1),
        )

    def inside(self, low: Tensor, high: Tensor) -> Inside:
        """Truncates each of the N densities to its interval (low, high). Shape: (N,),
        (N,)."""
        log_weight, mean, log_sigma = self.components
        ends = torch.stack([(s[:, None] - mean) / log_sigma.exp() for s in (low, high)], dim=-1)
        return Inside(self, log_weight + self.log_interval_of(*ends.unbind(-1)), ends)

    def within(self, lower: Tensor, upper: Tensor, log_slope: Tensor) -> Within:
        """Returns the N densities, each truncated to m intervals or points.

        Args:
            lower: Lower ends. Shape: (N, m) or (1, m).
            upper: Upper ends. An interval whose ends are equal is a point, which counts by its
                density. Shape: as lower.
            log_slope: Log of the factor on the density of points, the derivative of a transform of
                the numbers. Shape: as lower.
        """
        log_weight, mean, log_sigma = (t[:, None] for t in self.components_in(torch.float64))
        low, high = ((s[..., None] - mean) * torch.exp(-log_sigma) for s in (lower, upper))
        is_point = (lower == upper)[..., None]
        log_mass = self.log_interval_of(low, torch.where(is_point, torch.inf, high))
        log_density = self.log_shape(low) - self.LOG_NORMALISER - log_sigma + log_slope[..., None]
        log_piece = log_weight + torch.where(is_point, log_density, log_mass)
        return Within(self, lower, upper, log_piece.flatten(1))


class GaussianMarginal(Marginal):
    """Batch of Gaussian mixtures sum_m w_m N(v; mu_m, sigma_m^2).

    Source: Section 4, p_i(x_i^c), where M is 1.
    """

    LOG_NORMALISER = LOG_SQRT_2PI
    cdf_of = staticmethod(normal_cdf)
    log_cdf_of = staticmethod(log_normal_cdf)
    log_interval_of = staticmethod(log_interval)
    quantile_of = staticmethod(torch.special.ndtri)

    @staticmethod
    def log_shape(t: Tensor) -> Tensor:
        """Returns -t^2 / 2, the log density without its constant. Shape: as t."""
        return -0.5 * t.square()

    @classmethod
    def of_score(cls, score: Tensor) -> Tensor:
        """Returns the score unchanged, because F is Phi."""
        return score

    @staticmethod
    def to_score(t: Tensor) -> Tensor | None:
        """Returns t for a single component, whose CDF is Phi(t); None for several."""
        return t[..., 0] if t.shape[-1] == 1 else None


@dataclass(frozen=True)
class Numbers:
    """Numbers standardised by each component of their densities.

    Attributes:
        marginal: Densities of the numbers.
        t: (v - mu_m) / sigma_m for each number v and component m. Shape: (..., M).
    """

    marginal: Marginal
    t: Tensor

    @property
    def log_prob(self) -> Tensor:
        """Log density of each number under its mixture. Shape: (...)."""
        log_weight, _, log_sigma = self.marginal.components_in(self.t.dtype)
        log_terms = log_weight + self.marginal.log_shape(self.t) - log_sigma
        return log_terms.logsumexp(-1) - self.marginal.LOG_NORMALISER

    @property
    def log_tails(self) -> tuple[Tensor, Tensor]:
        """Log P(V < v) and log P(V > v), each accurate if it is small. Shape: (...) each."""
        log_weight = self.marginal.components_in(self.t.dtype)[0]
        below, above = (
            (log_weight + self.marginal.log_cdf_of(t)).logsumexp(-1) for t in (self.t, -self.t)
        )
        return below, above

    @property
    def score(self) -> Tensor | None:
        """Normal scores of the numbers if they have a closed form, else None. Shape: (...)."""
        return self.marginal.to_score(self.t)


@dataclass(frozen=True)
class Inside:
    """N mixture densities of M components, each truncated to one interval.

    Attributes:
        marginal: The densities.
        log_terms: Log of each component's weight times its probability of the interval. Shape: (N,
            M).
        ends: Lower and upper end, standardised by each component. Shape: (N, M, 2).
    """

    marginal: Marginal
    log_terms: Tensor
    ends: Tensor

    @property
    def log_prob(self) -> Tensor:
        """Log probability of the interval under each of N densities. Shape: (N,)."""
        return self.log_terms.logsumexp(-1)

    def sample(self, noise: Tensor) -> Tensor:
        """Samples each of N truncated densities by inversion of uniform noise. Shape: (N,) ->
        (N,)."""
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
    """N mixture densities of M components, each truncated to m intervals and points.

    Attributes:
        marginal: The densities.
        lower: Lower ends. Shape: (N, m) or (1, m).
        upper: Upper ends; equal to `lower` for a point. Shape: (N, m) or (1, m).
        log_piece: Log of each component's weight times its probability of each interval or density
            at each point. Shape: (N, m M).
        n_pieces: Number of consecutive intervals into which each interval of the caller was
            divided.
    """

    marginal: Marginal
    lower: Tensor
    upper: Tensor
    log_piece: Tensor
    n_pieces: int = 1

    @property
    def log_prob(self) -> Tensor:
        """Log of the total probability of all intervals plus density of all points, for N
        densities. Shape: (N,)."""
        return self.log_piece.logsumexp(-1)

    def sample(self, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Samples a number from each of N truncated densities by inversion of uniform noise.

        Returns:
            The numbers and the index of the interval or point that contains each. Shape: (N,) each.
        """
        _, mean, log_sigma = self.marginal.components_in(torch.float64)
        _, piece, rest = choose(self.log_piece, noise)
        m, interval = piece % mean.shape[-1], piece // mean.shape[-1]
        mean, sigma = (t.gather(-1, m[:, None])[:, 0] for t in (mean, log_sigma.exp()))
        low, high = ((end_at(end, interval) - mean) / sigma for end in (self.lower, self.upper))
        t = sample_truncated(low, high, rest, self.marginal.cdf_of, self.marginal.quantile_of)
        return mean + sigma * t, interval // self.n_pieces


def end_at(ends: Tensor, at: Tensor) -> Tensor:
    """Returns from each of N rows of `ends` (m interval ends) the entry at the row's index in `at`.

    Shape: ends (N, m) or (1, m), at (N,) -> (N,).
    """
    return ends.expand(len(at), -1).gather(-1, at[:, None])[:, 0]


def sample_truncated(
    low: Tensor,
    high: Tensor,
    noise: Tensor,
    cdf: Callable[[Tensor], Tensor] = normal_cdf,
    quantile: Callable[[Tensor], Tensor] = torch.special.ndtri,
) -> Tensor:
    """Samples a symmetric distribution truncated to the interval from low to high.

    If the interval's probability underflows, the sample is the end that is nearer to the centre.

    Args:
        low: Lower ends. Shape: (N,).
        high: Upper ends. Shape: (N,).
        noise: Uniform noise, which is inverted. Shape: (N,).
        cdf: CDF of the distribution. Default: standard normal.
        quantile: Inverse of the CDF. Default: standard normal.
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
    """Samples an index from 0 to K - 1 for each of N rows by inversion: the first whose cumulative
    probability exceeds the noise.

    Args:
        log_prob: Log probabilities of the K indices. Shape: (N, K).
        noise: Uniform noise. Shape: (N,).

    Returns:
        The indices, and for each the relative position, from 0 to 1, of the noise within the
        index's interval of cumulative probability, which is again uniform. Shape: (N,) each.
    """
    prob = log_prob.double().exp()
    upper = prob.cumsum(-1)
    noise = noise * upper[:, -1]
    codes = (upper <= noise[:, None]).sum(-1).clamp(max=prob.shape[-1] - 1)[:, None]
    mass = prob.gather(-1, codes)[:, 0]
    rest = (noise - upper.gather(-1, codes)[:, 0] + mass) / mass
    return codes[:, 0], rest.clamp(1e-15, 1.0 - 1e-15)


def choose(log_mass: Tensor, noise: Tensor) -> Triple:
    """Samples an index for each of N rows in proportion to unnormalised probabilities, by
    inversion.

    Args:
        log_mass: Logarithms of K unnormalised probabilities. Shape: (N, K).
        noise: Uniform noise. Shape: (N,).

    Returns:
        The log of the sum of the probabilities, the index, and uniform noise for further use. If
        all probabilities are zero, the log is -inf and the index arbitrary. Shape: (N,) each.
    """
    total = log_mass.logsumexp(-1)
    is_empty = torch.isneginf(total)[:, None]
    relative = torch.where(is_empty, 0.0, log_mass - torch.where(is_empty, 0.0, total[:, None]))
    return (total, *invert(relative, noise))
