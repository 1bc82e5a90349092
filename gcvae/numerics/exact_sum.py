"""Sums of floats that do not depend on the order, nor on who added which part.

So a job of scores has the same summary however many workers share it; no rounded sum has.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Self


class ExactSum:
    """The exact sum of finite floats, beside that of the others (infinities, NaN).

    >>> total = ExactSum()
    >>> for value in (1e16, 1.0, -1e16): total.add(value)
    >>> total.value
    1.0
    """

    def __init__(self, finite: Fraction = Fraction(0), other: float = 0.0) -> None:
        """A sum so far; nothing as yet."""
        self._finite = finite
        self._other = other

    def add(self, value: float) -> None:
        """Adds a float."""
        if math.isfinite(value):
            self._finite += Fraction(value)
        else:
            self._other += value

    def add_all(self, sum_: ExactSum) -> None:
        """Adds what another has summed."""
        self._finite += sum_._finite
        self._other += sum_._other

    @property
    def value(self) -> float:
        """The sum, rounded once."""
        return float(self._finite) + self._other

    def to_json(self) -> list[str]:
        """What `from_json` needs; nothing is lost on the way."""
        return [hex(self._finite.numerator), hex(self._finite.denominator), repr(self._other)]

    @classmethod
    def from_json(cls, document: list[str]) -> Self:
        """Returns the sum of a document that `to_json` wrote."""
        numerator, denominator, other = document
        return cls(Fraction(int(numerator, 16), int(denominator, 16)), float(other))
