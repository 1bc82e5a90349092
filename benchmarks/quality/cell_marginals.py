"""Marginal distributions of single columns over the cells as written, smoothed.

Shared by the two baselines. A cell is an interval of a uniform score u, and the interval's width is
the cell's probability: it is given as its lower end and its width, for in doubles the difference of
two ends has no digits left where cells are very narrow.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pandas as pd

from benchmarks.quality.written_cells import cell_width
from gcvae.arrays import Numbers
from gcvae.evaluation.columns import is_number, numbers_of
from gcvae.schema.columns import Column
from gcvae.schema.kinds import ColumnKind

_MOST_ATOMS = 256
"""A column of no more distinct numbers has an atom at each."""
_HEAVY_SHARE = 1 / 128
"""Of other columns the numbers that are heavier than this have one."""


class Marginal(Protocol):
    """P of one column's present cells, and the share of its missing ones."""

    missing_share: float

    def intervals(self, frame: pd.DataFrame) -> tuple[Numbers, Numbers]:
        """Lower end and width of each cell's interval of u, NaN where missing.

        Shape: (n,), (n,).
        """
        ...

    def quantile(self, u: Numbers) -> pd.Series[Any]:
        """The typed cell at each u. Shape: (n,)."""
        ...


def fit_marginal(train: pd.DataFrame, column: Column) -> Marginal:
    """The marginal of a typed table's column."""
    if is_number(column):
        return NumberMarginal(numbers_of(train, column), column)
    return LevelMarginal(train[column.name], column)


class LevelMarginal:
    """P(k) = (n_k + ½) / (n + ½ (K + 1)); the last half is for a level never seen."""

    def __init__(self, series: pd.Series[Any], column: Column) -> None:
        """Counts the levels of typed cells."""
        cells = series.astype(object)
        self.missing_share = float(cells.isna().mean())
        listed = (False, True) if column.kind is ColumnKind.BOOLEAN else column.levels or ()
        self._levels = list(dict.fromkeys([*listed, *cells.dropna().unique()]))
        counts = cells.value_counts().reindex(self._levels, fill_value=0).to_numpy(np.float64)
        shares = np.append(counts, 0.0) + 0.5
        self._shares = shares / shares.sum()
        self._ends = np.concatenate([[0.0], np.cumsum(self._shares)])
        self._name = column.name

    def intervals(self, frame: pd.DataFrame) -> tuple[Numbers, Numbers]:
        """Lower end and width of each cell's interval of u, NaN where missing."""
        places = {level: float(i) for i, level in enumerate(self._levels)}
        cells = frame[self._name].astype(object)
        codes = np.array(
            [np.nan if pd.isna(cell) else places.get(cell, len(places)) for cell in cells]
        )
        missing = np.isnan(codes)
        at = np.where(missing, 0, codes).astype(np.int64)
        lower, width = self._ends[at], self._shares[at]
        return np.where(missing, np.nan, lower), np.where(missing, np.nan, width)

    def quantile(self, u: Numbers) -> pd.Series[Any]:
        """The level at each u, never an unseen one."""
        codes = np.searchsorted(self._ends[1:-1] / self._ends[-2], u, side="left")
        levels = np.array(self._levels, dtype=object)
        return pd.Series(levels[np.minimum(codes, len(levels) - 1)], dtype=object)


class NumberMarginal:
    """Atoms, a histogram of 2 n^⅓ quantile bins over the rest, and 1/(n + 2) spread far beyond.

    The bins' edges lie between rounding cells. The spread reaches one range beyond both ends, so
    that no number near the table's is impossible.
    """

    def __init__(self, numbers: Numbers, column: Column) -> None:
        """Counts the cells."""
        present = np.sort(numbers[~np.isnan(numbers)])
        self.missing_share = (len(numbers) - len(present)) / len(numbers)
        self._column, self._width = column, cell_width(column)
        values, counts = np.unique(present, return_counts=True)
        all_atoms = len(values) <= _MOST_ATOMS
        heavy = counts > (0 if all_atoms else _HEAVY_SHARE * len(present))
        self._atoms = values[heavy]
        self._edges = self._bin_edges(np.repeat(values[~heavy], counts[~heavy]))
        in_bins = np.histogram(np.repeat(values[~heavy], counts[~heavy]), self._edges)[0]
        total = len(present) + 2.0
        # The spread takes 1, and the bins share 1 more.
        in_bins = in_bins + 1.0 / len(in_bins)
        self._atom_ends = np.concatenate([[0.0], np.cumsum(counts[heavy])]) / total
        self._bin_ends = np.concatenate([[0.0], np.cumsum(in_bins)]) / total
        reach = max(float(np.ptp(present)), self._width)
        self._limits = present[0] - reach, present[-1] + reach
        self._spread = 1.0 / total
        self._support = present[0], present[-1]

    def _bin_edges(self, rest: Numbers) -> Numbers:
        if not len(rest):  # the bins' share lies where the atoms are
            rest = self._atoms
        n_bins = max(2, round(2 * len(rest) ** (1 / 3)))
        inner = np.quantile(rest, np.linspace(0, 1, n_bins + 1)[1:-1])
        cells = np.rint(np.concatenate([[rest[0]], inner, [rest[-1]]]) / self._width)
        edges = (cells + 0.5) * self._width
        edges[0] -= self._width
        return np.unique(edges)

    def _below(self, x: Numbers, *, with_atom: bool) -> Numbers:
        """P(X < x), or P(X ≤ x) for the atoms."""
        side = "right" if with_atom else "left"
        step = self._width / 2 if with_atom else -self._width / 2
        atoms = self._atom_ends[np.searchsorted(self._atoms, x, side=side)]
        bins = np.interp(x + step, self._edges, self._bin_ends)
        low, high = self._limits
        spread = np.clip((x + step - low) / (high - low), 0.0, 1.0)
        return atoms + bins + self._spread * spread

    def intervals(self, frame: pd.DataFrame) -> tuple[Numbers, Numbers]:
        """Lower end and width of each cell's interval of u, NaN where missing."""
        x = numbers_of(frame, self._column)
        missing = np.isnan(x)
        x = np.where(missing, self._support[0], x)
        lower = self._below(x, with_atom=False)
        return np.where(missing, np.nan, lower), np.where(missing, np.nan, self._masses(x))

    def _masses(self, x: Numbers) -> Numbers:
        """P(X is in the cell of x), from densities."""
        if len(self._atoms):
            place = np.searchsorted(self._atoms, x).clip(max=len(self._atoms) - 1)
            atom = np.where(self._atoms[place] == x, np.diff(self._atom_ends)[place], 0.0)
        else:
            atom = np.zeros(len(x))
        densities = np.concatenate([[0.0], np.diff(self._bin_ends) / np.diff(self._edges), [0.0]])
        bins = densities[np.searchsorted(self._edges, x, side="right")] * self._width
        low, high = self._limits
        is_near = (x > low) & (x < high)
        return atom + bins + is_near * self._spread * self._width / (high - low)

    def quantile(self, u: Numbers) -> pd.Series[Any]:
        """The number at each u, within the training range, by bisection."""
        low = np.full(len(u), self._support[0] / self._width)
        high = np.full(len(u), self._support[1] / self._width)
        low, high = np.rint(low) - 1, np.rint(high)
        while np.any(high - low > 1):  # P(X ≤ high) ≥ u > P(X ≤ low), in rounding cells
            middle = np.where(high - low > 1, np.floor((low + high) / 2), high)
            reached = self._below(middle * self._width, with_atom=True) >= u
            reached |= middle == high  # found already
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return self._typed(high * self._width)

    def _typed(self, x: Numbers) -> pd.Series[Any]:
        if self._column.kind is ColumnKind.DATETIME:
            return pd.Series(pd.to_datetime(np.rint(x * 86_400_000_000_000).astype(np.int64)))
        if self._column.kind is ColumnKind.INTEGER:
            return pd.Series(np.rint(x).astype(np.int64))
        return pd.Series(x if self._column.decimals is None else np.round(x, self._column.decimals))
