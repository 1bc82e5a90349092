"""Grid of a column: the unit of which all its values are integer multiples, such as 0.01."""

from __future__ import annotations

import numpy as np

from gcvae.arrays import Numbers
from gcvae.schema.columns import Column
from gcvae.spelling.date_text import resolution

_NOISE = 1e-6
"""Tolerated rounding error of arithmetic, as a fraction of the grid unit."""


def grid_unit(column: Column) -> float | None:
    """Returns the unit of which a column's values are multiples, in seconds for dates; None if
    there is none."""
    if column.has_times:
        return microseconds(column) / 1e6
    decimals = decimals_of(column)
    return None if decimals is None else 10.0**-decimals


def slack(column: Column, size: Numbers, *, is_rounded: bool = False) -> Numbers:
    """Returns the largest difference at which two values count as equal, for each of n pairs, in
    the column's units or in seconds for dates. Shape: (n,).

    Args:
        size: Larger absolute value of each pair. Shape: (n,).
        is_rounded: Whether one value of each pair results from rounding the other to the column's
            resolution.
    """
    unit = grid_unit(column)
    if unit is None:
        return 1e-9 * size
    return np.full_like(size, unit * (0.5 * is_rounded + _NOISE))


def microseconds(column: Column) -> int:
    """Returns the smallest time step that a date column's format can express, in microseconds."""
    step = resolution(column.date_format, column.decimals)
    return int(step / np.timedelta64(1, "us"))


def decimals_of(column: Column) -> int | None:
    """Returns the maximum number of decimals in a number column; None if it is not limited."""
    if column.kind.is_whole:
        return 0
    if column.levels and all(isinstance(level, int) for level in column.levels):
        return 0
    return column.decimals
