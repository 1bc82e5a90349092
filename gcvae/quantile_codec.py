"""Numbers as atoms and as normal scores of their own column.

A value that many rows share is an *atom*, a code of its own. The other numbers share the last code;
their value is the normal score q = Phi^-1(F(x)) under a piecewise linear F, so that every column,
however skewed, is standard normal before the model sees it. F's knots are quantiles, at the edges
of rounding cells: no number of the table is kept but its smallest and largest and its atoms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import log_ndtr, ndtr, ndtri

from gcvae.column_codecs import (
    Codes,
    ContinuousCodec,
    DatetimeCodec,
    IntegerCodec,
    Numbers,
    RealCodec,
)
from gcvae.schema import Column, ColumnKind

HEAVY_SHARE = 0.005
"""A number is an atom if this share of the rows has it ..."""
LEAST_HEAVY_ROWS = 5
"""... and at least this many rows."""
LEAST_ROWS_PER_ATOM = 12
"""All numbers are atoms if the others have at least this many rows each, on average ..."""
MOST_ATOMS = 512
"""... and there are no more than these."""
MOST_KNOTS = 513
"""Knots of F: 512 quantile intervals."""
_LEAST_STEP = 1e-250
"""Between two positions; a smaller one would make the slope of F infinite."""
_WIDE = 1e150
"""A deviation that numbers such as -1.8e308 make, which stand for none and dwarf all others."""
_FARTHEST = 1e150
"""Distance beyond the knots from which numbers are told apart no more: its square is a double."""

_LINES: dict[ColumnKind, type[RealCodec]] = {
    ColumnKind.CONTINUOUS: ContinuousCodec,
    ColumnKind.INTEGER: IntegerCodec,
    ColumnKind.DATETIME: DatetimeCodec,
}


@dataclass(frozen=True)
class QuantileCodec:
    """Codes: the missing level if there is one, the atoms in order, the other numbers.

    Attributes:
        line: Numbers as positions on a line, in standard deviations; rounds, and keeps limits.
        atoms: Positions of the atoms, ascending.
        knots: Positions of the knots of F, ascending.
        heights: F at the knots, from t to 1 - t; at distance d beyond them t / (1 + d)^2 is left.
        scores: For every code the normal score of its middle in the whole column.
        is_discrete: Every number that the codec was fitted on is an atom.
    """

    line: RealCodec
    atoms: Numbers
    knots: Numbers
    heights: Numbers
    scores: tuple[float, ...]
    is_discrete: bool

    @classmethod
    def fit(cls, series: pd.Series[Any], column: Column) -> Self:
        """The codec of these typed cells."""
        line = _told_apart(_LINES[column.kind].fit(series, column), series)
        codes, positions = line.encode(series)
        found, counts = np.unique(positions[codes == line.n_codes - 1], return_counts=True)
        is_atom = _are_atoms(counts)
        rest, rest_counts = found[~is_atom], counts[~is_atom]
        # A column of atoms only still has a place for a number that it never had.
        knots, heights = _distribution(
            *((rest, rest_counts) if len(rest) else (found, np.ones(len(found), dtype=np.int64)))
        )
        n_missing = len(series) - int(counts.sum())
        scores = _code_scores(found, counts, is_atom, n_missing)
        return cls(line, found[is_atom], knots, heights, scores, bool(is_atom.all()))

    @property
    def column(self) -> Column:
        """Of the schema."""
        return self.line.column

    @property
    def has_missing(self) -> bool:
        """Code 0 is the missing level."""
        return self.line.has_missing

    @property
    def name(self) -> str:
        """Of the column."""
        return self.line.column.name

    @property
    def n_codes(self) -> int:
        """Missing, atoms, and the other numbers."""
        return self.has_missing + len(self.atoms) + 1

    @property
    def is_real(self) -> bool:
        """True: the last code has a value."""
        return True

    @property
    def shaped_codes(self) -> range:
        """The codes of the atoms where all numbers are atoms; none elsewhere."""
        n_atoms = len(self.atoms) if self.is_discrete else 0
        return range(self.has_missing, self.has_missing + n_atoms)

    @cached_property
    def _slopes(self) -> Numbers:
        """dF/dx between the knots."""
        slopes: Numbers = np.diff(self.heights) / np.diff(self.knots)
        return slopes

    def encode(self, series: pd.Series[Any]) -> tuple[npt.NDArray[np.int32], Numbers]:
        """Codes and normal scores of typed cells."""
        codes, positions = self.line.encode(series)
        is_number = codes == self.line.n_codes - 1
        at = np.searchsorted(self.atoms, positions)
        near = np.append(self.atoms, np.nan)[at]
        is_atom = is_number & (near == positions)
        codes = np.where(is_number, self.n_codes - 1, codes)
        codes = np.where(is_atom, at + self.has_missing, codes)
        values = np.where(is_number & ~is_atom, self._scores_at(positions), 0.0)
        return codes.astype(np.int32), values

    def decode(self, codes: Codes, values: Numbers) -> pd.Series[Any]:
        """Typed cells of codes and normal scores, rounded and within the column's limits."""
        atom = codes - self.has_missing
        is_atom = (atom >= 0) & (atom < len(self.atoms))
        atoms = np.append(self.atoms, 0.0)
        positions = np.where(
            is_atom, atoms[np.where(is_atom, atom, -1)], self._positions_at(values)
        )
        is_missing = (codes == 0) & self.has_missing
        return self.line.decode(np.where(is_missing, 0, self.line.n_codes - 1), positions)

    def edges(self, low: pd.Series[Any], high: pd.Series[Any]) -> tuple[Numbers, Numbers]:
        """Ends of the normal scores that decode to low .. high; see `RealCodec.edges`."""
        lower, upper = self.line.edges(low, high)
        return self._scores_at(lower), self._scores_at(upper)

    def atoms_between(self, low: pd.Series[Any], high: pd.Series[Any]) -> npt.NDArray[np.bool_]:
        """Which codes are atoms from low to high, both included. Shape: (n,), (n,) -> (n, K)."""
        first, last = (self.line.encode(cells)[1] for cells in (low, high))
        found = np.zeros((len(low), self.n_codes), dtype=bool)
        inside = (self.atoms >= first[:, None]) & (self.atoms <= last[:, None])
        found[:, self.has_missing : self.n_codes - 1] = inside
        return found

    def log_units(self, codes: npt.NDArray[np.int32], values: Numbers) -> Numbers:
        """log dx/dq at each cell: log p(x) = log p(q) - log dx/dq. Zero for intervals.

        With u = F(x) = Phi(q), dx/dq = phi(q) / F'(x).
        """
        is_number = codes == self.n_codes - 1
        log_phi = -0.5 * values**2 - 0.5 * np.log(2.0 * np.pi)
        log_units = log_phi - self._log_slope(values) + self.line.log_scale
        return np.where(is_number, log_units, 0.0)

    def rounding_cells(self, values: Numbers) -> Numbers:
        """Normal scores of the ends of the numbers' rounding cells. Shape: (n,) -> (n, 2)."""
        cells = self.line.rounding_cells(self._positions_at(values))
        return np.stack([self._scores_at(ends) for ends in cells.T], axis=-1)

    def bins(self, values: Numbers) -> Numbers:
        """Normal scores of the knots around each number, infinite at the tails. (n,) -> (n, 2)."""
        at = np.searchsorted(self.heights, ndtr(values), side="right")
        ends = np.concatenate([[-np.inf], ndtri(self.heights), [np.inf]])
        return np.stack([ends[at], ends[at + 1]], axis=-1)

    def _scores_at(self, positions: Numbers) -> Numbers:
        """q = Phi^-1(F(x)), from the nearer tail. Shape: (n,)."""
        low, high, tail = self.knots[0], self.knots[-1], self.heights[0]
        u = np.interp(positions, self.knots, self.heights)
        below = tail / (1.0 + np.clip(low - positions, 0.0, _FARTHEST)) ** 2
        above = tail / (1.0 + np.clip(positions - high, 0.0, _FARTHEST)) ** 2
        u = np.where(positions < low, below, u)
        scores: Numbers = np.where(positions > high, -ndtri(above), ndtri(u))
        return scores

    def _positions_at(self, values: Numbers) -> Numbers:
        """x = F^-1(Phi(q)). Shape: (n,)."""
        u, tail = ndtr(values), self.heights[0]
        inside = np.interp(u, self.heights, self.knots)
        least = np.finfo(np.float64).tiny
        below = self.knots[0] + 1.0 - np.sqrt(tail / np.maximum(u, least))
        above = self.knots[-1] - 1.0 + np.sqrt(tail / np.maximum(ndtr(-values), least))
        positions: Numbers = np.where(u < tail, below, np.where(u > 1.0 - tail, above, inside))
        return positions

    def _log_slope(self, values: Numbers) -> Numbers:
        """log F'(x) where F(x) = Phi(q). Shape: (n,).

        At distance d beyond the knots the tail is t / (1 + d)^2, its slope 2 u sqrt(u / t).
        """
        at = np.searchsorted(self.heights, ndtr(values), side="right") - 1
        slope = self._slopes[np.clip(at, 0, len(self._slopes) - 1)]
        inside = np.log(np.maximum(slope, np.finfo(np.float64).tiny))
        log_u, log_t = log_ndtr(-np.abs(values)), np.log(self.heights[0])
        in_tail = np.log(2.0) + 1.5 * log_u - 0.5 * log_t
        log_slope: Numbers = np.where(log_u < log_t, in_tail, inside)
        return log_slope

    def to_json(self) -> dict[str, Any]:
        """What `from_json` needs beside the schema's column."""
        return {
            "line": self.line.to_json(),
            "atoms": self.atoms.tolist(),
            "knots": self.knots.tolist(),
            "heights": self.heights.tolist(),
            "scores": list(self.scores),
            "is_discrete": self.is_discrete,
        }

    @classmethod
    def from_json(cls, column: Column, document: Mapping[str, Any]) -> Self:
        """The codec of a document that `to_json` wrote."""
        line = _LINES[column.kind].from_json(column, document["line"])
        arrays = (np.asarray(document[name], dtype=float) for name in ("atoms", "knots", "heights"))
        atoms, knots, heights = arrays
        return cls(line, atoms, knots, heights, tuple(document["scores"]), document["is_discrete"])


def _told_apart(line: RealCodec, series: pd.Series[Any]) -> RealCodec:
    """The line in smaller units where its deviation is so wide that numbers would be one."""
    if line.scale < _WIDE:
        return line
    distances = np.unique(replace(line, scale=1.0).encode(series)[1])
    # By halves: the two largest may be farther apart than a double can say.
    least = float(np.diff(distances / 2.0, prepend=-np.inf).min())
    smallest = float(np.abs(distances).max()) / _WIDE**2  # in which the largest is finite
    return replace(line, scale=min(line.scale, max(least * _WIDE, smallest)))


def _are_atoms(counts: Codes) -> npt.NDArray[np.bool_]:
    """Which distinct numbers are atoms, by how often they come up. Shape: (n_distinct,)."""
    is_heavy: npt.NDArray[np.bool_] = counts >= max(LEAST_HEAVY_ROWS, HEAVY_SHARE * counts.sum())
    others = counts[~is_heavy]
    are_few = len(counts) <= MOST_ATOMS
    if are_few and others.sum() >= LEAST_ROWS_PER_ATOM * len(others):
        return np.ones(len(counts), dtype=bool)
    return is_heavy


def _distribution(found: Numbers, counts: Codes) -> tuple[Numbers, Numbers]:
    """Knots and heights of F over distinct positions. Shape: (k,), (k,).

    Edges lie half way between neighbours; the outermost cells are as wide as their neighbours.
    """
    found, counts = _apart(found, counts)
    if len(found) < 2:
        middle = float(found[0]) if len(found) else 0.0
        return np.array([middle - 0.5, middle + 0.5]), np.array([0.25, 0.75])
    middles = (found[1:] + found[:-1]) / 2.0
    edges = np.concatenate([[2 * found[0] - middles[0]], middles, [2 * found[-1] - middles[-1]]])
    share = np.concatenate([[0.0], np.cumsum(counts)]) / counts.sum()
    wanted = np.linspace(0.0, 1.0, min(MOST_KNOTS, len(edges)))
    kept = np.unique(np.searchsorted(share, wanted).clip(0, len(edges) - 1))
    tail = 0.5 / (counts.sum() + 1)
    return edges[kept], tail + (1.0 - 2.0 * tail) * share[kept]


def _apart(found: Numbers, counts: Codes) -> tuple[Numbers, Codes]:
    """The positions between which there is room for an edge; nearer ones count as one."""
    least = _LEAST_STEP + 8.0 * np.spacing(np.abs(found))
    is_apart = np.diff(found, prepend=-np.inf) > least
    return found[is_apart], np.add.reduceat(counts, np.flatnonzero(is_apart))


def _code_scores(
    found: Numbers, counts: Codes, is_atom: npt.NDArray[np.bool_], n_missing: int
) -> tuple[float, ...]:
    """Normal score of the middle of every code, by mid-ranks of the whole column."""
    n_rows = counts.sum() + n_missing
    middle = (np.cumsum(counts) - 0.5 * counts + n_missing) / max(n_rows, 1)
    scores = ndtri(np.clip(middle[is_atom], 1e-4, 1.0 - 1e-4)).tolist()
    missing = [float(ndtri(np.clip(0.5 * n_missing / n_rows, 1e-4, 0.5)))] if n_missing else []
    return (*missing, *scores, 0.0)
