"""Draws several unknown columns of few values jointly, so that the formulas of a row hold.

If a row's total is known and its price, quantity and discount are not, hardly any independent draw
of these three gives that total. They have only some thousand combinations: all are enumerated, and
each column is drawn among the values that occur in a possible combination with the columns drawn
before. Every particle (weighted draw of a row) thus satisfies the formulas, and its weight is the
probability of the possible values.

Only formulas that every row of the table satisfies are used; exceptions would get no particle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from gcvae.arrays import Codes, Mask
from gcvae.codec.level_codec import LevelCodec
from gcvae.codec.quantile_codec import QuantileCodec
from gcvae.codec.region import ConditionalColumn, Drawn, Region
from gcvae.rules.alternatives import Alternative
from gcvae.rules.residuals import Residual
from gcvae.sampling.target_intervals import TargetIntervals, indices_of_rows

if TYPE_CHECKING:
    from gcvae.codec.column_codec import ColumnCodec
    from gcvae.codec.table_codec import TableCodec

_MOST_COMBINATIONS = 60_000


@dataclass(frozen=True)
class JointRegion:
    """Possible cells of one of several columns that are drawn jointly, so that formulas hold.

    Rows with different known cells have different tables of possible combinations.

    Attributes:
        columns: For each table, the indices of its columns in the encoded table, in drawing order.
        tables: Possible combinations of integer codes. Shape: (combinations, columns) each.
        which: Index of the table that applies to each of n rows; -1 for none. Shape: (n,).
        number: Index of this column in the encoded table.
        n_codes: Number of codes of this column.
    """

    columns: tuple[tuple[int, ...], ...]
    tables: tuple[Codes, ...]
    which: npt.NDArray[np.int64]
    number: int
    n_codes: int

    @property
    def has_density(self) -> bool:
        """Whether the possible cells have a density: always False, because each code has a
        probability."""
        return False

    @property
    def is_restricted(self) -> Mask:
        """Mask of the rows in which this column is drawn jointly with others that determine a known
        cell. Shape: (n,), or (1,) for all rows alike."""
        return self.which >= 0

    def take(self, rows: Tensor | None) -> JointRegion:
        """Returns the region for the rows with the given indices; None stands for all rows."""
        if rows is None:
            return self
        return replace(self, which=self.which[indices_of_rows(rows, len(self.which))])

    def draw(
        self, column: ConditionalColumn, noise: Tensor, codes: Tensor, values: Tensor
    ) -> Drawn:
        """Draws a cell for each of N particles (weighted draws of a row), among the integer codes
        of the combinations that are still possible.

        `column` is the column's distribution given the earlier columns. Shape: uniform noise (N,);
        codes and values (N, D), of which the columns drawn so far are set.
        """
        n = len(noise)
        allowed = np.ones((n, self.n_codes), dtype=bool)
        which = np.broadcast_to(self.which, n)
        for number in np.unique(which[which >= 0]).tolist():
            own = np.flatnonzero(which == number)
            table, columns = self.tables[number], self.columns[number]
            at = columns.index(self.number)
            came = codes[own][:, list(columns[:at])].numpy()
            fits = (came[:, None] == table[None, :, :at]).all(axis=2)
            has_code = np.eye(self.n_codes, dtype=np.float32)[table[:, at]]
            allowed[own] = fits.astype(np.float32) @ has_code > 0
        log_share = torch.from_numpy(np.where(allowed, 0.0, -np.inf))
        ends = torch.full((n, 1), -torch.inf, dtype=torch.float64)
        return column.draw_within(Region(log_share, ends, -ends), noise)


@dataclass(frozen=True)
class _RowConstraint:
    """Restriction of the unknown columns of a row by its formulas.

    Attributes:
        formulas: Formulas, ordered so that each comes after the formulas that compute its columns.
        unknown: Unknown columns that are drawn. All other columns of the formulas are known or
            follow from these.
        known: Known cells of the row, each as a series of length one.
        target: For each known computed column, its possible values: the ends (low, high) of
            intervals, as multiples of the column's resolution.
        checks: Inequalities, and formulas with exceptions, that compute a known column from unknown
            ones. A combination of cells is impossible if its residual lies beyond the range that
            residuals have in the table.
    """

    formulas: Sequence[Residual | Alternative]
    unknown: Sequence[str]
    known: Mapping[str, pd.Series[Any]]
    target: Mapping[str, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]
    checks: Sequence[Residual]

    @property
    def key(self) -> tuple[Any, ...]:
        """Hashable key; rows with equal restrictions have equal keys."""
        ends = [(name, *(end.tobytes() for end in pair)) for name, pair in self.target.items()]
        known = [(name, cell.iloc[0]) for name, cell in self.known.items()]
        return (*self.unknown, *ends, *known)


def joint_regions(
    codec: TableCodec,
    frame: pd.DataFrame,
    target: Mapping[str, TargetIntervals],
    order: Sequence[int],
) -> dict[int, JointRegion]:
    """Returns the possible cells (regions) of unknown columns that are drawn jointly so that
    formulas hold, by index in the encoded table, if their combinations can be enumerated.

    Args:
        frame: Cells of the columns' dtypes; missing ones are unknown. It has n rows, or a single
            row that applies to all rows.
        target: Possible values of each known computed column.
        order: Order in which the decoder generates the columns.
    """
    exact = {
        r.column: r
        for r in codec.reduction.rewritings
        if isinstance(r, Residual | Alternative) and r.is_exact
    }
    if not exact:
        return {}
    n = len(frame)
    tables: list[Codes] = []
    columns: list[tuple[int, ...]] = []
    which: dict[int, npt.NDArray[np.int64]] = {}
    cells = {str(name): frame[name] for name in frame}
    seen: dict[tuple[Any, ...], tuple[list[str], Codes] | None] = {}
    is_blank = {name: series.isna().to_numpy() for name, series in cells.items()}
    for row in range(n):
        constraint = _row_constraint(codec, exact, row, is_blank, cells, target)
        if constraint is None:
            continue
        if constraint.key not in seen:
            seen[constraint.key] = _combinations(codec, constraint, order)
        found = seen[constraint.key]
        if found is None:
            continue
        names, table = found
        numbers = tuple(codec.places[name] for name in names)
        for number in numbers:
            which.setdefault(number, np.full(n, -1, dtype=np.int64))[row] = len(tables)
        tables.append(table)
        columns.append(numbers)
    return {
        number: JointRegion(
            tuple(columns), tuple(tables), rows, number, codec.columns[number].n_codes
        )
        for number, rows in which.items()
    }


def _row_constraint(
    codec: TableCodec,
    exact: Mapping[str, Residual | Alternative],
    row: int,
    is_blank: Mapping[str, Mask],
    cells: Mapping[str, pd.Series[Any]],
    target: Mapping[str, TargetIntervals],
) -> _RowConstraint | None:
    """Returns the restriction of the unknown columns of a row by its formulas; None without one.

    Also None if only one column is unknown and it can be drawn among the solutions of its formulas
    (`ProposalRegion`), which needs no joint draw. `exact` are the formulas without exceptions, and
    `target` the possible values, by computed column.
    """
    known_targets = {}
    for name in exact:
        intervals = target.get(name)
        if intervals is not None:
            at = row if len(intervals.is_known) > 1 else 0
            if intervals.is_known[at] and not intervals.missing[at]:
                known_targets[name] = (intervals.low[at], intervals.high[at])
    formulas: dict[str, Residual | Alternative] = {}
    unknown: list[str] = []

    def follow(name: str) -> bool:
        """Adds a computed column's formula to `formulas` and its unknown columns, followed in the
        same way, to `unknown`. Returns False if one of these has too many values to enumerate."""
        formula = exact[name]
        for parent in formula.parents:
            if not is_blank[parent][row] or parent in formulas or parent in unknown:
                continue
            if parent in exact:
                if not follow(parent):
                    return False
            elif parent in codec.reduction.rewritten or _support(codec, parent) is None:
                return False
            else:
                unknown.append(parent)
        formulas[name] = formula
        return True

    taken = {}
    for name, ends in known_targets.items():
        before = dict(formulas), list(unknown)
        if any(is_blank[parent][row] for parent in exact[name].parents) and follow(name):
            taken[name] = ends
        else:
            formulas, unknown[:] = before[0], before[1]
    if not taken or not unknown:
        return None
    if len(unknown) == 1 and all(_is_solved(formula, unknown[0]) for formula in formulas.values()):
        return None  # `ProposalRegion` proposes it
    checks = [
        r
        for r in codec.reduction.rewritings
        if isinstance(r, Residual) and r.column not in exact and not is_blank[r.column][row]
        if not set(unknown).union(formulas).isdisjoint(r.parents)
    ]
    used = {name for each in (*formulas.values(), *checks) for name in (each.column, *each.parents)}
    known = {
        name: cells[name].iloc[row : row + 1] for name in sorted(used) if not is_blank[name][row]
    }
    return _RowConstraint(list(formulas.values()), unknown, known, taken, checks)


def _is_solved(formula: Residual | Alternative, name: str) -> bool:
    """Returns whether the column `name`, if it is the only unknown one, can be drawn among the
    solutions of the formula by `ProposalRegion`; also True if the formula does not contain it."""
    is_of_date = formula.prediction.parents.columns[0].has_times and len(formula.parents) == 1
    return name not in formula.parents or is_of_date or formula.can_solve(name)


def _support(codec: TableCodec, name: str) -> tuple[Codes, list[Any]] | None:
    """Returns (codes, values): all possible values of a column, and their codes. Returns None if
    not every value of the column has its own code."""
    if name not in codec.places:
        return None
    column: ColumnCodec = codec.column_codec(name)
    if isinstance(column, LevelCodec):
        n_values = column.n_codes - int(column.has_missing)
    elif isinstance(column, QuantileCodec) and column.is_discrete:
        n_values = len(column.atoms)
    else:
        return None
    codes = np.arange(n_values, dtype=np.int64) + int(column.has_missing)
    return codes, column.decode(codes, np.zeros(n_values)).tolist()


def _combinations(
    codec: TableCodec, constraint: _RowConstraint, order: Sequence[int]
) -> tuple[list[str], Codes] | None:
    """Returns (columns in drawing order, possible combinations of their codes); None if no
    combination is possible, or if there are too many to enumerate."""
    names = sorted(constraint.unknown, key=lambda name: list(order).index(codec.places[name]))
    supports = [_support(codec, name) for name in names]
    found = [support for support in supports if support is not None]
    if len(found) < len(names) or math.prod(len(codes) for codes, _ in found) > _MOST_COMBINATIONS:
        return None
    combinations = np.array(
        list(product(*(range(len(codes)) for codes, _ in found))), dtype=np.int64
    )
    table = np.stack([codes[combinations[:, i]] for i, (codes, _) in enumerate(found)], axis=1)
    n = len(table)
    columns: dict[str, Any] = {
        name: pd.Series(value.repeat(n).array) for name, value in constraint.known.items()
    }
    for i, (name, (_, values)) in enumerate(zip(names, found, strict=True)):
        taken = pd.Series(values)
        columns[name] = taken.iloc[combinations[:, i]].reset_index(drop=True)
    is_possible = np.ones(n, dtype=bool)
    for formula in constraint.formulas:
        parents = pd.DataFrame({name: columns[name] for name in formula.parents})
        kept = pd.DataFrame({formula.column: np.full(n, formula.kept)})
        computed = formula.restored(parents, kept).reset_index(drop=True)
        columns.setdefault(formula.column, computed)
        if formula.column in constraint.target:
            low, high = constraint.target[formula.column]
            known = computed.notna().to_numpy()
            index = np.full(n, np.iinfo(np.int64).min)
            index[known] = formula.grid.indices(computed[known])
            off = int(isinstance(formula, Residual) and formula.at_ties)
            is_near = (low - off <= index[:, None]) & (index[:, None] <= high + off)
            is_possible &= is_near.any(axis=1)
    for check in constraint.checks:
        if all(name in columns for name in (check.column, *check.parents)):
            rows = pd.DataFrame({name: columns[name] for name in (check.column, *check.parents)})
            residuals = check.reduced(rows, blanks_unknown=True)[check.column]
            is_possible &= ~((residuals < check.lowest) | (residuals > check.highest)).fillna(
                False
            ).to_numpy(dtype=bool)
    return (names, table[is_possible]) if is_possible.any() else None
