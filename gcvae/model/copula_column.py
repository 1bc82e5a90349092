"""Distribution of one column under a Gaussian copula, given the factor of the copula: the standard
normal variable that couples the columns of a row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import torch
from torch import Tensor

from gcvae.codec.region import Drawn, Region
from gcvae.model.column_distribution import ColumnDistribution, padded_share
from gcvae.model.number_marginals import Marginal, choose, end_at, sample_truncated
from gcvae.numerics.normal import (
    log_interval,
    log_normal_density,
    normal_cdf,
    normal_score_of_tails,
)

_LEAST_MASS = 1e-300
_LOG_IMPOSSIBLE = -1e6
"""Log probabilities below this belong to padding codes."""
Tails = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class CopulaColumn:
    """Distribution of one column under a Gaussian copula given the factor f, for N rows.

    Its normal score is q = (b f + e) / psi with e ~ N(0, 1); given f the columns are independent.
    The inverse of the column's CDF maps Phi(q) to one of K codes or to a number.

    Attributes:
        unconditional: Marginal distribution of the column.
        code_values: Number that each code stands for; inf for levels and for the code that all
            infrequent numbers share. Shape: (K,).
        factor_shift: The products b f. Shape: (N,).
        score_deviation: The standard deviations psi. Shape: (N,).
    """

    unconditional: ColumnDistribution
    code_values: Tensor
    factor_shift: Tensor
    score_deviation: Tensor

    def take(self, rows: Tensor) -> CopulaColumn:
        """Returns the distribution for the rows with these indices."""
        return CopulaColumn(
            self.unconditional.take(rows),
            self.code_values,
            self.factor_shift[rows],
            self.score_deviation[rows],
        )

    def draw_within(self, region: Region | None, noise: Tensor) -> Drawn:
        """Samples an allowed cell for each of N rows, given the copula's factor. Returns the cells,
        with the log probability that a cell is allowed. The arguments are those of
        `ColumnDistribution.draw_within`."""
        region = Region.everything(self._n_codes) if region is None else region
        share = padded_share(region, self._n_codes)
        marginal, point = self.unconditional.marginal, self.unconditional.point_code
        if marginal is None:
            log_prob, codes, _ = choose(self._log_codes(*self._tails) + share, noise)
            return Drawn(log_prob, codes.int(), torch.zeros_like(noise))
        marginal = cast(Marginal, marginal)  # a copula's column has no change points
        pieces = self._pieces(marginal, region)
        log_code = self._log_codes(*self._tails_among(marginal)) + share
        log_code[:, point] = pieces.log_mass.logsumexp(-1) + share[:, point]
        log_prob, codes, rest = choose(log_code, noise)
        _, piece, rest = choose(pieces.log_mass, rest)
        e = sample_truncated(end_at(pieces.first, piece), end_at(pieces.last, piece), rest)
        values = self._value_at(marginal, e, end_at(pieces.log_below, piece))
        values = torch.maximum(values, end_at(pieces.lower, piece))
        values = torch.minimum(values, end_at(pieces.upper, piece))
        return Drawn(log_prob, codes.int(), torch.where(codes == point, values, 0.0))

    @property
    def _n_codes(self) -> int:
        return self.unconditional.log_beta.shape[-1]

    @property
    def _log_point(self) -> Tensor:
        """Log probability of the code that all infrequent numbers share. Shape: (N, 1)."""
        return self.unconditional.log_beta.double()[:, self.unconditional.point_code, None]

    @cached_property
    def _log_others(self) -> Tensor:
        """Log code probabilities; -inf for the code of infrequent numbers and for padding."""
        log_beta = self.unconditional.log_beta.double()
        is_point = torch.arange(self._n_codes) == self.unconditional.point_code
        return torch.where((log_beta > _LOG_IMPOSSIBLE) & ~is_point, log_beta, -torch.inf)

    @cached_property
    def _tails(self) -> Tails:
        """Log of the total probability of all smaller codes, and that of all larger codes, for each
        of K codes; both omit the code of infrequent numbers. Both are summed, because subtraction
        from one would be inaccurate for small probabilities. Shape: (N, K) each."""
        beta, nothing = self._log_others.exp(), torch.zeros_like(self._log_others[:, :1])
        below = torch.cat([nothing, beta.cumsum(-1)[:, :-1]], dim=-1)
        above = torch.cat([beta.flip(-1).cumsum(-1).flip(-1)[:, 1:], nothing], dim=-1)
        return below.log(), above.log()

    def _tails_among(self, marginal: Marginal) -> Tails:
        """Returns `_tails` plus the probability of the infrequent numbers below and above each
        code's number, as logarithms. Shape: (N, K) each."""
        below, above = self._tails
        under, over = marginal[:, None].at(self.code_values[None]).log_tails
        log_point = self._log_point
        return torch.logaddexp(below, log_point + under), torch.logaddexp(above, log_point + over)

    def _log_codes(self, below: Tensor, above: Tensor) -> Tensor:
        """Returns the log probability of each code given the factor f. `below` and `above` are the
        marginal log probabilities of all cells below and above each code. Shape: (N, K) each."""
        log_others = self._log_others
        starts = self._noise_at(below, torch.logaddexp(above, log_others))
        stops = self._noise_at(torch.logaddexp(below, log_others), above)
        is_possible = ~torch.isneginf(log_others)
        log_code = log_interval(starts, torch.where(is_possible, stops, torch.inf))
        return torch.where(is_possible, log_code, -torch.inf)

    def _pieces(self, marginal: Marginal, region: Region) -> _Pieces:
        """Splits the intervals that contain the allowed numbers (see `Region`) at the frequent
        numbers x_k. All numbers of a piece then have the same codes below and above them."""
        code_values = self.code_values[: self.unconditional.point_code]
        end = torch.full_like(self.code_values[:1], torch.inf)
        edges = torch.cat([-end, code_values, end])
        n_below = (edges[:-1] < edges[1:]).nonzero()[:, 0]
        left, right = edges[n_below], edges[n_below + 1]
        is_dot = (region.lower == region.upper)[..., None]
        lower = torch.maximum(region.lower[..., None], left)
        upper = torch.minimum(region.upper[..., None], right)
        is_dot = is_dot & (lower == upper) & (lower < right)
        is_inside = ((lower < upper) | is_dot).flatten(1)
        lower, upper, is_dot = lower.flatten(1), upper.flatten(1), is_dot.flatten(1)
        n_below = n_below.repeat(region.lower.shape[1])
        below, above = (tail[:, n_below] for tail in self._tails)
        above = torch.logaddexp(above, self._log_others[:, n_below])
        first, log_density = self._noise_at_value(marginal, lower, below, above)
        last, _ = self._noise_at_value(marginal, upper, below, above)
        log_mass = log_interval(first, torch.where(is_inside & ~is_dot, last, torch.inf))
        log_mass = torch.where(is_dot, log_density, log_mass)
        log_mass = torch.where(is_inside, log_mass, -torch.inf)
        return _Pieces(lower, upper, first, last, below, log_mass)

    def _noise_at(self, log_below: Tensor, log_above: Tensor) -> Tensor:
        """Returns the noise e at which Phi(q) is exp(log_below) and 1 - Phi(q) is
        exp(log_above)."""
        score = normal_score_of_tails(log_below, log_above)
        return self.score_deviation[:, None] * score - self.factor_shift[:, None]

    def _noise_at_value(
        self, marginal: Marginal, values: Tensor, below: Tensor, above: Tensor
    ) -> Tails:
        """Returns the noise e at each infrequent number v, and the log density p(v | f) = p(v)
        phi(e) psi / phi(q).

        `below` and `above` are the log probabilities of all cells below and above v, without the
        infrequent numbers. Shape: values (N, m) or (1, m) -> (N, m) each.
        """
        placed, log_point = marginal[:, None].at(values), self._log_point
        under, over = (log_point + tail for tail in placed.log_tails)
        score = normal_score_of_tails(torch.logaddexp(below, under), torch.logaddexp(above, over))
        e = self.score_deviation[:, None] * score - self.factor_shift[:, None]
        finite = torch.where(torch.isfinite(score), score, 0.0)
        ratio = (
            log_normal_density(e) - log_normal_density(finite) + self.score_deviation.log()[:, None]
        )
        return e, log_point + placed.log_prob + ratio

    def _value_at(self, marginal: Marginal, e: Tensor, log_below: Tensor) -> Tensor:
        """Returns the infrequent number at which the CDF is Phi((factor_shift + e) / psi).
        `log_below` is the log probability of all cells below it, without the infrequent numbers."""
        score = (self.factor_shift + e) / self.score_deviation
        if self._n_codes > 1:
            mass = self._log_point[:, 0].exp()
            inside = (normal_cdf(score) - log_below.exp()) / mass.clamp(min=_LEAST_MASS)
            score = torch.special.ndtri(inside.clamp(1e-15, 1.0 - 1e-15))
        return marginal.quantile(score)


@dataclass(frozen=True)
class _Pieces:
    """Pieces of the allowed infrequent numbers: single numbers, and intervals that are split at the
    frequent numbers, so that each interval lies between two neighbouring frequent numbers.

    Attributes:
        lower: Lower ends. Shape: (N, m) or (1, m).
        upper: Upper ends; equal to `lower` for a single number. Shape: as lower.
        first: Noise e at the lower ends. Shape: (N, m).
        last: Noise e at the upper ends. Shape: (N, m).
        log_below: Log probability of all cells below the piece except infrequent numbers. Shape:
            (N, m).
        log_mass: Log probability of the piece given f; for a single number its log density, for an
            empty piece -inf. Shape: (N, m).
    """

    lower: Tensor
    upper: Tensor
    first: Tensor
    last: Tensor
    log_below: Tensor
    log_mass: Tensor
