"""Transformation of a table by its rules: computed columns are replaced by their residuals.

    y  <->  e = y - f(x),    p(y | x) = p(e | x)

The transformation lies between the typed cells of a table and the codecs of its columns; it is
triangular and one-to-one. A column that a rule computes is replaced by its residual, a whole number
of steps of its own grid, under the same name. A column that is split is replaced by its parts, the
first of which has its name. The model only sees the transformed table.

# PAPER-DIFF: the paper models the columns of a table as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.files.typed_columns import TypedTable, rows_at
from gcvae.rules.alternatives import Alternative
from gcvae.rules.grids import Grid
from gcvae.rules.predictions import Prediction
from gcvae.rules.residuals import Residual, Rewriting
from gcvae.rules.splits import Split, splits_of
from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.rules import Formula, Rule, implied_formulas

Indices = npt.NDArray[np.int64]
_MOST_ROWS = 0.5
"""Share of rows above which a formula comes before an inequality of its column."""


@dataclass(frozen=True)
class Reduction:
    """Rewritings of a table's columns, each after those of its parents; without any, the identity.

    Attributes:
        schema: Schema of the original table.
        rewritings: Rewritings in the order in which they can be undone.
    """

    schema: TableSchema
    rewritings: tuple[Rewriting, ...] = ()

    @classmethod
    def of_table(
        cls,
        table: TypedTable,
        schema: TableSchema,
        rules: Iterable[Rule],
        left_out: Iterable[str],
        whole: Iterable[str] = (),
        rare_rows: int = 1,
    ) -> Reduction:
        """Fits the reduction of a table by rules.

        Args:
            table: Typed original table.
            schema: Schema of the table.
            rules: Candidate rules, in order of priority; an inequality yields to a formula that
                holds in most rows, whatever their order. Hard conditions stand for the formulas and
                inequalities among their terms.
            left_out: Columns that the reduction does not use.
            whole: Columns that are not split.
            rare_rows: Minimum number of rows that share a limit of a residual; else the limit is a
                round number.
        """
        unusable = set(left_out) | {column.name for column in schema if not column.is_modelled}
        found: dict[str, Rewriting] = {}
        rules = list(rules)
        for rule in sorted([*rules, *implied_formulas(rules)], key=_yields):
            is_usable = isinstance(rule.form, Formula) and rule.keep != "off"
            if not is_usable or not unusable.isdisjoint(rule.columns):
                continue
            for side in _sides(rule):
                if side.column not in found and not _depends_on(side.parents, side.column, found):
                    rewriting = _rewriting(side, table, schema, rare_rows)
                    if rewriting is not None:
                        found[side.column] = rewriting
                        break
        for split in splits_of(schema, unusable.union(found, whole)):
            found[split.column] = split
        return cls(schema, tuple(in_order(found)))

    def __len__(self) -> int:
        """Returns the number of rewritten columns."""
        return len(self.rewritings)

    @cached_property
    def rewritten(self) -> dict[str, Rewriting]:
        """Rewritings by column."""
        return {rewriting.column: rewriting for rewriting in self.rewritings}

    @cached_property
    def reduced_schema(self) -> TableSchema:
        """Schema of the transformed table; parts take the position of their original column."""
        columns: list[Column] = []
        for column in self.schema:
            rewriting = self.rewritten.get(column.name)
            columns += [column] if rewriting is None else rewriting.parts
        return TableSchema(tuple(columns))

    @cached_property
    def owners(self) -> dict[str, str]:
        """Original column of each part."""
        return {part.name: r.column for r in self.rewritings for part in r.parts}

    @cached_property
    def parents(self) -> dict[str, tuple[str, ...]]:
        """Columns of the transformed table on which the meaning of each part depends."""
        return {
            part.name: (
                *(name for parent in r.parents for name in self.parts_of(parent)),
                *(earlier.name for earlier in r.parts[:i]),
            )
            for r in self.rewritings
            for i, part in enumerate(r.parts)
        }

    def log_unit(self, part: str) -> float:
        """Returns the log of the original column's unit, which only one of its parts has."""
        return self.rewritten[self.owners[part]].log_unit(part)

    def parts_of(self, name: str) -> tuple[str, ...]:
        """Returns the columns of the transformed table that represent an original column."""
        rewriting = self.rewritten.get(name)
        return (name,) if rewriting is None else tuple(part.name for part in rewriting.parts)

    def reduce(
        self,
        frame: pd.DataFrame,
        names: Sequence[str] | None = None,
        *,
        blanks_unknown: bool = False,
    ) -> pd.DataFrame:
        """Transforms typed rows of the original table.

        Args:
            frame: Typed rows.
            names: Original columns to transform; None for all.
            blanks_unknown: Whether a residual with a missing parent is unknown, and missing itself.
        """
        if not self.rewritings:
            return frame if names is None else frame[list(names)]
        columns: dict[str, Any] = {}
        for name in frame.columns if names is None else names:
            rewriting = self.rewritten.get(name)
            if rewriting is None:
                columns[name] = frame[name]
            else:
                parts = rewriting.reduced(frame, blanks_unknown=blanks_unknown)
                columns |= {part: cells.set_axis(frame.index) for part, cells in parts.items()}
        return pd.DataFrame(columns, index=frame.index)

    def restore(self, frame: pd.DataFrame, names: Iterable[str] | None = None) -> pd.DataFrame:
        """Returns the original rows of transformed ones.

        Args:
            frame: All columns of the transformed table, or those that the names need (`needed`).
            names: Original columns to return; None for all.
        """
        if not self.rewritings:
            return frame if names is None else frame[list(names)]
        columns = {name: frame[name] for name in frame.columns if name not in self.owners}
        for rewriting in self.rewritings:
            if rewriting.column in frame.columns:
                parents = pd.DataFrame(
                    {name: columns[name] for name in rewriting.parents}, index=frame.index
                )
                cells = rewriting.restored(parents, frame)
                columns[rewriting.column] = cells.set_axis(frame.index)
        selected = columns if names is None else names
        return pd.DataFrame({name: columns[name] for name in selected}, index=frame.index)

    def needed(self, names: Iterable[str]) -> set[str]:
        """Returns the columns of the transformed table from which original columns are computed."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            found.update(self.parts_of(name))
            rewriting = self.rewritten.get(name)
            waiting += () if rewriting is None else rewriting.parents
        return found

    def reduced_table(self, table: TypedTable) -> TypedTable:
        """Transforms a table in memory, or returns a view of a table in files."""
        if isinstance(table, pd.DataFrame):
            return self.reduce(table)
        return ReducedFiles(self, table) if self.rewritings else table  # type: ignore[return-value]

    def to_json(self) -> list[dict[str, Any]]:
        """Returns the rewritings as JSON documents."""
        return [rewriting.to_json() for rewriting in self.rewritings]

    @classmethod
    def from_json(cls, documents: Sequence[Mapping[str, Any]], schema: TableSchema) -> Reduction:
        """Reads the reduction from documents of `to_json`."""
        rewritings: list[Rewriting] = [
            Split.from_json(document, schema)
            if "split" in document
            else Alternative.from_json(document, schema)
            if "kept" in document
            else Residual.from_json(document, schema)
            for document in documents
        ]
        return cls(schema, tuple(in_order({r.column: r for r in rewritings})))


_LEAST_OF_DIFFERENCES = 0.5
"""Minimum share of rows that keep an equality for its exceptions to be coded as differences."""


def _yields(rule: Rule) -> bool:
    """Returns whether a rule comes after the formulas that hold in most rows."""
    is_formula = isinstance(rule.form, Formula) and not rule.form.is_inequality
    return not is_formula or (rule.share is not None and rule.share < _MOST_ROWS)


def _sides(rule: Rule) -> list[Rule]:
    """Returns a rule and, if it has two columns, its reverse with the other column dependent."""
    return [rule] if rule.reversed_text is None else [rule, replace(rule, text=rule.reversed_text)]


def _rewriting(
    rule: Rule, table: TypedTable, schema: TableSchema, rare_rows: int
) -> Rewriting | None:
    """Returns the rewriting of a computed column; None if it has no grid."""
    is_rare = rule.share is not None and rule.share < _LEAST_OF_DIFFERENCES
    prediction = Prediction.of(rule, schema)
    if prediction.is_of_levels or (is_rare and prediction.form.relation == "=="):
        is_possible = not (
            schema[rule.column].kind.is_real and Grid.of(schema[rule.column]) is None
        )
        return Alternative.of(rule, table, schema) if is_possible else None
    return Residual.of(rule, table, schema, rare_rows)


def _depends_on(names: Sequence[str], column: str, found: Mapping[str, Rewriting]) -> bool:
    """Returns whether one of the named columns is computed, directly or not, from `column`."""
    waiting, seen = list(names), set[str]()
    while waiting:
        name = waiting.pop()
        if name == column:
            return True
        if name not in seen and name in found:
            seen.add(name)
            waiting += found[name].parents
    return False


def in_order(found: Mapping[str, Rewriting]) -> list[Rewriting]:
    """Sorts rewritings after those of their parents; those of a cycle are left out."""
    ordered: dict[str, Rewriting] = {}
    waiting = dict(found)
    while waiting:
        ready = [
            name
            for name, rewriting in waiting.items()
            if not any(parent in waiting for parent in rewriting.parents)
        ]
        if not ready:
            break
        ordered |= {name: waiting.pop(name) for name in ready}
    return list(ordered.values())


@dataclass(frozen=True)
class ReducedFiles:
    """Transformed view of a table in files."""

    reduction: Reduction
    table: TypedTable

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        kept = set(self.table.columns)
        return [
            part for name in self.reduction.schema.names if name in kept
            for part in self.reduction.parts_of(name)
        ]  # fmt: skip

    def __len__(self) -> int:
        """Returns the number of rows."""
        return len(self.table)

    def __getitem__(self, name: str) -> pd.Series[Any]:
        """Returns a column, in memory."""
        return self.at(slice(None), [name])[name]

    def at(self, places: slice | Indices, names: Sequence[str]) -> pd.DataFrame:
        """Returns the named columns of some rows, in memory."""
        owners = list(dict.fromkeys(self.reduction.owners.get(name, name) for name in names))
        parents = {
            parent
            for owner in owners
            if owner in self.reduction.rewritten
            for parent in self.reduction.rewritten[owner].parents
        }
        selected = [name for name in self.table.columns if name in parents.union(owners)]
        rows = rows_at(self.table, places, selected)
        return self.reduction.reduce(rows, owners)[list(names)]
