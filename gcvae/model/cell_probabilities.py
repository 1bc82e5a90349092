"""Conversion of a cell's marginal probabilities to the normal scores of a copula.

A *point* cell (a continuous value) has one normal score. An *interval* cell (a level, the missing
level) covers a stretch of the unit interval; the continuous extension puts the score at a random
place inside it, and the exact likelihood integrates over the stretch.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcvae.numerics.normal import normal_score_of_tails


@dataclass(frozen=True)
class CellProbabilities:
    """Probabilities of the cells of some rows under the marginals p_j(. | z).

    The probability below and above a cell are both kept, as logarithms, so that a score can be
    taken from the nearer tail. `score` is given for point cells (zero elsewhere) because a Gaussian
    marginal knows it exactly, (x - mu) / sigma, where Phi^-1(Phi(.)) would be infinite in float32
    from 5.4 sigma on.

    Shape of each field: (..., D), which broadcast against each other.
    """

    log_prob: Tensor
    """log p_j(x_j | z): log mass of an interval, log density of a point."""
    log_below: Tensor
    """log P(X_j < cell); -inf at the lower end. Interval cells only."""
    log_above: Tensor
    """log P(X_j > cell); -inf at the upper end. Interval cells only."""
    score: Tensor
    """Normal score q_j of a point cell, 0 for an interval."""
    is_point: Tensor
    """bool: point cells; the others are intervals."""

    def interval_bounds(self) -> tuple[Tensor, Tensor]:
        """Normal scores (lower, upper) of the two ends of each interval cell.

        For a point cell both are meaningless. Shape: two of (..., D).
        """
        lower = normal_score_of_tails(
            self.log_below, torch.logaddexp(self.log_above, self.log_prob)
        )
        upper = normal_score_of_tails(
            torch.logaddexp(self.log_below, self.log_prob), self.log_above
        )
        return lower, upper

    def jittered_scores(self, jitter: Tensor) -> Tensor:
        """Normal scores q = Phi^-1(F*(x - v)) of the continuous extension.

        With jitter v uniform on (0, 1), an interval cell has the uniform score
        u = P(below) + v p(cell). Point cells keep their own score.

        Shape: (..., D), as `jitter`.
        Source: Eq. (CE) and Eq. (GCVAE_norm_score).
        """
        below = torch.logaddexp(self.log_below, self.log_prob + jitter.log())
        above = torch.logaddexp(self.log_above, self.log_prob + torch.log1p(-jitter))
        extended = normal_score_of_tails(below, above)
        return torch.where(self.is_point, self.score, extended)
