"""Grid of a column: the unit of which its values are integer multiples."""

from __future__ import annotations

import numpy as np

from gcvae.arrays import Numbers
from gcvae.schema.columns import Column
from gcvae.spelling.date_text import resolution

_NOISE = 1e-6
"""Rounding error of arithmetic, relative to a unit."""


def grid_unit(column: Column) -> float | None:
    """Returns the grid unit of a column, for dates in seconds; None without a grid."""
    if column.has_times:
        return microseconds(column) / 1e6
    decimals = decimals_of(column)
    return None if decimals is None else 10.0**-decimals


def slack(column: Column, size: Numbers, *, is_rounded: bool = False) -> Numbers:
    """Returns the tolerance for the equality of two values.

    Args:
        column: Column of the value.
        size: The larger absolute value of the two. Shape: (n,).
        is_rounded: Whether the value is the other one rounded to the grid, up or down.

    Returns:
        Tolerance in the column's units, for dates in seconds. Shape: (n,).
    """
    unit = grid_unit(column)
    if unit is None:
        return 1e-9 * size
    return np.full_like(size, unit * (0.5 * is_rounded + _NOISE))


def microseconds(column: Column) -> int:
    """Returns the smallest unit of a date's format, in microseconds."""
    step = resolution(column.date_format, column.decimals)
    return int(step / np.timedelta64(1, "us"))


def decimals_of(column: Column) -> int | None:
    """Returns the decimals of a number column; None without a limit."""
    if column.kind.is_whole:
        return 0
    if column.levels and all(isinstance(level, int) for level in column.levels):
        return 0
    return column.decimals
