"""Encodes numbers as frequent values (atoms) and normal scores of the column's marginal.

A value that many rows share is an *atom* and has its own code. A sentinel value such as 9999, which
some rows share and which lies far from all other numbers, is an atom, too. The remaining numbers
share the last code; their value is the normal score q = Phi^-1(F(x)) under a smooth CDF F
(`NumberDistribution`), so every column is standard normal before the model sees it. Knots of F lie
between numbers, so the codec stores no number that fewer than five rows share.

# PAPER-DIFF: the paper's numbers are continuous, and standardised as in the `paper-...` presets. A
# table's numbers repeat values and are skewed, which the paper's decoder would have to learn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtri

from gcvae.arrays import TIMES, Codes, Mask, Numbers
from gcvae.codec.column_codec import ColumnCodec
from gcvae.codec.column_codecs import LINEAR_CODECS, Allowed, ContinuousCodec, RealCodec
from gcvae.codec.number_distribution import NO_LIMITS, KnotLimits, NumberDistribution
from gcvae.numerics.isolated_values import isolated_frequent_values
from gcvae.schema.columns import Column

HEAVY_SHARE = 0.005
"""Minimum share of rows with a number for it to be an atom (a frequent value with its own code)."""
LEAST_HEAVY_ROWS = 5
"""Minimum number of rows with a number for it to be an atom (a frequent value with its own
code)."""
LEAST_ROWS_PER_ATOM = 12
"""Minimum mean number of rows for each infrequent number, for all numbers of a column to be atoms
(values with their own codes)."""
MOST_ATOMS = 512
"""Maximum number of distinct numbers in a column for all of them to be atoms (values with their own
codes)."""
_LEAST_ERROR, _MOST_ERROR = 2.0**-48, 2.0**-37
"""Limits of the encoding error that is assumed, relative to the standard deviation."""
_MOSTLY = 0.99
_LEAST_SHARE = 1e-4
"""Minimum tail probability of the normal scores of codes in the networks' input."""
_NEAR = 1e-6
"""Tolerance at the ends of a rounding cell, relative to half of its width."""
_WIDE = 1e150
"""Larger standard deviations come from numbers such as -1.8e308, which stand for missing."""


@dataclass(frozen=True)
class QuantileCodec(ColumnCodec):
    """Encodes a number as an integer code: one for missing (if the column has missing cells), one
    for each atom (frequent value), ascending, and one for all others, whose value is a normal
    score.

    Attributes:
        line: Linear codec, which standardises numbers, rounds and clips.
        atoms: Standardised atoms, ascending.
        distribution: CDF F of all other numbers, standardised.
        scores: Normal score of each code as input of the networks: for an atom, its score under F
            or, if all numbers are atoms, the score of its mid-rank.
        is_discrete: Whether every number in training was an atom.
        numbers: Exact atoms; None if `line` restores them exactly from `atoms`.
        ends: Smallest and largest standardised number to which the last code decodes, so that the
            tails of F do not reach a distant atom such as 9999; infinite if there is none.
    """

    _given = ("column", "has_missing", "line", "numbers", "ends")
    is_real: ClassVar[bool] = True
    line: RealCodec
    atoms: Numbers
    distribution: NumberDistribution
    scores: tuple[float, ...]
    is_discrete: bool
    numbers: npt.NDArray[Any] | None = None
    ends: tuple[float, float] = (-math.inf, math.inf)

    @classmethod
    def fit(
        cls,
        series: pd.Series[Any],
        column: Column,
        *,
        atom_rows: int | None = None,
        rare_rows: int = 1,
    ) -> Self:
        """Fits the codec to parsed cells.

        Args:
            atom_rows: Numbers with at least this many rows are atoms, in addition to the numbers
                that the usual criteria select; None for the usual criteria only.
            rare_rows: Numbers that fewer rows share are not disclosed by the CDF of the column.
        """
        line = _line_of(series, column)
        present, positions = line.positions(series)
        found, first, counts = np.unique(positions[present], return_index=True, return_counts=True)
        is_atom = _are_atoms(found, counts)
        if atom_rows is not None:
            is_atom |= counts >= atom_rows
        is_rest = present & ~np.isin(positions, found[is_atom])
        rest, rest_counts = found[~is_atom], counts[~is_atom]
        atoms = found[is_atom]
        # If all numbers are atoms, there still is a code for numbers not seen in training.
        if not len(rest):
            atoms, rest = (
                rest,
                found[~np.isin(found, isolated_frequent_values(positions[present], 0.0))],
            )
            is_rest = present & np.isin(positions, rest)
            rest_counts = np.ones(len(rest), dtype=np.int64)
        limits = NO_LIMITS if is_atom.all() else _knot_limits(line, rare_rows)
        distribution = NumberDistribution.fit(rest, rest_counts, line.half_step, atoms, limits)
        n_missing = len(series) - int(counts.sum())
        is_discrete = bool(is_atom.all())
        atoms = found[is_atom]
        own = _mid_ranks(counts, n_missing) if is_discrete else distribution.scores_at(atoms)
        scores = _code_scores(own, n_missing, len(series))
        far = np.intersect1d(isolated_frequent_values(positions[present], 0.0), atoms)
        near = np.concatenate([np.setdiff1d(atoms, far), distribution.knots[[0, -1]]])
        low = float(near.min()) if (far < near.min()).any() else -math.inf
        high = float(near.max()) if (far > near.max()).any() else math.inf
        codec = cls(
            column,
            line.has_missing,
            line,
            atoms,
            distribution,
            scores,
            is_discrete,
            ends=(low, high),
        )
        is_rest[is_rest] = _rows_of_smooth_curve(distribution, positions[is_rest])
        line = line.rounding_like(series[is_rest], codec._encoding_error(rest))
        numbers = series[present].iloc[first[is_atom]].reset_index(drop=True)
        return replace(codec, line=line)._with_numbers(numbers)

    def _with_numbers(self, numbers: pd.Series[Any]) -> Self:
        """Returns the codec with the exact atoms `numbers`, if `line` does not restore them."""
        back = self.line.cells_at(np.ones(len(numbers), dtype=bool), self.atoms)
        if back.dtype.kind not in "fM" or back.equals(numbers):
            return self
        exact = numbers.to_numpy()
        return replace(self, numbers=exact if exact.dtype.kind == "M" else exact + 0.0)  # no -0.0

    def _encoding_error(self, positions: Numbers) -> float:
        """Returns a bound on the error of encoding and decoding a number, in standard deviations:
        four times the 99 % quantile of the errors, within fixed limits."""
        back = self.distribution.positions_at(self.distribution.scores_at(positions))
        lost = np.quantile(np.abs(back - positions), _MOSTLY) if len(positions) else 0.0
        return float(np.clip(4.0 * lost, _LEAST_ERROR, _MOST_ERROR))

    @property
    def n_codes(self) -> int:
        return self.has_missing + len(self.atoms) + 1

    @property
    def discrete_codes(self) -> range:
        """Codes of the numbers if every number of the training table has its own code; otherwise
        empty."""
        n_atoms = len(self.atoms) if self.is_discrete else 0
        return range(self.has_missing, self.has_missing + n_atoms)

    @property
    def _reach(self) -> float:
        """Distance from an atom within which numbers are rounded to it, in standard deviations."""
        is_cut = self.is_discrete or self.distribution.atom_cells is not None
        return self.line.half_step * (1.0 - _NEAR) if is_cut and self.line.half_step > 0 else 0.0

    @cached_property
    def code_values(self) -> Numbers:
        """Normal score of each frequent value that has its own code, under the CDF F of the other
        numbers; preceded by -inf if missing cells have a code. There is no entry for the last code,
        which all other numbers share. Shape: (K - 1,) for K codes."""
        atoms = self.distribution.scores_at(self.atoms)
        return np.concatenate([np.full(int(self.has_missing), -np.inf), atoms])

    def encode(self, series: pd.Series[Any]) -> tuple[npt.NDArray[np.int32], Numbers]:
        is_number, positions = self.line.positions(series)
        # A number that rounds to an atom is that atom.
        atoms = np.append(self.atoms, np.nan)
        own, near = (np.searchsorted(self.atoms, positions - r) for r in (0.0, self._reach))
        at = np.where(atoms[own] == positions, own, near)  # two atoms may be within reach
        near = atoms[at]
        is_atom = is_number & (near <= positions + self._reach)
        codes = np.where(is_number, self.n_codes - 1, 0 if self.has_missing else -1)
        codes = np.where(is_atom, at + self.has_missing, codes)
        values = np.where(codes == self.n_codes - 1, self.distribution.scores_at(positions), 0.0)
        return codes.astype(np.int32), values

    def decode(self, codes: Codes, values: Numbers) -> pd.Series[Any]:
        atom = np.where(codes < self.n_codes - 1, codes - self.has_missing, -1)
        atoms = np.append(self.atoms, 0.0)
        others = self.distribution.positions_at(values).clip(*self.ends)
        positions = np.where(atom >= 0, atoms[atom], others)
        is_missing = (codes == 0) & self.has_missing
        cells = self.line.cells_at(~is_missing, positions)
        if self.numbers is not None:
            cells[atom >= 0] = self.numbers[atom[atom >= 0]]
        return cells

    def with_decimals(self, values: Numbers, u: Numbers, are_allowed: Allowed) -> Numbers:
        """Rounds n generated numbers so that the number of decimals is distributed as in the table.
        The numbers are given and returned as normal scores. Numbers at which the CDF has a step,
        because several rows of the table share them, keep their decimals. Shape: (n,) -> (n,).

        Args:
            values: Normal scores of the generated numbers. Shape: (n,).
            u: Uniform random numbers in (0, 1), which select the number of decimals. Shape: (n,).
            are_allowed: Function that maps normal scores to a mask: whether a rounded number may
                have this score.
        """
        assert isinstance(self.line, ContinuousCodec), "only these have decimals"
        positions = self.distribution.positions_at(values)

        def are_free(found: Numbers) -> Mask:
            scores = self.distribution.scores_at(found)
            return are_allowed(scores) & ~np.isin(found, self.atoms)

        rounded = self.line.with_decimals(positions, u, are_free)
        is_same = (rounded == positions) | self.distribution.are_repeated(values)
        return np.where(is_same, values, self.distribution.scores_at(rounded))

    def edges(self, low: pd.Series[Any], high: pd.Series[Any]) -> tuple[Numbers, Numbers]:
        """Returns (lower ends, upper ends) of the intervals of normal scores that decode to a
        number from low to high, for n rows. Shape: (n,), (n,) -> (n,), (n,).

        Numbers beyond `ends` are frequent values with their own codes, and normal scores do not
        represent them. There, the interval is empty: both of its ends are -inf or both are inf.
        """
        lower, upper = self.line.edges(low, high)
        first, last = self.ends
        is_below, is_above = upper < first, lower > last
        scores = (self.distribution.scores_at(ends) for ends in (lower, upper))
        lower, upper = (
            np.where(is_below, -np.inf, np.where(is_above, np.inf, ends)) for ends in scores
        )
        return lower, upper

    def codes_between(self, low: pd.Series[Any], high: pd.Series[Any]) -> Mask:
        """Returns, for n rows and K codes, whether the code stands for a single frequent value from
        low to high, both included. Shape: (n,), (n,) -> (n, K)."""
        first, last = (self.line.positions(cells)[1][:, None] for cells in (low, high))
        found = np.zeros((len(low), self.n_codes), dtype=bool)
        is_between = (first <= self.atoms) & (self.atoms <= last)
        found[:, self.has_missing : self.n_codes - 1] = is_between
        return found

    def log_units(self, codes: npt.NDArray[np.int32], values: Numbers) -> Numbers:
        """Returns log(dx / dq) = log(phi(q) / F'(x)) for n cells, with x the number, q its normal
        score, F the CDF and phi the standard normal density; 0 for missing cells and for frequent
        values with their own codes. Shape: (n,), (n,) -> (n,)."""
        is_number = codes == self.n_codes - 1
        log_phi = -0.5 * values**2 - 0.5 * np.log(2.0 * np.pi)
        log_units = log_phi - self.distribution.log_slopes(values) + self.line.log_scale
        return np.where(is_number, log_units, 0.0)

    def rounding_cells(self, values: Numbers) -> Numbers:
        """Returns the ends of the interval of normal scores that are rounded to each of n numbers,
        given by their normal scores. Shape: (n,) -> (n, 2)."""
        cells = self.line.rounding_cells(self.distribution.positions_at(values))
        return np.stack([self.distribution.scores_at(ends) for ends in cells.T], axis=-1)

    def bins(self, values: Numbers) -> Numbers:
        """Returns the normal scores just below and above each of n normal scores, among those of
        the knots of the fitted CDF and of the frequent values with their own codes; infinite beyond
        the outermost ones. Shape: (n,) -> (n, 2)."""
        low, high = self.distribution.bins(values).T
        edges = np.concatenate([[-np.inf], self.code_values, [np.inf]])
        at = np.searchsorted(edges, values, side="right").clip(1, len(edges) - 1)
        return np.stack([np.maximum(low, edges[at - 1]), np.minimum(high, edges[at])], axis=-1)

    def to_json(self) -> dict[str, Any]:
        ends = [end if math.isfinite(end) else None for end in self.ends]
        document = super().to_json() | {"line": self.line.to_json(), "ends": ends}
        if self.numbers is not None:
            is_time = self.numbers.dtype.kind == "M"
            document["numbers"] = (
                self.numbers.view(np.int64) if is_time else self.numbers
            ).tolist()
        return document

    @classmethod
    def from_json(cls, column: Column, document: Mapping[str, Any]) -> Self:
        line = LINEAR_CODECS[column.kind].from_json(column, document["line"])
        own, (low, high) = document.get("numbers"), document["ends"]
        return cls._of_document(
            document,
            column=column,
            has_missing=line.has_missing,
            line=line,
            numbers=None if own is None else np.asarray(own, TIMES if column.has_times else float),
            ends=(-math.inf if low is None else low, math.inf if high is None else high),
        )


def _knot_limits(line: RealCodec, rare_rows: int) -> KnotLimits:
    """Returns limits of knots such that at least `rare_rows` rows share every disclosed number."""
    if rare_rows < 2:
        return NO_LIMITS
    half_step = 0.0 if math.isnan(line.half_step) else line.half_step
    low, high = line.limits
    return KnotLimits(rare_rows, low - half_step, high + half_step)


def _line_of(series: pd.Series[Any], column: Column) -> RealCodec:
    """Fits the linear codec to numbers except frequent values far from all others, such as 9999."""
    fit = LINEAR_CODECS[column.kind].standardised
    line = _with_distinct_numbers(fit(series, column), series)
    present, positions = line.positions(series)
    found, counts = np.unique(positions[present], return_counts=True)
    far = np.intersect1d(
        isolated_frequent_values(positions[present], 0.0), found[_are_atoms(found, counts)]
    )
    if not len(far):
        return line
    near = series[~(present & np.isin(positions, far))]
    line = fit(near, column)
    return _with_distinct_numbers(replace(line, has_missing=not present.all()), series)


def _with_distinct_numbers(line: RealCodec, series: pd.Series[Any]) -> RealCodec:
    """Returns the linear codec, changed if necessary so that different numbers have different
    encoded values.

    The scale becomes smaller if the standard deviation is extremely large. If subtraction or
    division lose digits, the offset becomes zero and the scale a power of two.
    """
    if line.scale < _WIDE:
        if not isinstance(line, ContinuousCodec) or _are_distinct(line, series):
            return line
        return replace(line, offset=0.0, scale=2.0 ** round(math.log2(line.scale)))
    distances = np.unique(replace(line, scale=1.0).positions(series)[1])
    # Halved, because the distance of the two largest numbers may overflow.
    least = float(np.diff(distances / 2.0, prepend=-np.inf).min())
    smallest = float(np.abs(distances).max()) / _WIDE**2  # keeps positions finite
    return replace(line, scale=min(line.scale, max(least * _WIDE, smallest)))


def _are_distinct(line: RealCodec, series: pd.Series[Any]) -> bool:
    present, positions = line.positions(series)
    return pd.Series(positions[present]).nunique() == series.nunique()


def _are_atoms(distinct_numbers: Numbers, counts: Codes) -> Mask:
    if are_all_atoms(counts):
        return np.ones(len(counts), dtype=bool)
    is_heavy = _are_heavy(counts)
    return is_heavy | _are_sentinels(distinct_numbers, counts, ~is_heavy)


def are_all_atoms(counts: Codes) -> bool:
    """Returns whether the numbers of a column are frequent enough for all of them to get their own
    codes, given the number of rows of each of k distinct numbers. Shape: (k,)."""
    others = counts[~_are_heavy(counts)]
    are_few = len(counts) <= MOST_ATOMS
    return are_few and bool(others.sum() >= LEAST_ROWS_PER_ATOM * len(others))


def _are_heavy(counts: Codes) -> Mask:
    is_heavy: Mask = counts >= max(LEAST_HEAVY_ROWS, HEAVY_SHARE * counts.sum())
    return is_heavy


def _are_sentinels(distinct_numbers: Numbers, counts: Codes, is_light: Mask) -> Mask:
    """Returns a mask of the infrequent numbers (`is_light`) that are sentinel values, such as 999.

    Several rows share a sentinel value, and wide gaps separate it from its neighbours, the next
    smaller and the next larger number. A gap is wide if it is more than half the interquartile
    range of the infrequent numbers, and more than half the distance of the neighbour from the
    nearer quartile. The second condition excludes the end of a tail, where gaps widen gradually.
    """
    if not is_light.any():
        return is_light
    below = np.cumsum(counts * is_light)
    low, high = distinct_numbers[np.searchsorted(below, np.array([0.25, 0.75]) * below[-1])]
    spread = 0.5 * np.maximum(
        high - low, np.maximum(low - distinct_numbers, distinct_numbers - high)
    )
    gaps = np.diff(distinct_numbers)
    is_far_above = np.append(gaps > spread[1:], True)
    is_far_below = np.append(True, gaps > spread[:-1])
    is_marker: Mask = is_far_above & is_far_below & is_light
    return is_marker & (counts >= LEAST_HEAVY_ROWS)


def _rows_of_smooth_curve(distribution: NumberDistribution, positions: Numbers) -> Mask:
    """Returns a mask of the rows that the smooth part of F describes: one row for each repeated
    number, and all rows with other numbers."""
    is_single = ~distribution.are_repeated(distribution.scores_at(positions))
    is_single[np.unique(positions, return_index=True)[1]] = True
    return is_single


def _mid_ranks(counts: Codes, n_missing: int) -> Numbers:
    """Returns the normal score of each number's mid-rank; missing cells rank first."""
    middle = np.cumsum(counts) - 0.5 * counts + n_missing
    scores: Numbers = ndtri(middle / (counts.sum() + n_missing))
    return scores


def _code_scores(atoms: Numbers, n_missing: int, n_rows: int) -> tuple[float, ...]:
    """Returns the normal score of each code: of the mid-rank of missing cells, if there are any;
    the given scores `atoms`; and 0 for the last code, whose numbers have individual scores."""
    missing = [0.5 * n_missing / n_rows] if n_missing else []
    farthest = -ndtri(_LEAST_SHARE)
    scores = np.concatenate([ndtri(missing), atoms]).clip(-farthest, farthest)
    return (*scores.tolist(), 0.0)
