"""Repeated numbers among others, such as flight numbers or ratios of small integers.

There are too many of them, and each is too rare, for codes of their own, and no smooth curve fits
their jumps. F is a smooth curve S with an additional step in the rounding cell [v - h, v + h] of
each repeated number v:

    F(x) = H(S(x)),      H(s) = (1 - w) s + sum_v w_v clip((s - s_v) / (t_v - s_v), 0, 1),
    s_v = S(v - h),  t_v = S(v + h),  w = sum_v w_v

H is linear between the ends of cells, so F has an inverse and a slope as S has. w_v covers all but
one of the rows of v; S covers the remaining one, as for unseen numbers (a discount of one, as in
Pitman and Yor's process).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.special import ndtr, ndtri

from gcvae.arrays import Codes, Mask, Numbers

LEAST_ROWS = 5
"""Minimum number of rows of a repeated number."""


@dataclass(frozen=True)
class RepeatedNumbers:
    """The map H that adds steps to a smooth CDF S: F(x) = H(S(x)), see the module.

    Attributes:
        shares: w_v of each number, ascending by v. Shape: (k,).
        starts: s_v of each. Shape: (k,).
        ends: t_v of each. Shape: (k,).
    """

    shares: Numbers
    starts: Numbers
    ends: Numbers

    @cached_property
    def _left(self) -> float:
        """1 - w."""
        return 1.0 - float(self.shares.sum())

    @cached_property
    def _below(self) -> Numbers:
        """Total share of the cells below each cell, and of all cells. Shape: (k + 1,)."""
        return np.concatenate([[0.0], np.cumsum(self.shares)])

    @cached_property
    def _slopes(self) -> Numbers:
        """Slope of H in each cell. Shape: (k,)."""
        slopes: Numbers = self._left + self.shares / (self.ends - self.starts)
        return slopes

    @cached_property
    def _raised(self) -> Numbers:
        """H at the lower end of each cell. Shape: (k,)."""
        raised: Numbers = self._left * self.starts + self._below[:-1]
        return raised

    def raised(self, scores: Numbers) -> Numbers:
        """Converts normal scores of S to normal scores of F. Shape: (n,)."""
        s, rest = ndtr(scores), ndtr(-scores)
        n_begun = np.searchsorted(self.starts, s, side="right")
        at = np.maximum(n_begun - 1, 0)
        part = np.clip((s - self.starts[at]) / (self.ends[at] - self.starts[at]), 0.0, 1.0)
        below = np.where(n_begun > 0, self._below[at] + self.shares[at] * part, 0.0)
        above = np.maximum(self._below[-1] - below, 0.0)
        return _scores(self._left * s + below, self._left * rest + above)

    def lowered(self, scores: Numbers) -> Numbers:
        """Converts normal scores of F to normal scores of S. Shape: (n,)."""
        u, rest = ndtr(scores), ndtr(-scores)
        at, is_inside = self._cells(u)
        inside = self.starts[at] + (u - self._raised[at]) / self._slopes[at]
        below = self._below[np.searchsorted(self._raised, u, side="right")]
        s = np.where(is_inside, inside, (u - below) / self._left)
        above = (rest - (self._below[-1] - below)) / self._left
        return _scores(s, np.where(is_inside, 1.0 - inside, above))

    def log_slopes(self, scores: Numbers) -> Numbers:
        """Returns log H' at normal scores of F. Shape: (n,)."""
        at, is_inside = self._cells(ndtr(scores))
        return np.log(np.where(is_inside, self._slopes[at], self._left))

    def are_inside(self, scores: Numbers) -> Mask:
        """Returns whether normal scores of F lie in the cell of a repeated number. Shape: (n,)."""
        return self._cells(ndtr(scores))[1]

    def to_json(self) -> dict[str, list[float]]:
        """Returns the document that `from_json` reads."""
        return {field.name: getattr(self, field.name).tolist() for field in fields(self)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Restores H from a document that `to_json` wrote."""
        return cls(*(np.asarray(document[field.name], float) for field in fields(cls)))

    def _cells(self, u: Numbers) -> tuple[Codes, Mask]:
        """Returns (the cell at or below each height of F, whether the height is in the cell)."""
        n_begun = np.searchsorted(self._raised, u, side="right")
        at = np.maximum(n_begun - 1, 0)
        top = self._raised[at] + self._slopes[at] * (self.ends[at] - self.starts[at])
        return at, (n_begun > 0) & (u < top)


def _scores(u: Numbers, rest: Numbers) -> Numbers:
    """Returns normal scores of heights u = 1 - rest, from the nearer tail. Shape: (n,) twice ->
    (n,)."""
    scores: Numbers = np.where(u < 0.5, ndtri(np.maximum(u, 0.0)), -ndtri(np.maximum(rest, 0.0)))
    return scores
