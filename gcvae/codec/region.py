"""Region of possible cells of a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


@dataclass(frozen=True)
class Drawn:
    """Cells of one column for N particles. Shape: all (N,); log_prob of the region, float64."""

    log_prob: Tensor
    codes: Tensor
    values: Tensor


class WalkedColumn(Protocol):
    """One column, given the latents and the columns that came."""

    def draw_within(self, region: Region | None, noise: Tensor) -> Drawn:
        """Returns a cell within a region for each particle. Shape: noise (N,)."""


@dataclass(frozen=True)
class Region:
    """The cells of one column that are possible, for each of n rows, or for all alike (n = 1).

    Attributes:
        log_share: log of the share of each code that is possible: 0 all of it, -inf nothing; in
            between for a group of which some levels are. Shape: (n, K).
        lower: Ends of the intervals of values that are possible under the point code; where both
            ends are equal it is a point, which counts by its density. Shape: (n, m), float64.
        upper: The same.
    """

    log_share: Tensor
    lower: Tensor
    upper: Tensor

    @staticmethod
    def everything(n_codes: int) -> Region:
        """Every cell of a column with values is possible, for all rows."""
        end = torch.full((1, 1), torch.inf, dtype=torch.float64)
        return Region(torch.zeros(1, n_codes, dtype=torch.float64), -end, end)

    def take(self, rows: Tensor | None) -> Region:
        """Returns the region of these rows; the region itself where it is that of all rows."""
        if rows is None or len(self.log_share) == 1:
            return self
        return Region(self.log_share[rows], self.lower[rows], self.upper[rows])

    def draw(self, column: WalkedColumn, noise: Tensor, codes: Tensor, values: Tensor) -> Drawn:
        """Returns a cell for each of N particles within the region, and the region's probability.

        The cells before the column, `codes` and `values`, say nothing here.
        """
        return column.draw_within(self, noise)

    @property
    def has_density(self) -> bool:
        """True where some row's condition is a point: of density, not of probability."""
        return bool((self.lower == self.upper).any())
