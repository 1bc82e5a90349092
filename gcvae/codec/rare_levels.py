"""Levels as codes in a learned order, rare ones sharing a code.

A level that few rows have says little: a code of its own would be learned by heart. Such levels,
and those beyond the MOST_OWN_CODES most frequent ones, share a code with others of about as many
rows, their *group*; which of its levels a cell has is drawn by their shares in the training table,
whatever the rest of the row is. So p(level) = p(code) x share, an exact mass. Levels that fix
another column share a code only with those that fix it alike.

Levels that are withheld (`gcvae.profiling.withheld_levels`) are none of the codec's: where the
table had them, others stand in their place. How often it does is known, so a text that
is no level has a mass, that of all withheld ones together, whatever the rest of the row is: such a
cell is integrated out like a blank, and its mass counts.

# PAPER-DIFF: the paper gives every level a probability of its own at every z. Rare levels share
# theirs in fixed parts: of a few rows a network learns nothing but the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.arrays import Codes, Mask, Numbers
from gcvae.cells.values import placed_values
from gcvae.codec.code_members import CodeMembers
from gcvae.codec.correspondence import CoarseColumn, level_axis
from gcvae.codec.function_levels import FunctionLevels
from gcvae.schema.columns import Column, Level

LEAST_ROWS_PER_LEVEL = 5
"""A level with fewer rows shares its code."""
MOST_OWN_CODES = 400
"""Levels with a code of their own, the most frequent ones."""
ROWS_PER_GROUP = 50
MOST_GROUPS = 256
OTHER = "(other)"
"""The level that stands for the withheld ones where these are most of a column."""
HIDDEN = -1.0
"""The value of a cell with a withheld level."""
_UNSEEN_ROWS = 0.5
"""Rows that a level counts as which only the schema lists."""


@dataclass(frozen=True)
class GroupedLevelCodec:
    """Codes in the order of the first axis of a correspondence analysis; missing is code 0.

    The value of a cell is where in its code's stretch (0, 1) its level lies: 1/2 where a level is
    alone, and HIDDEN where it is one of the withheld ones.

    Attributes:
        codes: Codes of each of the schema's levels, the missing level not counted. Shape: (K,).
        counts: Rows of each of the schema's levels, with those that it stands for, or their shares
            (`without_counts`). Shape: (K,).
        withheld: Rows of the withheld levels that each stands for, or their shares. Shape: (K,).
    """

    column: Column
    has_missing: bool
    codes: Codes
    counts: Numbers
    withheld: Numbers

    @classmethod
    def fit(
        cls,
        series: pd.Series[Any],
        column: Column,
        others: Sequence[CoarseColumn] = (),
        functions: FunctionLevels | None = None,
        withheld: Mapping[Level, int] | None = None,
    ) -> Self:
        """Returns the codec of these typed cells, by what they occur with in the other columns.

        Args:
            series, column: The cells.
            others: The other columns.
            functions: What functions between columns say of this one; None where there are none.
            withheld: Of levels that stand for withheld ones, in how many rows.
        """
        levels = column.levels or ()
        places = {level: i for i, level in enumerate(levels)}
        found, distinct = pd.factorize(series)
        at = np.array([*(places[level] for level in distinct.tolist()), -1])[found]
        rows = np.bincount(at[at >= 0], minlength=len(levels))
        others = [other for other in others if other.name != column.name]
        functions = FunctionLevels() if functions is None else functions
        classes = functions.classes_of(at, len(levels))
        least = 1 if functions.are_own else LEAST_ROWS_PER_LEVEL
        axis = level_axis(at, len(levels), others)
        codes = _in_order(_grouped(rows, classes, least), rows, axis)
        stands_for = np.array([(withheld or {}).get(level, 0) for level in levels], dtype=float)
        counts = np.maximum(rows, _UNSEEN_ROWS)
        return cls(column, bool((at < 0).any()), codes, counts, stands_for)

    @property
    def name(self) -> str:
        """The column's name."""
        return self.column.name

    @property
    def levels(self) -> tuple[Level, ...]:
        """The typed levels, as the schema lists them."""
        return self.column.levels or ()

    @property
    def n_codes(self) -> int:
        """The number of outcomes: missing, levels and groups."""
        return int(self.codes.max(initial=-1)) + 1 + self.has_missing

    @property
    def new_level_mass(self) -> float:
        """Mass of the levels that are none of the column's, by those of a single row.

        Source: I. J. Good, "The population frequencies of species", Biometrika 40 (1953).
        """
        return float((1.0 + (self.counts <= 1.0).sum()) / (1.0 + self.counts.sum()))

    @property
    def is_real(self) -> bool:
        """False: a code's value says which level, and has no density."""
        return False

    @cached_property
    def members(self) -> CodeMembers:
        """The levels of each code, the missing level's not counted; in the schema's order."""
        return CodeMembers(self.codes, self.counts)

    def encode(self, series: pd.Series[Any]) -> tuple[npt.NDArray[np.int32], Numbers]:
        """Codes and positions of typed cells; code -1 for an outcome that there is no code for.

        A text that is no level is one of the withheld ones, where there are some.
        """
        found, distinct = pd.factorize(series)
        places = {level: i for i, level in enumerate(self.levels)}
        unknown, missing = len(self.levels), len(self.levels) + 1
        at = np.array([*(places.get(level, unknown) for level in distinct.tolist()), missing])
        middles = self.members.middles
        codes = [*(self.codes + self.has_missing), -1, 0 if self.has_missing else -1]
        values = [*middles, 0.0, 0.0]
        if self.withheld.any():
            instead = int(self.withheld.argmax())
            codes[unknown] = codes[instead]
            values[unknown] = middles[instead] if self.levels[instead] == OTHER else HIDDEN
        return np.array(codes, dtype=np.int32)[at][found], np.array(values)[at][found]

    def decode(self, codes: Codes, values: Numbers) -> pd.Series[Any]:
        """Typed cells of codes and positions in (0, 1)."""
        places = self.members.at(codes - self.has_missing, values)
        nullable = self.has_missing or self.column.missing.allowed
        return placed_values(list(self.levels), places, nullable)

    def log_units(self, codes: npt.NDArray[np.int32], values: Numbers) -> Numbers:
        """-log share of each cell's level in its code: log p(level) = log p(code) - log_units."""
        member = self.members.at(codes.astype(np.int64) - self.has_missing, values)
        known = np.append(self.members.shares * (1.0 - self._hidden), 1.0)
        mass = self.withheld.sum() / max(self.counts.sum(), 1.0)
        log_units: Numbers = -np.log(np.where(values == HIDDEN, mass, known[member]))
        return log_units

    @cached_property
    def _hidden(self) -> Numbers:
        """The share of withheld levels in the rows of each level; "(other)" is their name."""
        are_other = np.array([level == OTHER for level in self.levels], dtype=bool)
        return np.where(are_other, 0.0, self.withheld / self.counts)

    def log_shares(self, chosen: Mask) -> Numbers:
        """log of the share of the chosen levels in each code. Shape: (K levels,) -> (n_codes,)."""
        log_shares = self.members.log_shares(chosen)
        return np.append(-np.inf, log_shares) if self.has_missing else log_shares

    def positions_among(self, chosen: Mask, codes: Codes, values: Numbers, u: Numbers) -> Numbers:
        """Positions of levels drawn among the chosen ones of each code, at uniform noise u.

        Shape: (K levels,), (n,) three times -> (n,).
        """
        has_level = codes >= self.has_missing
        found = values.copy()
        codes = codes[has_level] - self.has_missing
        found[has_level] = self.members.positions_among(chosen, codes, u[has_level])
        return found

    def without_counts(self) -> Self:
        """Returns the codec with the levels' shares of the column in the place of rows, to three
        digits.

        Shares are all that drawing and scoring take. No number of rows can be read off them.
        """
        n_rows = max(float(self.counts.sum()), 1.0)
        counts, withheld = (
            np.array([float(f"{share:.3g}") for share in rows / n_rows])
            for rows in (self.counts, self.withheld)
        )
        return replace(self, counts=counts, withheld=withheld)

    def to_json(self) -> dict[str, Any]:
        """Returns the document that `from_json` reads together with the schema's column."""
        return {
            "has_missing": self.has_missing,
            "codes": self.codes.tolist(),
            "counts": self.counts.tolist(),
            "withheld": self.withheld.tolist(),
        }

    @classmethod
    def from_json(cls, column: Column, document: Mapping[str, Any]) -> Self:
        """Returns the codec of a document that `to_json` wrote."""
        codes = np.asarray(document["codes"], dtype=np.int64)
        counts = np.asarray(document["counts"], dtype=np.float64)
        withheld = np.asarray(document["withheld"], dtype=np.float64)
        return cls(column, document["has_missing"], codes, counts, withheld)


def _grouped(rows: Codes, classes: Codes, least: int) -> Codes:
    """Returns a code for each level: its own if it is frequent, else that of a group of one class.

    Groups are buckets by frequency, of ROWS_PER_GROUP rows each or of all their rows divided by
    MOST_GROUPS, whichever is more. Shape: (K,), (K,) -> (K,).
    """
    by_count = np.argsort(-rows, kind="stable")
    is_own = np.zeros(len(rows), dtype=bool)
    is_own[by_count[:MOST_OWN_CODES]] = True
    is_own &= rows >= least
    groups = np.where(is_own, np.arange(len(rows)), -1)
    rare = by_count[~is_own[by_count]]
    of_group = max(ROWS_PER_GROUP, rows[rare].sum() / MOST_GROUPS)
    for number in np.unique(classes[rare]):
        at = rare[classes[rare] == number]
        n_groups = max(int(rows[at].sum() / of_group), 1)
        before = rows[at].cumsum() - rows[at]
        bucket = before * n_groups // max(int(rows[at].sum()), 1)
        groups[at] = at[np.searchsorted(bucket, bucket)]
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)


def _in_order(codes: Codes, rows: Codes, axis: Numbers) -> Codes:
    """Returns the codes numbered by where their levels stand on the axis. Shape: (K,)."""
    weights = np.maximum(rows, _UNSEEN_ROWS)
    middle = np.bincount(codes, weights * axis, 1) / np.maximum(
        np.bincount(codes, weights, 1), 1e-9
    )
    places = np.empty(len(middle), dtype=np.int64)
    places[np.argsort(middle, kind="stable")] = np.arange(len(middle))
    return places[codes] if len(codes) else codes
