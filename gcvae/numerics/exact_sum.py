"""Exact sums of floats, which do not depend on the order or on how the terms are divided.

The summary of a score job is therefore the same for any number of workers.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Self


class ExactSum:
    """Exact sum of finite floats, with a separate sum of infinities and NaN.

    >>> total = ExactSum()
    >>> for value in (1e16, 1.0, -1e16): total.add(value)
    >>> total.value
    1.0
    """

    def __init__(self, finite: Fraction = Fraction(0), other: float = 0.0) -> None:
        """Starts with these sums."""
        self._finite = finite
        self._other = other

    def add(self, value: float) -> None:
        """Adds a float."""
        if math.isfinite(value):
            self._finite += Fraction(value)
        else:
            self._other += value

    def add_all(self, sum_: ExactSum) -> None:
        """Adds another sum."""
        self._finite += sum_._finite
        self._other += sum_._other

    @property
    def value(self) -> float:
        """The sum, rounded once to a float."""
        return float(self._finite) + self._other

    def to_json(self) -> list[str]:
        """Returns a lossless document for `from_json`."""
        return [hex(self._finite.numerator), hex(self._finite.denominator), repr(self._other)]

    @classmethod
    def from_json(cls, document: list[str]) -> Self:
        """Returns the sum of a document that `to_json` wrote."""
        numerator, denominator, other = document
        return cls(Fraction(int(numerator, 16), int(denominator, 16)), float(other))
