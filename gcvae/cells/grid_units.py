"""The grid of a column: what its values are whole multiples of."""

from __future__ import annotations

import numpy as np

from gcvae.arrays import Numbers
from gcvae.schema.columns import Column
from gcvae.spelling.date_text import resolution

_NOISE = 1e-6
"""Of a unit, what is rounding error of arithmetic."""


def grid_unit(column: Column) -> float | None:
    """What the values of a column are whole multiples of, of dates in seconds; None for none."""
    if column.has_times:
        return nanoseconds(column) / 1e9
    decimals = decimals_of(column)
    return None if decimals is None else 10.0**-decimals


def slack(column: Column, size: Numbers, *, is_rounded: bool = False) -> Numbers:
    """How far a value may lie from the one that it equals.

    Args:
        column: Of the value.
        size: The larger of the two in absolute value. Shape: (n,).
        is_rounded: The value is the other one, rounded to the grid either way.

    Returns:
        In the column's units, of dates in seconds. Shape: (n,).
    """
    unit = grid_unit(column)
    if unit is None:
        return 1e-9 * size
    return np.full_like(size, unit * (0.5 * is_rounded + _NOISE))


def nanoseconds(column: Column) -> int:
    """The smallest unit of a date's format."""
    step = resolution(column.date_format, column.decimals)
    return int(step / np.timedelta64(1, "ns"))


def decimals_of(column: Column) -> int | None:
    """Decimals of a column of numbers; None where any number may stand in it."""
    if column.kind.is_whole:
        return 0
    if column.levels and all(isinstance(level, int) for level in column.levels):
        return 0
    return column.decimals
