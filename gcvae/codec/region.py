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


class WalkedColumn(Protocol):
    """Conditional distribution of one column given z and the earlier columns."""

    def draw_within(self, region: Region | None, noise: Tensor) -> Drawn:
        """Samples a cell in the region for each particle. Shape: noise (N,)."""


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

    @property
    def has_density(self) -> bool:
        """Whether a row's region is a point, which has a density instead of a probability."""
        return bool((self.lower == self.upper).any())
