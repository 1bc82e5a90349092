"""Checks rows against hard rules; generated rows that violate one are rejected.

Two groups of rules are checked:

    hard rules of the schema
    soft conditions and soft inequalities that every row of the table satisfies; an inequality is
    left out if a residual already expresses it (`gcvae.rules.residuals`)

A row violates a rule only if the rule is false. A rule that is neither true nor false, because a
cell is missing, is not violated. In rules on combinations of columns, a missing cell counts as a
level.

A hard functional dependency with one determining column needs no check, because the decoder
enforces it. For a dependency with several determining columns, a row is rejected if the table does
not contain its combination of cells: the table then does not show which value would be right.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd

from gcvae.arrays import TIMES, Mask
from gcvae.artifact.documents import Document
from gcvae.codec.unmodelled_columns import ConstantCodec
from gcvae.expressions.rounded_numbers import FALSE, TRUE, UNKNOWN, Truths
from gcvae.expressions.terms import Rows, Term, column_values, compile_condition
from gcvae.files.typed_columns import TypedTable, rows_at
from gcvae.rules.predictions import keeps
from gcvae.rules.reduction import Reduction
from gcvae.schema.columns import TableSchema
from gcvae.schema.expressions import parse_expression
from gcvae.schema.kinds import Outcomes
from gcvae.schema.rule_documents import pointer_of_rule
from gcvae.schema.rules import Combination, Condition, Dependency, Form, Formula, Missingness, Rule

_MOST_LEVELS = 200
"""Maximum number of levels of a column that are tried one by one."""


@dataclass(frozen=True)
class KnownCombinations(Document):
    """Distinct combinations of the cells of some columns in a table.

    Attributes:
        names: Names of the columns.
        rows: Each combination as a tuple of JSON types, in the order of `names`: dates are strings,
            and None is a missing cell.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @classmethod
    def fit(cls, table: TypedTable, names: Sequence[str]) -> Self:
        """Returns the combinations of the columns `names` that occur in a table."""
        found = set(_combinations(rows_at(table, slice(None), names).drop_duplicates()))
        # Sorted, so that the model does not reveal the order of the rows.
        return cls(tuple(names), tuple(sorted(found, key=lambda row: [*map(_sort_key, row)])))

    @cached_property
    def _known(self) -> frozenset[tuple[Any, ...]]:
        return frozenset(self.rows)

    def hold(self, frame: pd.DataFrame) -> Mask:
        """Returns for each of n rows whether its combination of cells in the columns `names` occurs
        in the table. Shape: (n,)."""
        found = _combinations(frame[list(self.names)])
        return np.array([row in self._known for row in found], dtype=bool)


def _combinations(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Returns the rows of a frame as tuples of JSON types; None for missing cells."""
    columns = []
    for name in frame:
        codes, found = pd.factorize(frame[name])
        if pd.api.types.is_datetime64_any_dtype(frame[name].dtype):
            values = np.datetime_as_string(np.asarray(found, dtype=TIMES)).tolist()
        else:
            values = found.tolist()
        columns.append([None if code < 0 else values[code] for code in codes])
    return list(zip(*columns, strict=True))


def _sort_key(value: Any) -> tuple[str, Any]:
    return type(value).__name__, 0 if value is None else value


class HardRules:
    """Rules of a schema that every generated row must satisfy, compiled to check rows.

    Attributes:
        rules: Rules, in the order of the schema.
        pointers: JSON pointer of each rule in the schema document.
    """

    def __init__(
        self,
        schema: TableSchema,
        combinations: Mapping[str, KnownCombinations],
        reduction: Reduction | None = None,
    ) -> None:
        """Compiles the rules. Call `fit` or `from_json` instead.

        Args:
            schema: Complete schema.
            combinations: Permitted combinations of each rule on combinations and each functional
                dependency, by the JSON pointer of the rule.
            reduction: Transformation of the table to the columns that the model learns. Some of
                them are residuals: differences between a column and its formula. Soft inequalities
                that a residual expresses are not checked. None if no soft inequality has to be
                checked.
        """
        hard = {
            pointer_of_rule(i): rule
            for i, rule in enumerate(schema.rules or ())
            if _rejects(rule, reduction)
        }
        self.rules, self.pointers = tuple(hard.values()), tuple(hard)
        self._schema = schema
        self._combinations = dict(combinations)
        self._terms = {
            pointer: compile_condition(rule.form.tree, schema, rule.tables)
            for pointer, rule in hard.items()
            if isinstance(rule.form, Condition)
        }
        self._of_missing = [
            (rule, compile_condition(parse_expression(rule.text), schema, rule.tables))
            for rule in schema.rules or ()
            if _is_exact(rule) and _is_of_missing(rule)
        ]
        conditions = [(hard[pointer], term) for pointer, term in self._terms.items()]
        self._deciding = [*conditions, *self._of_missing]

    @classmethod
    def fit(
        cls, table: TypedTable, schema: TableSchema, reduction: Reduction | None = None
    ) -> Self:
        """Compiles the rules of a schema, and collects from a table the combinations of cells that
        rules on several columns permit."""
        unfitted = cls(schema, {}, reduction)
        combinations = {
            pointer: KnownCombinations.fit(table, modelled(rule.form, schema))
            for pointer, rule in unfitted._by_pointer()
            if isinstance(rule.form, Combination | Dependency)
        }
        return cls(schema, combinations, reduction)

    def __len__(self) -> int:
        """Returns the number of rules."""
        return len(self.rules)

    def kept(self, frame: pd.DataFrame, *, blanks_unknown: bool = False) -> Mask:
        """Returns whether each of n rows satisfies each rule. Shape: (n, number of rules).

        Args:
            frame: Rows with the columns of the rules and their dtypes; constants may be absent.
            blanks_unknown: Whether missing cells stand for unknown values, which violate no rule;
                else they are known to be missing.
        """
        found = np.ones((len(frame), len(self)), dtype=bool)
        for i, (pointer, rule) in enumerate(self._by_pointer()):
            found[:, i] = self._keeps(pointer, rule, frame, blanks_unknown)
        return found

    def _keeps(self, pointer: str, rule: Rule, frame: pd.DataFrame, blanks_unknown: bool) -> Mask:
        """Returns a mask of the n rows that do not violate a rule. Shape: (n,)."""
        if isinstance(rule.form, Combination | Dependency):
            combinations = self._combinations[pointer]
            held = combinations.hold(frame)
            if blanks_unknown or rule.is_dependency:
                held |= frame[list(combinations.names)].isna().any(axis=1).to_numpy()
            return held
        if isinstance(rule.form, Condition):
            rows = Rows(self._values(frame, rule.columns), blanks_unknown)
            return np.asarray(self._terms[pointer].evaluate(rows) != FALSE)
        if isinstance(rule.form, Missingness) and blanks_unknown:
            return np.ones(len(frame), dtype=bool)
        applies, kept = keeps(rule, frame, self._schema)
        return np.asarray(~applies | kept)

    def broken_by(self, known: pd.DataFrame, blank: Collection[str]) -> Rule | None:
        """Returns a rule on missing cells that one row's known cells violate; None if there is
        none. Soft rules with exceptions in the table are not checked.

        Args:
            known: One row with the known cells; missing cells are unknown, except those of `blank`.
            blank: Names of columns whose cells are known to be missing.
        """
        found = {str(name): np.array([name in blank]) for name in known}
        found = self._closed(known, found)
        said = {name: np.where(mask, TRUE, UNKNOWN) for name, mask in found.items()}
        for rule, term in self._of_missing:
            own = {name: said[name] for name in rule.columns if name in said}
            if (term.evaluate(Rows(self._values(known, rule.columns), True, own)) == FALSE).any():
                return rule
        return None

    def blanks_of_formulas(self, frame: pd.DataFrame) -> dict[str, Mask]:
        """Returns, by column, a mask of the unknown cells of n rows that must be missing values,
        because a known cell is computed from them by a formula with `is_missing`.

        Columns without such cells are omitted. Shape: (n,) each.
        """
        found = {str(name): np.zeros(len(frame), dtype=bool) for name in frame}
        for rule, term in self._of_missing:
            names = set(rule.columns) if isinstance(rule.form, Formula) else ()
            for name in found.keys() & names:
                found[name] |= self._must_be_missing(term, rule.columns, name, frame, found)
        return {name: mask for name, mask in found.items() if mask.any()}

    def required_missing(self, frame: pd.DataFrame) -> dict[str, Mask]:
        """Returns, by column, a mask of the unknown cells of n partly observed rows that must be
        missing values, because any value would violate a rule.

        With `delivered == (not is_missing(date))`, this is the date of a row that is not delivered.
        Only conditions and rules on missing cells are used, and only those that are hard or have no
        exception in the table. Columns without such cells are omitted. Shape: (n,) each.

        Args:
            frame: Rows with cells of the columns' dtypes; missing cells are unknown.
        """
        found = {str(name): np.zeros(len(frame), dtype=bool) for name in frame}
        return {name: mask for name, mask in self._closed(frame, found).items() if mask.any()}

    def possible_blanks(self, frame: pd.DataFrame) -> dict[str, Mask]:
        """Returns, by column, a mask of the unknown cells of n rows that may have to be missing
        values, depending on other unknown cells of the row.

        With `discounted == (not is_missing(code))`, this is `code` where both cells are unknown.
        Columns without such cells are omitted. Shape: (n,) each.

        Args:
            frame: Rows with cells of the columns' dtypes; missing cells are unknown.
        """
        blank = {str(name): frame[name].isna().to_numpy() for name in frame}
        found = {name: np.zeros(len(frame), dtype=bool) for name in blank}
        for rule, term in self._deciding:
            if _allows_values(rule.form):
                continue
            for name in _blank_arguments(rule.text) & found.keys():
                others = [blank[other] for other in rule.columns if other in blank.keys() - {name}]
                is_open = blank[name] & np.logical_or.reduce(others)
                if is_open.any():
                    as_value, as_blank = self._by_missing(term, rule.columns, name, frame, {})
                    found[name] |= is_open & (as_value == UNKNOWN) & (as_blank != FALSE)
        linked = [
            rule.columns
            for rule in self._schema.rules or ()
            if _allows_values(rule.form) and _is_exact(rule)
        ]
        for here, there in linked * len(linked):  # once for each rule, as they may form a chain
            is_open = (found[here] | found[there]) & blank[here] & blank[there]
            found[here], found[there] = found[here] | is_open, found[there] | is_open
        return {name: mask for name, mask in found.items() if mask.any()}

    def impossible_levels(self, frame: pd.DataFrame) -> dict[str, Mask]:
        """Returns, by column, a mask of the levels that an unknown cell of n rows cannot have.

        Such a level would violate a rule, given the known cells of the row. Columns without such
        levels, or with more than _MOST_LEVELS levels, are omitted. In a row in which every level of
        a column would violate a rule, no level is marked, so that the cell can still be drawn.
        Shape: (n, K) each, for a column of K levels.

        Args:
            frame: Rows with cells of the columns' dtypes; missing cells are unknown.
        """
        found: dict[str, Mask] = {}
        for pointer, rule in self._by_pointer():
            for name in rule.columns:
                column = self._schema[name]
                levels = column.typed_levels if column.is_modelled and column.levels else ()
                if not 0 < len(levels) <= _MOST_LEVELS or frame[name].notna().all():
                    continue
                rows = np.flatnonzero(frame[name].isna())
                part = frame.iloc[rows]
                wrong = found.setdefault(name, np.zeros((len(frame), len(levels)), dtype=bool))
                for k, level in enumerate(levels):
                    kept = self._keeps(pointer, rule, part.assign(**{name: level}), True)
                    wrong[rows, k] |= ~kept
        for wrong in found.values():
            wrong[wrong.all(axis=1)] = False
        return {name: wrong for name, wrong in found.items() if wrong.any()}

    def _closed(self, frame: pd.DataFrame, found: dict[str, Mask]) -> dict[str, Mask]:
        """Returns the masks `found` of cells known to be missing, after adding all cells that must
        then be missing by a rule. Repeats this until no further cell follows."""
        n_before = -1
        while n_before < (n_before := sum(int(mask.sum()) for mask in found.values())):
            for rule, term in self._deciding:
                for name in found.keys() & set(rule.columns):  # a constant may be absent
                    found[name] |= self._must_be_missing(term, rule.columns, name, frame, found)
        return found

    def _must_be_missing(
        self,
        term: Term,
        names: Sequence[str],
        name: str,
        frame: pd.DataFrame,
        found: Mapping[str, Mask],
    ) -> Mask:
        """Returns a mask of the unknown cells of column `name` that must be missing values, because
        any value would violate the compiled rule `term` on the columns `names`. `found` masks the
        cells known to be missing. Shape: (n,)."""
        cells = frame.get(name)
        if cells is None or not cells.isna().any():
            return np.zeros(len(frame), dtype=bool)
        as_value, as_blank = self._by_missing(term, names, name, frame, found)
        return np.asarray(cells.isna().to_numpy() & (as_value == FALSE) & (as_blank != FALSE))

    def _by_missing(
        self,
        term: Term,
        names: Sequence[str],
        name: str,
        frame: pd.DataFrame,
        found: Mapping[str, Mask],
    ) -> tuple[Truths, Truths]:
        """Returns whether a compiled rule is true, false or unknown in each row, first if unknown
        cells of column `name` have values, then if they are missing. Shape: (n,) each."""
        certain = {
            other: np.where(found[other], TRUE, UNKNOWN) for other in names if other in found
        }
        values, n = self._values(frame, names), len(frame)
        as_value, as_blank = (
            np.broadcast_to(term.evaluate(Rows(values, True, certain | {name: np.full(n, one)})), n)
            for one in (FALSE, TRUE)
        )
        return as_value, as_blank

    def to_json(self) -> dict[str, Any]:
        """Returns the permitted combinations as a JSON document."""
        return {"combinations": {at: found.to_json() for at, found in self._combinations.items()}}

    @classmethod
    def from_json(
        cls, schema: TableSchema, document: Mapping[str, Any], reduction: Reduction | None = None
    ) -> Self:
        """Restores the rules from their schema and a JSON document (`to_json`)."""
        found = document["combinations"].items()
        combinations = {at: KnownCombinations.from_json(part) for at, part in found}
        return cls(schema, combinations, reduction)

    def _by_pointer(self) -> Iterator[tuple[str, Rule]]:
        return zip(self.pointers, self.rules, strict=True)

    def _values(self, frame: pd.DataFrame, names: Sequence[str]) -> dict[str, Any]:
        """Returns the columns in the form that compiled rules evaluate; constants may be absent in
        the frame."""
        values = {}
        for name in names:
            column = self._schema[name]
            is_constant = column.kind.outcomes is Outcomes.ONE_VALUE
            numbers = np.arange(len(frame), dtype=np.uint64)
            cells = ConstantCodec(column).decode(numbers) if is_constant else frame[name]
            values[name] = column_values(cells, column)
        return values


def _rejects(rule: Rule, reduction: Reduction | None) -> bool:
    """Returns whether rows that violate a rule are rejected.

    hard rules    all, except a functional dependency on one column, which the decoder enforces
    soft rules    if every row of the table satisfies the rule and it is a condition, or an
                  inequality of two columns that no residual expresses
    """
    form = rule.form
    if rule.is_dependency:
        return rule.keep == "hard" and len(rule.parents) > 1
    if rule.keep == "off":
        return False
    if rule.keep == "hard" or rule.share != 1.0:
        return rule.keep == "hard"
    if isinstance(form, Condition):
        return True
    is_order = isinstance(form, Formula) and form.is_inequality and form.is_of_one
    return is_order and reduction is not None and not reduction.relates(*rule.columns)


def _is_exact(rule: Rule) -> bool:
    return rule.keep == "hard" or (rule.keep == "soft" and rule.share == 1.0)


def _allows_values(form: Form) -> bool:
    """Returns whether it is a rule on missing cells that rows without missing cells satisfy."""
    return isinstance(form, Missingness) and not form.is_inverse


def _is_of_missing(rule: Rule) -> bool:
    """Returns whether a rule may require a missing cell. Hard conditions are left out, because
    `HardRules` compiles them in any case."""
    form = rule.form
    if isinstance(form, Missingness) or (isinstance(form, Condition) and rule.keep == "soft"):
        return True
    if not isinstance(form, Formula) or form.relation != "==":
        return False
    names = (node.id for node in ast.walk(form.value) if isinstance(node, ast.Name))
    return "is_missing" in names


def _blank_arguments(text: str) -> set[str]:
    """Returns the names of the columns that are arguments of `is_missing` in an expression."""
    calls = (node for node in ast.walk(parse_expression(text)) if isinstance(node, ast.Call))
    return {
        argument.id
        for call in calls
        for argument in call.args
        if getattr(call.func, "id", "") == "is_missing" and isinstance(argument, ast.Name)
    }


def modelled(form: Combination | Dependency, schema: TableSchema) -> list[str]:
    """Returns the names of the columns of a rule on combinations or of a functional dependency,
    without those that the model does not learn, such as constant columns."""
    names = (form.column, *form.parents)
    return [name for name in names if schema[name].is_modelled]
