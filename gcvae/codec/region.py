"""Region: the set of allowed cells of a column, for conditional generation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


@dataclass(frozen=True)
class Drawn:
    """Generated cells of one column for N particles (weighted partial rows). Shape: (N,) each.

    Attributes:
        log_prob: Log probability of the allowed cells among which the cell was sampled, float64.
        codes: Integer codes of the cells.
        values: Encoded real values of the cells.
    """

    log_prob: Tensor
    codes: Tensor
    values: Tensor

    @classmethod
    def to_fill(cls, noise: Tensor) -> Drawn:
        """Returns N empty cells, which `put` overwrites. `noise` gives their number N and the dtype
        of the values."""
        log_prob, codes = (
            torch.zeros(len(noise), dtype=dtype) for dtype in (torch.float64, torch.int32)
        )
        return cls(log_prob, codes, torch.zeros_like(noise))

    def put(self, at: Tensor, part: Drawn) -> None:
        """Overwrites the k cells at the indices `at` in place. Shape: at (k,)."""
        self.log_prob[at] = part.log_prob.double()
        self.codes[at] = part.codes.int()
        self.values[at] = part.values.to(self.values)


class ConditionalColumn(Protocol):
    """Distribution of one column in each of N particles (partly generated rows), given the latent
    vector z and the columns generated before it."""

    def take(self, rows: Tensor) -> ConditionalColumn:
        """Returns the distribution for the particles at these indices."""

    def draw_within(self, region: Region | None, noise: Tensor) -> Drawn:
        """Samples a cell for each of N particles, which are partly generated rows, among the cells
        that `region` allows (None: all cells). `noise` is uniform in (0, 1). Shape: noise (N,)."""


NOWHERE = 38.0
"""Lower end of an empty interval: a normal score above which float64 represents no probability."""
_FEW_INTERVALS = 8


@dataclass(frozen=True)
class Region:
    """Set of allowed cells of one column, for each of n rows or, if n = 1, for all rows.

    Attributes:
        log_share: Log of the allowed share of each of the K codes: 0 if the code is allowed
            completely, -inf if not at all. Shape: (n, K).
        lower: Lower ends of the m intervals that contain the allowed numbers, as encoded values.
            They apply to cells with the last code, which stands for numbers. An interval with equal
            ends is a point, which counts by its density. Shape: (n, m), float64.
        upper: Upper ends of the intervals. Shape: (n, m), float64.
    """

    log_share: Tensor
    lower: Tensor
    upper: Tensor

    @staticmethod
    def everything(n_codes: int) -> Region:
        """Returns the region of all cells of a column with `n_codes` codes, for all rows."""
        end = torch.full((1, 1), torch.inf, dtype=torch.float64)
        return Region(torch.zeros(1, n_codes, dtype=torch.float64), -end, end)

    def take(self, rows: Tensor | None) -> Region:
        """Returns the region for the rows at these indices; unchanged if it applies to all rows."""
        if rows is None or len(self.log_share) == 1:
            return self
        return Region(self.log_share[rows], self.lower[rows], self.upper[rows])

    def draw(
        self, column: ConditionalColumn, noise: Tensor, codes: Tensor, values: Tensor
    ) -> Drawn:
        """Samples an allowed cell for each of N particles, which are partly generated rows. Returns
        the cells, and for each particle the log of the total probability of its allowed cells.
        Shape: noise (N,), uniform.

        `codes` and `values`, the particles' earlier cells, are ignored; `DependentCells` uses them.
        """
        return column.draw_within(self, noise)

    def draw_by_size(self, column: ConditionalColumn, noise: Tensor) -> Drawn:
        """Samples cells like `draw`, but faster if only some particles have many allowed intervals:
        particles with at most eight intervals are sampled apart from the others. Shape: noise (N,),
        uniform."""
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
        """Whether some allowed interval is a single number, for which the distribution has a
        density instead of a probability."""
        return bool((self.lower == self.upper).any())
