"""Exact counts of a real table in bins: what noise is added to. Nothing here may leave unnoised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from gcvae.arrays import Codes

MOST_CELLS = 20_000
"""Larger tables of pairs are never measured: their cells would be noise."""
MOST_CANDIDATES = 5_000
"""Pairs among which is chosen; of more, as many are taken by chance."""


@dataclass(frozen=True)
class BinnedRows:
    """The rows of a table by the bins of their cells.

    Shape: bins (n, D), sizes (D,) – bins of each column; a row is in one bin of each.

    Attributes:
        target: The column that stands in every table of counts beside a pair; None for pairs alone.
    """

    bins: Codes
    sizes: tuple[int, ...]
    target: int | None = None

    def one_way(self, column: int) -> Codes:
        """Returns the number of rows in each bin of a column. Shape: (n_j,)."""
        return np.bincount(self.bins[:, column], minlength=self.sizes[column])

    def shape(self, pair: tuple[int, int]) -> tuple[int, ...]:
        """Returns the shape of a pair's table: its target comes first, if there is one."""
        a, b = pair
        target = () if self.target is None else (self.sizes[self.target],)
        return (*target, self.sizes[a], self.sizes[b])

    def table(self, pair: tuple[int, int]) -> Codes:
        """How many rows are in each cell of a pair's table; a row is in one."""
        axes = [*pair] if self.target is None else [self.target, *pair]
        shape = self.shape(pair)
        cells = np.ravel_multi_index(tuple(self.bins[:, axis] for axis in axes), shape)
        return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)


def candidate_pairs(
    sizes: Sequence[int], target: int | None, random: np.random.Generator
) -> list[tuple[int, int]]:
    """Returns the pairs of columns that may be measured: neither is the target, and no table is too
    large.

    A pair is left out by the number of its bins, which is public; chance takes no part in privacy.
    """
    others = [j for j in range(len(sizes)) if j != target]
    n_levels = 1 if target is None else sizes[target]
    pairs = combinations(others, 2)
    if comb(len(others), 2) > MOST_CANDIDATES:
        drawn = random.permutation(comb(len(others), 2))[:MOST_CANDIDATES]
        kept = set(drawn.tolist())
        pairs = (pair for i, pair in enumerate(pairs) if i in kept)  # type: ignore[assignment]
    return [(a, b) for a, b in pairs if sizes[a] * sizes[b] * n_levels <= MOST_CELLS]
