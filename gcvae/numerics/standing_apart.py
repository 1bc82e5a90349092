"""Frequent values far from all others, such as -9999, 0 for "none", or 9999-12-31."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gcvae.arrays import Codes, Numbers

_LEAST_OTHERS = 10
LEAST_SHARE = 0.01
"""Minimum share of the rows of a number that stands apart."""


def standing_apart(values: Numbers, least_share: float = LEAST_SHARE) -> Numbers:
    """Returns the smallest and the largest number, if rows share it and it is farther from the next
    one than all others from each other: no difference from another column leads there.

    If both ends stand apart, the nearer one is judged without the farther. NaN is missing.
    Ascending. Shape: (n,) -> (k,), k at most 2.
    """
    found, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    near = near_numbers(found, counts, least_share)
    return np.concatenate([found[: near.start], found[near.stop :]])


def near_numbers(found: npt.NDArray[Any], counts: Codes, least_share: float = LEAST_SHARE) -> slice:
    """Returns the distinct numbers that do not stand apart, see `standing_apart`. Shape: (U,)
    ascending, (U,)."""
    first, last = 0, len(found)
    while last - first > _LEAST_OTHERS and len(found) - (last - first) < 2:
        gaps = found[first + 1] - found[first], found[last - 1] - found[last - 2]
        is_low = gaps[0] > gaps[1]
        rest = slice(first + 1, last) if is_low else slice(first, last - 1)
        is_far = max(gaps) > found[rest.stop - 1] - found[rest.start]
        if not is_far or counts[first if is_low else last - 1] < least_share * counts.sum():
            break
        first, last = rest.start, rest.stop
    return slice(first, last)
