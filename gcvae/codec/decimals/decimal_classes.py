"""How many decimals the numbers of a column have, and how often: drawn numbers are rounded alike.

In a table some numbers have fewer decimals than others: 2.5 beside 3.71, and one 2.850001 whose
digits nobody else has. A drawn number is rounded to some decimals with the shares that the table's
numbers of its size have, size being the power of ten: 0.00123 and 1230 with three digits each are
of different decimals. Fractions that are common, as halves and thirds are in means of few whole
numbers, are roundings too: to the nearest number that ends in one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from gcvae.codec.decimals.denominators import (
    common_denominators,
    denominators_of,
    nearest_fractions,
)
from gcvae.codec.decimals.roundings import (
    nearest_allowed,
    rounded_to,
    some_rounded,
    with_fractions,
)
from gcvae.spelling.number_text import MOST_DECIMALS

Codes = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
_LEAST_NUMBERS = 30
"""Numbers of one size that its shares are learned from; if there are fewer, near sizes join."""
_LEAST_SHARE = 1e-3
"""Of all numbers; under it nothing but digits that end in zero by chance."""

_LEAST_FRACTION_SHARE = 5e-4
"""Of all numbers with one fraction ..."""
_LEAST_FRACTION_ROWS = 5
_TIMES_CHANCE, _DEVIATIONS = 2.0, 4.0
"""... so many times the rows that a fraction of as many decimals has by chance, and deviations."""
_PRIOR_NUMBERS = 2.0
"""As which the shares of a column count among the numbers of a group, of each size."""
_FRACTION_SIZE = 1
"""Power of ten from which on a number may be moved by a half to a common fraction."""

_NONE = np.zeros(0)
_TINY = 1e-12
_DIGITS = 1e-15
"""Of a number, what a double may be off."""
_WHOLE, _SHORT, _FRACTION, _LONG = _BROAD = range(4)
_N_BROAD = len(_BROAD)
_FEW, _MANY = 4.0, 1000.0
"""Steps that are as many times what encoding loses: decoding rounds to the right one; nothing lies
so near to one by chance."""


@dataclass(frozen=True)
class DecimalClasses:
    """Shares of roundings by size.

    Attributes:
        sizes: Powers of ten of the numbers that there were, ascending. Shape: (S,).
        shares: For each size how many numbers are rounded to 0, 1, ... decimals; the rest keep all
            that their column has. Shape: (S, C).
        lost: What encoding may lose of a number; 0 where the column's decimals are wider steps.
        fractions: The common ones, ascending. Shape: (F,).
        fraction_shares: For each size how many numbers have each; `shares` are of those that have
            neither these nor a denominator. Shape: (S, F).
        denominators: The common ones, ascending. Shape: (Q,).
        denominator_shares: For each size how many numbers have each. Shape: (S, Q).
        digits: For each size the decimals that fractions are written with. Shape: (S,).
    """

    sizes: Codes
    shares: Numbers
    lost: float
    fractions: Numbers
    fraction_shares: Numbers
    denominators: Codes
    denominator_shares: Numbers
    digits: Codes

    @classmethod
    def fit(cls, numbers: Numbers, decimals: int | None, lost: float) -> Self | None:
        """The classes of a column's numbers; None where all are rounded alike.

        Args:
            numbers: Shape: (n,).
            decimals: Of the column; None where its numbers have no limit.
            lost: What encoding may lose of a number; it is taken back where a number was rounded
                and decoding itself rounds to no wider steps. 0 where it is not known.
        """
        numbers, counts = np.unique(numbers[numbers != 0.0], return_counts=True)
        is_limit = decimals is not None and 10.0**-decimals > _FEW * lost
        most = decimals if decimals is not None and is_limit else _decimals_told_apart(lost)
        if most <= 0 or not len(numbers):
            return None
        written = _Written.of(numbers, counts, most, is_limit=is_limit)
        found = written.counted(np.arange(len(numbers)), counts)
        pooled = np.stack([_with_neighbours(found, i) for i in range(len(found))])
        classes = cls._of_shares(written, pooled, 0.0 if is_limit else lost)
        fractions = classes.fraction_shares.sum(axis=1) + classes.denominator_shares.sum(axis=1)
        coarser = fractions + classes.shares[:, :most].sum(axis=1)
        return None if found.sum(axis=1) @ coarser < _LEAST_SHARE * counts.sum() else classes

    @classmethod
    def of_groups(cls, numbers: Numbers, groups: Codes, decimals: int) -> tuple[Self, ...]:
        """The classes of groups of a column's numbers, where those of few are like the column's.

        Args:
            numbers: Not 0. Shape: (n,).
            groups: 0, 1, ... of each. Shape: (n,).
            decimals: Of the column.
        """
        distinct, at, counts = np.unique(numbers, return_inverse=True, return_counts=True)
        written = _Written.of(distinct, counts, decimals, is_limit=True)
        found = written.counted(np.arange(len(distinct)), counts)
        pooled = np.stack([_with_neighbours(found, i) for i in range(len(found))])
        classes = []
        for group in range(int(groups.max(initial=-1)) + 1):
            own, n_own = np.unique(at[groups == group], return_counts=True)
            rows = written.counted(own, n_own) + _PRIOR_NUMBERS * pooled
            shares = rows / rows.sum(axis=1, keepdims=True)
            classes.append(cls._of_shares(written, shares, 0.0))
        return tuple(classes)

    @classmethod
    def _of_shares(cls, written: _Written, shares: Numbers, lost: float) -> Self:
        """The classes of numbers of which so many, by size, are of each kind. Shape: (S, kinds)."""
        n_fractions, n_decimals = len(written.fractions), written.most + 1
        parts = np.split(shares, [n_fractions, n_fractions + n_decimals], axis=1)
        of_fractions, of_decimals, of_denominators = parts
        roundings = np.stack(
            [
                _roundings(shares, -size, is_limit=written.is_limit)
                for shares, size in zip(of_decimals, written.sizes, strict=True)
            ]
        )
        used = np.flatnonzero(roundings[:, :-1].any(axis=0)).max(initial=-1)
        roundings = roundings[:, : used + 1]
        return cls(
            written.sizes,
            roundings,
            lost,
            written.fractions,
            of_fractions,
            written.denominators,
            of_denominators,
            written.digits,
        )

    @cached_property
    def coarse(self) -> tuple[int, ...]:
        """The decimals that some numbers are rounded to, ascending."""
        return tuple(np.flatnonzero(self.shares.any(axis=0)).tolist())

    def rounded(self, numbers: Numbers, u: Numbers, are_allowed: Callable[..., Mask]) -> Numbers:
        """The numbers, each rounded to the decimals that its uniform u chooses.

        A number that would lose its last digit, or come to where it is not allowed, takes the next
        decimals at which it does not; if there are none it stays.

        Args:
            numbers: Finite. Shape: (n,).
            u: Uniform on (0, 1). Shape: (n,).
            are_allowed: (rounded numbers, their places among all) -> which may be. Shape: (m,).
        """
        at_size = self._nearest_sizes(numbers)
        found, is_open = numbers.copy(), numbers != 0.0
        shares = np.concatenate([self.fraction_shares, self.denominator_shares], axis=1)
        which = (np.cumsum(shares, axis=1)[at_size] <= u[:, None]).sum(axis=1)
        n_fractions = len(self.fractions)
        at = np.flatnonzero(is_open & (which < shares.shape[1]))
        steps = np.ones(len(at))
        are_ratios = which[at] >= n_fractions
        steps[are_ratios] = 1.0 / self.denominators[which[at[are_ratios]] - n_fractions]

        def fraction_at(numbers: Numbers, of: Codes) -> Numbers:
            return self._fractions_at(numbers, which[at[of]], at_size[at[of]])

        near, good = nearest_allowed(numbers[at], steps, fraction_at, are_allowed, at)
        found[at[good]] = near[good]
        is_open[at] = False  # a number that its fraction would take too far stays
        of_all = shares.sum(axis=1)[at_size]
        u = (u - of_all) / np.maximum(1.0 - of_all, _TINY)
        wanted = (np.cumsum(self.shares, axis=1)[at_size] <= u[:, None]).sum(axis=1)
        for decimals in self.coarse:
            at = np.flatnonzero(is_open & (wanted <= decimals))
            steps = np.full(len(at), 10.0**-decimals)
            to_decimals = partial(some_rounded, decimals=decimals)
            near, good = nearest_allowed(numbers[at], steps, to_decimals, are_allowed, at)
            good &= near != 0.0
            found[at[good]] = near[good]
            is_open[at[good]] = False
        return found

    def _fractions_at(self, numbers: Numbers, which: Codes, at_size: Codes) -> Numbers:
        """The nearest numbers of a fraction, or behind these of a denominator. Shape: (n,)."""
        near, is_end = np.empty(len(numbers)), which < len(self.fractions)
        near[is_end] = with_fractions(numbers[is_end], self.fractions[which[is_end]])
        q = self.denominators[which[~is_end] - len(self.fractions)]
        near[~is_end] = nearest_fractions(numbers[~is_end], q, self.digits[at_size[~is_end]])
        return near

    @property
    def n_kinds(self) -> tuple[int, int]:
        """How many sizes `kinds` tells apart, and ways to write numbers of each."""
        n_denominators = int(_binary_sizes(self.denominators).max(initial=-1)) + 1
        return len(self.sizes), self.shares.shape[1] + 1 + len(self.fractions) + n_denominators

    def kinds(self, numbers: Numbers) -> Codes:
        """A number for each size and way to write numbers. Shape: (n,)."""
        most = self.shares.shape[1]
        shortest = _shortest(numbers, MOST_DECIMALS)
        written = np.minimum(shortest, most)
        if len(self.fractions):
            places, are_ends = self._ends(numbers)
            written[are_ends] = most + 1 + places[are_ends]
        if len(self.denominators):
            q = denominators_of(numbers, shortest)
            are_common = np.isin(q, self.denominators)
            of_q = most + 1 + len(self.fractions) + _binary_sizes(q)
            written[are_common] = of_q[are_common]
        return self._nearest_sizes(numbers) * self.n_kinds[1] + written

    def broad_kinds(self, kinds: Codes) -> Codes:
        """Of kinds only size and whether numbers are whole, short, fractions or long; -1 stays.

        Shape: (n,).
        """
        n_fractions, (_, n_ways) = len(self.fractions), self.n_kinds
        most = self.shares.shape[1]
        ways = np.full(n_ways, _SHORT)
        ways[0], ways[most] = _WHOLE, _LONG
        ways[most + 1 + n_fractions :] = _FRACTION
        size, way = np.divmod(kinds, n_ways)
        return np.where(kinds < 0, -1, size * _N_BROAD + ways[way])

    @property
    def n_broad(self) -> tuple[int, int]:
        """How many sizes `broad_kinds` tells apart, and ways of each."""
        return len(self.sizes), _N_BROAD

    def _ends(self, numbers: Numbers) -> tuple[Codes, Mask]:
        """The common fraction nearest to each number's, and whether it is the number's. (n,)."""
        sizes = np.abs(numbers)
        rests = sizes - np.floor(sizes)
        middles = (self.fractions[1:] + self.fractions[:-1]) / 2.0
        places = np.searchsorted(middles, rests)
        is_near = np.abs(rests - self.fractions[places]) <= _DIGITS * np.maximum(sizes, 1.0)
        return places, is_near & (_sizes(numbers) >= _FRACTION_SIZE)

    def snapped(self, numbers: Numbers) -> Numbers:
        """The numbers; those that encoding may have made of one of few decimals are that. (n,)."""
        found, is_open = numbers.copy(), np.ones(len(numbers), dtype=bool)
        for decimals in self.coarse if self.lost else ():
            near = rounded_to(numbers, decimals)
            is_near = is_open & (np.abs(near - numbers) <= self.lost)
            found[is_near] = near[is_near]
            is_open &= ~is_near
        return found

    def _nearest_sizes(self, numbers: Numbers) -> Codes:
        """Which of the sizes is nearest to each number's. Shape: (n,)."""
        middles = (self.sizes[1:] + self.sizes[:-1]) / 2.0
        with np.errstate(divide="ignore"):
            nearest: Codes = np.searchsorted(middles, _sizes(numbers))
        return nearest

    def to_json(self) -> dict[str, Any]:
        """What `from_json` reads."""
        return {
            "sizes": self.sizes.tolist(),
            "shares": self.shares.tolist(),
            "lost": self.lost,
            "fractions": self.fractions.tolist(),
            "fraction_shares": self.fraction_shares.tolist(),
            "denominators": self.denominators.tolist(),
            "denominator_shares": self.denominator_shares.tolist(),
            "digits": self.digits.tolist(),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The classes of a document that `to_json` wrote."""
        sizes = np.array(document["sizes"], dtype=np.int64)
        fractions = np.array(document.get("fractions", []), dtype=float)
        denominators = np.array(document.get("denominators", []), dtype=np.int64)
        digits = np.array(document.get("digits", np.zeros(len(sizes))), dtype=np.int64)

        def table(name: str, n: int) -> Numbers:
            return np.array(document.get(name, []), dtype=float).reshape(len(sizes), n)

        return cls(
            sizes,
            np.array(document["shares"]),
            document["lost"],
            fractions,
            table("fraction_shares", len(fractions)),
            denominators,
            table("denominator_shares", len(denominators)),
            digits,
        )


@dataclass(frozen=True)
class _Written:
    """How distinct numbers are written.

    Attributes:
        sizes: The powers of ten that they have, ascending. Shape: (S,).
        at: Which of these each number has. Shape: (n,).
        fractions: The common ones. Shape: (F,).
        denominators: The common ones. Shape: (Q,).
        digits: Decimals of fractions of each size. Shape: (S,).
        kinds: Which fraction each number has, F + its decimals, or behind these which denominator.
            Shape: (n,).
        most: The most decimals.
        is_limit: No number has more.
    """

    sizes: Codes
    at: Codes
    fractions: Numbers
    denominators: Codes
    digits: Codes
    kinds: Codes
    most: int
    is_limit: bool

    @classmethod
    def of(cls, numbers: Numbers, counts: Codes, most: int, *, is_limit: bool) -> Self:
        """Of distinct numbers, and how many rows have each."""
        powers, at = np.unique(_sizes(numbers), return_inverse=True)
        shortest = _shortest(numbers, most)
        fractions, which = _NONE, np.full(len(numbers), -1)
        denominators, of = np.zeros(0, dtype=np.int64), which
        if is_limit:
            denominators, of = common_denominators(numbers, counts, shortest)
            others = np.where(of < 0, counts, 0)
            fractions, which = _common_fractions(numbers, others, shortest, most)
        kinds = np.where(which >= 0, which, len(fractions) + shortest)
        kinds = np.where(of >= 0, len(fractions) + most + 1 + of, kinds)
        digits = _digits(shortest, of >= 0, at, len(powers))
        sizes = powers.astype(np.int64)
        return cls(sizes, at, fractions, denominators, digits, kinds, most, is_limit)

    def counted(self, which: Codes, counts: Codes) -> Numbers:
        """Rows of each size and kind of some of the numbers. Shape: (m,) twice -> (S, kinds)."""
        n_kinds = len(self.fractions) + self.most + 1 + len(self.denominators)
        found = np.zeros((len(self.sizes), n_kinds))
        np.add.at(found, (self.at[which], self.kinds[which]), counts)
        return found


def _digits(shortest: Codes, are_fractions: Mask, at: Codes, n_sizes: int) -> Codes:
    """The decimals that most fractions of each size have; those of the nearest size that has some.

    Shape: (n,) three times -> (n_sizes,).
    """
    digits = np.zeros(n_sizes, dtype=np.int64)
    known = np.unique(at[are_fractions])
    for size in known:
        digits[size] = np.bincount(shortest[are_fractions & (at == size)]).argmax()
    if len(known):
        sizes = np.arange(n_sizes)
        digits = digits[known[np.abs(sizes[:, None] - known).argmin(axis=1)]]
    return digits


def _binary_sizes(denominators: Codes) -> Codes:
    """The power of two at or below each. Shape: (n,)."""
    sizes: Codes = np.floor(np.log2(np.maximum(denominators, 1))).astype(np.int64)
    return sizes


def _decimals_told_apart(lost: float) -> int:
    """The most decimals whose steps are far wider than what encoding loses; 0 if nobody knows."""
    step = _MANY * lost
    return min(MOST_DECIMALS, math.floor(-math.log10(step))) if step else 0


def _sizes(numbers: Numbers) -> Numbers:
    """The power of ten of each number; -inf of zero. Shape: (n,)."""
    return np.floor(np.log10(np.abs(numbers)))


def _shortest(numbers: Numbers, most: int) -> Codes:
    """The fewest decimals that each number is written with, `most` if not fewer. Shape: (n,)."""
    found = np.full(len(numbers), most)
    left = np.arange(len(numbers))
    for decimals in range(most):
        is_it = rounded_to(numbers[left], decimals) == numbers[left]
        found[left[is_it]] = decimals
        left = left[~is_it]
    return found


def _common_fractions(
    numbers: Numbers, counts: Codes, shortest: Codes, most: int
) -> tuple[Numbers, Codes]:
    """The fractions that many numbers have, and which of them each has, -1 for none.

    Args:
        numbers: Distinct. Shape: (n,).
        counts: Rows of each. Shape: (n,).
        shortest: The fewest decimals of each. Shape: (n,).
        most: Decimals of the column.
    """
    may_have = (shortest > 0) & (_sizes(numbers) >= _FRACTION_SIZE)
    wholes = np.abs(numbers)
    rests = np.where(may_have, np.round(wholes - np.floor(wholes), most), 0.0)
    found, at = np.unique(rests, return_inverse=True)
    n_rows = np.bincount(at, counts)
    by_decimals = np.bincount(shortest[may_have], counts[may_have], minlength=most + 1)
    decimals = np.zeros(len(found), dtype=np.int64)
    decimals[at] = shortest
    alike = by_decimals[decimals] / (9.0 * 10.0 ** (decimals - 1.0))
    least = max(_LEAST_FRACTION_ROWS, _LEAST_FRACTION_SHARE * counts.sum())
    by_chance = _TIMES_CHANCE * alike + _DEVIATIONS * np.sqrt(alike)
    is_common = (found > 0.0) & (n_rows >= np.maximum(least, by_chance))
    places = np.where(is_common, np.cumsum(is_common) - 1, -1)
    return found[is_common], places[at]


def _with_neighbours(counts: Numbers, at: int) -> Numbers:
    """Shares of one size, joined by the sizes around it until there are enough numbers."""
    reach = 0
    while True:
        near = counts[max(at - reach, 0) : at + reach + 1].sum(axis=0)
        if near.sum() >= _LEAST_NUMBERS or reach >= len(counts):
            shares: Numbers = near / near.sum()
            return shares
        reach += 1


def _roundings(shares: Numbers, least: int, *, is_limit: bool) -> Numbers:
    """How often numbers are rounded to each decimals, if these are their shares of shortest ones.

    Of numbers that are rounded to d decimals one in ten ends in a zero, and has fewer:
    P(shortest = c) = sum over d >= c of P(rounded to d) P(c | d), solved from the finest down.

    Args:
        shares: Of the numbers by their shortest decimals, the finest at last. Shape: (C + 1,).
        least: Decimals of the first digit, fewer than which no number of the size has.
        is_limit: False where the last class is of numbers of that many decimals or more.
    """
    if not shares.any():
        return shares
    total = shares.sum()
    left, found = shares / total, np.zeros(len(shares))
    last = len(shares) - 1
    for d in range(last, -1, -1):
        fewer = np.arange(max(least, 0), d)
        if (d == last and not is_limit) or not len(fewer):
            found[d] = left[d]
            continue
        with_zeros = 0.9 * 10.0 ** (fewer - d)
        with_zeros[0] /= 0.9  # that many zeros or more
        found[d] = max(left[d], 0.0) / 0.9
        left[fewer] -= found[d] * with_zeros
    found = found.clip(min=0.0)
    roundings: Numbers = found / found.sum()
    return roundings
