"""Replaces levels that occur in few rows, so that a model does not contain them.

A model may be shared, and a rare level may identify a person. In the training rows, rare levels are
replaced by frequent ones, in proportion to their frequencies, so that the frequent levels keep
their relative shares. The new level is preferably one that determines the same values of other
columns as the rare level; among such levels, one that occurs with similar cells in other columns.
Cells that the rare level determines, such as the price of a product, are replaced by the cells that
the new level determines, and columns that formulas compute from them are computed again. If most
cells of a column contain rare levels, all rare ones become "(other)".

Levels are kept if the column has a number or date type in the file, if the user listed them, or if
a hard rule depends on them.

# PAPER-DIFF: the paper's model contains every level of its table. Here levels of few rows are
# suppressed.
"""

from __future__ import annotations

import ast
from collections import ChainMap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter
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
from gcvae.files.typed_columns import TypedTable, with_cells
from gcvae.rules.predictions import Prediction
from gcvae.schema.columns import Column, Level, TableSchema
from gcvae.schema.kinds import Outcomes
from gcvae.schema.rule_documents import parents_of
from gcvae.schema.rules import Combination, Condition, Formula, Rule

RowIndices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LearnedTable:
    """A table for training in which frequent levels (categories) replace rare ones.

    Attributes:
        schema: Schema without rare levels.
        cells: The table after replacement.
        withheld: By column and level, the number of rows in which the level replaces a rare one.
        lost_rules: Rules that are removed: functional dependencies of columns in which most cells
            are replaced, and conditions that contain a rare level.
    """

    schema: TableSchema
    cells: TypedTable
    withheld: Mapping[str, Mapping[Level, int]] = field(default_factory=dict)
    lost_rules: tuple[Rule, ...] = ()

    def notes(self, least_rows: int) -> tuple[str, ...]:
        """Returns warnings on columns in which most cells were replaced, because their levels have
        fewer than `least_rows` rows, and on removed rules."""
        others = (
            f"column {name!r}: most cells have categories of fewer than {least_rows} rows, which"
            f" are suppressed: the model and its rows have {OTHER!r} instead (rare_level_rows)"
            for name, levels in self.withheld.items()
            if OTHER in levels
        )
        lost = (f"the rule {rule} is removed with these categories" for rule in self.lost_rules)
        return (*others, *lost)

    def record(self) -> dict[str, Any]:
        """Returns the number of rows whose rare level was replaced, by column, for the model's
        training record; empty if there are none."""
        rows = {name: sum(levels.values()) for name, levels in self.withheld.items()}
        return {"rows_of_withheld_levels": rows} if rows else {}


def without_rare_levels(
    schema: TableSchema,
    table: TypedTable,
    declared_names: Collection[str],
    least_rows: int,
    functions: Sequence[Rule],
) -> LearnedTable:
    """Returns the table and its schema after replacing levels (categories) of fewer than
    `least_rows` rows by frequent ones.

    Args:
        declared_names: Columns whose levels the user listed; all these levels are kept.
        least_rows: Minimum number of rows of a level; 1 keeps all.
        functions: Functional dependencies of the model; a level is preferably replaced by one that
            determines the same values of other columns.
    """
    kept = _bound_columns(schema, functions), _named_levels(schema)
    found = {}
    for column in schema if least_rows > 1 else ():
        if _has_words(column) and column.name not in {*kept[0], *declared_names}:
            levels = _Levels.of(table[column.name], column, least_rows, kept[1])
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
    known: Any = ChainMap(cells, table)  # type: ignore[arg-type]
    determined = {rule.column for rule in functions}
    originals = [name for name in found if name not in copies]
    for name in sorted(originals, key=lambda name: name in determined):
        of_functions = FunctionLevels.of(name, following_last, known)
        cells[name] = found[name].replaced(table[name], others, of_functions)
    _replace_determined(functions, table, cells)
    _compute_again(schema, table, cells)
    cells |= {copy: cells[source] for copy, source in copies.items()}
    return _learned(schema, table, cells, found)


@dataclass(frozen=True)
class _Levels:
    """The K levels of a column, and which of them are rare.

    Attributes:
        at: Index of each cell's level, -1 for missing. Shape: (n,).
        counts: Number of rows of each level. Shape: (K,).
        are_rare: Mask of the levels to replace. Shape: (K,).
        least_rows: Minimum number of rows of a replacement level.
    """

    name: str
    levels: tuple[Level, ...]
    at: RowIndices
    counts: RowIndices
    are_rare: Mask
    least_rows: int

    @classmethod
    def of(
        cls, series: pd.Series[Any], column: Column, least_rows: int, named: frozenset[str]
    ) -> _Levels:
        levels = column.levels or ()
        places = {level: i for i, level in enumerate(levels)}
        found, distinct = pd.factorize(series)
        at = np.array([*(places[level] for level in distinct.tolist()), -1])[found]
        counts = np.bincount(at[at >= 0], minlength=len(levels))
        stays = np.array([str(level) in named for level in levels], dtype=bool)
        are_rare = (counts > 0) & (counts < least_rows) & ~stays
        return cls(column.name, levels, at, counts, are_rare, least_rows)

    @property
    def most_are_rare(self) -> bool:
        """Whether most cells of the column contain rare levels, or no level is frequent enough to
        replace them."""
        rare = int(self.counts[self.are_rare].sum())
        return 2 * rare > int(self.counts.sum()) or not self._can_replace.any()

    @property
    def _can_replace(self) -> Mask:
        return ~self.are_rare & (self.counts >= self.least_rows)

    def replaced(
        self, series: pd.Series[Any], others: Sequence[CoarseColumn], functions: FunctionLevels
    ) -> pd.Series[Any]:
        """Returns the column after replacing rare levels: by "(other)" if `most_are_rare`, else by
        frequent levels.

        A frequent level is preferred if it determines, by `functions`, the same cells as the rare
        level. Among such levels, one that occurs with similar cells in the columns `others` is
        preferred.
        """
        instead = np.array([*self.levels, OTHER, None], dtype=object)
        at = np.where(self.at < 0, len(self.levels) + 1, self.at)
        is_rare = np.append(self.are_rare, False)[self.at]
        if self.most_are_rare:
            at[is_rare] = len(self.levels)
        else:
            at[is_rare] = self._replacements(is_rare.nonzero()[0], others, functions)
        return series.mask(is_rare, pd.Series(instead[at], index=series.index))

    def _replacements(
        self, rows: RowIndices, others: Sequence[CoarseColumn], functions: FunctionLevels
    ) -> RowIndices:
        """Returns the index of the replacement level for each of r rows with rare levels, whose
        indices are `rows`. Shape: (r,).

        A class is a set of levels that determine the same levels of other columns, such as the
        cities of one country. A rare level is replaced by frequent levels of its class, or of the
        smallest larger class that contains frequent levels. Frequent levels replace rare ones in
        proportion to their counts, so that their relative shares stay. The rare and the frequent
        levels of a class are each sorted along the first axis of a correspondence analysis, and
        matched in this order, so that a rare level is replaced by a similar one.
        """
        others = [other for other in others if other.name != self.name]
        axis = level_axis(self.at, len(self.levels), others)
        along = np.argsort(axis, kind="stable")
        standing = along[self._can_replace[along]]
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


def _replace_determined(
    functions: Sequence[Rule], table: TypedTable, cells: dict[str, pd.Series[Any]]
) -> None:
    """Replaces, in rows with a replaced level, the cells that functional dependencies determine.
    `cells` contains the changed columns, and further ones are added."""
    known: Any = ChainMap(cells, table)  # type: ignore[arg-type]
    for rule in [*functions, *functions]:  # twice, for dependencies on determined columns
        if cells.keys().isdisjoint(rule.parents):
            continue
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
        own = known[rule.column]
        follows = moved & fixed.notna().to_numpy() & own.notna().to_numpy()
        cells[rule.column] = own.mask(follows, fixed.where(follows, own).astype(own.dtype))


def _compute_again(
    schema: TableSchema, table: TypedTable, cells: dict[str, pd.Series[Any]]
) -> None:
    """Recomputes columns whose formulas depend on replaced cells, except in rows that violated the
    formula before. `cells` contains the changed columns, and further ones are added."""
    known: Any = ChainMap(cells, table)  # type: ignore[arg-type]
    formulas = {
        rule.column: rule
        for rule in schema.rules or ()
        if isinstance(rule.form, Formula) and rule.form.relation == "==" and rule.keep != "off"
    }
    for name in TopologicalSorter(parents_of([*formulas.values()])).static_order():
        rule = formulas.get(name)
        replaced = [] if rule is None else [parent for parent in rule.parents if parent in cells]
        if rule is None or not replaced:
            continue
        before = pd.DataFrame({column: table[column] for column in rule.columns})
        after = pd.DataFrame({column: known[column] for column in rule.columns})
        moved = [(after[parent] != before[parent]).fillna(False) for parent in replaced]
        prediction = Prediction.of(rule, schema)
        is_exempt = prediction.exempts(prediction.values(before[name]))
        again = np.any(moved, axis=0) & prediction.keeps(before)[1] & ~is_exempt
        predicted = prediction.predicted(after[again])
        at = predicted.index[predicted.notna()]
        if len(at):
            own = after[name].copy()
            own[at] = predicted[at].astype(own.dtype)
            cells[name] = own


def _learned(
    schema: TableSchema,
    table: TypedTable,
    cells: Mapping[str, pd.Series[Any]],
    found: Mapping[str, _Levels],
) -> LearnedTable:
    """Returns the table with its replaced columns `cells`, and the schema without rare levels,
    without functional dependencies of columns in which most cells are replaced, and without
    conditions that contain a rare level."""
    columns = {column.name: column for column in schema}
    withheld: dict[str, dict[Any, int]] = {}
    for name, levels in found.items():
        kept = [x for x, rare in zip(levels.levels, levels.are_rare, strict=True) if not rare]
        if levels.most_are_rare and OTHER not in kept:
            kept.append(OTHER)
        columns[name] = replace(columns[name], levels=tuple(kept))
        is_rare = np.append(levels.are_rare, False)[levels.at]
        withheld[name] = cells[name][is_rare].value_counts().to_dict()
    lost = {name for name, levels in found.items() if levels.most_are_rare}
    rare = {str(x) for levels in found.values() for x in np.array(levels.levels)[levels.are_rare]}
    gone = tuple(
        rule
        for rule in schema.rules or ()
        if (rule.is_dependency and not lost.isdisjoint(rule.columns))
        or (isinstance(rule.form, Condition) and not rare.isdisjoint(_words([rule])))
    )
    rules = schema.rules and tuple(rule for rule in schema.rules if rule not in gone)
    schema = replace(schema, columns=tuple(columns.values()), rules=rules)
    return LearnedTable(schema, with_cells(table, cells), withheld, gone)


def _has_words(column: Column) -> bool:
    """Returns whether a column has unordered levels that are words, so that "(other)" can replace
    them. False if the column has a date or number type in its file."""
    is_nominal = column.is_modelled and column.kind.outcomes is Outcomes.NOMINAL_LEVELS
    holds_texts = column.parquet_type is None or "string" in column.parquet_type
    return is_nominal and holds_texts and not are_numeric(column.levels or ())


def _bound_columns(schema: TableSchema, functions: Sequence[Rule]) -> set[str]:
    """Returns columns whose levels must stay, because rows with replaced levels could violate a
    rule: the columns of hard functional dependencies and hard lists of permitted combinations."""
    hard = [rule for rule in (*(schema.rules or ()), *functions) if rule.keep == "hard"]
    return {
        name
        for rule in hard
        if isinstance(rule.form, Combination) or rule in functions
        for name in rule.columns
    }


def _named_levels(schema: TableSchema) -> frozenset[str]:
    """Returns the levels that are never replaced: levels in conditions that are hard or that the
    user specified, and all words that mean "missing"."""
    kept = [r for r in schema.rules or () if r.keep == "hard" or r.source == "given"]
    return MARKERS | WEAK_MARKERS | _words(kept)


def _words(rules: Sequence[Rule]) -> set[str]:
    """Returns, as strings, all constants, such as levels, in the conditions among the rules."""
    trees = [rule.form.tree for rule in rules if isinstance(rule.form, Condition)]
    constants = (n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Constant))
    return {str(constant.value) for constant in constants}
