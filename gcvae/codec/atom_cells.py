"""The axis of a rounded number without the cells of its atoms.

An atom is a code of its own, so that no other number is drawn in its cell. With atoms a_1 < a_2 ...
and cells of width 2h, [a_i - h, a_i + h],

    x -> x - sum_i clip(x - (a_i - h), 0, 2h)

takes these cells out: what is left of the axis is tiled by the cells of the other numbers. Their
masses then add up to one, and none of the drawn numbers is rounded to an atom.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gcvae.arrays import Numbers

_NEAR = 1e-6
"""Of a cell's width; ends that are so near are one, for what lies between them has no rows."""


@dataclass(frozen=True)
class AtomCells:
    """The cells that are taken out of an axis.

    Attributes:
        atoms: Their middles, ascending.
        half_step: Half of their width.
    """

    atoms: tuple[float, ...]
    half_step: float

    @cached_property
    def _lower_ends(self) -> Numbers:
        return np.asarray(self.atoms) - self.half_step

    @cached_property
    def _cuts(self) -> Numbers:
        """Where the cells were, on the axis without them; those of neighbours are one place."""
        cuts = self._lower_ends - self._width * np.arange(len(self.atoms))
        is_first = np.diff(cuts, prepend=-np.inf) > _NEAR * self._width
        one_each: Numbers = cuts[is_first][np.cumsum(is_first) - 1]
        return one_each

    @property
    def _width(self) -> float:
        return 2.0 * self.half_step

    def taken_out(self, positions: Numbers) -> Numbers:
        """Places on the axis without the cells; a cell and its ends are one place. Shape: (n,)."""
        near = _NEAR * self._width
        n_below = np.searchsorted(self._lower_ends - near, positions, side="right")
        last = np.append(0.0, self._lower_ends)[n_below]  # below all cells it is not used
        is_in = (n_below > 0) & (positions - last <= self._width + near)
        cuts = np.append(0.0, self._cuts)[n_below]
        places: Numbers = np.where(is_in, cuts, positions - self._width * n_below)
        return places

    def put_back(self, places: Numbers) -> Numbers:
        """Positions on the axis with the cells, none of them in one. Shape: (n,)."""
        n_below = np.searchsorted(self._cuts, places, side="right")
        positions: Numbers = places + self._width * n_below
        return positions
