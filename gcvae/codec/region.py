"""Region: the set of allowed cells of a column, for conditional generation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


@dataclass(frozen=True)
class Drawn:
    """Generated cells of one column for N particles (weighted partial rows).
    Shape: (N,) for each attribute.

    Attributes:
        log_prob: Log probability of the region from which the cell was drawn, float64.
        codes: Codes of the cells.
        values: Values of the cells.
    """

    log_prob: Tensor
    codes: Tensor
    values: Tensor

    @classmethod
    def to_fill(cls, noise: Tensor) -> Drawn:
        """Returns N cells with placeholder content, to be overwritten by `put`. Shape: noise
        (N,)."""
        log_prob, codes = (
            torch.zeros(len(noise), dtype=dtype) for dtype in (torch.float64, torch.int32)
        )
        return cls(log_prob, codes, torch.zeros_like(noise))

    def put(self, at: Tensor, part: Drawn) -> None:
        """Overwrites the cells of the k particles at the indices `at`, in place. Shape: at (k,)."""
        self.log_prob[at] = part.log_prob.double()
        self.codes[at] = part.codes.int()
        self.values[at] = part.values.to(self.values)


class WalkedColumn(Protocol):
    """Conditional distribution of one column, given the latent vector z and the columns generated
    before it."""

    def take(self, rows: Tensor) -> WalkedColumn:
        """Returns the distribution for the particles at these indices."""

    def draw_within(self, region: Region | None, noise: Tensor) -> Drawn:
        """Samples a cell in the region for each particle; None for no restriction. Shape: noise
        (N,)."""


NOWHERE = 38.0
"""Lower end of an empty interval: a normal score above which float64 represents no probability."""
_FEW_INTERVALS = 8


@dataclass(frozen=True)
class Region:
    """Allowed cells of one column, for each of n rows or, if n = 1, for all rows.

    Attributes:
        log_share: Log of the share of each of the K codes that is allowed: 0 if the code is allowed
            completely, -inf if not at all, between them for a group of which some levels are
            allowed. Shape: (n, K).
        lower: Lower ends of the m intervals of values that are allowed under the last code. An
            interval with equal ends is a point, which counts by its density.
            Shape: (n, m), float64.
        upper: Upper ends of the intervals. Shape: (n, m), float64.
    """

    log_share: Tensor
    lower: Tensor
    upper: Tensor

    @staticmethod
    def everything(n_codes: int) -> Region:
        """Returns the region that contains all cells of a column with `n_codes` codes, for all
        rows."""
        end = torch.full((1, 1), torch.inf, dtype=torch.float64)
        return Region(torch.zeros(1, n_codes, dtype=torch.float64), -end, end)

    def take(self, rows: Tensor | None) -> Region:
        """Returns the region for the rows at these indices; unchanged if it applies to all rows."""
        if rows is None or len(self.log_share) == 1:
            return self
        return Region(self.log_share[rows], self.lower[rows], self.upper[rows])

    def draw(self, column: WalkedColumn, noise: Tensor, codes: Tensor, values: Tensor) -> Drawn:
        """Samples a cell in the region for each of N particles, with the log probability of the
        region.

        `codes` and `values`, the particles' earlier cells, are ignored; they are part of the
        interface of `DependentCells`.
        """
        return column.draw_within(self, noise)

    def draw_by_size(self, column: WalkedColumn, noise: Tensor) -> Drawn:
        """Does the same as `draw` for N particles with separate regions, but faster if few of them
        have many intervals.

        The time of `draw` depends on the largest number of intervals in a row; this method draws
        rows with few intervals separately.
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
        """Whether the region of a row contains a single point, which has a density instead of a
        probability."""
        return bool((self.lower == self.upper).any())
