"""Counts the rows of a real table in bins, without noise. Callers must not disclose the counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from gcvae.arrays import Codes

MOST_CELLS = 20_000
"""Maximum number of cells of a table of counts; in larger ones noise would dominate."""
MOST_CANDIDATES = 5_000
"""Maximum number of pairs of columns that may be counted; if there are more, they are sampled."""


@dataclass(frozen=True)
class BinnedRows:
    """Rows of a table, with each cell replaced by the index of its bin.

    Attributes:
        bins: Bin index of each cell of n rows. Shape: (n, D).
        sizes: Number of bins of each of the D columns.
        target: Index of a column that is counted together with every pair of columns; None to count
            pairs.
    """

    bins: Codes
    sizes: tuple[int, ...]
    target: int | None = None

    def one_way(self, column: int) -> Codes:
        """Returns the number of rows in each bin of a column. Shape: (number of bins,)."""
        return np.bincount(self.bins[:, column], minlength=self.sizes[column])

    def shape(self, pair: tuple[int, int]) -> tuple[int, ...]:
        """Returns the shape of the contingency table of two columns; the first dimension is that of
        the target column, if there is one."""
        a, b = pair
        target = () if self.target is None else (self.sizes[self.target],)
        return (*target, self.sizes[a], self.sizes[b])

    def table(self, pair: tuple[int, int]) -> Codes:
        """Returns the contingency table of two columns and the target column, if there is one: the
        number of rows with each combination of bins. Shape: `shape(pair)`."""
        axes = [*pair] if self.target is None else [self.target, *pair]
        shape = self.shape(pair)
        cells = np.ravel_multi_index(tuple(self.bins[:, axis] for axis in axes), shape)
        return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)


def candidate_pairs(
    sizes: Sequence[int], target: int | None, random: np.random.Generator
) -> list[tuple[int, int]]:
    """Returns the pairs of column indices that may be counted together.

    The target column is in none of the pairs, because it is counted with each of them. The
    contingency table of a pair, including the target, has at most `MOST_CELLS` cells.

    The choice depends only on numbers of bins, which are public, and on chance, so it costs no
    privacy budget.

    Args:
        sizes: Number of bins of each column.
        target: Index of the target column; None if there is none.
        random: Random generator that samples pairs if there are too many.
    """
    others = [j for j in range(len(sizes)) if j != target]
    n_levels = 1 if target is None else sizes[target]
    pairs = combinations(others, 2)
    if comb(len(others), 2) > MOST_CANDIDATES:
        drawn = random.permutation(comb(len(others), 2))[:MOST_CANDIDATES]
        kept = set(drawn.tolist())
        pairs = (pair for i, pair in enumerate(pairs) if i in kept)  # type: ignore[assignment]
    return [(a, b) for a, b in pairs if sizes[a] * sizes[b] * n_levels <= MOST_CELLS]
