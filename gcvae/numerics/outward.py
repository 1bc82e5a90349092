"""Limits of a column's numbers that disclose no single row, because they are rounded outward.

A limit is rounded to a multiple of a step. The step is 1, 2 or 5 times a power of ten and about a
twentieth of the inner range, the range of all but the outermost rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from gcvae.arrays import Codes

PARTS = 20
"""Number of steps in the inner range."""
_CONTEXT = Context(prec=60, Emin=-9999, Emax=9999)


@dataclass(frozen=True)
class OuterRows:
    """Minimum and maximum of a column's numbers, and how coarsely to round each outward.

    Attributes:
        low: Minimum.
        high: Maximum.
        low_size: The minimum is rounded to a multiple of about a twentieth of this size. It is the
            length of the inner range (the range of all but the outermost rows) or, if larger, the
            distance from the minimum to the inner range. None if enough rows share the minimum, so
            that it need not be rounded.
        high_size: The same for the maximum.
    """

    low: Any
    high: Any
    low_size: Decimal | None
    high_size: Decimal | None

    @classmethod
    def of(cls, distinct_numbers: npt.NDArray[Any], counts: Codes, rows: int) -> OuterRows:
        """Computes the attributes from a column's numbers. The arguments are those of
        `plain_limits`."""
        below, total = np.cumsum(counts), int(counts.sum())
        first = exact(distinct_numbers[np.searchsorted(below, min(rows, total))])
        last = exact(distinct_numbers[np.searchsorted(below, max(total - rows, 0) + 1)])
        low, high, inner = (
            exact(distinct_numbers[0]),
            exact(distinct_numbers[-1]),
            abs(last - first),
        )
        return cls(
            distinct_numbers[0].item(),
            distinct_numbers[-1].item(),
            None if counts[0] >= rows else max(inner, first - low),
            None if counts[-1] >= rows else max(inner, high - last),
        )


def exact(number: Any) -> Decimal:
    """Returns a number as the decimal that its `repr` shows: 0.1 becomes Decimal("0.1")."""
    value = number.item() if isinstance(number, np.generic) else number
    return _CONTEXT.create_decimal(repr(value))


def plain_number(size: Decimal) -> Decimal:
    """Returns the largest number not above `size` that is 1, 2 or 5 times a power of ten."""
    power = Decimal(1).scaleb(size.adjusted(), _CONTEXT)
    return max(power * n for n in (1, 2, 5) if power * n <= size)


def plain_limits(
    distinct_numbers: npt.NDArray[Any], counts: Codes, rows: int, unit: Decimal
) -> tuple[Decimal, Decimal]:
    """Returns a lower and an upper limit of a column's numbers that disclose no single row.

    A limit is the minimum or maximum if enough rows share it, otherwise a number that is rounded
    outward. Rounding never crosses zero: positive numbers have a positive lower limit.

    Args:
        distinct_numbers: Distinct numbers, ascending. Shape: (k,), k > 0.
        counts: Number of rows with each number. Shape: (k,).
        rows: Number of rows that have to share the minimum or maximum for it to be disclosed.
        unit: Unit of which all numbers are multiples; 0 if there is none.
    """
    ends = OuterRows.of(distinct_numbers, counts, rows)
    low = exact(ends.low) if ends.low_size is None else _below(ends.low, ends.low_size, unit)
    high = exact(ends.high) if ends.high_size is None else -_below(-ends.high, ends.high_size, unit)
    return low, high


def _below(end: Any, size: Decimal, unit: Decimal) -> Decimal:
    """Returns the minimum `end` rounded down to a multiple of a step, without a change of sign. The
    step is a twentieth of `size` or twice `unit`, whichever is larger, rounded down to 1, 2 or 5
    times a power of ten."""
    number = exact(end)
    size = size or abs(number) or Decimal(PARTS)  # no inner numbers
    step = plain_number(max(_CONTEXT.divide(size, Decimal(PARTS)), 2 * unit))
    times = _CONTEXT.divide(number, step).to_integral_value(ROUND_FLOOR)
    bound = _CONTEXT.multiply(times, step)
    if number > 0 >= bound:
        return plain_number(number)
    return max(bound, Decimal(0)) if number >= 0 else bound


def plainest(low: float, high: float, slack: float = 1e-12) -> float:
    """Returns the number between low and high with the fewest digits; of several, the lowest.

    The number may exceed an end by the relative `slack`, because of rounding errors.

    >>> plainest(1.87, 2.04), plainest(0.0196, 0.0204), plainest(150.0, 150.0)
    (2.0, 0.02, 150.0)
    """
    if low <= 0.0 <= high:
        return 0.0
    scale = int(np.floor(np.log10(max(abs(low), abs(high)))))
    for digits in range(17):
        step = 10.0 ** (scale - digits)
        found = float(f"{np.ceil(low / step - 1e3 * slack) * step:.15g}")
        if low - slack * abs(low) <= found <= high + slack * abs(high):
            return found
    return float(high)
