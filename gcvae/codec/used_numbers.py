"""Finds numbers that no original uses, by gaps in the range of numbers or by unused residues."""

from __future__ import annotations

from itertools import pairwise
from math import ceil

import numpy as np

from gcvae.codec.key_template import Counter, scattered
from gcvae.numerics.permutations import Numbers

_PARTS = 100  # parts of the range; the positions of originals are recorded only by part
_MOST_MODULUS, _LEAST_MODULUS = 1 << 24, 1 << 4
_MOST_RESIDUES = 2048
_RESIDUES_KEPT = 0.5  # share of the unused residues; storing all would disclose the used ones


class UsedNumbers:
    """Records which numbers from 0 to `size` - 1 a table of `n_rows` rows uses, without storing the
    numbers."""

    def __init__(self, size: int, n_rows: int) -> None:
        self._size = size
        self._step = -(-size // _PARTS)
        self._parts = np.zeros(-(-size // self._step), dtype=bool)
        modulus = min(max(1 << (2 * n_rows).bit_length(), _LEAST_MODULUS), _MOST_MODULUS)
        self._residues = np.zeros(min(modulus, 1 << (size.bit_length() - 1)), dtype=bool)

    def add(self, numbers: Numbers) -> None:
        """Marks the given numbers as used. Shape: (n,)."""
        self._parts[numbers // np.uint64(self._step)] = True
        residues = scattered(numbers, self._size) % np.uint64(len(self._residues))
        self._residues[residues] = True

    def counter(self) -> Counter:
        """Returns the largest of several candidate sets of unused numbers.

        Candidates are the numbers beyond all used ones, a gap if it is more than twice as wide, and
        the numbers with unused residues modulo powers of two. A large modulus has few numbers for
        each residue, a small one few unused residues.
        """
        gaps = list(pairwise([-1, *np.flatnonzero(self._parts).tolist(), len(self._parts)]))
        last = gaps[-1]
        first, end = max(gaps, key=lambda gap: (gap[1] - gap[0] - 1) * (1 + (gap == last)))
        low, high = (first + 1) * self._step, min(end * self._step, self._size)
        found, used = [Counter(low, high - low)], self._residues
        while len(used):
            free = np.flatnonzero(~used)
            kept = free[: min(_MOST_RESIDUES, ceil(_RESIDUES_KEPT * len(free)))].tolist()
            found += [Counter(0, self._size, len(used), tuple(kept))] if kept else []
            half = len(used) // 2
            used = used[:half] | used[half : 2 * half]
        return max(found, key=lambda counter: counter.room)
