"""Transforms a table by its rules: a column that other columns determine is replaced by a residual.

    y  <->  e = y - f(x),    p(y | x) = p(e | x)

The model learns the transformed ("reduced") table, and generated rows are transformed back. The
transformation is applied to parsed cells before they are encoded; it is triangular and one-to-one.
A residual is a whole number of steps of the column's resolution, and has the column's name. Columns
with steps are split into parts, such as a date into week and weekday; the first part has the
column's name. Replacing one column is called a rewriting.

# PAPER-DIFF: the paper models the columns of a table as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from gcvae.files.typed_columns import TypedTable, rows_at
from gcvae.rules.alternatives import Alternative
from gcvae.rules.grids import Grid, Indices
from gcvae.rules.lookups import lookup_rule
from gcvae.rules.plan import is_sparse_bound
from gcvae.rules.predictions import Prediction
from gcvae.rules.residuals import Residual
from gcvae.rules.rewritings import Rewriting
from gcvae.rules.splits import Split, splits_of
from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.rule_documents import depends_on
from gcvae.schema.rules import Formula, Rule, implied_formulas

_MOST_ROWS = 0.5
"""A formula that holds in at least this share of rows is applied before the other rules."""


@dataclass(frozen=True)
class Reduction:
    """Invertible transformation of a table: columns that rules determine are replaced by residuals,
    and columns with several step sizes by parts, such as week and weekday.

    Attributes:
        schema: Schema of the original table.
        rewritings: Replacements of single columns, each after those of the columns on which it
            depends; the transformation is the identity if there are none.
    """

    schema: TableSchema
    rewritings: tuple[Rewriting, ...] = ()

    @classmethod
    def of_table(
        cls,
        table: TypedTable,
        schema: TableSchema,
        *,
        left_out: Iterable[str] = (),
        rare_rows: int = 1,
        coded: Sequence[Rule] = (),
        dependencies: Sequence[Rule] = (),
        constant: Collection[str] = (),
    ) -> Reduction:
        """Fits the transformation of a table, which replaces columns by residuals of the schema's
        rules, or splits them into parts.

        Rules are applied in the order of the schema, except that formulas that hold in most rows
        come first. If a hard condition joins formulas or inequalities by "and", these are applied
        like rules of the schema.

        Args:
            left_out: Columns that are neither replaced nor used in formulas.
            rare_rows: If fewer rows than this contain the largest residual, a larger round number
                becomes the upper limit of the residuals, so that these rows are not disclosed. The
                same holds for the smallest residual.
            coded: Functional dependencies that the decoder enforces between categories. Their
                columns are not split into parts, and no inequality replaces them. A formula that
                relates one of them to another column replaces the other column, if possible.
            dependencies: Functional dependencies. One becomes a formula with a lookup table if it
                contains a computed column, or a column that is in none of `coded`.
            constant: Columns that have one value for each entity, such as a customer. Such a column
                is only computed from other columns in `constant`.
        """
        functional = {name for rule in coded for name in rule.columns}
        unusable = set(left_out) | {column.name for column in schema if not column.is_modelled}
        found: dict[str, Rewriting] = {}
        parents: dict[str, tuple[str, ...]] = {}
        rules = schema.rules or ()
        for rule in sorted([*rules, *implied_formulas(rules)], key=_applies_later):
            form = rule.form
            if not isinstance(form, Formula) or rule.keep == "off":
                continue
            if not unusable.isdisjoint(rule.columns):
                continue
            # A column with a residual cannot be part of a functional dependency, which says more
            # than an inequality.
            for side in sorted(rule.sides, key=lambda side: side.column in functional):
                if form.is_inequality and side.column in functional:
                    continue
                if form.is_inequality and _is_sparse(side, table):
                    continue
                if side.column in constant and not set(side.parents) <= set(constant):
                    continue
                if side.column not in found and not depends_on(side.parents, side.column, parents):
                    rewriting = _rewriting(side, table, schema, rare_rows)
                    if rewriting is not None:
                        found[side.column] = rewriting
                        parents[side.column] = rewriting.parents
                        break
        waiting = [rule for rule in dependencies if unusable.isdisjoint(rule.columns)]
        for rule in [*waiting, *waiting]:  # twice, because a lookup makes its column computed
            is_enforced = found.keys().isdisjoint(rule.columns) and {*rule.columns} <= functional
            is_possible = rule.column not in (*found, *constant)
            if is_enforced or not is_possible:
                continue
            if depends_on(rule.parents, rule.column, parents):
                continue
            lookup = lookup_rule(rule, table, schema, rare_rows)
            if lookup is None:
                continue
            rewriting = _rewriting(lookup, table, schema, rare_rows)
            if rewriting is not None:
                found[rule.column] = rewriting
                parents[rule.column] = rewriting.parents
        for split in splits_of(schema, unusable.union(found, functional)):
            found[split.column] = split
        return cls(schema, tuple(in_order(found)))

    def __len__(self) -> int:
        """Returns the number of replaced columns."""
        return len(self.rewritings)

    @cached_property
    def rewritten(self) -> dict[str, Rewriting]:
        """Replacement of each replaced column, by the column's name."""
        return {rewriting.column: rewriting for rewriting in self.rewritings}

    @cached_property
    def reduced_schema(self) -> TableSchema:
        """Schema of the transformed table, in which residuals or parts (such as week and weekday)
        stand in the place of the columns that they replace."""
        columns: list[Column] = []
        for column in self.schema:
            rewriting = self.rewritten.get(column.name)
            columns += [column] if rewriting is None else rewriting.parts
        return TableSchema(tuple(columns))

    @cached_property
    def owners(self) -> dict[str, str]:
        """For each column that replaces one of the original table, the name of the replaced
        column."""
        return {part.name: r.column for r in self.rewritings for part in r.parts}

    @cached_property
    def parents(self) -> dict[str, tuple[str, ...]]:
        """For each column that replaces another, such as a residual, the columns of the transformed
        table that are needed to interpret it.

        These are the columns that represent x in the formula f(x) of a residual, and the earlier
        parts of the same original column.
        """
        return {
            part.name: (
                *(name for parent in r.parents for name in self.parts_of(parent)),
                *(earlier.name for earlier in r.parts[:i]),
            )
            for r in self.rewritings
            for i, part in enumerate(r.parts)
        }

    def relates(self, a: str, b: str) -> bool:
        """Returns whether one of two original columns is replaced by a residual that is computed
        from the other."""
        rewritten = self.rewritten
        return any(x in rewritten and y in rewritten[x].parents for x, y in ((a, b), (b, a)))

    def computes(self, rule: Rule) -> bool:
        """Returns whether the column y of a rule is replaced, and restored from exactly the other
        columns of the rule."""
        rewriting = self.rewritten.get(rule.column)
        return rewriting is not None and set(rewriting.parents) == set(rule.parents)

    def depending_on(self, names: Collection[str]) -> Reduction:
        """Returns a copy with only the replacements of columns that are computed from the named
        ones, directly or through other columns."""
        reached = set(names)
        kept = []
        for rewriting in self.rewritings:
            if not reached.isdisjoint(rewriting.parents):
                reached.add(rewriting.column)
                kept.append(rewriting)
        return Reduction(self.schema, tuple(kept))

    def log_unit(self, part: str) -> float:
        """Returns the log of the original column's resolution if `part` is the first column that
        replaces it, else 0.

        The log probabilities of all columns that replace an original one, minus these numbers, add
        up to the log density of the original column.

        Args:
            part: Name of a residual, or of a part such as the weekday of a date.
        """
        return self.rewritten[self.owners[part]].log_unit(part)

    def parts_of(self, name: str) -> tuple[str, ...]:
        """Returns the names of the columns of the transformed table that replace an original
        column; the column's own name if none do."""
        rewriting = self.rewritten.get(name)
        return (name,) if rewriting is None else tuple(part.name for part in rewriting.parts)

    def reduce(
        self,
        frame: pd.DataFrame,
        names: Sequence[str] | None = None,
        *,
        blanks_unknown: bool = False,
    ) -> pd.DataFrame:
        """Replaces columns of rows of the original table by residuals or parts.

        Args:
            names: Original columns to include; None for all.
            blanks_unknown: Whether a residual is missing if a column of its formula is; otherwise a
                default replaces the value of the formula.
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

    def restore(
        self,
        frame: pd.DataFrame,
        names: Iterable[str] | None = None,
        known: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """Restores the original columns from rows in which residuals or parts replace them.

        Args:
            frame: All columns of the transformed table, or those from which `names` are computed
                (`needed`).
            names: Original columns to return; None for all.
            known: Known cells of original columns, with their dtypes. They replace the restored
                cells, and other columns are computed from them. Unlike restored cells, they may lie
                beyond the training table's range.
        """
        if not self.rewritings:
            return frame if names is None else frame[list(names)]

        def with_known(name: str, cells: pd.Series[Any]) -> pd.Series[Any]:
            if known is not None and name in known:
                own = known[name]
                is_known = own.notna()
                if own.dtype.kind in "Of" and is_known.any():  # holds levels unknown to the schema
                    cells = cells.astype(own.dtype)
                cells = cells.copy()
                cells[is_known] = own[is_known].astype(cells.dtype)
            return cells

        columns = {
            name: with_known(name, frame[name]) for name in frame.columns if name not in self.owners
        }
        for rewriting in self.rewritings:
            if rewriting.column in frame.columns:
                parents = pd.DataFrame(
                    {name: columns[name] for name in rewriting.parents}, index=frame.index
                )
                cells = rewriting.restored(parents, frame)
                columns[rewriting.column] = with_known(
                    rewriting.column, cells.set_axis(frame.index)
                )
        selected = columns if names is None else names
        return pd.DataFrame({name: columns[name] for name in selected}, index=frame.index)

    def needed(self, names: Iterable[str]) -> set[str]:
        """Returns the columns of the transformed table from which the named original columns are
        computed."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            found.update(self.parts_of(name))
            rewriting = self.rewritten.get(name)
            waiting += () if rewriting is None else rewriting.parents
        return found

    def reduced_table(self, table: TypedTable) -> TypedTable:
        """Replaces columns of a table by residuals or parts; for a table in files, returns an
        object that does so when columns are read."""
        if isinstance(table, pd.DataFrame):
            return self.reduce(table)
        return ReducedFiles(self, table) if self.rewritings else table  # type: ignore[return-value]

    def to_json(self) -> list[dict[str, Any]]:
        """Returns the replacements of columns as JSON documents, from which `from_json` restores
        the transformation."""
        return [rewriting.to_json() for rewriting in self.rewritings]

    @classmethod
    def from_json(cls, documents: Sequence[Mapping[str, Any]], schema: TableSchema) -> Reduction:
        """Reads the transformation from JSON documents (`to_json`) and the schema of the original
        table."""
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
"""Minimum share of rows that satisfy an equality for its column to be replaced by y - f(x); else an
`Alternative` replaces it."""


def _is_sparse(rule: Rule, table: TypedTable) -> bool:
    """Returns whether an inequality between two columns should only be used in reverse, because its
    bound is too often missing."""
    if len(rule.parents) != 1:
        return False
    of_each = [table[name].notna().to_numpy() for name in (rule.column, *rule.parents)]
    both = np.logical_and(*of_each).sum()
    return is_sparse_bound(*(float(both / max(known.sum(), 1)) for known in of_each))


def _applies_later(rule: Rule) -> bool:
    """Key by which rules are sorted: False for formulas that hold in most rows, which come
    first."""
    is_formula = isinstance(rule.form, Formula) and not rule.form.is_inequality
    return not is_formula or (rule.share is not None and rule.share < _MOST_ROWS)


def _rewriting(
    rule: Rule, table: TypedTable, schema: TableSchema, rare_rows: int
) -> Rewriting | None:
    """Returns the replacement of the column that a rule determines; None if that column cannot be
    replaced, for example because it has no fixed resolution."""
    is_rare = rule.share is not None and rule.share < _LEAST_OF_DIFFERENCES
    prediction = Prediction.of(rule, schema)
    if prediction.is_of_levels or (is_rare and prediction.form.relation == "=="):
        is_possible = not (
            schema[rule.column].kind.is_real and Grid.of(schema[rule.column]) is None
        )
        return Alternative.of(rule, table, schema) if is_possible else None
    return Residual.of(rule, table, schema, rare_rows)


def in_order(found: Mapping[str, Rewriting]) -> list[Rewriting]:
    """Sorts the replacements of columns, so that each one follows the replacements of all columns
    on which it depends.

    Replacements that depend on one another in a cycle are left out, as are those that depend on a
    cycle.

    Args:
        found: The replacements by name of the replaced column.
    """
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
    """View of a table in files that replaces columns by residuals or parts when they are read."""

    reduction: Reduction
    table: TypedTable

    @property
    def columns(self) -> list[str]:
        """Names of the columns of the transformed table."""
        kept = set(self.table.columns)
        return [
            part for name in self.reduction.schema.names if name in kept
            for part in self.reduction.parts_of(name)
        ]  # fmt: skip

    def __len__(self) -> int:
        """Returns the number of rows."""
        return len(self.table)

    def __getitem__(self, name: str) -> pd.Series[Any]:
        """Reads one column of the transformed table into memory."""
        return self.at(slice(None), [name])[name]

    def at(self, indices: slice | Indices, names: Sequence[str]) -> pd.DataFrame:
        """Reads the rows with the given `indices` and returns the named columns of the transformed
        table."""
        owners = list(dict.fromkeys(self.reduction.owners.get(name, name) for name in names))
        parents = {
            parent
            for owner in owners
            if owner in self.reduction.rewritten
            for parent in self.reduction.rewritten[owner].parents
        }
        selected = [name for name in self.table.columns if name in parents.union(owners)]
        rows = rows_at(self.table, indices, selected)
        return self.reduction.reduce(rows, owners)[list(names)]
