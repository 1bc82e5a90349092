"""Correspondence analysis: orders the levels of a column by the cells in other columns with which
they occur, so that a copula can use the order."""

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
_MOST_ROWS = 2_000_000
"""Maximum number of rows that are used; larger tables are sampled at a regular step."""
_SHRINKAGE_ROWS = 5.0
"""Number of rows for which a level's coordinate is shrunk halfway to the origin."""


@dataclass(frozen=True)
class CoarseColumn:
    """A column whose cells are grouped into bins: quantiles of numbers, or the most frequent levels
    and one bin for all others; and a bin for missing cells.

    Attributes:
        codes: Bin of each sampled row, from 0 (missing) to n_codes - 1, in a table of n rows.
            Shape: (ceil(n / step),).
        n_codes: Number of bins.
        step: Distance between sampled rows; 1 if every row is used.
    """

    name: str
    codes: npt.NDArray[np.int8]
    n_codes: int
    step: int = 1

    @classmethod
    def of(cls, series: pd.Series[Any], column: Column) -> CoarseColumn:
        """Groups the parsed cells of a column into bins."""
        step = max(1, -(-len(series) // _MOST_ROWS))
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
    """Bins the cells of each column of a parsed table. If there are more than 64 columns, only
    every k-th column is used, so that at most 64 remain."""
    step = -(-len(columns) // _MOST_COLUMNS)
    return [CoarseColumn.of(table[column.name], column) for column in columns[::step]]


def level_axis(levels: Codes, n_levels: int, others: Sequence[CoarseColumn]) -> Numbers:
    """Returns the first principal coordinate of each level in a correspondence analysis with the
    bins of the other columns, given the level's index in each of n rows (-1 for missing). Shape:
    (n,) -> (n_levels,).

    With P the matrix of the shares of rows by level and by bin, r and c its row and column sums,
    D_r and D_c their diagonal matrices, the coordinates are the first column of D_r^-1/2 U S, from
    the singular value decomposition U S V^T of D_r^-1/2 (P - r c^T) D_c^-1/2. Levels with few rows
    are shrunk towards the origin. The sign is arbitrary but deterministic.

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
    known = levels >= 0
    at = levels[known]
    counts = [
        np.bincount(
            at * other.n_codes + other.codes[known], minlength=n_levels * other.n_codes
        ).reshape(n_levels, other.n_codes)
        for other in others
    ]
    return np.concatenate([np.zeros((n_levels, 0)), *counts], axis=1)
