"""Formats of numbers, as in schema documents: notation of digits, and signs and units."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Notation:
    """Notation of a column's numbers, if it differs from shortest plain decimals.

    Each attribute reproduces the output of a common program.

    Attributes:
        point: Whole numbers have ".0", as in Python and pandas.
        significant: Every number has this many significant digits: 15 in R, 17 with C's %.17g.
        exponent_below: Magnitudes below this have an exponent: 1e-4 in Python and R, 1e-6 in
            JavaScript.
        exponent_from: Magnitudes from this on have an exponent: 1e16 in Python, 1e21 in JavaScript.
        mantissa_decimals: Decimals before the exponent, as with C's %e and numpy.savetxt; None for
            as many as needed.
        exponent: Text of an exponent of 1: "e+01" in Python and R, "E+01" in spreadsheets, "e+1" in
            JavaScript, "e1" by hand.
    """

    point: bool = False
    significant: int | None = None
    exponent_below: float | None = None
    exponent_from: float | None = None
    mantissa_decimals: int | None = None
    exponent: str = "e+01"


@dataclass(frozen=True)
class NumberFormat:
    """Signs and units of a column's numbers: 1.234,50 €, $2,521.79, 12 %.

    They do not change values: 12 % is 12. The digits are described by the notation.

    Attributes:
        decimal: Decimal sign: a point or a comma.
        thousands: Sign between groups of digits: a comma, a point, a space, an apostrophe, or
            empty.
        grouping: Groups of digits before the decimals: "thousands" (1,234,567), "indian"
            (12,34,567).
        grouped_from_digits: Numbers with fewer digits before the decimals are not grouped.
        prefix: Text before every number, such as "$" or "CHF ".
        suffix: Text after every number, such as " €" or "%".
        negative: Text of minus one, with prefix and suffix: "-$1", "$-1", "1-", "($1)"; None for a
            leading hyphen.
        duration: For numbers of seconds that are written as durations, the text of zero, such as "0
            days 00:00:00"; other attributes then have their defaults. Empty for other numbers.
    """

    decimal: str = "."
    thousands: str = ""
    grouping: str = "thousands"
    grouped_from_digits: int = 4
    prefix: str = ""
    suffix: str = ""
    negative: str | None = None
    duration: str = ""


def changed_fields(spelling: Notation | NumberFormat) -> dict[str, Any]:
    """Returns the fields that differ from plain numbers."""
    plain = type(spelling)()
    pairs = ((f.name, getattr(spelling, f.name)) for f in fields(spelling))
    return {name: value for name, value in pairs if value != getattr(plain, name)}
