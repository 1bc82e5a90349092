"""Region: the set of allowed cells of a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


@dataclass(frozen=True)
class Drawn:
    """Generated cells of one column for N particles. Shape: all (N,).

    `log_prob` is the log probability of the region, float64.
    """

    log_prob: Tensor
    codes: Tensor
    values: Tensor

    @classmethod
    def to_fill(cls, noise: Tensor) -> Drawn:
        """Returns N cells to be set by `put`. Shape: noise (N,)."""
        log_prob, codes = (
            torch.zeros(len(noise), dtype=dtype) for dtype in (torch.float64, torch.int32)
        )
        return cls(log_prob, codes, torch.zeros_like(noise))

    def put(self, at: Tensor, part: Drawn) -> None:
        """Sets the cells of some particles, in place. Shape: at (k,), their indices."""
        self.log_prob[at] = part.log_prob.double()
        self.codes[at] = part.codes.int()
        self.values[at] = part.values.to(self.values)


class WalkedColumn(Protocol):
    """Conditional distribution of one column given z and the earlier columns."""

    def take(self, rows: Tensor) -> WalkedColumn:
        """Returns the column of the particles with these numbers."""

    def draw_within(self, region: Region | None, noise: Tensor) -> Drawn:
        """Samples a cell in the region for each particle. Shape: noise (N,)."""


NOWHERE = 38.0
"""Normal score above which no double has a mass: the lower end of an empty interval."""
_FEW_INTERVALS = 8


@dataclass(frozen=True)
class Region:
    """Allowed cells of one column, for each of n rows, or for all rows (n = 1).

    Attributes:
        log_share: Log of the allowed share of each code: 0 for all of it, -inf for nothing; between
            for groups of levels. Shape: (n, K).
        lower: Lower ends of the allowed intervals of values under the last code. Equal ends are a
            point, which counts by its density. Shape: (n, m), float64.
        upper: Upper ends. Shape: (n, m), float64.
    """

    log_share: Tensor
    lower: Tensor
    upper: Tensor

    @staticmethod
    def everything(n_codes: int) -> Region:
        """Returns the region of all cells of a column with values, for all rows."""
        end = torch.full((1, 1), torch.inf, dtype=torch.float64)
        return Region(torch.zeros(1, n_codes, dtype=torch.float64), -end, end)

    def take(self, rows: Tensor | None) -> Region:
        """Returns the region of the rows with these indices; a region for all rows is unchanged."""
        if rows is None or len(self.log_share) == 1:
            return self
        return Region(self.log_share[rows], self.lower[rows], self.upper[rows])

    def draw(self, column: WalkedColumn, noise: Tensor, codes: Tensor, values: Tensor) -> Drawn:
        """Samples a cell in the region for each of N particles, with the region's log probability.

        `codes` and `values`, the earlier cells, are not used here.
        """
        return column.draw_within(self, noise)

    def draw_by_size(self, column: WalkedColumn, noise: Tensor) -> Drawn:
        """Returns a cell for each of N particles within the region, one for each row.

        The time of `draw` is that of the row with most intervals, for all rows; here rows of few
        intervals are drawn apart.
        """
        is_interval = self.lower < NOWHERE
        counts = is_interval.sum(-1)
        few = counts <= _FEW_INTERVALS
        if self.lower.shape[-1] <= _FEW_INTERVALS or not bool(few.any()):
            return column.draw_within(self, noise)
        drawn = Drawn.to_fill(noise)
        for is_here in (few, ~few):
            at = is_here.nonzero()[:, 0]
            if len(at):
                largest = max(int(counts[at].max()), 1)
                kept = (
                    is_interval[at].int().argsort(stable=True, dim=-1, descending=True)[:, :largest]
                )
                ends = (end[at].gather(-1, kept) for end in (self.lower, self.upper))
                own = Region(self.log_share[at], *ends)
                drawn.put(at, column.take(at).draw_within(own, noise[at]))
        return drawn

    @property
    def has_density(self) -> bool:
        """Whether a row's region is a point, which has a density instead of a probability."""
        return bool((self.lower == self.upper).any())
