"""The constraints of a schema, ready to say which rows satisfy them.

A row breaks an inequality or an expression that is false of it; where a blank leaves that unknown
it does not. Among unique combinations a blank counts as a level. A rule that is demanded is a
constraint as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.arrays import Mask
from gcvae.cells.distinct_cells import shortened
from gcvae.codec.unmodelled_columns import ConstantCodec
from gcvae.errors import Problem, SchemaError
from gcvae.expressions.rounded_numbers import FALSE, TRUE, UNKNOWN
from gcvae.expressions.terms import (
    Rows,
    Term,
    column_values,
    compile_condition,
    compile_constraint,
)
from gcvae.files.source_columns import SourceColumns, shown_cells
from gcvae.files.typed_columns import TypedTable, row_chunks, rows_at, typed_columns
from gcvae.rules.predictions import keeps
from gcvae.schema.columns import TableSchema
from gcvae.schema.constraints import Constraint, UniqueCombinations, constraint_columns
from gcvae.schema.kinds import Outcomes
from gcvae.schema.rule_documents import pointer_of_rule
from gcvae.schema.rules import Condition, Missingness, Rule

MOST_SINGLE_SHARE = 0.5
"""Numbers or dates whose combinations mostly stand in one row only are no levels."""
_BLANK, _UNSEEN = -1, 0


@dataclass(frozen=True)
class Combinations:
    """The distinct combinations of some columns of a table.

    Attributes:
        values: The distinct values of each column, of JSON types; dates are text.
        rows: Each combination as places in `values`, counted from 1; -1 is a blank cell.
    """

    values: Mapping[str, tuple[Any, ...]]
    rows: frozenset[tuple[int, ...]]

    @classmethod
    def fit(cls, table: TypedTable, names: Sequence[str]) -> Self:
        """The combinations of a typed table."""
        frame = rows_at(table, slice(None), names)
        values = {name: _distinct(frame[name])[1] for name in names}
        # Sorted, so that the order of the rows shows nowhere.
        ordered = {name: tuple(sorted(found, key=_sort_key)) for name, found in values.items()}
        places = pd.DataFrame(cls(ordered, frozenset())._places(frame)).drop_duplicates()
        return cls(ordered, frozenset(_tuples(places.to_numpy())))

    def hold(self, frame: pd.DataFrame) -> Mask:
        """True for each row whose combination is one of these. Shape: (n,)."""
        return np.array([row in self.rows for row in _tuples(self._places(frame))], dtype=bool)

    def to_json(self) -> dict[str, Any]:
        """The combinations as a document of JSON types."""
        # A list, for the order of the columns counts: `rows` are places in it.
        columns = [{"name": name, "values": list(found)} for name, found in self.values.items()]
        return {"columns": columns, "rows": sorted(map(list, self.rows))}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The combinations of a document: `from_json(to_json(c)) = c`."""
        values = {part["name"]: tuple(part["values"]) for part in document["columns"]}
        return cls(values, frozenset(map(tuple, document["rows"])))

    def _places(self, frame: pd.DataFrame) -> npt.NDArray[np.int64]:
        """Each row as places in `values`; an unseen value is 0. Shape: (n, number of columns)."""
        matrix = np.zeros((len(frame), len(self.values)), dtype=np.int64)
        for j, (name, known) in enumerate(self.values.items()):
            place = {value: number for number, value in enumerate(known, start=1)}
            codes, found = _distinct(frame[name])
            places = [place.get(value, _UNSEEN) for value in found]
            matrix[:, j] = np.array([*places, _BLANK])[codes]
        return matrix


def _tuples(matrix: npt.NDArray[np.int64]) -> list[tuple[int, ...]]:
    return list(map(tuple, matrix.tolist()))


class ConstraintSet:
    """The constraints of a schema.

    Attributes:
        constraints: As the schema lists them, then the rules that it demands.
        pointers: The place of each in the schema document.
    """

    def __init__(self, schema: TableSchema, combinations: Mapping[int, Combinations]) -> None:
        """Compiles the constraints; `fit` and `from_json` are the ways to get a set.

        Raises:
            SchemaError: A constraint does not fit its columns; every problem has its pointer.
        """
        demanded = {
            pointer_of_rule(i): rule
            for i, rule in enumerate(schema.rules or ())
            if rule.keep == "hard" and not rule.is_dependency
        }
        self.constraints: tuple[Constraint | Rule, ...] = (
            *schema.constraints,
            *demanded.values(),
        )
        self.pointers = (*map(pointer_of, range(len(schema.constraints))), *demanded)
        self._rules = tuple(demanded.values())
        self._schema = schema
        self._combinations = dict(combinations)
        self._terms = _compiled(schema)
        self._rule_terms = {
            rule.text: compile_condition(rule.form.tree, schema, rule.tables)
            for rule in self._rules
            if isinstance(rule.form, Condition)
        }

    @classmethod
    def fit(cls, table: TypedTable, schema: TableSchema) -> ConstraintSet:
        """The constraints, with the combinations of a typed table that has their columns."""
        combinations = {
            i: Combinations.fit(table, _modelled(constraint, schema))
            for i, constraint in enumerate(schema.constraints)
            if isinstance(constraint, UniqueCombinations)
        }
        return cls(schema, combinations)

    def __len__(self) -> int:
        """The number of constraints."""
        return len(self.constraints)

    def satisfied(self, frame: pd.DataFrame, *, blanks_unknown: bool = False) -> Mask:
        """Which rows of a typed frame satisfy which constraints. Shape: (n, number of constraints).

        Args:
            frame: With the constrained columns, as `parse_table` gives them.
            blanks_unknown: A blank is a cell that is not known; no constraint is broken by it.
        """
        found = np.ones((len(frame), len(self)), dtype=bool)
        for i, term in self._terms.items():
            rows = self._values(frame, constraint_columns(self._schema.constraints[i]))
            found[:, i] = term.evaluate(Rows(rows, blanks_unknown)) != FALSE
        for i, rule in enumerate(self._rules, start=len(self._schema.constraints)):
            found[:, i] = self._kept(rule, frame, blanks_unknown)
        for i, combinations in self._combinations.items():
            found[:, i] = combinations.hold(frame)
            if blanks_unknown:
                found[:, i] |= frame[list(combinations.values)].isna().any(axis=1).to_numpy()
        return found

    def _kept(self, rule: Rule, frame: pd.DataFrame, blanks_unknown: bool) -> Mask:
        """Which rows keep a rule, or do not say. Shape: (n,)."""
        if isinstance(rule.form, Missingness) and blanks_unknown:
            return np.ones(len(frame), dtype=bool)
        if isinstance(rule.form, Condition):
            rows = Rows(self._values(frame, rule.columns), blanks_unknown)
            return np.asarray(self._rule_terms[rule.text].evaluate(rows) != FALSE)
        applies, kept = keeps(rule, frame, self._schema)
        return np.asarray(~applies | kept)

    def certain_blanks(self, frame: pd.DataFrame) -> dict[str, Mask]:
        """Which blanks of a typed frame are missing cells, by what is known of their rows.

        A value in their place would break an expression or a rule of missing cells that every row
        keeps. By column, of those that have some. Shape: (n,) each.
        """
        found = {str(name): np.zeros(len(frame), dtype=bool) for name in frame}
        n_before = -1
        while n_before < (n_before := sum(int(mask.sum()) for mask in found.values())):
            for term, names in self._conditions():
                for name in names:
                    found[name] |= self._must_be_missing(term, names, name, frame, found)
            for rule in self._schema.rules or ():
                is_kept = rule.keep == "hard" or (rule.keep == "soft" and rule.share == 1.0)
                if isinstance(rule.form, Missingness) and is_kept:
                    here, there = rule.columns
                    found[here] |= found[there] & frame[here].isna().to_numpy()
                    if rule.form.is_same:
                        found[there] |= found[here] & frame[there].isna().to_numpy()
        return {name: mask for name, mask in found.items() if mask.any()}

    def _conditions(self) -> Iterator[tuple[Term, tuple[str, ...]]]:
        """The expressions that are true of every row, with their columns."""
        for i, term in self._terms.items():
            yield term, constraint_columns(self._schema.constraints[i])
        for rule in self._rules:
            if isinstance(rule.form, Condition):
                yield self._rule_terms[rule.text], rule.columns

    def _must_be_missing(
        self,
        term: Term,
        names: Sequence[str],
        name: str,
        frame: pd.DataFrame,
        found: Mapping[str, Mask],
    ) -> Mask:
        """The blanks of a column in whose place a value would make a term false. Shape: (n,)."""
        cells, values = frame.get(name), self._values(frame, names)
        if cells is None or not cells.isna().any():
            return np.zeros(len(frame), dtype=bool)
        said = {other: np.where(found[other], TRUE, UNKNOWN) for other in names if other in found}
        as_value, as_blank = (
            term.evaluate(Rows(values, True, said | {name: np.full(len(frame), one)})) != FALSE
            for one in (FALSE, TRUE)
        )
        return np.asarray(cells.isna().to_numpy() & ~as_value & as_blank)

    def to_json(self) -> dict[str, Any]:
        """What `from_json` needs beside the schema."""
        combinations = {str(i): found.to_json() for i, found in self._combinations.items()}
        return {"combinations": combinations}

    @classmethod
    def from_json(cls, schema: TableSchema, document: Mapping[str, Any]) -> ConstraintSet:
        """The set of a document that `to_json` wrote."""
        found = document["combinations"].items()
        return cls(schema, {int(i): Combinations.from_json(part) for i, part in found})

    def _values(self, frame: pd.DataFrame, names: Sequence[str]) -> dict[str, Any]:
        """The columns of these names as terms take them; a constant need not be in the frame."""
        values = {}
        for name in names:
            column = self._schema[name]
            is_constant = column.kind.outcomes is Outcomes.ONE_VALUE
            cells = ConstantCodec(column).decode(len(frame)) if is_constant else frame[name]
            values[name] = column_values(cells, column)
        return values


def check_constraints(source: SourceColumns, schema: TableSchema) -> None:
    """Lets a table pass that satisfies the constraints of its schema.

    Args:
        source: Its columns, as text or typed.
        schema: Complete.

    Raises:
        SchemaError: A constraint does not fit its columns, or rows of the table break it.
    """
    if not schema.constraints:
        return
    named = {name for constraint in schema.constraints for name in constraint_columns(constraint)}
    # Without combinations, since those of this table hold anyway, and without the rules that the
    # schema demands, which may be of other columns: `with_rules` checks them.
    constraints = ConstraintSet(replace(schema, rules=None), {})
    part = TableSchema(tuple(column for column in schema if column.name in named))
    with typed_columns(source, part) as typed:
        broken = _broken_rows(constraints, typed)
        problems = []
        for i, constraint in enumerate(schema.constraints):
            if isinstance(constraint, UniqueCombinations):
                problems += _senseless_combinations(i, constraint, typed, schema)
            elif broken[i].count:
                problems.append(_broken(i, constraint, broken[i], source))
    if problems:
        raise SchemaError(*problems)


@dataclass
class _BrokenRows:
    """The rows that break a constraint: how many, and the number of the first."""

    count: int = 0
    first: int = 0


def _broken_rows(constraints: ConstraintSet, typed: TypedTable) -> list[_BrokenRows]:
    """For each constraint the rows of a table that break it."""
    found = [_BrokenRows() for _ in constraints.constraints]
    n_before = 0
    for chunk in row_chunks(typed):
        broken = ~constraints.satisfied(chunk)
        for rows, each in zip(found, broken.T, strict=True):
            if not rows.count and each.any():
                rows.first = n_before + int(np.argmax(each))
            rows.count += int(each.sum())
        n_before += len(chunk)
    return found


def _compiled(schema: TableSchema) -> dict[int, Term]:
    """The terms of the inequalities and expressions, by their numbers."""
    terms, problems = {}, []
    for i, constraint in enumerate(schema.constraints):
        try:
            _check_columns(constraint, schema)
            if not isinstance(constraint, UniqueCombinations):
                terms[i] = compile_constraint(constraint, schema)
        except ValueError as error:
            problems.append(Problem(str(error), pointer_of(i)))
    if problems:
        raise SchemaError(*problems)
    return terms


def pointer_of(number: int) -> str:
    """The place of a constraint in its schema document."""
    return f"/constraints/{number}"


def _check_columns(constraint: Constraint, schema: TableSchema) -> None:
    for name in constraint_columns(constraint):
        column = schema[name]
        if column.drop:
            raise ValueError(f"column {name!r} is dropped: no sampled row has it")
        if column.kind.outcomes is Outcomes.KEYS:
            raise ValueError(
                f"column {name!r} is an identifier, whose values are made up anew; "
                "give it another kind if its values mean something"
            )


def _modelled(constraint: UniqueCombinations, schema: TableSchema) -> list[str]:
    """The columns of the combinations, without constants."""
    return [name for name in dict.fromkeys(constraint.columns) if schema[name].is_modelled]


def _senseless_combinations(
    number: int, constraint: UniqueCombinations, table: TypedTable, schema: TableSchema
) -> list[Problem]:
    """The problem of numbers or dates that hardly repeat: they would be the table's rows."""
    names = _modelled(constraint, schema)
    if not any(schema[name].kind.is_real for name in names):
        return []
    frame = rows_at(table, slice(None), names)
    counts = frame.groupby(names, dropna=False, observed=True).size()
    n_single = int((counts == 1).sum())
    if n_single <= MOST_SINGLE_SHARE * len(counts):
        return []
    message = (
        f"{n_single} of the {len(counts)} {constraint} stand in one row only: "
        "numbers and dates that hardly repeat can not be drawn again"
    )
    expected = "columns of levels (kind categorical or ordinal)"
    return [Problem(message, pointer_of(number), expected=expected)]


def _broken(
    number: int, constraint: Constraint, broken: _BrokenRows, source: SourceColumns
) -> Problem:
    """The problem of the rows of a table that break a constraint."""
    row = broken.first
    line = source.line_of(row)
    shown = shown_cells(source, row, constraint_columns(constraint))
    cells = ", ".join(f"{name} {shortened(cell)}" for name, cell in shown.items())
    message = f"{broken.count} of {len(source)} rows break {constraint}, the first has {cells}"
    expected = "a constraint that every row of the table satisfies"
    place = pointer_of(number)
    position = row if line is None else None
    return Problem(message, place, line=line, row=position, expected=expected)


def _distinct(series: pd.Series[Any]) -> tuple[npt.NDArray[np.int64], list[Any]]:
    """Which distinct value stands in each row, -1 for a blank; and the values, of JSON types."""
    codes, found = pd.factorize(series)
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        return codes, np.datetime_as_string(np.asarray(found, dtype="datetime64[ns]")).tolist()
    return codes, found.tolist()


def _sort_key(value: Any) -> tuple[str, Any]:
    return type(value).__name__, value
