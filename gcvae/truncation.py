"""Columns drawn within regions, and the probability that they lie there.

    p_j(region | .) = sum over its codes of p(code) share(code) p(values | code)

The draw is from p_j( . | region, .); a point of a region counts by its density.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcvae.interval_cells import inverted
from gcvae.mixtures import MarginalParameters, mixture_quantile
from gcvae.normal import (
    log_interval,
    log_normal_cdf,
    log_normal_density,
    normal_cdf,
    normal_score_of_tails,
)
from gcvae.refinement import ColumnDistribution
from gcvae.regions import Region, everything

_LEAST_UNIFORM = 1e-300


@dataclass(frozen=True)
class Drawn:
    """Cells of one column for N particles. Shape: all (N,); log_prob of the region, float64."""

    log_prob: Tensor
    codes: Tensor
    values: Tensor


def draw_within(column: ColumnDistribution, region: Region | None, noise: Tensor) -> Drawn:
    """One cell for each particle, at uniform noise. Shape: region of N rows or 1, noise (N,)."""
    if region is None and (column.mixture is None or column.warp is not None):
        return Drawn(torch.zeros_like(noise), *column.draw(noise))
    region = everything(column.log_beta.shape[-1]) if region is None else region
    log_code = column.log_beta.double() + _padded(region.log_share, column.log_beta.shape[-1])
    if column.mixture is None:
        log_prob, codes, _ = _chosen(log_code, noise)
        return Drawn(log_prob, codes.int(), torch.zeros_like(noise))
    log_piece = _log_pieces(column, region)
    log_code[:, column.point_code] += log_piece.logsumexp(-1)
    log_prob, codes, rest = _chosen(log_code, noise)
    is_point = codes == column.point_code
    values = torch.where(is_point, _value_within(column, region, log_piece, rest), 0.0)
    return Drawn(log_prob, codes.int(), values)


def _padded(log_share: Tensor, n_codes: int) -> Tensor:
    """With -inf for the codes that pad a column to its group's width."""
    return torch.nn.functional.pad(log_share, (0, n_codes - log_share.shape[-1]), value=-torch.inf)


def _chosen(log_mass: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(log of the total, which part the noise falls into, what is left of it).

    Where there is nothing to choose from, any part, with a total of -inf. Shape: (N, K), (N,).
    """
    total = log_mass.logsumexp(-1)
    is_empty = torch.isneginf(total)[:, None]
    relative = torch.where(is_empty, 0.0, log_mass - torch.where(is_empty, 0.0, total[:, None]))
    return (total, *inverted(relative, noise))


def _log_pieces(column: ColumnDistribution, region: Region) -> Tensor:
    """log mass of each interval under each Gaussian; of a point, density. Shape: (N, m M)."""
    assert column.mixture is not None, "a column of levels has no values"
    weight, mean, log_sigma = (t.double() for t in column.components(column.mixture))
    (lower, log_slope), (upper, _) = (
        _straight(column, region.lower),
        _straight(column, region.upper),
    )
    low, high = (
        (end[..., None] - mean[:, None]) * torch.exp(-log_sigma)[:, None] for end in (lower, upper)
    )
    is_point = (region.lower == region.upper)[..., None]
    safe_high = torch.where(is_point, torch.inf, high)
    log_mass = log_interval(low, safe_high)
    log_density = log_normal_density(low) - log_sigma[:, None] + log_slope[..., None]
    log_piece = weight[:, None] + torch.where(is_point, log_density, log_mass)
    return log_piece.flatten(1)


def _straight(column: ColumnDistribution, ends: Tensor) -> tuple[Tensor, Tensor]:
    """(S(v), log S'(v)), an infinite end staying where it is. Shape: (n, m) twice."""
    if column.warp is None:
        return ends, torch.zeros_like(ends)
    warps, place = column.warp
    infinite = torch.isinf(ends)
    straight, log_slope = warps.straighten_column(torch.where(infinite, 0.0, ends).flatten(), place)
    return torch.where(infinite, ends, straight.view(ends.shape)), log_slope.view(ends.shape)


def _value_within(
    column: ColumnDistribution, region: Region, log_piece: Tensor, noise: Tensor
) -> Tensor:
    """A value in one of the intervals, by their masses. Shape: (N, m M), (N,) -> (N,)."""
    assert column.mixture is not None, "a column of levels has no values"
    _, mean, log_sigma = (t.double() for t in column.components(column.mixture))
    n_components = mean.shape[-1]
    _, piece, rest = _chosen(log_piece, noise)
    m, interval = (piece % n_components)[:, None], (piece // n_components)[:, None]
    mean, sigma = mean.gather(-1, m)[:, 0], log_sigma.exp().gather(-1, m)[:, 0]
    lower, upper = (
        end.expand(len(noise), -1).gather(-1, interval)[:, 0]
        for end in (region.lower, region.upper)
    )
    low, high = (
        (_straight(column, end[:, None])[0][:, 0] - mean) / sigma for end in (lower, upper)
    )
    straight = mean + sigma * truncated_normal(low, high, rest)
    values = straight
    if column.warp is not None:
        warps, place = column.warp
        values = warps.bend_column(straight, place)
    # Rounding must not lead out of the interval.
    return torch.minimum(torch.maximum(values, lower), upper)


def truncated_normal(low: Tensor, high: Tensor, noise: Tensor) -> Tensor:
    """Standard normal draws between low and high, by inversion from the nearer tail.

    Beyond the range of the doubles it is the end that is nearer to the middle. Shape: (N,) each.
    """
    flip = low > -high
    a, b = torch.where(flip, -high, low), torch.where(flip, -low, high)
    u = torch.where(flip, 1.0 - noise, noise)
    start = normal_cdf(a)
    p = start + u * (normal_cdf(b) - start)
    far = p < _LEAST_UNIFORM
    x = torch.where(far, b, torch.special.ndtri(p.clamp(min=_LEAST_UNIFORM)))
    x = torch.minimum(torch.maximum(x, a), b)
    return torch.where(flip, -x, x)


@dataclass(frozen=True)
class CopulaColumn:
    """A column of a Gaussian copula given the factor f: q = (b . f + e) / psi, e ~ N(0, 1).

    Given f the columns are independent, and u = Phi(q) is cut into codes by the marginal.

    Shape: pull = b . f and scale = psi (N,).
    """

    marginal: ColumnDistribution
    pull: Tensor
    scale: Tensor

    def draw(self, region: Region | None, noise: Tensor) -> Drawn:
        """One cell for each particle, and the probability of the region given f."""
        log_beta = self.marginal.log_beta.double()
        below, above = _tails(log_beta)
        starts = self._noise_at(below, torch.logaddexp(above, log_beta))
        stops = self._noise_at(torch.logaddexp(below, log_beta), above)
        is_possible = log_beta > _LOG_IMPOSSIBLE
        log_code = log_interval(starts, torch.where(is_possible, stops, torch.inf))
        log_code = torch.where(is_possible, log_code, -torch.inf)
        if region is not None:
            log_code = log_code + _padded(region.log_share, log_code.shape[-1])
        if self.marginal.mixture is None:
            log_prob, codes, _ = _chosen(log_code, noise)
            return Drawn(log_prob, codes.int(), torch.zeros_like(noise))
        point = self.marginal.point_code
        lower, upper = starts[:, point, None], stops[:, point, None]
        if region is None:
            log_prob, codes, rest = _chosen(log_code, noise)
            e = truncated_normal(lower[:, 0], upper[:, 0], rest)
            values = self._value_at(e, below[:, point])
        else:
            lower, log_density = self._noise_at_value(region.lower, below, above)
            upper, _ = self._noise_at_value(region.upper, below, above)
            is_dot = region.lower == region.upper
            log_piece = log_interval(lower, torch.where(is_dot, torch.inf, upper))
            log_piece = torch.where(is_dot, log_density, log_piece)
            whole = _padded(region.log_share, log_code.shape[-1])[:, point]
            log_code[:, point] = log_piece.logsumexp(-1) + whole
            log_prob, codes, rest = _chosen(log_code, noise)
            _, piece, rest = _chosen(log_piece, rest)
            at = piece[:, None]
            e = truncated_normal(lower.gather(-1, at)[:, 0], upper.gather(-1, at)[:, 0], rest)
            values = self._value_at(e, below[:, point])
            ends = (end.expand(len(noise), -1).gather(-1, at)[:, 0]
                    for end in (region.lower, region.upper))  # fmt: skip
            values = torch.minimum(torch.maximum(values, next(ends)), next(ends))
        return Drawn(log_prob, codes.int(), torch.where(codes == point, values, 0.0))

    def _noise_at(self, log_below: Tensor, log_above: Tensor) -> Tensor:
        """e where these are the tails of u. Shape: (N, k)."""
        score = normal_score_of_tails(log_below, log_above)
        return self.scale[:, None] * score - self.pull[:, None]

    def _noise_at_value(
        self, values: Tensor, below: Tensor, above: Tensor
    ) -> tuple[Tensor, Tensor]:
        """(e at these values, log density of the values given f). Shape: (n, m) -> (N, m) twice.

        p(v | f) = p(v) phi(e) psi / phi(q).
        """
        assert self.marginal.mixture is not None, "a column of levels has no values"
        point = self.marginal.point_code
        parts = self.marginal.components(self.marginal.mixture)
        weight, mean, log_sigma = (t.double()[:, None] for t in parts)
        t = (values[..., None] - mean) * torch.exp(-log_sigma)
        log_point = self.marginal.log_beta.double()[:, point, None]
        under = log_point + (weight + log_normal_cdf(t)).logsumexp(-1)
        over = log_point + (weight + log_normal_cdf(-t)).logsumexp(-1)
        score = normal_score_of_tails(
            torch.logaddexp(below[:, point, None], under),
            torch.logaddexp(above[:, point, None], over),
        )
        e = self.scale[:, None] * score - self.pull[:, None]
        log_value = log_point + (weight + log_normal_density(t) - log_sigma).logsumexp(-1)
        finite = torch.where(torch.isfinite(score), score, 0.0)
        ratio = log_normal_density(e) - log_normal_density(finite) + self.scale.log()[:, None]
        return e, log_value + ratio

    def _value_at(self, e: Tensor, log_below: Tensor) -> Tensor:
        """The value where u = Phi((pull + e) / psi) stands within the point code. Shape: (N,)."""
        assert self.marginal.mixture is not None, "a column of levels has no values"
        score = (self.pull + e) / self.scale
        if self.marginal.log_beta.shape[-1] > 1:
            mass = self.marginal.log_beta[:, self.marginal.point_code].double().exp()
            inside = (normal_cdf(score) - log_below.exp()) / mass.clamp(min=_LEAST_UNIFORM)
            score = torch.special.ndtri(inside.clamp(1e-15, 1.0 - 1e-15))
        parts = self.marginal.components(self.marginal.mixture)
        parameters = MarginalParameters((), *(part.double()[:, None] for part in parts))
        return mixture_quantile(parameters, score[:, None])[:, 0]


_LOG_IMPOSSIBLE = -1e6
"""Under this a code only pads its column."""


def _tails(log_beta: Tensor) -> tuple[Tensor, Tensor]:
    """(log P(smaller code), log P(larger code)), each summed by itself. Shape: (N, K) twice."""
    beta, nothing = log_beta.exp(), torch.zeros_like(log_beta[:, :1])
    below = torch.cat([nothing, beta.cumsum(-1)[:, :-1]], dim=-1)
    above = torch.cat([beta.flip(-1).cumsum(-1).flip(-1)[:, 1:], nothing], dim=-1)
    return below.log(), above.log()
