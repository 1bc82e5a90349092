"""Numbers with a bound on their rounding error, so that 0.1 + 0.2 equals 0.3.

Every computed number carries a bound on its distance from the exact result. Two numbers are equal
if they differ by no more than the sum of their bounds. Columns compared without arithmetic have
bounds of zero.

A comparison is unknown if a number is missing, or undefined such as x / 0.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gcvae.arrays import Mask, Numbers

_EPSILON = float(np.finfo(np.float64).eps)
_LARGEST_WHOLE = 2**63 - 1

FALSE, UNKNOWN, TRUE = 0, 1, 2

Truths = npt.NDArray[np.int8]
"""Arrays of FALSE, UNKNOWN or TRUE, as in Kleene's logic: `and` is the minimum, `or` the maximum,
`not` 2 - x."""


@dataclass(frozen=True)
class Amount:
    """One number, or an array of n numbers, with bounds on their rounding errors, so that 0.1 + 0.2
    equals 0.3.

    Shape: (n,) each, or () for one number.

    Attributes:
        values: The numbers, int64 or float64; NaN for an undefined one such as x / 0.
        error: Bound on the distance of each number from the exact result, float64; 0 for the
            numbers of a column or a literal.
        known: Whether each number is known; False for a missing one.
    """

    values: npt.NDArray[Any]
    error: Any = 0.0
    known: Any = True

    @property
    def rounded(self) -> tuple[Numbers, Numbers]:
        """The n numbers as float64, and bounds on their rounding errors including that of the
        conversion. Shape: (n,), (n,)."""
        values = self.values.astype(np.float64)
        return values, np.maximum(self.error, _EPSILON * np.abs(values))


def amount_of(number: float) -> Amount:
    """Converts a literal number to an Amount whose error bound is zero. The value is int64 for an
    integer that fits, else float64."""
    whole = isinstance(number, int) and abs(number) <= _LARGEST_WHOLE
    return Amount(np.asarray(number, dtype=np.int64 if whole else np.float64))


def compute(operator: ast.operator, left: Amount, right: Amount) -> Amount:
    """Applies an operator such as `ast.Add()` to numbers with bounds on their rounding errors;
    division by zero is undefined (NaN)."""
    with np.errstate(all="ignore"):
        values, error = _OPERATIONS[type(operator)](*left.rounded, *right.rounded)
        error = error + _EPSILON * np.abs(values)
        error = np.where(np.isfinite(error), error, 0.0)
        return Amount(values, error, np.logical_and(left.known, right.known))


def compare(operator: ast.cmpop, left: Amount, right: Amount) -> Truths:
    """Compares numbers by an operator such as `ast.Lt()`, as true, false or unknown; numbers that
    differ by at most the sum of their error bounds count as equal."""
    a, b = left.values, right.values
    with np.errstate(all="ignore"):
        difference = np.abs(a.astype(np.float64) - b.astype(np.float64))
        tolerance = np.asarray(left.error) + np.asarray(right.error)
        near = (a == b) | ((tolerance > 0) & (difference <= tolerance))
    known = left.known & right.known & ~(np.isnan(a) | np.isnan(b))
    return truths(_COMPARISONS[type(operator)](a, b, near), known)


def truths(are_true: Mask, are_known: Any) -> Truths:
    """Combines two masks to truth values: UNKNOWN where `are_known` is False, else TRUE or FALSE as
    in `are_true`. Shape: (n,), (n,) -> (n,)."""
    return np.where(are_known, np.where(are_true, TRUE, FALSE), UNKNOWN).astype(np.int8)


def _added(a: Numbers, da: Numbers, b: Numbers, db: Numbers) -> tuple[Numbers, Numbers]:
    return a + b, da + db


def _subtracted(a: Numbers, da: Numbers, b: Numbers, db: Numbers) -> tuple[Numbers, Numbers]:
    return a - b, da + db


def _multiplied(a: Numbers, da: Numbers, b: Numbers, db: Numbers) -> tuple[Numbers, Numbers]:
    return a * b, np.abs(a) * db + np.abs(b) * da


def _divided(a: Numbers, da: Numbers, b: Numbers, db: Numbers) -> tuple[Numbers, Numbers]:
    ratio = np.where(b == 0.0, np.nan, a / b)
    return ratio, (da + np.abs(ratio) * db) / np.abs(b)


def _floor_divided(a: Numbers, da: Numbers, b: Numbers, db: Numbers) -> tuple[Numbers, Numbers]:
    ratio, error = _divided(a, da, b, db)
    nearest = np.rint(ratio)
    is_whole = np.abs(ratio - nearest) <= error
    floor = np.where(is_whole, nearest, np.floor(ratio))
    return floor, np.zeros_like(floor)


def _remainder(a: Numbers, da: Numbers, b: Numbers, db: Numbers) -> tuple[Numbers, Numbers]:
    floor, _ = _floor_divided(a, da, b, db)
    return a - b * floor, da + np.abs(floor) * db


def _power(a: Numbers, da: Numbers, b: Numbers, db: Numbers) -> tuple[Numbers, Numbers]:
    """Returns a^b and a bound on its error, |a^b| (|b| da / |a| + |ln|a|| db), where da and db are
    the bounds on the errors of a and b."""
    power = np.asarray(a**b)
    relative = np.abs(b) * da / np.abs(a) + np.abs(np.log(np.abs(a))) * db
    return power, np.abs(power) * relative


_OPERATIONS: dict[type[ast.operator], Callable[..., tuple[Numbers, Numbers]]] = {
    ast.Add: _added,
    ast.Sub: _subtracted,
    ast.Mult: _multiplied,
    ast.Div: _divided,
    ast.FloorDiv: _floor_divided,
    ast.Mod: _remainder,
    ast.Pow: _power,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any, Mask], Mask]] = {
    ast.Eq: lambda a, b, near: near,
    ast.NotEq: lambda a, b, near: ~near,
    ast.Lt: lambda a, b, near: (a < b) & ~near,
    ast.LtE: lambda a, b, near: (a < b) | near,
    ast.Gt: lambda a, b, near: (a > b) & ~near,
    ast.GtE: lambda a, b, near: (a > b) | near,
}
