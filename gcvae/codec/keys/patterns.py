"""Patterns of synthetic keys: a text of fixed length, some of whose characters count.

    text       I N V - 2 0 2 4 - _ _ _ _ _      characters that many rows of the table share
    alphabets                    0-9 each       of the characters that do not stand in the text
    counter                      01201 .. 99999, shuffled by the seed

The counter makes each key its own, and keeps it from the originals: it counts through numbers that
no original has. Where it has run out, keys grow by a digit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import accumulate
from math import prod
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from gcvae.numerics.permutations import Numbers, mixed, shuffled, unshuffled
from gcvae.numerics.seeds import derived_seed

DIGITS = "0123456789"
MOST_COUNTED = 1 << 62
"""Numbers of a counter; further characters are drawn without being counted."""
_DIGITS_OF_63_BITS = 18
_SCATTER = 0x5CA77E12
"""The key of the permutation whose residues keep random keys from the originals."""
Characters = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Counter:
    """Numbers that no original has, written into the characters of some places.

    The numbers are low .. low + size - 1; the last place is the fastest. With a modulus only those
    x come whose `unshuffled` place has one of the residues.

    Attributes:
        places: Of the characters, from the left.
        residues: Modulo `modulus`; () for all.
    """

    places: tuple[int, ...]
    low: int
    size: int
    modulus: int = 1
    residues: tuple[int, ...] = ()

    @property
    def room(self) -> int:
        """How many numbers come."""
        return self.size // self.modulus * len(self.residues) if self.residues else self.size

    def numbers(self, index: Numbers, key: int) -> Numbers:
        """The numbers of some keys, each its own. Shape: (n,), index in [0, room)."""
        found = shuffled(index, self.room, key)
        if self.residues:
            times, which = np.divmod(found, np.uint64(len(self.residues)))
            places = np.array(self.residues, dtype=np.uint64)[which]
            places += np.uint64(self.modulus) * times
            found = unshuffled(places, self.size, _SCATTER)
        return found + np.uint64(self.low)


def scattered(numbers: Numbers, size: int) -> Numbers:
    """Where numbers of a counter stand before `modulus` is taken. Shape: (n,), in [0, size)."""
    return shuffled(numbers, size, _SCATTER)


@dataclass(frozen=True)
class Growth:
    """What comes once the counter has run out: a number without leading zeros in place of some
    characters.

    Attributes:
        first, end: The characters; none where they are the same.
        width: Digits of the number; once all are taken it has `step` digits more.
    """

    first: int
    end: int
    width: int
    step: int = 1


@dataclass(frozen=True)
class KeyPattern:
    """Keys of one form.

    Attributes:
        texts: Equally long; a key has one of them.
        shares: Of the texts.
        alphabets: For each place its characters; "" where those of the text stand.
    """

    texts: tuple[str, ...]
    shares: tuple[float, ...]
    alphabets: tuple[str, ...]
    counter: Counter
    growth: Growth

    @property
    def room(self) -> int:
        """How many keys there are before they grow."""
        return self.counter.room

    def times(self, sign: str) -> int | None:
        """How often every key has a sign; None where some may have it more often than others."""
        if any(sign in alphabet and alphabet != sign for alphabet in self.alphabets):
            return None
        counts = {text.count(sign) for text in self.texts}
        return counts.pop() + self.alphabets.count(sign) if len(counts) == 1 else None

    def keys(self, index: Numbers, rows: Numbers, origin: str) -> npt.NDArray[Any]:
        """Keys as texts. Shape: (n,), (n,) -> (n,).

        Args:
            index: Which key of the pattern it is; another number is another key.
            rows: Numbers from which the characters that are not counted are drawn.
            origin: The seed, and whose keys they are.
        """
        keys = np.empty(len(index), dtype=object)
        start = 0
        for number, (width, room) in enumerate(self._tiers()):
            within = (index >= start) & (index < start + room)
            if within.any():
                place = index[within] - np.uint64(start)
                key = derived_seed(origin, "keys", str(number))
                drawn = self._drawn(rows[within], origin)
                keys[within] = self._written(drawn, place, key, width)
            start += room
            if not len(index) or start > int(index.max()):
                break
        return keys

    def _tiers(self) -> Iterator[tuple[int | None, int]]:
        """(digits of the growth, how many keys) of the keys as they are, and each time grown."""
        yield None, self.room
        width = self.growth.width
        while width <= _DIGITS_OF_63_BITS:
            yield width, 10**width - 10 ** (width - 1)
            width += self.growth.step

    def _drawn(self, rows: Numbers, origin: str) -> Characters:
        """The characters before any is counted. Shape: (n,) -> (n, length)."""
        texts = _characters(self.texts)
        drawn = mixed(rows, derived_seed(origin, "texts"))
        edges = [round(edge * 2.0**53) for edge in accumulate(self.shares)][:-1]
        which = np.searchsorted(
            np.array(edges, dtype=np.uint64), drawn >> np.uint64(11), side="right"
        )
        found: Characters = texts[which]
        for place, alphabet in enumerate(self.alphabets):
            if alphabet:
                letters = mixed(rows, derived_seed(origin, str(place))) % np.uint64(len(alphabet))
                found[:, place] = _characters([alphabet])[0][letters]
        return found

    def _written(
        self, drawn: Characters, index: Numbers, key: int, width: int | None
    ) -> npt.NDArray[Any]:
        """The texts with their numbers, of the growth's width where it is given. Shape: (n,)."""
        if width is None:
            numbers = self.counter.numbers(index, key)
            for place in reversed(self.counter.places):
                alphabet = self.alphabets[place]
                numbers, letters = np.divmod(numbers, np.uint64(len(alphabet)))
                drawn[:, place] = _characters([alphabet])[0][letters]
            return joined_texts(drawn)
        low = 10 ** (width - 1)
        numbers = shuffled(index, 9 * low, key) + np.uint64(low)
        digits = np.empty((len(numbers), width), dtype=np.uint32)
        for place in reversed(range(width)):
            numbers, digit = np.divmod(numbers, np.uint64(10))
            digits[:, place] = digit + np.uint64(ord("0"))
        first, end = self.growth.first, self.growth.end
        return joined_texts(np.concatenate([drawn[:, :first], digits, drawn[:, end:]], axis=1))

    def to_json(self) -> dict[str, Any]:
        """What `from_json` needs."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The pattern of a document that `to_json` wrote."""
        counter = document["counter"]
        lists = {name: tuple(counter[name]) for name in ("places", "residues")}
        return cls(
            tuple(document["texts"]),
            tuple(document["shares"]),
            tuple(document["alphabets"]),
            Counter(**counter | lists),
            Growth(**document["growth"]),
        )


def numbered_pattern(prefix: str, width: int) -> KeyPattern:
    """A prefix and a number of so many digits."""
    alphabets = ("",) * len(prefix) + (DIGITS,) * width
    places = tuple(range(len(prefix), len(alphabets)))
    return KeyPattern(
        (prefix + " " * width,),
        (1.0,),
        alphabets,
        Counter(places, 0, 10**width),
        Growth(len(prefix), len(alphabets), width + 1),
    )


def counted_places(alphabets: tuple[str, ...]) -> tuple[int, ...]:
    """The places whose characters differ, as many from the right as can be counted."""
    places: list[int] = []
    for place in reversed(range(len(alphabets))):
        if len(alphabets[place]) < 2:
            continue
        if prod(len(alphabets[p]) for p in (*places, place)) > MOST_COUNTED:
            break
        places.insert(0, place)
    return tuple(places)


def _characters(texts: tuple[str, ...] | list[str]) -> Characters:
    """Code points of equally long texts. Shape: (n, length)."""
    return np.array([[ord(c) for c in text] for text in texts], dtype=np.uint32)


def joined_texts(characters: Characters) -> npt.NDArray[Any]:
    """Texts of code points. Shape: (n, length) -> (n,)."""
    n, length = characters.shape
    return np.ascontiguousarray(characters).view(f"U{length}").reshape(n).astype(object)
