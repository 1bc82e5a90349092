"""How a column spells its numbers, as documents: which digits, and what stands beside them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Notation:
    """How a column spells its numbers, where shortest plain decimals are not the spelling.

    Each attribute is there for programs whose files would come back altered without it.

    Attributes:
        point: Whole numbers are written with ".0", as Python and pandas do.
        significant: Every number is written with this many significant digits: 15 in R, 17 where
            C's %.17g writes.
        exponent_below: Magnitudes under this are written with an exponent: 1e-4 in Python and R,
            1e-6 in JavaScript.
        exponent_from: Magnitudes from this on are written with an exponent: 1e16 in Python, 1e21 in
            JavaScript.
        mantissa_decimals: Decimals before the exponent, as C's %e and numpy.savetxt have them; None
            for as many as needed.
        exponent: The spelling of an exponent of 1: "e+01" in Python and R, "E+01" in spreadsheets,
            "e+1" in JavaScript, "e1" where people write.
    """

    point: bool = False
    significant: int | None = None
    exponent_below: float | None = None
    exponent_from: float | None = None
    mantissa_decimals: int | None = None
    exponent: str = "e+01"


@dataclass(frozen=True)
class NumberFormat:
    """What stands between and beside the digits of a column's numbers: 1.234,50 €, $2,521.79, 12 %.

    It has no part in the values: 12 % is 12. Which digits there are is the notation's.

    Attributes:
        decimal: Before the decimals: a point or a comma.
        thousands: Between groups of digits: a comma, a point, a space, an apostrophe, or nothing.
        grouping: Of the digits before the decimals: "thousands" (1,234,567), "indian" (12,34,567).
        grouped_from_digits: Numbers with fewer digits before the decimals are not grouped.
        prefix: Before every number, such as "$" or "CHF ".
        suffix: Behind every number, such as " €" or "%".
        negative: How minus one is written, with prefix and suffix: "-$1", "$-1", "1-", "($1)"; None
            for a hyphen before all.
        duration: Numbers are seconds, written as durations: how one of zero is, such as
            "0 days 00:00:00"; empty for other numbers, and beside it all else is as it is plainly.
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
    """What is not as in plain numbers."""
    plain = type(spelling)()
    pairs = ((f.name, getattr(spelling, f.name)) for f in fields(spelling))
    return {name: value for name, value in pairs if value != getattr(plain, name)}
