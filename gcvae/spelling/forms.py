"""How numbers are written in text, as members of a schema: digits (`Notation`), separators, signs
and units (`NumberFormat`)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Notation:
    """How the digits of a column's numbers are written, if not as the shortest plain decimals,
    which the defaults describe.

    Attributes:
        point: Whether whole numbers end in ".0", as in Python.
        significant: Number of significant digits of every number: 15 in R, 17 with C's %.17g; None
            if it varies.
        exponent_below: Numbers of smaller magnitude have an exponent: 1e-4 in Python and R, 1e-6 in
            JavaScript; None for never.
        exponent_from: Numbers of at least this magnitude have an exponent: 1e16 in Python, 1e21 in
            JavaScript; None for never.
        mantissa_decimals: Number of decimals before the exponent, as with C's %e and numpy.savetxt;
            None for as many as needed.
        exponent: How exponent 1 is written: "e+01" in Python and R, "E+01" in spreadsheets, "e+1"
            in JavaScript, "e1" by hand.
    """

    point: bool = False
    significant: int | None = None
    exponent_below: float | None = None
    exponent_from: float | None = None
    mantissa_decimals: int | None = None
    exponent: str = "e+01"


@dataclass(frozen=True)
class NumberFormat:
    """Separators, signs and units of a column's numbers: 1.234,50 €, $2,521.79, 12 %.

    Units do not change values: 12 % is read as 12. `Notation` describes the digits.

    Attributes:
        decimal: Decimal separator: a point or a comma.
        thousands: Separator between groups of digits: a comma, a point, a space, an apostrophe, or
            "" if digits are not grouped.
        grouping: Sizes of the groups: "thousands" (1,234,567) or "indian" (12,34,567).
        grouped_from_digits: Numbers with fewer digits before the decimals are not grouped.
        prefix: Text before every number, such as "$" or "CHF ".
        suffix: Text after every number, such as " €" or "%".
        negative: How minus one is written, with prefix and suffix: "-$1", "$-1", "1-", "($1)"; None
            for a leading hyphen.
        duration: For numbers of seconds that are written as durations, how zero is written, such as
            "0 days 00:00:00"; the other attributes then have their defaults. "" for other numbers.
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
    """Returns the fields that differ from their defaults, by name."""
    plain = type(spelling)()
    pairs = ((f.name, getattr(spelling, f.name)) for f in fields(spelling))
    return {name: value for name, value in pairs if value != getattr(plain, name)}
