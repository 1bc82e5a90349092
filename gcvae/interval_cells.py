"""Cells that stand for an interval of numbers: a rounding cell, a bin of the column's quantiles.

Under a refined model such a cell has the interval's mass, and the columns after it read a number
that is drawn inside: with its weight the mass, that is the integral over the interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gcvae.normal import log_interval, normal_cdf

if TYPE_CHECKING:
    from gcvae.refinement import ColumnDistribution


@dataclass(frozen=True)
class IntervalCells:
    """Cells of one column that stand for an interval of numbers, for N rows.

    Shape: at (k,), the rows that have such a cell; log_terms (k, M), the components' log masses of
    the interval; ends (k, M, 2), in their standard deviations; the others (k, M).
    """

    column: ColumnDistribution
    at: Tensor
    log_terms: Tensor
    ends: Tensor
    mean: Tensor
    sigma: Tensor

    @classmethod
    def of(cls, column: ColumnDistribution, codes: Tensor, intervals: Tensor) -> IntervalCells:
        """Where the code is the point code and there is an interval. Shape: (N,), (N, 2)."""
        is_interval = (codes == column.point_code) & ~torch.isnan(intervals[:, 0])
        at = is_interval.nonzero()[:, 0]
        if column.mixture is None or column.warp is None:
            nothing = intervals.new_zeros(0, 1)
            return cls(column, at[:0], nothing, nothing[..., None], nothing, nothing)
        log_weight, mean, log_sigma = column.components(column.mixture[at].double())
        warps, place = column.warp
        straight = [warps.straighten_column(end, place)[0] for end in intervals[at].unbind(-1)]
        ends = torch.stack([(s[:, None] - mean) / log_sigma.exp() for s in straight], dim=-1)
        log_terms = log_weight + log_interval(*ends.unbind(-1))
        return cls(column, at, log_terms, ends, mean, log_sigma.exp())

    def log_prob(self, log_cell: Tensor) -> Tensor:
        """`log_cell`, in these cells the log mass of the interval. Shape: (N,) -> (N,) float64."""
        log_code = self.column.log_beta[self.at, self.column.point_code].double()
        return log_cell.double().index_copy(0, self.at, log_code + self.log_terms.logsumexp(-1))

    def draw(self, values: Tensor, noise: Tensor) -> Tensor:
        """`values`, in these cells drawn from inside the interval. Shape: (N,), (N,) -> (N,)."""
        if not len(self.at):
            return values
        m, rest = inverted(torch.log_softmax(self.log_terms, -1), noise[self.at])
        low, high = self.ends[torch.arange(len(m)), m].unbind(-1)
        mean, sigma = (t.gather(-1, m[:, None])[:, 0] for t in (self.mean, self.sigma))
        is_upper = low > -high  # the nearer tail has the digits
        first, last = torch.where(is_upper, -high, low), torch.where(is_upper, -low, high)
        below, above = normal_cdf(first), normal_cdf(last)
        t = torch.special.ndtri(below + rest * (above - below)).clamp(first, last)
        assert self.column.warp is not None, "a mixture has its warp"
        warps, place = self.column.warp
        drawn = warps.bend_column(mean + sigma * torch.where(is_upper, -t, t), place)
        return values.index_copy(0, self.at, drawn)


def inverted(log_prob: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """(code, what is left of the noise): the code whose stretch of (0, 1) the noise falls into.

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
