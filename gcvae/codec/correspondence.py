"""Correspondence analysis: an order of levels by the cells they occur with in other columns.

Levels that occur with similar cells get similar coordinates. This gives nominal levels an order
that a copula can use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.arrays import Codes, Numbers
from gcvae.files.typed_columns import TypedTable
from gcvae.schema.columns import Column

_N_QUANTILE_BINS = 8
_MOST_LEVELS = 16
_MOST_COLUMNS = 64
_MOST_ROWS = 200_000
_MOST_COARSE_ROWS = 2_000_000
"""Maximum number of rows; larger tables are sampled at a regular step."""
_SHRINKAGE_ROWS = 5.0
"""Number of rows at which a level's coordinate is shrunk halfway to the origin."""


@dataclass(frozen=True)
class CoarseColumn:
    """A column in few bins: quantiles of numbers, or the most frequent levels and a rest; and
    missing.

    Shape: codes (n / step,), from 0 to n_codes - 1.

    Attributes:
        step: Every `step`-th row of the table has a code.
    """

    name: str
    codes: npt.NDArray[np.int8]
    n_codes: int
    step: int = 1

    @classmethod
    def of(cls, series: pd.Series[Any], column: Column) -> CoarseColumn:
        """Returns typed cells in bins; 0 is missing."""
        step = max(1, -(-len(series) // _MOST_COARSE_ROWS))
        series = series.iloc[::step]
        codes = np.zeros(len(series), dtype=np.int8)
        present = series.notna().to_numpy()
        if column.kind.is_real:
            numbers = series[present].to_numpy()
            numbers = numbers.astype(np.int64 if numbers.dtype.kind == "M" else np.float64)
            shares = np.arange(1, _N_QUANTILE_BINS) / _N_QUANTILE_BINS
            edges = np.unique(np.quantile(numbers, shares)) if len(numbers) else numbers
            codes[present] = 1 + np.searchsorted(edges, numbers)
        else:
            found, distinct = pd.factorize(series[present])
            by_count = np.argsort(-np.bincount(found, minlength=len(distinct)), kind="stable")
            places = np.minimum(np.argsort(by_count), _MOST_LEVELS)
            codes[present] = 1 + places[found]
        return cls(column.name, codes, int(codes.max(initial=0)) + 1, step)


def coarse_columns(table: TypedTable, columns: Sequence[Column]) -> list[CoarseColumn]:
    """Returns the columns of a typed table in bins; a sample of columns if there are very many."""
    step = -(-len(columns) // _MOST_COLUMNS)
    return [CoarseColumn.of(table[column.name], column) for column in columns[::step]]


def level_axis(levels: Codes, n_levels: int, others: Sequence[CoarseColumn]) -> Numbers:
    """Returns the first principal coordinate of levels. Shape: (n_levels,).

    With P the shares of level and cell, r and c its margins, the coordinates are the first column
    of D_r^-1/2 U S, from the singular value decomposition of D_r^-1/2 (P - r c^T) D_c^-1/2. Levels
    of few rows are shrunk towards the origin. The sign is arbitrary but deterministic.

    Args:
        levels: Level of each row, -1 for none. Shape: (n,).
        n_levels: Number of levels.
        others: The other columns.

    Source: Greenacre, Correspondence Analysis in Practice (2007), chapter 8 and appendix A.
    """
    counts = _cell_counts(levels[:: others[0].step] if others else levels, n_levels, others)
    rows = counts.sum(1, keepdims=True)
    mass = counts.sum(0) / max(counts.sum(), 1.0)
    counts, mass = counts[:, mass > 0.0], mass[mass > 0.0]
    if not len(mass):
        return np.zeros(n_levels)
    n_rows = rows / max(len(others), 1)
    profiles = (counts / np.maximum(rows, 1.0) - mass) * (rows > 0) / np.sqrt(mass)
    profiles *= n_rows / (n_rows + _SHRINKAGE_ROWS)
    weighted = profiles * np.sqrt(rows / rows.sum())
    axis = np.linalg.eigh(weighted.T @ weighted)[1][:, -1]
    found: Numbers = profiles @ (-axis if axis[np.abs(axis).argmax()] < 0.0 else axis)
    return found


def _cell_counts(levels: Codes, n_levels: int, others: Sequence[CoarseColumn]) -> Numbers:
    """Returns the number of rows by level and cell of other columns. Shape: (n_levels, sum of
    n_codes)."""
    step = 1 if n_levels > _MOST_ROWS // 50 else -(-len(levels) // _MOST_ROWS)
    known = levels[::step] >= 0
    at = levels[::step][known]
    counts = [
        np.bincount(
            at * other.n_codes + other.codes[::step][known], minlength=n_levels * other.n_codes
        ).reshape(n_levels, other.n_codes)
        for other in others
    ]
    return np.concatenate([np.zeros((n_levels, 0)), *counts], axis=1)
