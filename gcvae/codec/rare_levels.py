"""Codec of levels in a learned order, in which rare levels share codes.

    p(level) = p(code) x share of the level in its code

A separate code for a level of few rows would be overfitted. Such levels, and those beyond the
MOST_OWN_CODES most frequent ones, share the code of a *group* of levels of similar frequency.
Levels that determine another column share a code only if they determine the same value.

Suppressed levels (`gcvae.profiling.withheld_levels`) are not disclosed, because too few rows have
them. The codec does not contain them; other levels have replaced them in the table. The rate of
replacement is known, so an unknown text gets the probability of all suppressed levels together. Its
cell is integrated out like a missing cell, but this probability enters the likelihood.

# PAPER-DIFF: the paper gives every level a probability of its own at every z. Here rare levels
# share one probability in fixed proportions; otherwise a network would memorise their few rows.
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
from gcvae.codec.column_codec import ColumnCodec
from gcvae.codec.correspondence import CoarseColumn, level_axis
from gcvae.codec.function_levels import FunctionLevels
from gcvae.schema.columns import Column, Level

LEAST_ROWS_PER_LEVEL = 5
"""Minimum number of rows for a level to get its own code."""
MOST_OWN_CODES = 400
"""Maximum number of levels, the most frequent ones, that get their own codes."""
ROWS_PER_GROUP = 50
MOST_GROUPS = 256
OTHER = "(other)"
"""Level that replaces suppressed levels (levels not disclosed because too few rows have them) if
most rows of a column have suppressed levels."""
HIDDEN = -1.0
"""Encoded value of a cell whose level is suppressed (not disclosed: too few rows have it)."""
_UNSEEN_ROWS = 0.5
"""Pseudo-count of a level that is in the schema but not in the table."""


@dataclass(frozen=True)
class GroupedLevelCodec(ColumnCodec):
    """Codec of levels (categories), in which groups of rare levels share a code. Codes follow the
    first axis of a correspondence analysis, so that similar levels have similar codes.

    A cell is encoded as a code and a real value in (0, 1), which selects one of the levels of the
    code; it is 1/2 if the code has a single level. Levels of too few rows are suppressed: in
    training rows another level replaces them, and in other rows their real value is HIDDEN.

    Attributes:
        codes: Code of each of the K levels of the schema, not counting missing. Shape: (K,).
        counts: Number of rows of each level, including those where it replaces a suppressed level;
            in the result of `without_counts`, shares of rows. Shape: (K,).
        withheld: Number of rows in which each level replaces a suppressed one; or shares of rows,
            as for `counts`. Shape: (K,).
    """

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
        """Fits the codec to parsed cells.

        Args:
            others: The other columns in bins; levels are ordered by the cells with which they
                occur.
            functions: Functional dependencies that involve this column; None if there are none.
            withheld: By level, the number of rows in which it replaces suppressed levels.
        """
        levels = column.levels or ()
        places = {level: i for i, level in enumerate(levels)}
        found, distinct = pd.factorize(series)
        at = np.array([*(places[level] for level in distinct.tolist()), -1])[found]
        rows = np.bincount(at[at >= 0], minlength=len(levels))
        others = [other for other in others if other.name != column.name]
        functions = FunctionLevels() if functions is None else functions
        classes = functions.nested_classes(at, len(levels))[-1]
        least = 1 if functions.need_own_codes else LEAST_ROWS_PER_LEVEL
        axis = level_axis(at, len(levels), others)
        codes = _sorted_by_axis(_grouped(rows, classes, least), rows, axis)
        stands_for = np.array([(withheld or {}).get(level, 0) for level in levels], dtype=float)
        counts = np.maximum(rows, _UNSEEN_ROWS)
        return cls(column, bool((at < 0).any()), codes, counts, stands_for)

    @property
    def levels(self) -> tuple[Level, ...]:
        """Levels (categories), typed as in parsed tables, in the schema's order."""
        return self.column.levels or ()

    @property
    def n_codes(self) -> int:
        return int(self.codes.max(initial=-1)) + 1 + self.has_missing

    @property
    def new_level_mass(self) -> float:
        """Probability that a new row has a level (category) that is not in the column, estimated
        from the number of levels with a single row.

        Source: I. J. Good, "The population frequencies of species", Biometrika 40 (1953).
        """
        return float((1.0 + (self.counts <= 1.0).sum()) / (1.0 + self.counts.sum()))

    @cached_property
    def members(self) -> CodeMembers:
        """Assignment of the levels, in the schema's order and without missing, to codes."""
        return CodeMembers(self.codes, self.counts)

    def encode(self, series: pd.Series[Any]) -> tuple[npt.NDArray[np.int32], Numbers]:
        """Returns the integer code and the real value of each of n parsed cells. A level that is
        not in the schema is encoded as a suppressed one or, if the column has no suppressed levels,
        as code -1. Shape: (n,) -> (n,), (n,)."""
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
        places = self.members.member_at(codes - self.has_missing, values)
        return placed_values(list(self.levels), places, self.nullable)

    def middles(self, codes: Codes, values: Numbers) -> Numbers:
        """Returns the value with which `encode` represents each of n levels; 0 for missing. This
        value is the middle of the interval of values that select the level.

        Args:
            codes: Code of each level. Shape: (n,).
            values: Any value that selects the level among those with its code. Shape: (n,).
        """
        member = self.members.member_at(codes.astype(np.int64) - self.has_missing, values)
        return np.append(self.members.middles, 0.0)[member]

    def log_units(self, codes: npt.NDArray[np.int32], values: Numbers) -> Numbers:
        """Returns, for n cells, -log(share of the level among the levels with its code); 0 for
        missing. For a suppressed level (not disclosed: too few rows have it), returns -log(share of
        rows with suppressed levels). Shape: (n,), (n,) -> (n,)."""
        member = self.members.member_at(codes.astype(np.int64) - self.has_missing, values)
        known = np.append(self.members.shares * (1.0 - self._suppressed_share), 1.0)
        mass = self.withheld.sum() / max(self.counts.sum(), 1.0)
        return -np.log(np.where(values == HIDDEN, mass, known[member]))

    @cached_property
    def _suppressed_share(self) -> Numbers:
        """Share of each level's rows in which it replaces a suppressed level. These rows do not
        count towards the level's probability. The entry of the level "(other)" is 0: it stands for
        any suppressed level, so all its rows count. Shape: (K,)."""
        are_other = np.array([level == OTHER for level in self.levels], dtype=bool)
        return np.where(are_other, 0.0, self.withheld / self.counts)

    def log_shares(self, chosen: Mask) -> Numbers:
        """Returns, for each code, the log of the share of its rows that have one of the chosen
        levels; -inf for the code of missing cells. `chosen` is a mask of the K levels. Shape: (K,)
        -> (n_codes,)."""
        log_shares = self.members.log_shares(chosen)
        return np.append(-np.inf, log_shares) if self.has_missing else log_shares

    def positions_among(self, chosen: Mask, codes: Codes, values: Numbers, u: Numbers) -> Numbers:
        """Samples, for each of n codes, a value that selects one of the code's chosen levels (see
        `CodeMembers.positions_among`). Missing cells, whose code has no level, keep the value that
        `values` has for them. Shape: (n,)."""
        has_level = codes >= self.has_missing
        found = values.copy()
        codes = codes[has_level] - self.has_missing
        found[has_level] = self.members.positions_among(chosen, codes, u[has_level])
        return found

    def without_counts(self) -> Self:
        """Returns a copy with shares, rounded to three digits, instead of numbers of rows: they
        suffice for generation and scores, and disclose less."""
        n_rows = max(float(self.counts.sum()), 1.0)
        counts, withheld = (
            np.array([float(f"{share:.3g}") for share in rows / n_rows])
            for rows in (self.counts, self.withheld)
        )
        return replace(self, counts=counts, withheld=withheld)


def _grouped(rows: Codes, classes: Codes, least: int) -> Codes:
    """Returns the code of each of K levels. A level with at least `least` rows has its own code, if
    it is among the MOST_OWN_CODES most frequent levels. All other levels are divided into groups,
    each of which shares a code. Levels of a group have similar frequencies and belong to the same
    class; `classes` contains the class of each level.

    A group has ROWS_PER_GROUP rows in total, or more if there would be more than MOST_GROUPS
    groups.
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


def _sorted_by_axis(codes: Codes, rows: Codes, axis: Numbers) -> Codes:
    """Renumbers codes in the order of their levels' mean coordinates on the axis."""
    weights = np.maximum(rows, _UNSEEN_ROWS)
    middle = np.bincount(codes, weights * axis, 1) / np.maximum(
        np.bincount(codes, weights, 1), 1e-9
    )
    places = np.empty(len(middle), dtype=np.int64)
    places[np.argsort(middle, kind="stable")] = np.arange(len(middle))
    return places[codes] if len(codes) else codes
