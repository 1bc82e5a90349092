"""Rounds generated numbers to the same distribution of decimals as in the table.

Some numbers of a column have fewer decimals than others: 2.5 and 3.71, or 0.00123 and 1230. For
numbers of one size (power of ten), let s_d be the share of numbers whose shortest notation has d
decimals, and p_d the share of numbers that were rounded to d decimals. One in ten rounded numbers
ends in a zero, one in a hundred in two zeros, so

    s_d = 0.9 (p_d + p_{d+1} / 10 + p_{d+2} / 100 + ...),      p_d = (s_d - s_{d+1} / 10) / 0.9.

A generated number is rounded to d decimals with the probability p_d for its size. The decimals do
not depend on other cells of the row: predicting them by a tree from the other cells raised the
log-likelihood of decimals in unseen rows by at least 0.1 nats per row in only one table of ten.
Common fractions, such as thirds, are not modelled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from gcvae.arrays import Codes, Mask, Numbers
from gcvae.artifact.documents import Document
from gcvae.spelling.number_text import MOST_DECIMALS

_LEAST_SHARE = 1e-3
"""Minimum share of numbers with fewer decimals than the column; below it, no number is rounded."""
_PRIOR = 4.0
"""Pseudo-count with which the shares of the column enter those of each size. Values from 0.5 to 30
were within 0.001 nats of the best one for unseen numbers in three of four tables."""
_FEW, _MANY = 4.0, 1000.0
"""Multiples of the encoding error. Decoding restores decimals whose unit exceeds the first
multiple, and does not confuse numbers with decimals whose unit exceeds the second one."""
_STEPS = (0, 1, -1, 2, -2, 3, -3)
"""Offsets from the nearest rounded number, in units of its last decimal, in the order in which they
are tried."""


@dataclass(frozen=True)
class Rounding(Document):
    """Probabilities of rounding a number to 0, 1, ... decimals, by the number's size.

    Attributes:
        sizes: The S sizes (exponents of ten) of the fitted numbers, ascending. Shape: (S,).
        shares: Probability that a number of each size is rounded to 0, 1, ..., C - 1 decimals; with
            the remaining probability it is only rounded to the column's decimals. Shape: (S, C).
        lost: Largest error of encoding and decoding a number, which `restored` removes; 0 if
            rounding to the column's decimals already removes the error.
    """

    sizes: Codes
    shares: Numbers
    lost: float

    @classmethod
    def fit(cls, numbers: Numbers, decimals: int | None, lost: float) -> Self | None:
        """Fits the probabilities to n finite numbers of a column; returns None if nearly all have
        the same number of decimals.

        Args:
            numbers: Finite numbers. Shape: (n,).
            decimals: Maximum number of decimals in the column; None for no limit.
            lost: Largest error of encoding and decoding a number; 0 if unknown.
        """
        numbers = numbers[numbers != 0.0]
        is_limit = decimals is not None and 10.0**-decimals > _FEW * lost
        most = decimals if decimals is not None and is_limit else _distinct_decimals(lost)
        if most <= 0 or not len(numbers):
            return None
        sizes, at = np.unique(_sizes(numbers), return_inverse=True)
        counts = np.zeros((len(sizes), most + 1))
        np.add.at(counts, (at, _shortest_decimals(numbers, most)), 1.0)
        n_rows, of_column = counts.sum(axis=1), counts.sum(axis=0) / len(numbers)
        shares = (counts + _PRIOR * of_column) / (n_rows[:, None] + _PRIOR)
        shares = _rounded_shares(shares, sizes, is_limit=is_limit)[:, :-1]
        if float(n_rows @ shares.sum(axis=1)) < _LEAST_SHARE * len(numbers):
            return None
        n_used = int(np.flatnonzero(shares.any(axis=0)).max()) + 1
        return cls(sizes.astype(np.int64), shares[:, :n_used], 0.0 if is_limit else lost)

    def rounded(
        self, numbers: Numbers, u: Numbers, are_allowed: Callable[[Numbers], Mask]
    ) -> Numbers:
        """Rounds each of n finite numbers to a random number of decimals, which a uniform random
        number u in (0, 1) selects. Shape: (n,), (n,) -> (n,).

        `are_allowed` is a function from numbers to a mask of the allowed ones. A rounded number
        that is not allowed is replaced by an allowed one with as many decimals, at most three
        rounding steps away. If there is none, or the rounded number is 0, the number is rounded to
        more decimals or left unchanged.
        """
        middles = (self.sizes[1:] + self.sizes[:-1]) / 2.0
        ends = np.cumsum(self.shares, axis=1)[np.searchsorted(middles, _sizes(numbers))]
        wanted = (ends <= u[:, None]).sum(axis=1)
        found, is_open = numbers.copy(), numbers != 0.0
        for decimals in self._decimals:
            at = np.flatnonzero(is_open & (wanted <= decimals))
            near = rounded_to(numbers[at], decimals)
            at, near = at[near != 0.0], near[near != 0.0]
            for steps in _STEPS:
                outwards = np.where(numbers[at] < near, -steps, steps) * 10.0**-decimals
                beside = rounded_to(near + outwards, decimals)
                is_good = (np.sign(beside) == np.sign(near)) & are_allowed(beside)
                found[at[is_good]] = beside[is_good]
                is_open[at[is_good]] = False
                at, near = at[~is_good], near[~is_good]
        return found

    def restored(self, numbers: Numbers) -> Numbers:
        """Replaces each of n numbers by the number with the fewest decimals that differs by at most
        the encoding error, if there is one. Shape: (n,) -> (n,)."""
        found, is_open = numbers.copy(), np.ones(len(numbers), dtype=bool)
        for decimals in self._decimals if self.lost else ():
            near = rounded_to(numbers, decimals)
            is_near = is_open & (np.abs(near - numbers) <= self.lost)
            found[is_near] = near[is_near]
            is_open &= ~is_near
        return found

    @property
    def _decimals(self) -> list[int]:
        return np.flatnonzero(self.shares.any(axis=0)).tolist()


def rounded_to(numbers: Numbers, decimals: int) -> Numbers:
    """Rounds n numbers to `decimals` decimals, unless they are too large. Shape: (n,) -> (n,)."""
    with np.errstate(over="ignore", invalid="ignore"):
        near = np.round(numbers, decimals)
    return np.where(np.isfinite(near), near, numbers)


def _sizes(numbers: Numbers) -> Numbers:
    with np.errstate(divide="ignore"):
        sizes: Numbers = np.floor(np.log10(np.abs(numbers)))
    return sizes


def _distinct_decimals(lost: float) -> int:
    """Returns the largest number of decimals d for which 10^-d is much larger than the encoding
    error `lost`; 0 if the error is unknown (0)."""
    return min(MOST_DECIMALS, math.floor(-math.log10(_MANY * lost))) if lost else 0


def _shortest_decimals(numbers: Numbers, most: int) -> Codes:
    found = np.full(len(numbers), most)
    left = np.arange(len(numbers))
    for decimals in range(most):
        is_it = rounded_to(numbers[left], decimals) == numbers[left]
        found[left[is_it]] = decimals
        left = left[~is_it]
    return found


def _rounded_shares(shares: Numbers, sizes: Numbers, *, is_limit: bool) -> Numbers:
    """Computes the shares of numbers that were rounded to d decimals (p_d in the module's formulas)
    from the shares of numbers that have d decimals (s_d), by size. Shape: (S, C + 1).

    The formula assumes that the last decimal can be zero. Therefore it is not applied where the
    last decimal is the number's first nonzero digit. Without `is_limit`, the last column also
    counts numbers with more than C decimals, and the formula is not applied to it.
    """
    ends_in_zeros = np.arange(shares.shape[1]) > np.maximum(-sizes, 0.0)[:, None]
    ends_in_zeros[:, -1] &= is_limit
    rounded = np.where(ends_in_zeros, shares / 0.9, shares)
    rounded[:, :-1] -= np.where(ends_in_zeros[:, 1:], shares[:, 1:] / 9.0, 0.0)
    rounded = rounded.clip(min=0.0)
    normalised: Numbers = rounded / rounded.sum(axis=1, keepdims=True)
    return normalised
