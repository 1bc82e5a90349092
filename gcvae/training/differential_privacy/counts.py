"""Exact counts of a real table in bins, before noise is added. Callers must not disclose them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from gcvae.arrays import Codes

MOST_CELLS = 20_000
"""Larger tables of counts are never measured, because noise would dominate."""
MOST_CANDIDATES = 5_000
"""Maximum number of candidate pairs; a random subset if there are more."""


@dataclass(frozen=True)
class BinnedRows:
    """Rows of a table, each cell replaced by its bin.

    Shape: bins (n, D); sizes (D,), the number of bins of each column.

    Attributes:
        target: The column that is counted together with every pair; None for pairs only.
    """

    bins: Codes
    sizes: tuple[int, ...]
    target: int | None = None

    def one_way(self, column: int) -> Codes:
        """Returns the number of rows in each bin of a column. Shape: (n_j,)."""
        return np.bincount(self.bins[:, column], minlength=self.sizes[column])

    def shape(self, pair: tuple[int, int]) -> tuple[int, ...]:
        """Returns the shape of a pair's table; the target's axis is first, if there is one."""
        a, b = pair
        target = () if self.target is None else (self.sizes[self.target],)
        return (*target, self.sizes[a], self.sizes[b])

    def table(self, pair: tuple[int, int]) -> Codes:
        """Returns the number of rows in each cell of a pair's table. Shape: `shape(pair)`."""
        axes = [*pair] if self.target is None else [self.target, *pair]
        shape = self.shape(pair)
        cells = np.ravel_multi_index(tuple(self.bins[:, axis] for axis in axes), shape)
        return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)


def candidate_pairs(
    sizes: Sequence[int], target: int | None, random: np.random.Generator
) -> list[tuple[int, int]]:
    """Returns the pairs of columns that may be measured: without the target, and of limited size.

    The choice depends on the number of bins, which is public, and on chance, so it costs no
    privacy.
    """
    others = [j for j in range(len(sizes)) if j != target]
    n_levels = 1 if target is None else sizes[target]
    pairs = combinations(others, 2)
    if comb(len(others), 2) > MOST_CANDIDATES:
        drawn = random.permutation(comb(len(others), 2))[:MOST_CANDIDATES]
        kept = set(drawn.tolist())
        pairs = (pair for i, pair in enumerate(pairs) if i in kept)  # type: ignore[assignment]
    return [(a, b) for a, b in pairs if sizes[a] * sizes[b] * n_levels <= MOST_CELLS]
