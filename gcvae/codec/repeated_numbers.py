"""Steps of a CDF at repeated numbers, such as flight numbers or ratios of small integers.

There are too many such numbers, and each is too rare, for separate codes. The CDF jumps at each of
them, which no smooth curve can follow. Therefore, the CDF F consists of a smooth curve S with an
additional step of height w_v in the rounding cell [v - h, v + h] of each repeated number v:

    F(x) = H(S(x)),      H(s) = (1 - w) s + sum_v w_v clip((s - s_v) / (t_v - s_v), 0, 1),
    s_v = S(v - h),  t_v = S(v + h),  w = sum_v w_v

H is linear between the ends of cells, so F has an inverse and a slope if S has. The step w_v is the
share of all but one of the rows with v; S covers the remaining row, as for unseen numbers (a
discount of one, as in Pitman and Yor's process).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from gcvae.arrays import Codes, Mask, Numbers
from gcvae.artifact.documents import Document

LEAST_ROWS = 5
"""Minimum number of rows with a repeated number for it to get a step."""


@dataclass(frozen=True)
class RepeatedNumbers(Document):
    """Map H that adds a step to a smooth CDF S at each of k repeated numbers v: F(x) = H(S(x)).

    Attributes:
        shares: Height of the step at each number, ascending by v. Shape: (k,).
        starts: S at the lower end of the interval whose numbers round to v. Shape: (k,).
        ends: S at the upper end of this interval. Shape: (k,).
    """

    shares: Numbers
    starts: Numbers
    ends: Numbers

    @cached_property
    def _left(self) -> float:
        return 1.0 - float(self.shares.sum())

    @cached_property
    def _below(self) -> Numbers:
        """Total height of the steps below each number, and of all steps. Shape: (k + 1,)."""
        return np.concatenate([[0.0], np.cumsum(self.shares)])

    @cached_property
    def _slopes(self) -> Numbers:
        """Slope dF / dS in the rounding cell of each number. Shape: (k,)."""
        return self._left + self.shares / (self.ends - self.starts)

    @cached_property
    def _raised(self) -> Numbers:
        """F at the lower end of each number's rounding cell. Shape: (k,)."""
        return self._left * self.starts + self._below[:-1]

    def raised(self, scores: Numbers) -> Numbers:
        """Converts n normal scores under the smooth CDF S to those under F, the CDF with steps.
        Shape: (n,) -> (n,)."""
        s, rest = ndtr(scores), ndtr(-scores)
        n_begun = np.searchsorted(self.starts, s, side="right")
        at = np.maximum(n_begun - 1, 0)
        part = np.clip((s - self.starts[at]) / (self.ends[at] - self.starts[at]), 0.0, 1.0)
        below = np.where(n_begun > 0, self._below[at] + self.shares[at] * part, 0.0)
        above = np.maximum(self._below[-1] - below, 0.0)
        return _scores(self._left * s + below, self._left * rest + above)

    def lowered(self, scores: Numbers) -> Numbers:
        """Converts n normal scores under F, the CDF with steps, to those under the smooth CDF S.
        Shape: (n,) -> (n,)."""
        u, rest = ndtr(scores), ndtr(-scores)
        at, is_inside = self._cells(u)
        inside = self.starts[at] + (u - self._raised[at]) / self._slopes[at]
        below = self._below[np.searchsorted(self._raised, u, side="right")]
        s = np.where(is_inside, inside, (u - below) / self._left)
        above = (rest - (self._below[-1] - below)) / self._left
        return _scores(s, np.where(is_inside, 1.0 - inside, above))

    def log_slopes(self, scores: Numbers) -> Numbers:
        """Returns log(dF / dS) at n normal scores under F, the CDF with steps; S is the smooth CDF.
        Shape: (n,) -> (n,)."""
        at, is_inside = self._cells(ndtr(scores))
        return np.log(np.where(is_inside, self._slopes[at], self._left))

    def are_inside(self, scores: Numbers) -> Mask:
        """Returns a mask of the normal scores, under the CDF F with steps, of numbers that are
        rounded to a repeated number. Shape: (n,) -> (n,)."""
        return self._cells(ndtr(scores))[1]

    def _cells(self, u: Numbers) -> tuple[Codes, Mask]:
        """Returns, for heights u of F, (index of the last cell that begins at u or below, whether
        it contains u)."""
        n_begun = np.searchsorted(self._raised, u, side="right")
        at = np.maximum(n_begun - 1, 0)
        top = self._raised[at] + self._slopes[at] * (self.ends[at] - self.starts[at])
        return at, (n_begun > 0) & (u < top)


def _scores(u: Numbers, rest: Numbers) -> Numbers:
    """Returns the normal scores of CDF heights u = 1 - rest, computed from the nearer tail."""
    scores: Numbers = np.where(u < 0.5, ndtri(np.maximum(u, 0.0)), -ndtri(np.maximum(rest, 0.0)))
    return scores
