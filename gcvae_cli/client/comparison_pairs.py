"""Finds pairs of columns whose dependence differs most between a real and a synthetic table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gcvae.schema.kinds import Outcomes

if TYPE_CHECKING:
    from gcvae.schema.columns import Column

Codes = NDArray[np.int64]

_MOST_ROWS = 10_000
_MOST_CELLS = 2_000_000
"""Maximum number of cells that are compared; of a table with many columns, fewer rows are used."""
_N_BINS = 8
_TAU, _V = "tau", "V"


@dataclass(frozen=True)
class Pair:
    """Two columns and their dependence in a real and a synthetic table.

    Attributes:
        measure: Measure of dependence: `tau` (Kendall's tau-b), or `V` (Cramér's V) if a column is
            nominal.
        real, synthetic: Value of the measure in each table.
        shares: Share of rows in each combination of bins of the two columns, first for the real,
            then for the synthetic table. Shape: (2, bins of the first column, bins of the second).
    """

    columns: tuple[Column, Column]
    measure: str
    real: float
    synthetic: float
    shares: NDArray[np.float64]

    @property
    def difference(self) -> float:
        """Absolute difference of the measure between both tables."""
        return abs(self.real - self.synthetic)


def pairs_that_differ_most(
    columns: list[Column], real: pd.DataFrame, synthetic: pd.DataFrame, most: int
) -> list[Pair]:
    """Returns the pairs of columns whose dependence differs most between two tables, the largest
    difference first.

    Missing cells count as lower than all values, or as a level of their own.

    Args:
        real: Real rows.
        synthetic: Synthetic rows.
        most: Maximum number of pairs.
    """
    columns = [column for column in columns if _is_varied(real[column.name])]
    n_rows = max(100, min(_MOST_ROWS, _MOST_CELLS // max(len(columns), 1)))
    tables = [_shuffled(table, n_rows) for table in (real, synthetic)]
    measured = [_measures(columns, table) for table in tables]
    found = []
    for i, j in combinations(range(len(columns)), 2):
        measure = _V if _is_nominal(columns[i]) or _is_nominal(columns[j]) else _TAU
        a, b = (float(table[measure][i, j]) for table in measured)
        if not math.isnan(a) and not math.isnan(b):
            found.append((abs(a - b), i, j, measure, a, b))
    found.sort(key=lambda pair: (-pair[0], pair[1:3]))
    return [
        Pair((columns[i], columns[j]), measure, a, b, _shares(columns[i], columns[j], tables))
        for _, i, j, measure, a, b in found[:most]
    ]


def chance_difference(n_real: int, n_synthetic: int) -> float:
    """Returns the difference between Kendall's tau in two tables that chance exceeds for 5 % of
    pairs of independent columns, where the variance of tau is about 4 / (9 * rows).

    Args:
        n_real, n_synthetic: Numbers of rows of the two tables.
    """
    rows = [min(n, _MOST_ROWS) for n in (n_real, n_synthetic)]
    return 1.96 * math.sqrt(sum(4.0 / (9.0 * max(n, 1)) for n in rows))


def _is_nominal(column: Column) -> bool:
    return column.kind.outcomes is Outcomes.NOMINAL_LEVELS


def _is_varied(cells: pd.Series[Any]) -> bool:
    return bool(cells.nunique(dropna=False) > 1)


def _shuffled(table: pd.DataFrame, most: int) -> pd.DataFrame:
    return table.sample(n=min(len(table), most), random_state=0)


def _measures(columns: list[Column], table: pd.DataFrame) -> dict[str, NDArray[np.float64]]:
    """Returns tau and V between all columns. Shape: (D, D) each for D columns."""
    import torch

    from gcvae.numerics.cramers_v import cramers_v, group
    from gcvae.numerics.kendall import tau_b

    ranks = [_ranks(column, table[column.name]) for column in columns]
    if not ranks:
        return {_TAU: np.zeros((0, 0)), _V: np.zeros((0, 0))}
    return {
        _TAU: tau_b(torch.from_numpy(np.stack(ranks, axis=1))),
        _V: cramers_v([group(cells.astype(np.float64)) for cells in ranks]),
    }


def _ranks(column: Column, cells: pd.Series[Any]) -> Codes:
    """Returns the dense rank of each cell in the column's order; missing cells rank 0, if there are
    any. Shape: (n,)."""
    values = _ordered(column, cells)
    return np.unique(values.rank(method="dense").fillna(0.0), return_inverse=True)[1]


def _ordered(column: Column, cells: pd.Series[Any]) -> pd.Series[Any]:
    """Returns the cells as numbers: levels by their index in the schema, dates in seconds."""
    if pd.api.types.is_datetime64_any_dtype(cells):
        seconds = cells.to_numpy("datetime64[s]").astype(np.float64)
        return pd.Series(seconds, cells.index).where(cells.notna())
    if column.kind.is_real:
        return cells.astype("float64")
    levels = column.typed_levels or sorted(cells.dropna().unique(), key=str)
    place = {level: number for number, level in enumerate(levels)}
    present = cells.dropna().astype(object)
    found = present.map(lambda cell: float(place.get(cell, len(place)))).astype("float64")
    return found.reindex(cells.index)


def _shares(one: Column, other: Column, tables: list[pd.DataFrame]) -> NDArray[np.float64]:
    """Returns the shares of rows in a common two-way table of two columns, for both tables.

    Shape: (2, K_1, K_2) for K_1 and K_2 bins.
    """
    grids = [_bins(column, [table[column.name] for table in tables]) for column in (one, other)]
    shape = tuple(max(int(codes.max(initial=0)) for codes in grid) + 1 for grid in grids)
    shares = np.zeros((2, *shape))
    for number, (rows, columns) in enumerate(zip(*grids, strict=True)):
        np.add.at(shares[number], (rows, columns), 1.0 / max(len(rows), 1))
    return shares


def _bins(column: Column, both: list[pd.Series[Any]]) -> list[Codes]:
    """Returns the bin of each cell in both tables; missing cells are the last bin.

    Numbers are binned by quantiles of the real table. Of levels, the most frequent ones are kept in
    their order, and all others are one bin.
    """
    values = [_ordered(column, cells) for cells in both]
    real = values[0].dropna()
    if column.kind.is_real and real.nunique() > _N_BINS:
        edges = np.unique(np.quantile(real, np.linspace(0, 1, _N_BINS + 1)[1:-1]))
        found = [np.searchsorted(edges, part, side="right") for part in values]
        n = len(edges) + 1
    else:
        kept = np.sort(real.value_counts().index[:_N_BINS].to_numpy(dtype=np.float64))
        places = {level: number for number, level in enumerate(kept)}
        found = [part.map(lambda v: places.get(v, len(places))).to_numpy() for part in values]
        n = len(kept) + 1
    return [
        np.where(part.isna(), n, codes).astype(np.int64)
        for part, codes in zip(values, found, strict=True)
    ]
