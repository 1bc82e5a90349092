"""Unknown columns of few values, drawn together so that the formulas of a row hold.

Where a row's total is known and its price, quantity and discount are not, hardly any draw of these
gives that total. Their combinations are few thousands: all are tried, and each column is drawn
among the values that some combination with the columns before it still has. So every particle
keeps the formulas, and its weight is the probability of what was possible.

Only formulas that every row of the table keeps are met so; an exception would have no particle.
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
from gcvae.codec.region import Drawn, Region, WalkedColumn
from gcvae.rules.alternatives import Alternative
from gcvae.rules.residuals import Residual
from gcvae.sampling.wanted_places import WantedPlaces, places_of_rows

if TYPE_CHECKING:
    from gcvae.codec.column_codec import ColumnCodec
    from gcvae.codec.table_codec import TableCodec

_MOST_COMBINATIONS = 60_000


@dataclass(frozen=True)
class JointRegion:
    """One of the columns that are drawn together.

    Attributes:
        at: Which of the columns it is.
        columns: Their numbers in the codec, in the order in which they are drawn, of each table.
        tables: The combinations of their codes. Shape: (m, number of columns) each.
        which: The table of each row, -1 where there is none. Shape: (n,).
        number: Of the codec's column.
        n_codes: Of that column.
    """

    columns: tuple[tuple[int, ...], ...]
    tables: tuple[Codes, ...]
    which: npt.NDArray[np.int64]
    number: int
    n_codes: int

    @property
    def has_density(self) -> bool:
        """False: codes have masses."""
        return False

    @property
    def says_more(self) -> Mask:
        """In which rows the column is among those drawn together. Shape: (n,) or (1,)."""
        return self.which >= 0

    def take(self, rows: Tensor | None) -> JointRegion:
        """The region of these rows."""
        if rows is None:
            return self
        return replace(self, which=self.which[places_of_rows(rows, len(self.which))])

    def draw(self, column: WalkedColumn, noise: Tensor, codes: Tensor, values: Tensor) -> Drawn:
        """A cell for each particle, of those that some combination still has."""
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
class _Asked:
    """What is asked of the unknown columns of one row.

    Attributes:
        formulas: The computed columns, in an order in which they follow from each other.
        unknown: The columns of which all else follows.
        known: Cells of the row, each as a series of one.
        wanted: Places of the known ones among the computed columns: (low, high) intervals.
        checks: Formulas with exceptions, and inequalities, of known columns: a residual that no row
            of the table has is none.
    """

    formulas: Sequence[Residual | Alternative]
    unknown: Sequence[str]
    known: Mapping[str, pd.Series[Any]]
    wanted: Mapping[str, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]
    checks: Sequence[Residual]

    @property
    def key(self) -> tuple[Any, ...]:
        """What is the same of rows that ask the same."""
        ends = [(name, *(end.tobytes() for end in pair)) for name, pair in self.wanted.items()]
        known = [(name, cell.iloc[0]) for name, cell in self.known.items()]
        return (*self.unknown, *ends, *known)


def joint_regions(
    codec: TableCodec,
    frame: pd.DataFrame,
    wanted: Mapping[str, WantedPlaces],
    order: Sequence[int],
) -> dict[int, JointRegion]:
    """The regions of unknown columns of few values, of rows whose formulas ask for these.

    Args:
        codec: Of the table.
        frame: What is known, typed; blank cells are not. n rows, or one for all.
        wanted: Of each computed column that is known, its places.
        order: Of the columns in the chain rule.

    Returns: By the codec's columns.
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
        asked = _asked(codec, exact, row, is_blank, cells, wanted)
        if asked is None:
            continue
        if asked.key not in seen:
            seen[asked.key] = _combinations(codec, asked, order)
        found = seen[asked.key]
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


def _asked(
    codec: TableCodec,
    exact: Mapping[str, Residual | Alternative],
    row: int,
    is_blank: Mapping[str, Mask],
    cells: Mapping[str, pd.Series[Any]],
    wanted: Mapping[str, WantedPlaces],
) -> _Asked | None:
    """What a row's formulas ask of two unknown columns or more; None where nothing is asked."""
    said = {}
    for name in exact:
        places = wanted.get(name)
        if places is not None:
            at = row if len(places.is_known) > 1 else 0
            if places.is_known[at] and not places.missing[at]:
                said[name] = (places.low[at], places.high[at])
    formulas: dict[str, Residual | Alternative] = {}
    unknown: list[str] = []

    def follow(name: str) -> bool:
        """Adds what a column follows from; whether all of it can be tried."""
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
    for name, ends in said.items():
        before = dict(formulas), list(unknown)
        if any(is_blank[parent][row] for parent in exact[name].parents) and follow(name):
            taken[name] = ends
        else:
            formulas, unknown[:] = before[0], before[1]
    if not taken or not unknown:
        return None
    if len(unknown) == 1 and all(_is_solved(formula, unknown[0]) for formula in formulas.values()):
        return None  # it is proposed alone
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
    return _Asked(list(formulas.values()), unknown, known, taken, checks)


def _is_solved(formula: Residual | Alternative, name: str) -> bool:
    """Whether a column is proposed by itself, where it alone is unknown."""
    is_of_date = formula.prediction.parents.columns[0].has_times and len(formula.parents) == 1
    return name not in formula.parents or is_of_date or formula.can_solve(name)


def _support(codec: TableCodec, name: str) -> tuple[Codes, list[Any]] | None:
    """(codes, values) of a column of few values; None of others."""
    if name not in codec.places:
        return None
    column: ColumnCodec = codec.column_codec(name)
    if isinstance(column, LevelCodec):
        n_values = column.n_codes - int(column.has_missing)
    elif isinstance(column, QuantileCodec) and column.is_discrete and column.members is None:
        n_values = len(column.atoms)
    else:
        return None
    codes = np.arange(n_values, dtype=np.int64) + int(column.has_missing)
    return codes, column.decode(codes, np.zeros(n_values)).tolist()


def _combinations(
    codec: TableCodec, asked: _Asked, order: Sequence[int]
) -> tuple[list[str], Codes] | None:
    """(columns in the order in which they are drawn, the combinations of codes that are possible).

    None where there are too many, or none.
    """
    names = sorted(asked.unknown, key=lambda name: list(order).index(codec.places[name]))
    supports = [_support(codec, name) for name in names]
    found = [support for support in supports if support is not None]
    if len(found) < len(names) or math.prod(len(codes) for codes, _ in found) > _MOST_COMBINATIONS:
        return None
    places = np.array(list(product(*(range(len(codes)) for codes, _ in found))), dtype=np.int64)
    table = np.stack([codes[places[:, i]] for i, (codes, _) in enumerate(found)], axis=1)
    n = len(table)
    columns: dict[str, Any] = {
        name: pd.Series(value.repeat(n).array) for name, value in asked.known.items()
    }
    for i, (name, (_, values)) in enumerate(zip(names, found, strict=True)):
        taken = pd.Series(values)
        columns[name] = taken.iloc[places[:, i]].reset_index(drop=True)
    is_possible = np.ones(n, dtype=bool)
    for formula in asked.formulas:
        parents = pd.DataFrame({name: columns[name] for name in formula.parents})
        kept = pd.DataFrame({formula.column: np.full(n, formula.kept)})
        computed = formula.restored(parents, kept).reset_index(drop=True)
        columns.setdefault(formula.column, computed)
        if formula.column in asked.wanted:
            low, high = asked.wanted[formula.column]
            known = computed.notna().to_numpy()
            place = np.full(n, np.iinfo(np.int64).min)
            place[known] = formula.grid.places(computed[known])
            off = int(isinstance(formula, Residual) and formula.at_ties)
            is_near = (low - off <= place[:, None]) & (place[:, None] <= high + off)
            is_possible &= is_near.any(axis=1)
    for check in asked.checks:
        if all(name in columns for name in (check.column, *check.parents)):
            rows = pd.DataFrame({name: columns[name] for name in (check.column, *check.parents)})
            residuals = check.reduced(rows, blanks_unknown=True)[check.column]
            is_possible &= ~((residuals < check.lowest) | (residuals > check.highest)).fillna(
                False
            ).to_numpy(dtype=bool)
    return (names, table[is_possible]) if is_possible.any() else None
