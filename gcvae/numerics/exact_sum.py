"""Exact sums of floats, which depend neither on the order of the terms nor on partial sums.

A sum of scores of a table is therefore the same for any number of processes.
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
        self._finite = finite
        self._other = other

    def add(self, value: float) -> None:
        """Adds a term, which may also be infinite or NaN."""
        if math.isfinite(value):
            self._finite += Fraction(value)
        else:
            self._other += value

    def add_all(self, sum_: ExactSum) -> None:
        """Adds the terms of another sum."""
        self._finite += sum_._finite
        self._other += sum_._other

    @property
    def value(self) -> float:
        """Value of the sum, rounded once to a float."""
        return float(self._finite) + self._other

    def to_json(self) -> list[str]:
        """Returns the sum as a list of three texts for `from_json`: numerator and denominator of
        the sum of the finite terms, in hexadecimal, and the sum of infinities and NaN."""
        return [hex(self._finite.numerator), hex(self._finite.denominator), repr(self._other)]

    @classmethod
    def from_json(cls, document: list[str]) -> Self:
        """Returns the sum from a list that `to_json` returned."""
        numerator, denominator, other = document
        return cls(Fraction(int(numerator, 16), int(denominator, 16)), float(other))
