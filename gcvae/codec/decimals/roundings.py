"""The numbers of few decimals, or of some fraction, that are nearest to others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gcvae.spelling.number_text import MOST_DECIMALS

Codes = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
_ASIDE = (1, -1, 2, -2, 3, -3)
"""Steps from the nearest rounding to those that are tried in its place."""


def rounded_to(numbers: Numbers, decimals: int) -> Numbers:
    """The nearest numbers of so many decimals; those stay that are too large to have any."""
    with np.errstate(over="ignore", invalid="ignore"):
        near = np.round(numbers, decimals)
    return np.where(np.isfinite(near), near, numbers)


def some_rounded(numbers: Numbers, of: Codes, decimals: int) -> Numbers:
    """`rounded_to`, whichever of all numbers these are."""
    return rounded_to(numbers, decimals)


def nearest_allowed(
    numbers: Numbers,
    steps: Numbers,
    rounding: Callable[[Numbers, Codes], Numbers],
    are_allowed: Callable[..., Mask],
    at: Codes,
) -> tuple[Numbers, Mask]:
    """The roundings nearest to the numbers that are allowed, and which of them are.

    A rounding that is not, as that to a number which has a code of its own, gives way to one of
    those beside it.

    Args:
        numbers: Shape: (n,).
        steps: About the distances of neighbouring roundings. Shape: (n,).
        rounding: (some numbers, which of the n they are) -> what they are rounded to. Shape: (m,).
        are_allowed: (roundings, their places among all numbers) -> which may be. Shape: (m,).
        at: Places among all numbers. Shape: (n,).
    """
    if not len(numbers):
        return numbers, np.zeros(0, dtype=bool)
    near = rounding(numbers, np.arange(len(numbers)))
    good = are_allowed(near, at)
    sides = np.where(numbers < near, -steps, steps)
    left = np.flatnonzero(~good)
    for side in _ASIDE:
        if not len(left):
            break
        beside = rounding(near[left] + side * sides[left], left)
        is_good = are_allowed(beside, at[left])
        good[left[is_good]] = True
        tried, left = left[is_good], left[~is_good]
        near[tried] = beside[is_good]
    return near, good


def with_fractions(numbers: Numbers, fractions: Numbers) -> Numbers:
    """The nearest numbers of these fractions, of the same sign. Shape: (n,) twice."""
    wholes = np.maximum(np.rint(np.abs(numbers) - fractions), 0.0)
    return np.copysign(np.round(wholes + fractions, MOST_DECIMALS), numbers)
