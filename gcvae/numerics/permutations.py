"""Pseudorandom permutations of 0 .. size - 1, selected by a key, without a stored table.

Each number's image and preimage are computed by arithmetic. Row i of a sample can thus get the i-th
number of a shuffled range without computing other rows.

The permutation is a Feistel network over Z_a x Z_b with a b >= size, repeated until the result is
in the range. It is not cryptographically secure.

Source: Black and Rogaway, Ciphers with Arbitrary Finite Domains, CT-RSA 2002, Generalized-Feistel.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.uint64]

_ROUNDS = 4
_WHOLE = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
"""Odd number nearest to 2^64 divided by the golden ratio."""


def finalised(x: Numbers) -> Numbers:
    """Applies the finaliser of SplitMix64, a bijection of 64 bits, to each number. Shape: as x.

    Source: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014.
    """
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def mixed(numbers: Numbers, key: int) -> Numbers:
    """Returns a 64-bit hash of each number combined with the key. Shape: (n,) -> (n,)."""
    return finalised(numbers * np.uint64(GOLDEN) + np.uint64(key & _WHOLE))


def shuffled(numbers: Numbers, size: int, key: int) -> Numbers:
    """Returns the image of each number under the permutation of 0 .. size - 1 that `key` selects.
    Shape: (n,) -> (n,)."""
    return _walked(numbers, size, list(_rounds(size, key)))


def unshuffled(places: Numbers, size: int, key: int) -> Numbers:
    """Returns the preimage of each number: `unshuffled(shuffled(x, size, key), size, key)` is x.
    Shape: (n,) -> (n,)."""
    return _walked(places, size, [(half, k, -1) for half, k, _ in reversed([*_rounds(size, key)])])


def _rounds(size: int, key: int) -> Iterator[tuple[int, int, int]]:
    """Yields (h, key of the round, sign) for each round of the Feistel network, which represents a
    number by two halves. A round adds a hash of half 1 - h to half h. The sign is 1; the inverse
    permutation uses -1, which subtracts the hash."""
    assert 1 <= size < 1 << 63, "places are 63 bits wide"
    yield from ((i % 2, (key + (i + 1) * GOLDEN) & _WHOLE, 1) for i in range(2 * _ROUNDS))


def _walked(numbers: Numbers, size: int, rounds: list[tuple[int, int, int]]) -> Numbers:
    """Applies the rounds to each number until the result is less than `size`."""
    found = _through(numbers, size, rounds)
    outside = np.flatnonzero(found >= size)
    while len(outside):
        found[outside] = _through(found[outside], size, rounds)
        outside = outside[found[outside] >= size]
    return found


def _through(numbers: Numbers, size: int, rounds: list[tuple[int, int, int]]) -> Numbers:
    a = isqrt(size - 1) + 1
    widths = a, -(-size // a)
    right, left = np.divmod(numbers, np.uint64(a))
    halves = [left, right]
    for changed, key, sign in rounds:
        width = np.uint64(widths[changed])
        moved = mixed(halves[1 - changed], key) % width
        halves[changed] = (halves[changed] + (moved if sign > 0 else width - moved)) % width
    return halves[0] + halves[1] * np.uint64(a)
