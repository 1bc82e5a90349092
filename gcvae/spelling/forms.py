"""Schema members that describe how numbers are written in text: digits (`Notation`); separators,
signs and units (`NumberFormat`)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Notation:
    """How the digits of a column's numbers are written. The defaults describe the shortest plain
    decimals.

    Attributes:
        point: Whether whole numbers end in ".0", as in Python.
        exponents: Format specification of Python with which numbers below 1e-4 and from 1e16 on are
            written: "" for Python's default, ".2E" for two decimals as in spreadsheets; None for no
            exponents.
        format: Format specification with which every number is written, such as ".17g" or ".6e";
            None if there is none.
    """

    point: bool = False
    exponents: str | None = None
    format: str | None = None


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
