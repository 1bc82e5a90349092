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
from dataclasses import asdict, dataclass
from math import prod
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from gcvae.numerics.permutations import Numbers, mixed, shuffled, unshuffled
from gcvae.numerics.seeds import derived_seed

DIGITS = "0123456789"
MOST_COUNTED = 1 << 62
"""Maximum number of values in a counter."""
_SCATTER = 0x5CA77E12
"""Key that determines the permutation in `scattered`."""
Alphabets = tuple[str, ...]
Characters = npt.NDArray[np.uint32]
"""Code points of equally long texts. Shape: (n, length)."""


@dataclass(frozen=True)
class Counter:
    """Set of the numbers from which synthetic keys are made: low, ..., low + size - 1, or only
    those with certain residues after a fixed permutation.

    Attributes:
        low: Smallest number; 0 if there are residues.
        size: Number of consecutive numbers.
        modulus: Modulus of the residues.
        residues: If not empty, the set contains only numbers whose permuted value (`scattered`) has
            one of these residues.
    """

    low: int
    size: int
    modulus: int = 1
    residues: tuple[int, ...] = ()

    @property
    def room(self) -> int:
        """How many numbers the counter contains."""
        return self.size // self.modulus * len(self.residues) if self.residues else self.size

    def numbers(self, index: Numbers, key: int) -> Numbers:
        """Returns the counter's number at each of n indices from 0 to `room` - 1, in a
        pseudo-random order that the seed `key` determines. Shape: (n,) -> (n,)."""
        found = shuffled(index, self.room, key)
        if self.residues:
            times, which = np.divmod(found, np.uint64(len(self.residues)))
            found = np.array(self.residues, dtype=np.uint64)[which]
            found += np.uint64(self.modulus) * times
            found = unshuffled(found, self.size, _SCATTER)
        return found + np.uint64(self.low)


def scattered(numbers: Numbers, size: int) -> Numbers:
    """Applies a fixed pseudo-random permutation of 0, ..., size - 1 to each number. Shape: (n,) ->
    (n,)."""
    return shuffled(numbers, size, _SCATTER)


@dataclass(frozen=True)
class KeyTemplate:
    """Format of keys, such as SO-2025-000017, from which synthetic keys are generated.

    Attributes:
        tiers: Pairs of the characters allowed at each position, in code point order, and a counter
            of the unused numbers. When it is used up, the next pair, with longer keys, follows.
        at: Position whose characters are repeated to make keys longer when all pairs are used up.
        step: Number of characters by which keys then grow each time.
    """

    tiers: tuple[tuple[Alphabets, Counter], ...]
    at: int
    step: int = 1

    @property
    def room(self) -> int:
        """Number of keys that can be generated before keys become longer."""
        return self.tiers[0][1].room

    def keys(self, index: Numbers, rows: Numbers, origin: str) -> npt.NDArray[Any]:
        """Returns n synthetic keys as strings. Shape: (n,), (n,) -> (n,).

        Args:
            index: Index of each key; different indices give different keys.
            rows: Row numbers, which determine the characters that do not represent the index.
            origin: String that seeds the random numbers: seed and name of the column.
        """
        keys = np.empty(len(index), dtype=object)
        start, last = 0, int(index.max()) if len(index) else -1
        for number, (alphabets, counter) in enumerate(self._tiers()):
            if start > last:
                break
            within = (index >= start) & (index < start + counter.room)
            if within.any():
                key = derived_seed(origin, "keys", str(number))
                numbers = counter.numbers(index[within] - np.uint64(start), key)
                keys[within] = _texts_of(alphabets, numbers, rows[within], origin)
            start += counter.room
        return keys

    def _tiers(self) -> Iterator[tuple[Alphabets, Counter]]:
        """Yields the tiers, then ever longer ones."""
        yield from self.tiers
        found, _ = self.tiers[-1]
        while True:
            found = *found[: self.at], *[found[self.at]] * self.step, *found[self.at :]
            yield found, Counter(0, size_of(found, counted_positions(found)))

    def to_json(self) -> dict[str, Any]:
        """Returns the template as a JSON document, which `from_json` reads."""
        tiers = [{"alphabets": list(own), **asdict(counter)} for own, counter in self.tiers]
        return {"tiers": tiers, "at": self.at, "step": self.step}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Restores the template from the JSON document that `to_json` returned.

        Raises:
            IndexError, KeyError, TypeError, ValueError: The document is invalid.
        """
        tiers = []
        for tier in document["tiers"]:
            numbers = {name: tier[name] for name in ("low", "size", "modulus")}
            counter = Counter(**numbers, residues=tuple(tier["residues"]))
            tiers.append((tuple(tier["alphabets"]), counter))
        last, at, step = tiers[-1][0], int(document["at"]), int(document["step"])
        if not all(letters for own, _ in tiers for letters in own):
            raise ValueError("a template of keys has a position without a character")
        if at < 0 or step < 1 or len(last[at]) < 2:
            raise ValueError("a template of keys runs out")
        return cls(tuple(tiers), at, step)


def counted_positions(alphabets: Alphabets) -> tuple[int, ...]:
    """Returns those positions of a key, given the characters allowed at each, that represent a
    number: the largest number of variable positions from the right that gives at most MOST_COUNTED
    strings."""
    found: tuple[int, ...] = ()
    for place in reversed(range(len(alphabets))):
        if size_of(alphabets, (place, *found)) > MOST_COUNTED:
            break
        if len(alphabets[place]) > 1:
            found = place, *found
    return found


def size_of(alphabets: Alphabets, places: tuple[int, ...]) -> int:
    """Returns how many different strings the characters allowed at the positions `places` can
    form."""
    return prod(len(alphabets[place]) for place in places)


def characters_of(texts: npt.NDArray[Any] | list[str], length: int) -> Characters:
    """Returns the code points of n strings, all of length `length`. Shape: (n,) -> (n, length)."""
    characters: Characters = np.array(texts, dtype=f"U{length}").view(np.uint32)
    return characters.reshape(len(texts), length)


def _texts_of(
    alphabets: Alphabets, numbers: Numbers, rows: Numbers, origin: str
) -> npt.NDArray[Any]:
    """Returns texts with the numbers at the counted positions, and pseudo-random characters
    elsewhere. Shape: (n,), (n,) -> (n,)."""
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
