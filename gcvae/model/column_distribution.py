"""Distribution p_j(x_j | .) of one column: code probabilities, and the density of its numbers.

A cell may stand for an interval of numbers (a rounded number, or a bin between quantiles). The
probability of the cell is that of the interval. Later columns need a single number, so one is
sampled in the interval. The probability of the interval times the probability of the later columns
given this number is an unbiased estimate of the probability of all these cells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gcvae.codec.region import Drawn, Region
from gcvae.model.change_points import PiecewiseMarginal
from gcvae.model.monotone_transforms import MonotoneTransform
from gcvae.model.number_marginals import Marginal, choose, end_at, invert


@dataclass(frozen=True)
class ColumnDistribution:
    """Distribution of one column for N rows: code probabilities, and a density of the numbers.

    Attributes:
        log_beta: Log probability of each code. Shape: (N, K).
        point_code: The code shared by all numbers that are not frequent values; -1 for levels.
        marginal: Density of the numbers after `transform`; None for a column of levels.
        transform: Monotone transform of the numbers; None for the identity.
    """

    log_beta: Tensor
    point_code: int
    marginal: Marginal | PiecewiseMarginal | None
    transform: MonotoneTransform | None

    def take(self, rows: Tensor) -> ColumnDistribution:
        """Returns the distribution of the rows with these indices."""
        marginal = None if self.marginal is None else self.marginal[rows]
        return replace(self, log_beta=self.log_beta[rows], marginal=marginal)

    def log_prob(self, codes: Tensor, values: Tensor) -> Tensor:
        """Returns the log probability of each cell's code, plus the log density of the value if it
        is a number without a code of its own. Shape: codes (N,), values (N,) -> (N,)."""
        at = codes.long().clamp(min=0)[:, None]
        log_prob = torch.where(codes >= 0, self.log_beta.gather(-1, at)[:, 0], -torch.inf)
        if self.marginal is None:
            return log_prob
        dtype = self.log_beta.dtype
        transformed, log_slope = (x.to(dtype) for x in self._forward(values))
        log_density = self.marginal.log_prob(transformed) + log_slope
        return log_prob + torch.where(codes == self.point_code, log_density, 0.0)

    def draw(self, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Samples a code and a value for each row by inversion of uniform noise. The value is 0
        unless the cell is a number without a code of its own. Shape: (N,) -> int32 (N,), (N,)."""
        codes, rest = invert(self.log_beta, noise)
        values = torch.zeros_like(noise)
        if self.marginal is not None:
            numbers = self._inverse(self.marginal.sample(rest))
            values = torch.where(codes == self.point_code, numbers, 0.0)
        return codes.int(), values

    def draw_within(self, region: Region | None, noise: Tensor) -> Drawn:
        """Samples an allowed cell for each of N rows, and computes the log of the total probability
        of all allowed cells. A single number contributes its density.

        Args:
            region: The allowed cells of each row, or of all rows. It contains the allowed share of
                each code (1 if the code is allowed completely), and the allowed intervals and
                single values of numbers without a code of their own. None allows all cells.
            noise: Uniform noise. Shape: (N,).
        """
        if region is None and (self.marginal is None or self.transform is not None):
            return Drawn(torch.zeros_like(noise), *self.draw(noise))
        n_codes = self.log_beta.shape[-1]
        region = Region.everything(n_codes) if region is None else region
        log_code = self.log_beta.double() + padded_share(region, n_codes)
        last = region.log_share.shape[-1] - 1  # one of the column's codes, even if none is possible
        if self.marginal is None:
            log_prob, codes, _ = choose(log_code, noise)
            return Drawn(log_prob, codes.clamp(max=last).int(), torch.zeros_like(noise))
        (lower, log_slope), (upper, _) = self._forward(region.lower), self._forward(region.upper)
        within = self.marginal.within(lower, upper, log_slope)
        log_code[:, self.point_code] += within.log_prob
        log_prob, codes, rest = choose(log_code, noise)
        codes = codes.clamp(max=last)
        transformed, interval = within.sample(rest)
        lower, upper = end_at(region.lower, interval), end_at(region.upper, interval)
        # clamp: rounding may leave the interval
        values = torch.minimum(torch.maximum(self._inverse(transformed), lower), upper)
        return Drawn(log_prob, codes.int(), torch.where(codes == self.point_code, values, 0.0))

    def _forward(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Returns (S(v), log S'(v)) for the transform S; infinite v are unchanged."""
        if self.transform is None:
            return values, torch.zeros_like(values)
        infinite = torch.isinf(values)
        found = self.transform.forward(torch.where(infinite, 0.0, values).flatten())
        transformed, log_slope = (x.view(values.shape) for x in found)
        return torch.where(infinite, values, transformed), log_slope

    def _inverse(self, transformed: Tensor) -> Tensor:
        return transformed if self.transform is None else self.transform.inverse(transformed)

    def draw_intervals(
        self, codes: Tensor, values: Tensor, intervals: Tensor, log_prob: Tensor, noise: Tensor
    ) -> Drawn:
        """Computes the log probabilities of the cells that stand for intervals of numbers, and
        samples a number in each interval; other cells keep their values and log probabilities.

        Args:
            codes: Codes of the cells. Shape: (N,).
            values: Values of the cells. Shape: (N,).
            intervals: Ends of each cell's interval; NaN for an exact cell. Shape: (N, 2).
            log_prob: Log probabilities of the cells. Shape: (N,).
            noise: Uniform noise. Shape: (N,).
        """
        assert self.marginal is not None, "a column of levels has no intervals"
        is_interval = (codes == self.point_code) & ~torch.isnan(intervals[:, 0])
        at = is_interval.nonzero()[:, 0]
        if not len(at):
            return Drawn(log_prob, codes, values)
        low, high = (self._forward(end)[0] for end in intervals[at].unbind(-1))
        log_inside, inside = self.marginal[at].double().draw_inside(low, high, noise[at])
        log_cell = self.log_beta[at, self.point_code].double() + log_inside
        return Drawn(
            log_prob.double().index_copy(0, at, log_cell),
            codes,
            values.index_copy(0, at, self._inverse(inside)),
        )


def padded_share(region: Region, n_codes: int) -> Tensor:
    """Returns the `log_share` of a region: 0 for a code that is allowed completely, -inf for one
    that is not allowed. It is padded with -inf to `n_codes` codes. Shape: (n, n_codes)."""
    missing = n_codes - region.log_share.shape[-1]
    return torch.nn.functional.pad(region.log_share, (0, missing), value=-torch.inf)
