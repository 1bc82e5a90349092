"""Converts marginal probabilities of cells to normal scores of a copula.

A *point* cell (a number) has one normal score. An *interval* cell (a level or a missing value)
covers an interval of probabilities; the continuous extension samples a score in this interval, and
the exact likelihood integrates over it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcvae.numerics.normal import normal_score_of_tails


@dataclass(frozen=True)
class CellProbabilities:
    """Probabilities of the cells of rows under the marginals p_j(. | z).

    The probabilities below and above a cell are stored as logarithms, so that normal scores can be
    computed from the smaller tail. The `score` of a number with a Gaussian marginal is stored as (x
    - mu) / sigma, because Phi^-1(Phi(.)) is infinite in float32 beyond 5.4 sigma. Shape: each field
    (..., D) for D columns; the fields broadcast against each other.
    """

    log_prob: Tensor
    """log p_j(x_j | z): log probability of an interval, log density of a point."""
    log_below: Tensor
    """log P(X_j < cell); -inf for the lowest cell. Only used for interval cells."""
    log_above: Tensor
    """log P(X_j > cell); -inf for the highest cell. Only used for interval cells."""
    score: Tensor
    """Normal score q_j of a point cell, 0 for an interval."""
    is_point: Tensor
    """bool; True for point cells, False for intervals."""

    def interval_bounds(self) -> tuple[Tensor, Tensor]:
        """Returns the normal scores of the lower and the upper end of the interval of probabilities
        that each level or missing value covers.

        The results for numbers, which are points, are undefined. Shape: two of (..., D), for D
        columns.
        """
        lower = normal_score_of_tails(
            self.log_below, torch.logaddexp(self.log_above, self.log_prob)
        )
        upper = normal_score_of_tails(
            torch.logaddexp(self.log_below, self.log_prob), self.log_above
        )
        return lower, upper

    def jittered_scores(self, jitter: Tensor) -> Tensor:
        """Returns normal scores q = Phi^-1(u) of cells, with levels at random points of their
        intervals.

        A level or missing value covers an interval of probabilities: u = P(below) + v p(cell), with
        the jitter v uniform on (0, 1) (continuous extension). A number's score does not depend on
        v.

        Shape: (..., D) for D columns, as `jitter`.
        Source: Eq. (CE) and Eq. (GCVAE_norm_score).
        """
        below = torch.logaddexp(self.log_below, self.log_prob + jitter.log())
        above = torch.logaddexp(self.log_above, self.log_prob + torch.log1p(-jitter))
        extended = normal_score_of_tails(below, above)
        return torch.where(self.is_point, self.score, extended)
