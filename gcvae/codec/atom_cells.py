"""Removes intervals around frequent values (atoms) from the range of a column's other numbers.

A frequent value has its own code, so no other number may be rounded to it. Let a_1 < a_2 < ... be
the atoms and [a_i - h, a_i + h] their rounding cells: the numbers that are rounded to a_i. The map

    x -> x - sum_i clip(x - (a_i - h), 0, 2h)

shrinks each of these cells to a point. The cells of all other numbers cover the remaining axis
without gaps, so their probabilities add up to one and no number is rounded to an atom.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gcvae.arrays import Numbers
from gcvae.artifact.documents import Document

_NEAR = 1e-6
"""Ends of cells that differ by less than this share of a cell's width are treated as equal."""


@dataclass(frozen=True)
class RoundingCells(Document):
    """Rounding cells: intervals of the numbers that would be rounded to a frequent value.

    Attributes:
        atoms: Frequent values, which are the centres of the intervals, ascending.
        half_step: Half the width of an interval.
    """

    atoms: tuple[float, ...]
    half_step: float

    @cached_property
    def _lower_ends(self) -> Numbers:
        return np.asarray(self.atoms) - self.half_step

    @cached_property
    def _cuts(self) -> Numbers:
        """Positions to which `without_cells` shrinks the cells; adjacent cells share one."""
        cuts = self._lower_ends - self._width * np.arange(len(self.atoms))
        is_first = np.diff(cuts, prepend=-np.inf) > _NEAR * self._width
        one_each: Numbers = cuts[is_first][np.cumsum(is_first) - 1]
        return one_each

    @property
    def _width(self) -> float:
        return 2.0 * self.half_step

    def without_cells(self, positions: Numbers) -> Numbers:
        """Removes the cells (intervals around frequent values) from the axis of numbers, and
        returns the positions of n numbers on the shortened axis. All numbers of a cell get the same
        position. Shape: (n,) -> (n,)."""
        near = _NEAR * self._width
        n_below = np.searchsorted(self._lower_ends - near, positions, side="right")
        last = np.append(0.0, self._lower_ends)[n_below]  # 0 is not used: no cell lies below
        is_in = (n_below > 0) & (positions - last <= self._width + near)
        cuts = np.append(0.0, self._cuts)[n_below]
        return np.where(is_in, cuts, positions - self._width * n_below)

    def with_cells(self, positions: Numbers) -> Numbers:
        """Returns the numbers with n positions on the shortened axis, as the inverse of
        `without_cells`. Shape: (n,) -> (n,)."""
        n_below = np.searchsorted(self._cuts, positions, side="right")
        return positions + self._width * n_below
