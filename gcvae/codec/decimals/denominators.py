"""Numbers that are k / q, written out: means of q whole numbers, shares of q, 154.2166667.

Of d decimals are 10^d numbers between two whole ones, and about 0.3 Q^2 of them are fractions of a
denominator of up to Q. So a number of six decimals that is one of up to 100 is that by chance in
three cases of a thousand. The denominator is the first among the convergents of the number's
continued fraction that has all its decimals.

Source: Hardy and Wright, An Introduction to the Theory of Numbers, theorems 184 (a fraction so near
is a convergent) and 331 (how many there are).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]
_CHANCE = 0.01
"""Share of numbers with random decimals that have a denominator."""
_LEAST_NUMBERS = 5
"""Of a denominator that is kept."""
_TIMES_CHANCE, _DEVIATIONS = 2.0, 4.0
"""So many times as by chance, and deviations, have one where there are any."""
_MOST_CONVERGENTS = 24
_REACH = 4
"""Numerators on both sides of a number among which is one in lowest terms."""
_LARGEST_WHOLE = 2.0**52
_NOTHING = 1e-12
_HUGE = 1e12


def common_denominators(numbers: Numbers, counts: Codes, decimals: Codes) -> tuple[Codes, Codes]:
    """The denominators that several numbers have, and which of them each has, -1 for none.

    Args:
        numbers: Distinct. Shape: (n,).
        counts: Rows of each. Shape: (n,).
        decimals: The fewest of each. Shape: (n,).
    """
    which = np.full(len(numbers), -1)
    may_have = np.flatnonzero(_largest(decimals) >= 3)
    of_numbers = denominators_of(numbers[may_have], decimals[may_have])
    n, n_found = counts[may_have].sum(), counts[may_have][of_numbers > 0].sum()
    if n_found < _TIMES_CHANCE * _CHANCE * n + _DEVIATIONS * np.sqrt(_CHANCE * n):
        return np.zeros(0, dtype=np.int64), which
    found, at, n_each = np.unique(of_numbers, return_inverse=True, return_counts=True)
    is_kept = (found > 0) & (n_each >= _LEAST_NUMBERS)
    places = np.where(is_kept, np.cumsum(is_kept) - 1, -1)
    which[may_have] = places[at]
    return found[is_kept], which


def nearest_fractions(numbers: Numbers, denominators: Codes, decimals: Codes) -> Numbers:
    """The nearest numbers k / q in lowest terms, of the same sign, to so many decimals.

    Numbers that are too large for that stay.

    Shape: (n,) three times.
    """
    sizes = np.abs(numbers)
    is_whole = sizes * (1.0 / _LARGEST_WHOLE) * denominators >= 1.0  # doubles have no such digits
    below = np.floor(np.where(is_whole, 0.0, sizes) * denominators)
    found = np.full(len(numbers), np.inf)
    for step in range(-_REACH, _REACH + 2):
        k = below + step
        fraction = k / denominators
        is_good = (k > 0) & (np.gcd(k.astype(np.int64), denominators) == 1)
        is_nearer = is_good & (np.abs(fraction - sizes) < np.abs(found - sizes))
        found = np.where(is_nearer, fraction, found)
    found = np.where(is_whole | ~np.isfinite(found), sizes, found)
    scale = 10.0**decimals
    rounded = np.where(is_whole, sizes, np.rint(np.where(is_whole, 0.0, found) * scale) / scale)
    nearest: Numbers = np.copysign(rounded, numbers)
    return nearest


def _largest(decimals: Codes) -> Numbers:
    """The largest denominator of numbers of so many decimals that few have by chance."""
    largest: Numbers = np.floor(np.sqrt(_CHANCE * 10.0**decimals / 0.304))
    return largest


def denominators_of(numbers: Numbers, decimals: Codes) -> Codes:
    """The denominator of each number, 0 where it has none. Shape: (n,) twice."""
    rest = np.abs(numbers) - np.floor(np.abs(numbers))
    # As far as rounding moves a number, and what doubles add.
    reach = 0.5 * 10.0 ** -decimals.astype(np.float64) + 2.0 * np.spacing(np.abs(numbers))
    found = np.zeros(len(numbers))
    none, one = np.zeros(len(numbers)), np.ones(len(numbers))
    before, last, left = (one, none), (none, one), rest
    for _ in range(_MOST_CONVERGENTS):
        is_it = (found == 0) & (np.abs(rest - last[0] / last[1]) <= reach)
        found[is_it] = last[1][is_it]
        if found.all():
            break
        left = np.where(left > _NOTHING, 1.0 / np.maximum(left, _NOTHING), 0.0)
        whole = np.floor(left)
        left = left - whole
        p, q = (whole * b + a for a, b in zip(before, last, strict=True))
        before, last = last, (p, np.clip(q, 1.0, _HUGE))
    found[found > _largest(decimals)] = 0.0
    return found.astype(np.int64)
