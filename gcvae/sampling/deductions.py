"""Deduces unknown cells of a row from its known cells by formulas, until no further cell follows.

A formula y = f(x) computes one column y from one or several columns x.

    forwards        y, if all x are known
    backwards       one x, if y and all other x are known and only one value of this x gives y
    chains          one x that no formula computes, if known y depend on no other unknown column of
                    this kind, and only one value of x gives these y
    combinations    all x, if y is known and only one combination of values gives it: if y = 2054
                    is a century and a year of two digits, they are 20 and 54

There are two kinds of deduced cells:

    determined      by formulas without exceptions, except combinations. These cells count as known,
                    even beyond the training table's range.
    deduced         by these and by other formulas and combinations. The cells are only proposed:
                    the model draws and scores them like other unknown cells.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.arrays import Mask, Numbers
from gcvae.rules.grids import Grid, LevelGrid, grid_of
from gcvae.rules.residuals import Residual, type_limits
from gcvae.rules.solutions import limits_of, monotone_solutions
from gcvae.schema.columns import Column
from gcvae.schema.expressions import names_in
from gcvae.spelling.date_text import is_time_of_day

if TYPE_CHECKING:
    from gcvae.codec.table_codec import TableCodec

_MOST_ROUNDS = 6
_MOST_COMBINATIONS = 20_000
_MOST_VALUES = 200
_NEIGHBOURS, _MOST_TRIED = 2, 40
"""Number of neighbours beside a chain's solutions that are tried, and most values tried in all."""
_WIDER = 1_000
"""Solutions may lie beyond their column's range by up to this many times its width."""
Indices = npt.NDArray[np.int64]
Cells = dict[str, "pd.Series[Any]"]


def deduced(codec: TableCodec, frame: pd.DataFrame) -> pd.DataFrame:
    """Returns rows completed with the cells that probably follow from known ones by formulas
    between columns, within the range of the training table.

    Args:
        frame: Rows with cells of the columns' dtypes; missing cells are unknown.
    """
    cells: Cells = {str(name): frame[name] for name in frame}
    formulas = [
        r
        for r in codec.reduction.rewritings
        if isinstance(r, Residual) and (r.is_exact or not (r.is_inequality or r.exempt))
    ]
    for _ in _rounds(cells):
        for formula in formulas:
            computed = _computed(formula, cells, {})
            if computed is not None:
                cells[formula.column] = filled(cells[formula.column], computed)
            if formula.is_exact and formula.stride == 1:
                for name, solved in _solved(codec, formula, cells, {}, beyond=False):
                    cells[name] = filled(cells[name], solved)
                _from_unique_combinations(codec, formula, cells)
        for name, solved in _from_chains(codec, cells, {}, beyond=False):
            cells[name] = filled(cells[name], solved)
    return pd.DataFrame(cells, index=frame.index)


def determined(codec: TableCodec, frame: pd.DataFrame, barred: Mapping[str, Mask]) -> pd.DataFrame:
    """Returns rows completed with the cells that known ones determine by formulas that every row of
    the training table satisfies.

    A cell may lie beyond the range of the training table, unless its column has levels. If formulas
    round, several values may give the known result. If exactly one of them lies within the range,
    it is used. If several do, the cell stays unknown. If none does, the value nearest to the range
    is used.

    Args:
        frame: Rows with cells of the columns' dtypes; missing cells are unknown.
        barred: By column, a mask of unknown cells to leave as they are. Shape: (n,) each.
    """
    cells: Cells = {str(name): frame[name] for name in frame}
    formulas = [
        r
        for r in codec.reduction.rewritings
        if isinstance(r, Residual) and r.only_residual is not None
    ]
    for _ in _rounds(cells) if formulas else ():
        for formula in formulas:
            found = [*_solved(codec, formula, cells, barred, beyond=True)]
            computed = None if formula.exempt else _computed(formula, cells, barred)
            found += [] if computed is None else [(formula.column, computed)]
            for name, series in found:
                cells[name] = filled(cells[name], series).astype(frame[name].dtype)
        for name, series in _from_chains(codec, cells, barred, beyond=True):
            cells[name] = filled(cells[name], series).astype(frame[name].dtype)
    return pd.DataFrame(cells, index=frame.index)


def filled(cells: pd.Series[Any], by: pd.Series[Any]) -> pd.Series[Any]:
    """Fills missing cells from the series `by`; if all are missing, returns `by` with its dtype."""
    return by if cells.isna().all() else cells.where(cells.notna(), by)


def _rounds(cells: Cells) -> Iterator[int]:
    """Yields 0, 1, 2, ... for rounds of deductions. Stops if no cell of `cells` is unknown, if the
    last round filled none, or after _MOST_ROUNDS rounds."""
    n_unknown = -1
    for number in range(_MOST_ROUNDS):
        n_before, n_unknown = n_unknown, sum(int(series.isna().sum()) for series in cells.values())
        if n_unknown in (0, n_before):
            return
        yield number


def _computed(formula: Residual, cells: Cells, barred: Mapping[str, Mask]) -> pd.Series[Any] | None:
    """Computes the unknown cells y = f(x) in rows in which all x are known; None if there are none.
    `barred` masks, by column, the unknown cells that must not be computed."""
    parents = pd.DataFrame({name: cells[name] for name in formula.parents})
    is_computable = cells[formula.column].isna() & parents.notna().all(axis=1)
    is_computable &= ~barred.get(formula.column, np.zeros(len(parents), dtype=bool))
    if formula.at_ties:
        is_computable &= ~formula.prediction.at_tie(parents)
    if not is_computable.any():
        return None
    rows = parents[is_computable]
    if formula.only_residual is None:
        computed = formula.prediction.predicted(rows)
    else:
        residuals = pd.DataFrame({formula.column: np.full(len(rows), formula.only_residual)})
        computed = formula.restored(rows, residuals).set_axis(rows.index)
    return computed.reindex(parents.index)


def _solved(
    codec: TableCodec,
    formula: Residual,
    cells: Cells,
    barred: Mapping[str, Mask],
    *,
    beyond: bool,
) -> Iterator[tuple[str, pd.Series[Any]]]:
    """Solves a formula y = f(x) in rows in which y is known and exactly one x is unknown. Yields
    (name of this x, series of its solutions); cells of rows without a solution are missing.
    `beyond` tells whether solutions may lie beyond the training table's range."""
    known = pd.DataFrame({name: cells[name].notna() for name in formula.parents})
    is_one = cells[formula.column].notna() & (known.sum(axis=1) == known.shape[1] - 1)
    if formula.exempt and is_one.any():
        indices = formula.grid.indices(cells[formula.column][is_one])
        is_one[is_one] = ~np.isin(indices, formula.exempt)
    for name in formula.parents:
        rows = is_one & ~known[name] & ~barred.get(name, np.zeros(len(known), dtype=bool))
        own = Grid.of(codec.schema[name])
        if not rows.any() or own is None or not formula.can_solve(name):
            continue
        index = cells[name].index[rows]
        others = {p: cells[p][rows] for p in formula.parents if p != name}
        at = formula.grid.indices(cells[formula.column][rows])[:, None]
        column = _without_limits(own, formula) if beyond else own.column
        low, high = formula.solutions(column, pd.DataFrame(others, index=index), at, at)
        if formula.at_ties:  # most cells are no ties
            low, high = low[:, :1], high[:, :1]
        solution, is_found = _nearest(low, high, own)
        if column.levels:
            is_found &= np.isin(solution, own.indices(pd.Series(column.levels)))
        found = np.flatnonzero(is_found)
        if len(found):
            values = own.values(solution[found], limited=False)
            yield name, pd.Series(values, index[found]).reindex(cells[name].index)


def _from_chains(
    codec: TableCodec, cells: Cells, barred: Mapping[str, Mask], *, beyond: bool
) -> Iterator[tuple[str, pd.Series[Any]]]:
    """Yields (name of a column, its deduced cells) for unknown columns that no formula computes.

    Such a cell is deduced from a known cell that several formulas compute from it, one after
    another. With these two formulas, a known `net` gives `gross`, although `tax` is unknown:

        net == gross - tax
        tax == round(0.2 * gross, 2)

    The known cell may depend on only one unknown column that no formula computes, here `gross`. If
    `beyond` is True, deduced cells count as known: they may lie beyond the training table's range,
    and a cell with several solutions is not deduced. If False, deduced cells are only proposed:
    they lie within the range, and the middle one of several solutions is used.
    """
    formulas = {
        r.column: r
        for r in codec.reduction.rewritings
        if isinstance(r, Residual)
        and r.only_residual is not None
        and not (beyond and r.exempt)
        and r.stride == 1
    }
    ancestors = [name for r in formulas.values() for name in r.parents if name not in formulas]
    leaves = [name for name in dict.fromkeys(ancestors) if Grid.of(codec.schema[name]) is not None]
    if not formulas or not leaves:
        return
    n = len(next(iter(cells.values())))
    unknown = {name: series.isna().to_numpy() for name, series in cells.items()}
    # Unknown leaves from which each cell follows; the last entry stands for all other columns.
    roots: dict[str, Mask] = {}
    for name in dict.fromkeys([*ancestors, *formulas]):
        own = np.zeros((n, len(leaves) + 1), dtype=bool)
        if name in formulas:
            own[:] = np.logical_or.reduce([roots[parent] for parent in formulas[name].parents])
        else:
            own[:, leaves.index(name) if name in leaves else -1] = True
        roots[name] = own & unknown[name][:, None]
    for at, leaf in enumerate(leaves):
        is_open = unknown[leaf] & ~barred.get(leaf, np.zeros(n, dtype=bool))
        of_leaf = {}
        for name, formula in formulas.items():
            of_parents = np.logical_or.reduce([roots[parent] for parent in formula.parents])
            is_sole = of_parents[:, at] & (of_parents.sum(axis=1) == 1)
            rows = is_open & is_sole & ~unknown[name]
            if rows.any():
                of_leaf[name] = rows
        chain = _Chain(codec, leaf, formulas, cells)
        found = chain.solved(of_leaf, beyond=beyond) if of_leaf else None
        if found is not None:
            yield leaf, found


@dataclass(frozen=True)
class _Chain:
    """Formulas that compute columns from one unknown column, the leaf, in one or several steps.

    Attributes:
        codec: Codec of the table.
        leaf: Name of the unknown column, which no formula computes.
        formulas: Formulas without exceptions, by the column that they compute. The columns of a
            formula are known, leaves, or computed by an earlier formula.
        cells: Cells of n rows, by column.
    """

    codec: TableCodec
    leaf: str
    formulas: Mapping[str, Residual]
    cells: Cells

    def solved(self, equations: Mapping[str, Mask], *, beyond: bool) -> pd.Series[Any] | None:
        """Returns the cells of the leaf from which all known computed cells follow.

        Rows without a solution are missing in the returned series. If a row has several solutions,
        the middle one is used; if `beyond` is True, none is used, because a cell that counts as
        known must be unique. Returns None if no row has a solution.

        Args:
            equations: By known computed column, a mask of the rows in which its cell depends on the
                leaf and on no other unknown leaf. Shape: (n,) each.
            beyond: Whether solutions may lie beyond the range of the training table.
        """
        is_chained = np.zeros(len(self.cells[self.leaf]), dtype=bool)
        for name, rows in equations.items():
            for parent in self.formulas[name].parents:
                if parent in self.formulas:
                    is_chained |= rows & self.cells[parent].isna().to_numpy()
        at = np.flatnonzero(is_chained)
        own = Grid.of(self.codec.schema[self.leaf])
        assert own is not None, "leaves have grids"
        if not len(at) or not all(self._can_step(name) for name in equations):
            return None
        grid = own
        for name in equations if beyond else ():
            wide = Grid.of(_without_limits(grid, self.formulas[name]))
            grid = grid if wide is None else wide
        low, high = np.full(len(at), grid.low), np.full(len(at), grid.high)
        targets = {}
        for name, rows in equations.items():
            among = np.flatnonzero(rows[at])
            target = self.formulas[name].grid.indices(self.cells[name].iloc[at[among]])
            targets[name] = np.full(len(at), np.nan)
            targets[name][among] = target
            ends = monotone_solutions(
                partial(self._result, name, at[among], grid),
                grid,
                len(among),
                target[:, None],
                target[:, None],
            )
            low[among] = np.maximum(low[among], ends[0][:, 0])
            high[among] = np.minimum(high[among], ends[1][:, 0])
        # Rounding can shift a result by a unit, so neighbours of the solutions are tried too.
        tried = low[:, None] - _NEIGHBOURS + np.arange(_MOST_TRIED)
        is_tried = (tried <= high[:, None] + _NEIGHBOURS) & (high >= low - _NEIGHBOURS)[:, None]
        is_tried &= (tried >= grid.low) & (tried <= grid.high)
        tried, of_tried = np.clip(tried, grid.low, grid.high), at.repeat(_MOST_TRIED)
        fits = is_tried.copy()
        for name, target in targets.items():
            made = self._result(name, of_tried, grid, tried.ravel()).reshape(tried.shape)
            near = int(self.formulas[name].at_ties)
            fits &= (np.abs(made - target[:, None]) <= near) | np.isnan(target)[:, None]
        n_fits = fits.sum(axis=1)
        is_found = (n_fits == 1) | ((n_fits > 1) & (not beyond))
        if not is_found.any():
            return None
        middle = (fits.cumsum(axis=1) == (n_fits[:, None] + 1) // 2).argmax(axis=1)
        indices = np.take_along_axis(tried, middle[:, None], axis=1)[:, 0][is_found]
        cells = self.cells[self.leaf]
        values = pd.Series(grid.values(indices, limited=False), cells.index[at[is_found]])
        return values.reindex(cells.index)

    def _can_step(self, name: str) -> bool:
        """Returns whether column `name` can be traced back to the leaf: each formula on the way can
        be solved for the columns that depend on the leaf."""
        formula = self.formulas[name]
        return all(
            formula.can_solve(parent)
            and not limits_of(formula.prediction.form, parent)
            and (parent not in self.formulas or self._can_step(parent))
            for parent in formula.parents
            if self.leaf in self._ancestors(parent)
        )

    def _ancestors(self, name: str) -> set[str]:
        parents = self.formulas[name].parents if name in self.formulas else ()
        return {name}.union(*(self._ancestors(parent) for parent in parents))

    def _result(self, name: str, at: Indices, grid: Grid, indices: Indices) -> Numbers:
        """Returns the values of a computed column in the m rows `at`, if the leaf has the values
        `indices` there. Both are multiples of the resolution of their column. A value is NaN if a
        column of the formula has no value. Shape: (m,)."""
        index = pd.RangeIndex(len(at))
        values = {self.leaf: pd.Series(grid.values(indices, limited=False), index)}

        def computed(formula: Residual) -> pd.Series[Any]:
            parents = pd.DataFrame({p: cell(p) for p in formula.parents}, index=index)
            residuals = pd.DataFrame({formula.column: np.full(len(at), formula.only_residual)})
            found = formula.restored(parents, residuals).set_axis(index)
            return found.where(parents.notna().all(axis=1))

        def cell(column: str) -> pd.Series[Any]:
            if column not in values:
                known = self.cells[column].iloc[at].set_axis(index)
                if column in self.formulas and known.isna().any():
                    known = filled(known, computed(self.formulas[column]))
                values[column] = known
            return values[column]

        result = computed(self.formulas[name])
        found, has_value = np.full(len(at), np.nan), result.notna().to_numpy()
        found[has_value] = self.formulas[name].grid.indices(result[has_value])
        return found


def _nearest(low: Indices, high: Indices, grid: Grid) -> tuple[Indices, Mask]:
    """Chooses one solution of an equation for each of n rows, from m intervals of solutions.
    Returns (chosen solutions, mask of the rows that have one). Shape: (n, m) -> (n,), (n,).

    If exactly one solution lies within the column's limits, it is chosen. If several do, none is
    chosen. If none does, the solution nearest to the limits is chosen.
    """
    within = np.maximum(low, grid.low), np.minimum(high, grid.high)
    sizes = np.where(within[0] <= within[1], within[1] - within[0] + 1, 0)
    only = np.where(sizes > 0, within[0], np.iinfo(np.int64).min).max(axis=1)
    # The end of each interval that is next to the limits.
    ends = np.where(high < grid.low, high, low)
    far = np.iinfo(np.int64).max
    distance = np.where(high < grid.low, grid.low - high, low - grid.high)
    distance = np.where(low <= high, distance, far)
    at = distance.argmin(axis=1)
    nearest = np.take_along_axis(ends, at[:, None], axis=1)[:, 0]
    n_within = sizes.sum(axis=1)
    is_found = (n_within == 1) | ((n_within == 0) & (distance.min(axis=1) < far))
    return np.where(n_within == 1, only, nearest), is_found


def _without_limits(grid: Grid, formula: Residual) -> Column:
    """Returns the column of `grid` with much wider limits, to search solutions of a formula there.

    A column of levels or times of day is unchanged. A column of positive numbers stays positive if
    the formula divides by it or raises it to a power: only monotone formulas can be solved, and
    such a formula is not monotone across 0.
    """
    column = grid.column
    if column.levels or (column.has_times and is_time_of_day(column.date_format)):
        return column
    if column.has_times:
        return replace(column, minimum=None, maximum=None)
    wider = _WIDER * max(grid.high - grid.low, 1)
    first, last = type_limits(column) or (grid.low - wider, grid.high + wider)
    low, high = max(grid.low - wider, first), min(grid.high + wider, last)
    powers = [
        node
        for node in ast.walk(formula.prediction.form.value)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Pow)
    ]
    if any(column.name in names_in(part) for node in powers for part in (node.left, node.right)):
        low = max(low, min(grid.low, 1))
    ends = grid.values(np.array([low, high]), limited=False).tolist()
    return replace(column, minimum=ends[0], maximum=ends[1])


def _from_unique_combinations(codec: TableCodec, formula: Residual, cells: Cells) -> None:
    """Fills, in `cells`, all columns x of the formula in rows in which only y is known and only one
    combination of values of x gives y."""
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
    combinations = np.array(list(product(*(range(len(v)) for v in listed))), dtype=np.int64)
    parents = pd.DataFrame(
        {
            name: v[combinations[:, i]]
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
    grid = grid_of(column)
    if isinstance(grid, LevelGrid) or not column.has_numbers:
        return None
    if column.levels:
        return np.array(column.levels)
    n_values = grid.high - grid.low + 1
    return grid.values(np.arange(grid.low, grid.high + 1)) if n_values <= _MOST_VALUES else None
