"""The levels of a model's columns: those of a few rows are withheld.

A dataset's schema lists every level of its cells. A model's is handed on: a level that few rows
have is not in it. Among the rows that the model learns, those of such levels are shared out among
the levels that are left, in proportion to their rows, so that the shares of these stay: among those
that fix other columns alike, and to those alike in what they occur with. Where most cells of a
column have such a level, all of these are one: "(other)".

Kept are levels that are numbers or dates by the file's own type, those that users declared, and
those that a constraint or a demanded rule rests on.

# PAPER-DIFF: the paper's model has every level of its table. Here one of few rows is not in it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.arrays import Mask
from gcvae.cells.distinct_cells import MARKERS, WEAK_MARKERS
from gcvae.cells.levels import are_numeric
from gcvae.codec.correspondence import CoarseColumn, coarse_columns, level_axis
from gcvae.codec.function_levels import FunctionLevels
from gcvae.codec.rare_levels import OTHER
from gcvae.codec.unmodelled_columns import find_copies
from gcvae.files.typed_columns import TypedTable, with_levels
from gcvae.schema.columns import Column, Level, TableSchema
from gcvae.schema.constraints import Expression, UniqueCombinations
from gcvae.schema.expressions import parse_expression
from gcvae.schema.kinds import Outcomes
from gcvae.schema.rules import Rule

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LearnedTable:
    """A table as the model learns it.

    Attributes:
        schema: Without the levels that are withheld.
        cells: The table, of these levels only.
        withheld: By column and level, how many rows had a withheld level in its place.
        lost_rules: Functions of columns most levels of which are withheld.
    """

    schema: TableSchema
    cells: TypedTable
    withheld: Mapping[str, Mapping[Level, int]] = field(default_factory=dict)
    lost_rules: tuple[Rule, ...] = ()

    def notes(self, rows: int) -> tuple[str, ...]:
        """What one should know of columns most cells of which have another level now."""
        others = (
            f"column {name!r}: most cells have categories of fewer than {rows} rows, which are"
            f" suppressed: the model and its rows have {OTHER!r} instead (rare_level_rows)"
            for name, levels in self.withheld.items()
            if OTHER in levels
        )
        lost = (f"the rule {rule} is removed with these categories" for rule in self.lost_rules)
        return (*others, *lost)

    def record(self) -> dict[str, Any]:
        """What a training record says: by column, in how many rows a level was replaced."""
        rows = {name: sum(levels.values()) for name, levels in self.withheld.items()}
        return {"rows_of_withheld_levels": rows} if rows else {}


def without_rare_levels(
    schema: TableSchema,
    table: TypedTable,
    said: Collection[str],
    rows: int,
    functions: Sequence[Rule],
) -> LearnedTable:
    """The table and its schema without the levels that fewer than so many rows have.

    Args:
        schema: Complete.
        table: The typed table, which stays as it is.
        said: Columns whose levels somebody has declared.
        rows: How many rows have to have a level; 1 keeps all.
        functions: That the model keeps: a level is replaced by one that fixes the same.
    """
    kept = _bound_columns(schema, functions), _named_levels(schema)
    found = {}
    for column in schema if rows > 1 else ():
        if _has_words(column) and column.name not in {*kept[0], *said}:
            levels = _Levels.of(table[column.name], column, rows, kept[1])
            if levels.are_rare.any():
                found[column.name] = levels
    if not found:
        return LearnedTable(schema, table)
    copies = find_copies(table, [schema[name] for name in found])
    others = coarse_columns(table, [column for column in schema if column.is_modelled])
    cells: dict[str, pd.Series[Any]] = {}
    following_last = sorted(
        functions, key=lambda rule: (rule.column in found, table[rule.column].nunique())
    )
    for name in _fixing_first([name for name in found if name not in copies], functions):
        known = _Overlaid(table, cells)
        of_functions = FunctionLevels.of(name, following_last, known)  # type: ignore[arg-type]
        cells[name] = found[name].replaced(table[name], others, of_functions)
    _follow(functions, table, cells, found)
    cells |= {copy: cells[source] for copy, source in copies.items()}
    return _learned(schema, table, cells, found)


@dataclass(frozen=True)
class _Levels:
    """The levels of a column's cells.

    Attributes:
        at: Of each cell, -1 where it is missing. Shape: (n,).
        counts: Rows of each level. Shape: (K,).
        are_rare: That are to be withheld. Shape: (K,).
        fewest: Rows that a level has to have to stand for others.
    """

    name: str
    levels: tuple[Level, ...]
    at: Places
    counts: Places
    are_rare: Mask
    fewest: int

    @classmethod
    def of(
        cls, series: pd.Series[Any], column: Column, rows: int, named: frozenset[str]
    ) -> _Levels:
        levels = column.levels or ()
        places = {level: i for i, level in enumerate(levels)}
        found, distinct = pd.factorize(series)
        at = np.array([*(places[level] for level in distinct.tolist()), -1])[found]
        counts = np.bincount(at[at >= 0], minlength=len(levels))
        stays = np.array([str(level) in named for level in levels], dtype=bool)
        return cls(column.name, levels, at, counts, (counts > 0) & (counts < rows) & ~stays, rows)

    @property
    def are_most(self) -> bool:
        """Whether most cells have a level that is rare, or all others are too rare to stand in."""
        rare = int(self.counts[self.are_rare].sum())
        return 2 * rare > int(self.counts.sum()) or not self._can_stand.any()

    @property
    def _can_stand(self) -> Mask:
        return ~self.are_rare & (self.counts >= self.fewest)

    def replaced(
        self, series: pd.Series[Any], others: Sequence[CoarseColumn], functions: FunctionLevels
    ) -> pd.Series[Any]:
        """The cells, rare levels replaced."""
        instead = np.array([*self.levels, OTHER, None], dtype=object)
        at = np.where(self.at < 0, len(self.levels) + 1, self.at)
        is_rare = np.append(self.are_rare, False)[self.at]
        if self.are_most:
            at[is_rare] = len(self.levels)
        else:
            at[is_rare] = self._standing_in(is_rare.nonzero()[0], others, functions)
        return series.mask(is_rare, pd.Series(instead[at], index=series.index))

    def _standing_in(
        self, rows: Places, others: Sequence[CoarseColumn], functions: FunctionLevels
    ) -> Places:
        """The level that stands in for the rare one of each row.

        It is of the finest class of the rare one in which levels can stand in. These get rows in
        proportion to those that they have, so that their shares stay, and in the order of the first
        axis of what levels occur with, so that those alike come together. Shape: (m,) -> (m,).
        """
        others = [other for other in others if other.name != self.name]
        axis = level_axis(self.at, len(self.levels), others)
        along = np.argsort(axis, kind="stable")
        standing = along[self._can_stand[along]]
        rare, found = self.at[rows], np.full(len(rows), -1, dtype=np.int64)
        for classes in reversed(functions.nested_classes(self.at, len(self.levels))):
            alike = standing[np.argsort(classes[standing], kind="stable")]
            left = ((found < 0) & np.isin(classes[rare], classes[alike])).nonzero()[0]
            left = left[np.lexsort((axis[rare[left]], classes[rare[left]]))]
            of_class = np.bincount(classes[alike], self.counts[alike], len(self.levels))
            n_left = np.bincount(classes[rare[left]], minlength=len(self.levels))
            shares = self.counts[alike] / of_class[classes[alike]]
            ends = (shares * n_left[classes[alike]]).cumsum()
            found[left] = alike[np.searchsorted(ends, np.arange(len(left)) + 0.5)]
        return found


@dataclass(frozen=True)
class _Overlaid:
    """A table of which some columns have other cells."""

    table: TypedTable
    cells: Mapping[str, pd.Series[Any]]

    def __getitem__(self, name: str) -> pd.Series[Any]:
        """A column."""
        return self.cells[name] if name in self.cells else self.table[name]


def _fixing_first(names: Sequence[str], functions: Sequence[Rule]) -> list[str]:
    """The columns, those first that others do not fix: what they fix follows them."""
    fixed = {rule.column for rule in functions}
    return sorted(names, key=lambda name: name in fixed)


def _follow(
    functions: Sequence[Rule],
    table: TypedTable,
    cells: dict[str, pd.Series[Any]],
    found: Mapping[str, _Levels],
) -> None:
    """Lets the levels that others fix follow these where they were replaced."""
    for rule in [*functions, *functions]:  # a chain of two is followed to its end
        if rule.column not in found or cells.keys().isdisjoint(rule.parents):
            continue
        known = _Overlaid(table, cells)
        of = [known[name].astype(object) for name in rule.parents]
        moved = np.any(
            [(cells[n] != table[n]).fillna(False) for n in rule.parents if n in cells], axis=0
        )
        key = pd.MultiIndex.from_arrays(of)
        counts = pd.DataFrame(
            {"key": key.to_flat_index(), "cell": known[rule.column].astype(object)}
        )
        usual = counts[~moved].dropna().value_counts().reset_index().drop_duplicates("key")
        fixed = counts["key"].map(usual.set_index("key")["cell"])
        fixed.index = known[rule.column].index
        follows = moved & fixed.notna().to_numpy() & known[rule.column].notna().to_numpy()
        cells[rule.column] = known[rule.column].mask(follows, fixed)


def _learned(
    schema: TableSchema,
    table: TypedTable,
    cells: Mapping[str, pd.Series[Any]],
    found: Mapping[str, _Levels],
) -> LearnedTable:
    """The parts, joined; functions of columns most of which are withheld are no rules any more."""
    columns, withheld = [], {}
    for column in schema:
        if column.name in found:
            levels = found[column.name]
            kept = [x for x, rare in zip(levels.levels, levels.are_rare, strict=True) if not rare]
            if levels.are_most and OTHER not in kept:
                kept.append(OTHER)
            column = replace(column, levels=tuple(kept))
            is_rare = np.append(levels.are_rare, False)[levels.at]
            stand_ins = cells[column.name][is_rare].value_counts()
            withheld[column.name] = dict(
                zip(stand_ins.index.tolist(), stand_ins.tolist(), strict=True)
            )
        columns.append(column)
    lost = {name for name, levels in found.items() if levels.are_most}
    gone = tuple(
        rule
        for rule in schema.rules or ()
        if rule.is_dependency and not lost.isdisjoint(rule.columns)
    )
    rules = schema.rules and tuple(rule for rule in schema.rules if rule not in gone)
    schema = replace(schema, columns=tuple(columns), rules=rules)
    return LearnedTable(schema, with_levels(table, cells), withheld, gone)


def _has_words(column: Column) -> bool:
    """Whether the column has words as levels, without an order; not dates that its file types so.

    Those have no place for "(other)".
    """
    is_nominal = column.is_modelled and column.kind.outcomes is Outcomes.NOMINAL_LEVELS
    holds_texts = column.parquet_type is None or "string" in column.parquet_type
    return is_nominal and holds_texts and not are_numeric(column.levels or ())


def _bound_columns(schema: TableSchema, functions: Sequence[Rule]) -> set[str]:
    """Columns of which a constraint, or a rule that is demanded, speaks level by level."""
    unique = [c.columns for c in schema.constraints if isinstance(c, UniqueCombinations)]
    demanded = [rule.columns for rule in functions if rule.keep == "hard"]
    return {name for names in (*unique, *demanded) for name in names}


def _named_levels(schema: TableSchema) -> frozenset[str]:
    """The words in a schema's expressions, and those that are said for a missing cell."""
    trees = [
        parse_expression(c.expression) for c in schema.constraints if isinstance(c, Expression)
    ]
    constants = (n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Constant))
    return MARKERS | WEAK_MARKERS | {str(constant.value) for constant in constants}
