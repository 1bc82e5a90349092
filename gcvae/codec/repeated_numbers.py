"""Numbers that come again among numbers that do not: a flight's number, a share of 1 in 15.

They are too many and too rare to be atoms, and no smooth curve passes through their jumps. F is a
smooth curve S with a step more in the rounding cell [v - h, v + h] of each such number v:

    F(x) = H(S(x)),      H(s) = (1 - w) s + sum_v w_v clip((s - s_v) / (t_v - s_v), 0, 1),
    s_v = S(v - h),  t_v = S(v + h),  w = sum_v w_v

H is straight between the ends of cells, so that F has an inverse and a slope as S has. Of the rows
of v all but one are its own; that one S stands for, as for numbers that nobody saw (a discount of
one, as of Pitman and Yor's process).

Some are *names*, such as a flight's number or a shop's: what comes with one says little of those
next to it. Whether a column's numbers are such, the other columns tell: they are foretold from the
number itself, by its other rows, and from the numbers near it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from gcvae.arrays import Codes, Mask, Numbers
from gcvae.codec.correspondence import CoarseColumn

LEAST_ROWS = 5
"""Rows of a number that is kept, as of an atom."""
_MOST_NAMES = 4_096
_LEAST_REPEATED = 0.5
"""Share of the rows whose number has so many."""
_N_BINS = 64
_LEAST_NATS = 0.2
"""That a row gains where one of the other columns is foretold by the number and not by those near
it."""
_PRIOR_ROWS = 2.0
"""Rows of a number as which those near it count."""


@dataclass(frozen=True)
class RepeatedNumbers:
    """H, on the heights of S.

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
        """Shares of the cells below each, and of all. Shape: (k + 1,)."""
        return np.concatenate([[0.0], np.cumsum(self.shares)])

    @cached_property
    def _slopes(self) -> Numbers:
        """H' in each cell. Shape: (k,)."""
        slopes: Numbers = self._left + self.shares / (self.ends - self.starts)
        return slopes

    @cached_property
    def _raised(self) -> Numbers:
        """H at the lower end of each cell. Shape: (k,)."""
        raised: Numbers = self._left * self.starts + self._below[:-1]
        return raised

    def raised(self, scores: Numbers) -> Numbers:
        """Normal scores of F where S has these. Shape: (n,)."""
        s, rest = ndtr(scores), ndtr(-scores)
        n_begun = np.searchsorted(self.starts, s, side="right")
        at = np.maximum(n_begun - 1, 0)
        part = np.clip((s - self.starts[at]) / (self.ends[at] - self.starts[at]), 0.0, 1.0)
        below = np.where(n_begun > 0, self._below[at] + self.shares[at] * part, 0.0)
        above = np.maximum(self._below[-1] - below, 0.0)
        return _scores(self._left * s + below, self._left * rest + above)

    def lowered(self, scores: Numbers) -> Numbers:
        """Normal scores of S where F has these. Shape: (n,)."""
        u, rest = ndtr(scores), ndtr(-scores)
        at, is_inside = self._cells(u)
        inside = self.starts[at] + (u - self._raised[at]) / self._slopes[at]
        below = self._below[np.searchsorted(self._raised, u, side="right")]
        s = np.where(is_inside, inside, (u - below) / self._left)
        above = (rest - (self._below[-1] - below)) / self._left
        return _scores(s, np.where(is_inside, 1.0 - inside, above))

    def log_slopes(self, scores: Numbers) -> Numbers:
        """log H' where F has these normal scores. Shape: (n,)."""
        at, is_inside = self._cells(ndtr(scores))
        return np.log(np.where(is_inside, self._slopes[at], self._left))

    def are_inside(self, scores: Numbers) -> Mask:
        """Returns whether F has these normal scores in the cell of such a number. Shape: (n,)."""
        return self._cells(ndtr(scores))[1]

    def to_json(self) -> dict[str, list[float]]:
        """Returns the document that `from_json` reads."""
        return {field.name: getattr(self, field.name).tolist() for field in fields(self)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """H of a document that `to_json` wrote."""
        return cls(*(np.asarray(document[field.name], float) for field in fields(cls)))

    def _cells(self, u: Numbers) -> tuple[Codes, Mask]:
        """Returns the cell at or below each height of F, and whether the height is in it."""
        n_begun = np.searchsorted(self._raised, u, side="right")
        at = np.maximum(n_begun - 1, 0)
        top = self._raised[at] + self._slopes[at] * (self.ends[at] - self.starts[at])
        return at, (n_begun > 0) & (u < top)


def _scores(u: Numbers, rest: Numbers) -> Numbers:
    """Normal scores of heights u = 1 - rest, from the nearer tail. Shape: (n,) twice."""
    scores: Numbers = np.where(u < 0.5, ndtri(np.maximum(u, 0.0)), -ndtri(np.maximum(rest, 0.0)))
    return scores


def are_names(numbers: pd.Series[Any], name: str, others: Sequence[CoarseColumn]) -> bool:
    """Returns whether numbers are names.

    Args:
        numbers: Typed cells of a column.
        name: The column's.
        others: The table's columns in few bins; the column itself may be among them.
    """
    others = [other for other in others if other.name != name]
    if not others:
        return False
    cells = numbers.iloc[:: others[0].step]
    known = cells.notna().to_numpy()
    values, at = np.unique(cells[known].to_numpy(), return_inverse=True)
    counts = np.bincount(at, minlength=len(values))
    n_repeated = counts[counts >= LEAST_ROWS]
    if len(n_repeated) > _MOST_NAMES or n_repeated.sum() < _LEAST_REPEATED * max(len(at), 1):
        return False
    middles = np.cumsum(counts) - 0.5 * counts
    bins = np.floor(_N_BINS * middles / counts.sum()).astype(np.int64)[at]
    return any(
        _gain(at, bins, other.codes[known].astype(np.int64), other.n_codes) >= _LEAST_NATS
        for other in others
    )


def _gain(names: Codes, bins: Codes, cells: Codes, n_cells: int) -> float:
    """Mean nats by which a row's cell is likelier by its name's other rows than by its bin's.

    Shape: (n,) three times.
    """
    everywhere = np.bincount(cells, minlength=n_cells) / len(cells)
    near = _foretold(bins, cells, n_cells, 1.0, everywhere[cells])
    own = _foretold(names, cells, n_cells, _PRIOR_ROWS, near)
    return float(np.log(own / near).mean())


def _foretold(keys: Codes, cells: Codes, n_cells: int, n_prior: float, prior: Numbers) -> Numbers:
    """Of each row the share of its cell in the other rows of its key, and in the prior's rows."""
    joint = keys * n_cells + cells
    of_both, of_key = np.bincount(joint)[joint], np.bincount(keys)[keys]
    shares: Numbers = (of_both - 1 + n_prior * prior) / (of_key - 1 + n_prior)
    return shares
