"""Finds frequent numbers far from all other numbers of a column, such as -9999 or 9999-12-31.

Such a number often stands for "none" or "unknown"."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gcvae.arrays import Codes, Numbers

_LEAST_OTHERS = 10
LEAST_SHARE = 0.01
"""Minimum share of the rows that must have a number for it to be isolated."""


def isolated_frequent_values(values: Numbers, least_share: float = LEAST_SHARE) -> Numbers:
    """Returns the frequent numbers far from all others, such as -9999: none, the smallest, the
    largest or both, ascending.

    The smallest or largest number is returned if at least `least_share` of the rows have it and its
    gap to the next number exceeds the range of the remaining numbers. The end with the larger gap
    is tested first; if it is returned, the other end is tested without it. Shape: numbers, NaN for
    missing, (n,) -> (k,), k at most 2.
    """
    distinct_numbers, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    kept = without_isolated(distinct_numbers, counts, least_share)
    return np.concatenate([distinct_numbers[: kept.start], distinct_numbers[kept.stop :]])


def without_isolated(
    distinct_numbers: npt.NDArray[Any],
    counts: Codes,
    least_share: float = LEAST_SHARE,
    least_others: int = _LEAST_OTHERS,
) -> slice:
    """Returns a slice of a column's distinct numbers that leaves out the isolated ones, as defined
    by `isolated_frequent_values`.

    Args:
        distinct_numbers: The distinct numbers, ascending. Shape: (U,).
        counts: Number of rows with each number. Shape: (U,).
        least_share: A number is left out only if at least this share of the rows have it.
        least_others: Minimum number of distinct numbers that remain.
    """
    first, last = 0, len(distinct_numbers)
    while last - first > least_others and len(distinct_numbers) - (last - first) < 2:
        gaps = (
            distinct_numbers[first + 1] - distinct_numbers[first],
            distinct_numbers[last - 1] - distinct_numbers[last - 2],
        )
        is_low = gaps[0] > gaps[1]
        rest = slice(first + 1, last) if is_low else slice(first, last - 1)
        is_far = max(gaps) > distinct_numbers[rest.stop - 1] - distinct_numbers[rest.start]
        if not is_far or counts[first if is_low else last - 1] < least_share * counts.sum():
            break
        first, last = rest.start, rest.stop
    return slice(first, last)
