"""Deduces unknown cells of a row from its known cells by formulas, repeated until nothing follows.

    forwards        y = f(x) if all x are known, also for formulas with exceptions
    backwards       the unique x that gives y, if y and the other columns of f are known
    combinations    all x, if only one combination of them gives y: 2054 is 20 and 54

The last two only use formulas that every row of the table satisfies. Deduced cells only guide
proposals: they are drawn and scored like other unknown cells.
"""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.rules.grids import Grid, LevelGrid, grid_of
from gcvae.rules.residuals import Residual
from gcvae.schema.columns import Column

if TYPE_CHECKING:
    from gcvae.codec.table_codec import TableCodec

_MOST_ROUNDS = 6
_MOST_COMBINATIONS = 20_000
_MOST_VALUES = 200


def deduced(codec: TableCodec, frame: pd.DataFrame) -> pd.DataFrame:
    """Returns rows completed with the cells that follow from known ones by formulas between
    columns.

    Args:
        frame: Rows with cells of the columns' dtypes; missing cells are unknown.
    """
    cells: dict[str, pd.Series[Any]] = {str(name): frame[name] for name in frame}
    formulas = [
        r for r in codec.reduction.rewritings if isinstance(r, Residual) and not r.is_inequality
    ]
    for _ in range(_MOST_ROUNDS):
        n_blank = sum(int(series.isna().sum()) for series in cells.values())
        for formula in formulas:
            _forwards(formula, cells)
            if formula.is_exact and formula.stride == 1:
                _backwards(codec, formula, cells)
                _from_unique_combinations(codec, formula, cells)
        if sum(int(series.isna().sum()) for series in cells.values()) == n_blank:
            break
    return pd.DataFrame(cells, index=frame.index)


def filled(cells: pd.Series[Any], by: pd.Series[Any]) -> pd.Series[Any]:
    """Returns `cells`, in which cells of `by` replace missing ones; returns `by` itself if all are
    missing."""
    return by if cells.isna().all() else cells.where(cells.notna(), by)


def _forwards(formula: Residual, cells: dict[str, pd.Series[Any]]) -> None:
    """Fills y where all columns of the formula are known."""
    parents = pd.DataFrame({name: cells[name] for name in formula.parents})
    is_computable = cells[formula.column].isna() & parents.notna().all(axis=1)
    if is_computable.any():
        computed = formula.prediction.predicted(parents[is_computable])
        cells[formula.column] = filled(cells[formula.column], computed.reindex(parents.index))


def _backwards(codec: TableCodec, formula: Residual, cells: dict[str, pd.Series[Any]]) -> None:
    """Fills a column of the formula where y and the other columns determine it."""
    known = pd.DataFrame({name: cells[name].notna() for name in formula.parents})
    is_one = cells[formula.column].notna() & (known.sum(axis=1) == known.shape[1] - 1)
    for name in formula.parents:
        rows = is_one & ~known[name]
        own = Grid.of(codec.schema[name])
        if not rows.any() or own is None or not formula.can_solve(name):
            continue
        index = cells[name].index[rows]
        others = pd.DataFrame(
            {p: cells[p][rows] for p in formula.parents if p != name}, index=index
        )
        at = formula.grid.indices(cells[formula.column][rows])[:, None]
        low, high = formula.solutions(codec.schema[name], others, at, at)
        if formula.at_ties:  # most cells are no ties
            low, high = low[:, :1], high[:, :1]
        n_found = np.where(low <= high, high - low + 1, 0).sum(axis=1)
        place = np.where(low <= high, low, np.iinfo(np.int64).min).max(axis=1)
        found = np.flatnonzero((n_found == 1) & (place >= own.low) & (place <= own.high))
        if len(found):
            computed = pd.Series(own.values(place[found]), index[found]).reindex(cells[name].index)
            cells[name] = filled(cells[name], computed)


def _from_unique_combinations(
    codec: TableCodec, formula: Residual, cells: dict[str, pd.Series[Any]]
) -> None:
    """Fills all columns of the formula where only one combination of their values gives y."""
    blank = pd.DataFrame({name: cells[name].isna() for name in formula.parents})
    rows = cells[formula.column].notna() & blank.all(axis=1)
    if len(formula.parents) < 2 or not rows.any():
        return
    values = [_values(codec.schema[name]) for name in formula.parents]
    if any(v is None for v in values):
        return
    listed = [v for v in values if v is not None]
    if math.prod(map(len, listed)) > _MOST_COMBINATIONS:
        return
    places = np.array(list(product(*(range(len(v)) for v in listed))), dtype=np.int64)
    parents = pd.DataFrame(
        {
            name: v[places[:, i]]
            for i, (name, v) in enumerate(zip(formula.parents, listed, strict=True))
        }
    )
    computed = formula.prediction.predicted(parents)
    known = computed.notna().to_numpy()
    made, first, counts = np.unique(
        formula.grid.indices(computed[known]), return_index=True, return_counts=True
    )
    combination = np.flatnonzero(known)[first[counts == 1]]
    made = made[counts == 1]
    target = formula.grid.indices(cells[formula.column][rows])
    at = np.searchsorted(made, target).clip(max=max(len(made) - 1, 0))
    is_found = made[at] == target if len(made) else np.zeros(len(target), dtype=bool)
    index = cells[formula.column][rows].index[is_found]
    for name in formula.parents if len(index) else ():
        values_found = parents[name].to_numpy()[combination[at[is_found]]]
        cells[name] = filled(cells[name], pd.Series(values_found, index).reindex(cells[name].index))


def _values(column: Column) -> npt.NDArray[Any] | None:
    """Returns all possible numbers of a column that has at most 200; None for other columns."""
    grid = grid_of(column)
    if isinstance(grid, LevelGrid) or not column.has_numbers:
        return None
    if column.levels:
        return np.array(column.levels)
    n_values = grid.high - grid.low + 1
    return grid.values(np.arange(grid.low, grid.high + 1)) if n_values <= _MOST_VALUES else None
