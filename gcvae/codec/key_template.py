"""Templates of keys (key formats): an alphabet for each position of the text, and a counter.

    key          S  O  -  2  0  2  5  -  0  0  4  1  7  7
    alphabets    S  O  -  2  0  2  5  -  d  d  d  d  d  d     one character is a literal
    counter                              004000 .. 999999     shuffled by the seed

Key i is the i-th number of the shuffled counter, written in the alphabets of the variable
positions. The counter excludes the numbers of the table's keys, so synthetic keys are unique and
never equal an original. When it is used up, keys become a digit longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil, prod
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from gcvae.artifact.documents import Document
from gcvae.numerics.permutations import Numbers, mixed, shuffled, unshuffled
from gcvae.numerics.seeds import derived_seed

DIGITS = "0123456789"
MOST_COUNTED = 1 << 62
"""Maximum number of values in a counter."""
_SCATTER = 0x5CA77E12
"""Seed of the permutation that is applied to numbers before their residues are computed."""
_PARTS = 100  # parts of the range of numbers; only the part of the largest original is recorded
_MOST_MODULUS, _LEAST_MODULUS = 1 << 24, 1 << 4
_MOST_RESIDUES = 2048
_RESIDUES_KEPT = 0.5  # share of unused residues that are stored; all would disclose the used ones
Alphabets = tuple[str, ...]
Characters = npt.NDArray[np.uint32]
"""Code points of equally long texts. Shape: (n, length)."""


@dataclass(frozen=True)
class NumberSet(Document):
    """Set of the numbers from which synthetic keys are made.

    Attributes:
        low: Smallest number; 0 if there are residues.
        size: Number of consecutive whole numbers from `low` on; the set contains all or some of
            them.
        modulus: Divisor that gives the residues.
        residues: Residues (remainders) of the numbers in the set. Before the division, a fixed
            pseudo-random permutation replaces each number by another, so that residues are
            scattered even if numbers have a pattern, such as multiples of 10. Empty if the set
            contains all consecutive numbers.
    """

    low: int
    size: int
    modulus: int = 1
    residues: tuple[int, ...] = ()

    @property
    def room(self) -> int:
        """How many numbers the set contains."""
        return self.size // self.modulus * len(self.residues) if self.residues else self.size

    def numbers(self, index: Numbers, key: int) -> Numbers:
        """Returns n numbers of the set, given their indices in a pseudo-random order of the set.
        Indices are from 0 to `room` - 1, and the seed `key` determines the order. Shape: (n,) ->
        (n,)."""
        found = shuffled(index, self.room, key)
        if self.residues:
            times, which = np.divmod(found, np.uint64(len(self.residues)))
            found = np.array(self.residues, dtype=np.uint64)[which]
            found += np.uint64(self.modulus) * times
            found = unshuffled(found, self.size, _SCATTER)
        return found + np.uint64(self.low)


class UsedNumbers:
    """Records which numbers from 0 to `size` - 1 a table of `n_rows` rows uses. To limit memory, it
    stores only an upper bound, and residues modulo a power of two (see `NumberSet`)."""

    def __init__(self, size: int, n_rows: int) -> None:
        self._size = size
        self._step, self._first_free = -(-size // _PARTS), 0
        modulus = min(max(1 << (2 * n_rows).bit_length(), _LEAST_MODULUS), _MOST_MODULUS)
        self._residues = np.zeros(min(modulus, 1 << (size.bit_length() - 1)), dtype=bool)

    def add(self, numbers: Numbers) -> None:
        """Marks the given numbers as used. Shape: (n,)."""
        if not len(numbers):
            return
        self._first_free = max(self._first_free, int(numbers.max()) // self._step + 1)
        residues = shuffled(numbers, self._size, _SCATTER) % np.uint64(len(self._residues))
        self._residues[residues] = True

    def unused_numbers(self) -> NumberSet:
        """Returns the largest of several sets of unused numbers. The first set has the numbers
        beyond all used numbers. Each other set has the numbers with unused residues modulo a power
        of two.

        Several powers are compared, because a large modulus has few numbers for each residue, and a
        small modulus has few unused residues.
        """
        low = min(self._first_free * self._step, self._size)
        found, used = [NumberSet(low, self._size - low)], self._residues
        while len(used):
            free = np.flatnonzero(~used)
            kept = free[: min(_MOST_RESIDUES, ceil(_RESIDUES_KEPT * len(free)))].tolist()
            found += [NumberSet(0, self._size, len(used), tuple(kept))] if kept else []
            half = len(used) // 2
            used = used[:half] | used[half : 2 * half]
        return max(found, key=lambda numbers: numbers.room)


@dataclass(frozen=True)
class KeyTier(NumberSet):
    """Keys of one length: the characters allowed at each position, in code point order, and the
    numbers that the table's keys do not use."""

    alphabets: Alphabets = ()


@dataclass(frozen=True)
class KeyTemplate(Document):
    """Format of keys, such as SO-2025-000017, from which synthetic keys are generated.

    Attributes:
        tiers: Sets of keys, each of one length, which are used one after the other; the later ones
            are longer.
        at: Position whose characters are repeated to make keys longer when all tiers are used up.
        step: Number of characters by which keys then grow each time.
        rows: Number of rows with such a key among 1,000 consecutive rows
            (`identifiers.CYCLE_ROWS`).
    """

    tiers: tuple[KeyTier, ...]
    at: int
    step: int
    rows: int

    @property
    def room(self) -> int:
        """Number of keys that can be generated before keys become longer."""
        return self.tiers[0].room

    def keys(self, index: Numbers, rows: Numbers, origin: str) -> npt.NDArray[Any]:
        """Returns n synthetic keys as strings. Shape: (n,), (n,) -> (n,).

        Args:
            index: Index of each key; different indices give different keys.
            rows: Row numbers, which determine the characters that do not represent the index.
            origin: String that seeds the random numbers.
        """
        keys = np.empty(len(index), dtype=object)
        start, last = 0, int(index.max()) if len(index) else -1
        for number, tier in enumerate(self._tiers()):
            if start > last:
                break
            within = (index >= start) & (index < start + tier.room)
            if within.any():
                key = derived_seed(origin, "keys", str(number))
                numbers = tier.numbers(index[within] - np.uint64(start), key)
                keys[within] = _texts_of(tier.alphabets, numbers, rows[within], origin)
            start += tier.room
        return keys

    def _tiers(self) -> Iterator[KeyTier]:
        """Yields the stored tiers, then an infinite sequence of ever longer ones."""
        yield from self.tiers
        found = self.tiers[-1].alphabets
        while True:
            found = *found[: self.at], *[found[self.at]] * self.step, *found[self.at :]
            yield KeyTier(0, size_of(found, counted_positions(found)), alphabets=found)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        found = super().from_json(document)
        if not all(letters for tier in found.tiers for letters in tier.alphabets):
            raise ValueError("a template of keys has a position without a character")
        if found.at < 0 or found.step < 1 or len(found.tiers[-1].alphabets[found.at]) < 2:
            raise ValueError("a template of keys runs out")
        return found


def counted_positions(alphabets: Alphabets) -> tuple[int, ...]:
    """Returns the positions of a key whose characters represent a number: from the right, as many
    variable positions as give at most MOST_COUNTED strings."""
    found: tuple[int, ...] = ()
    for place in reversed(range(len(alphabets))):
        if size_of(alphabets, (place, *found)) > MOST_COUNTED:
            break
        if len(alphabets[place]) > 1:
            found = place, *found
    return found


def size_of(alphabets: Alphabets, places: tuple[int, ...]) -> int:
    """Returns how many strings the characters allowed at the positions `places` can form."""
    return prod(len(alphabets[place]) for place in places)


def characters_of(texts: npt.NDArray[Any] | list[str], length: int) -> Characters:
    """Returns the code points of n strings of equal length. Shape: (n,) -> (n, length)."""
    characters: Characters = np.array(texts, dtype=f"U{length}").view(np.uint32)
    return characters.reshape(len(texts), length)


def _texts_of(
    alphabets: Alphabets, numbers: Numbers, rows: Numbers, origin: str
) -> npt.NDArray[Any]:
    """Returns texts with the given numbers at the counted positions, and pseudo-random characters
    elsewhere."""
    written = np.empty((len(numbers), len(alphabets)), dtype=np.uint32)
    places = counted_positions(alphabets)
    for place in reversed(range(len(alphabets))):
        letters = characters_of([alphabets[place]], len(alphabets[place]))[0]
        if place in places:
            numbers, which = np.divmod(numbers, np.uint64(len(letters)))
        else:
            which = mixed(rows, derived_seed(origin, str(place))) % np.uint64(len(letters))
        written[:, place] = letters[which]
    return written.view(f"U{len(alphabets)}").reshape(len(written)).astype(object)
