"""Infers the rules of a table, checks those of the user, and counts the rows that satisfy them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gcvae.cells.distinct_cells import shortened
from gcvae.errors import Problem, SchemaError
from gcvae.expressions.terms import compile_condition, number_key
from gcvae.files.typed_columns import TypedTable, rows_at
from gcvae.progress import Report, report_to_nobody
from gcvae.rules.predictions import Prediction, quantities
from gcvae.rules.search import MOST_EXCEPTIONS, RuleFinding, find_rules, measured
from gcvae.rules.search_formulas import MOST_COLUMNS
from gcvae.rules.search_functions import MOST_PAIRED
from gcvae.rules.search_orders import with_exempt_values
from gcvae.schema.columns import TableSchema
from gcvae.schema.kinds import Outcomes
from gcvae.schema.rule_documents import pointer_of_rule, rule_problems
from gcvae.schema.rules import Combination, Condition, Formula, Rule
from gcvae.schema.suggestions import nearest

_MOST_SINGLE_SHARE = 0.5
"""Maximum share of combinations of numbers or dates, in a hard rule, that occur in one row only."""
LineOf = Callable[[int], int | None]
"""Function from a row index to the line in the table's file; None without a line."""


def with_rules(
    schema: TableSchema, table: TypedTable, line_of: LineOf, report: Report = report_to_nobody
) -> tuple[TableSchema, list[RuleFinding]]:
    """Infers rules if the schema's `rules` are None or its `find_rules` is true, and checks all.

    Returns (schema with its own and the inferred rules, one finding for each rule). A finding
    contains a rule and the number of rows that satisfy it. `line_of` returns the line of a row in
    the table's file; `report` receives the fraction of the search that is done.

    Raises:
        SchemaError: Rows of the table violate a hard rule (one that every row must satisfy), a
            formula of the user has a value in no row, or a hard rule lists combinations of numbers
            or dates that hardly repeat.
    """
    rules = [_with_exempt_values(rule, table, schema) for rule in schema.rules or ()]
    if schema.rules is None or schema.find_rules:
        findings = find_rules(table, replace(schema, rules=tuple(rules)), report)
    else:
        findings = measured(rules, table, schema)
    problems = [
        problem
        for i, rule in enumerate(rules)
        if isinstance(rule.form, Combination) and rule.keep == "hard"
        for problem in _senseless_combinations(i, rule, rule.form, table, schema)
    ]
    problems += [
        _violation_problem(i, finding, table, line_of)
        for i, finding in enumerate(findings)
        if finding.rule.keep == "hard" and finding.kept < finding.rows
    ]
    problems += [
        _no_value_problem(i, finding.rule, table, line_of)
        for i, finding in enumerate(findings)
        if finding.rule.keep != "off" and finding.rule.source == "given" and not finding.rows
        if isinstance(finding.rule.form, Formula)
    ]
    if problems:
        raise SchemaError(*problems)
    found = tuple(finding.rule for finding in findings)
    return replace(schema, rules=found, find_rules=False), findings


def search_notes(schema: TableSchema) -> tuple[str, ...]:
    """Returns warnings that `with_rules` searches for rules only among the first columns of the
    table, because it has too many; empty if it searches all columns or does not infer rules."""
    if schema.rules is not None and not schema.find_rules:
        return ()
    numbers = [column.name for column in schema if column.is_modelled and column.has_numbers]
    levels = [column.name for column in schema if column.is_modelled and column.levels is not None]
    cuts = (
        (numbers, MOST_COLUMNS, "numeric columns", "formulas of two and three columns"),
        (levels, MOST_PAIRED, "columns of categories", "two columns that determine a third"),
    )
    return tuple(
        f"{what} were searched only among the first {most} of {len(names)} {kind}; put "
        "columns that belong together first, or write their rules"
        for names, most, kind, what in cuts
        if len(names) > most
    )


def refuse_misfits(schema: TableSchema) -> None:
    """Checks that each rule fits its columns and the other rules.

    Raises:
        SchemaError: A rule has the wrong types, contradicts another one, or cannot be soft, that
            is, have exceptions. Every problem has the JSON pointer of its rule.
    """
    rules = schema.rules or ()
    hard = [replace(rule, keep="hard") if rule.keep == "soft" else rule for rule in rules]
    problems = rule_problems(hard, schema) or _wrong_types(schema) or rule_problems(rules, schema)
    if problems:
        raise SchemaError(*problems)


def _wrong_types(schema: TableSchema) -> list[Problem]:
    """Returns a problem for each rule whose expression does not fit the types of its columns."""
    problems = []
    for i, rule in enumerate(schema.rules or ()):
        try:
            if rule.keep != "off" and isinstance(rule.form, Formula):
                Prediction.of(rule, schema)
            elif rule.keep != "off" and isinstance(rule.form, Condition):
                compile_condition(rule.form.tree, schema, rule.tables)
            if rule.keep != "off":
                _check_tables(rule, schema)
        except ValueError as error:
            problems.append(Problem(str(error), pointer_of_rule(i), column=rule.column))
    return problems


def _check_tables(rule: Rule, schema: TableSchema) -> None:
    """Raises a ValueError if a key of a lookup table is no level of the column that selects its
    entries, or if the rule's expression does not use the table."""
    form = rule.form
    tree = form.value if isinstance(form, Formula) else getattr(form, "tree", None)
    nodes = [] if tree is None else list(ast.walk(tree))
    asked = {
        n.value.id: n.slice
        for n in nodes
        if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name)
    }
    for name, entries in rule.tables.items():
        key = asked.get(name)
        if key is None:
            raise ValueError(f"the expression does not ask table {name!r}")
        parts = key.elts if isinstance(key, ast.Tuple) else [key]
        split = [entry.split(" | ") if len(parts) > 1 else [entry] for entry in entries]
        if any(len(texts) != len(parts) for texts in split):
            raise ValueError(
                f"the keys of table {name!r} are not {len(parts)} levels each: 'a | b'"
            )
        for place, part in enumerate(parts):
            column = schema[part.id] if isinstance(part, ast.Name) else None
            if column is None or column.levels is None:
                continue
            known = [number_key(x) if isinstance(x, float) else str(x) for x in column.levels]
            if column.kind.outcomes is Outcomes.TRUTH_VALUES:
                known = ["true", "false"]
            unknown = [texts[place] for texts in split if texts[place] not in known]
            if unknown:
                meant = nearest(unknown[0], known)
                hint = f"; did you mean {meant!r}?" if meant else ""
                message = f"table {name!r} has {unknown[0]!r}, no level of {column.name}{hint}"
                raise ValueError(message)


def _with_exempt_values(rule: Rule, table: TypedTable, schema: TableSchema) -> Rule:
    """Returns the rule. An inequality of the user without exempt values gets some: isolated values
    of its column, such as -1, to which it does not apply. Other rules stay unchanged."""
    form, column = rule.form, schema[rule.column]
    is_plain = isinstance(form, Formula) and form.is_inequality and not form.exempt
    if not is_plain or rule.source == "found":
        return rule
    if not (column.kind.is_real and column.is_modelled and rule.column in table.columns):
        return rule
    return with_exempt_values(rule, column, quantities(table[rule.column]))


def shown_finding(finding: RuleFinding, line_of: LineOf) -> dict[str, Any]:
    """Returns a rule as JSON for users: its formula, the numbers of rows to which it applies and
    that satisfy it, and the first rows that violate it, with their lines in the file."""
    return {
        "rule": finding.rule.to_json(),
        "columns": list(finding.rule.columns),
        "formula": finding.rule.with_tables,
        "rows": finding.rows,
        "kept": finding.kept,
        "exceptions": [{"row": row, "line": line_of(row)} for row in finding.exceptions],
    }


def _senseless_combinations(
    number: int, rule: Rule, form: Combination, table: TypedTable, schema: TableSchema
) -> list[Problem]:
    """Returns [a problem] if most combinations of numbers or dates in a hard rule occur in one row
    only, so that synthetic rows could only repeat real rows. `number` is the rule's index."""
    names = [name for name in form.columns if schema[name].is_modelled]
    if not any(schema[name].kind.is_real for name in names):
        return []
    frame = rows_at(table, slice(None), names)
    counts = frame.groupby(names, dropna=False, observed=True).size()
    n_single = int((counts == 1).sum())
    if n_single <= _MOST_SINGLE_SHARE * len(counts):
        return []
    message = (
        f"{n_single} of the {len(counts)} combinations of {', '.join(names)} stand in one row "
        "only: numbers and dates that hardly repeat cannot be generated again"
    )
    expected = "columns of levels (kind categorical or ordinal)"
    return [Problem(message, pointer_of_rule(number), expected=expected)]


def _no_value_problem(number: int, rule: Rule, table: TypedTable, line_of: LineOf) -> Problem:
    """Returns the problem that a formula has a value in no row, so that it cannot be checked.
    `number` is the index of its rule."""
    whole = rows_at(table, slice(None), rule.columns)
    known = np.flatnonzero(whole.notna().all(axis=1))
    if not len(known):
        message = f"no row has values of all columns of {rule}"
        expected = "columns that are known in the same rows"
        return Problem(message, pointer_of_rule(number), expected=expected)
    listed, first, _ = _shown_rows(known[:MOST_EXCEPTIONS], len(known), rule, table, line_of)
    message = f"{rule} has a value in no row, although its columns are known in {listed}; {first}"
    expected = "an expression that has a value, for example one that does not divide by 0"
    return Problem(message, pointer_of_rule(number), expected=expected)


def _violation_problem(
    number: int, finding: RuleFinding, table: TypedTable, line_of: LineOf
) -> Problem:
    broken = finding.rows - finding.kept
    rows, rule = np.array(finding.exceptions), finding.rule
    listed, cells, line = _shown_rows(rows, broken, rule, table, line_of)
    message = f"{broken} of {finding.rows} rows break {rule}: {listed}; {cells}"
    can_be_soft = not isinstance(rule.form, Combination | Condition)
    expected = "a rule that every row keeps" + (', or "keep": "soft"' if can_be_soft else "")
    row = int(rows[0]) if line is None else None
    return Problem(message, pointer_of_rule(number), line=line, row=row, expected=expected)


def _shown_rows(
    rows: npt.NDArray[np.int64], n_rows: int, rule: Rule, table: TypedTable, line_of: LineOf
) -> tuple[str, str, int | None]:
    """Describes rows in a message. Returns (text with their lines, text with the first row's cells
    in the rule's columns, line of the first row or None). `rows` are the indices to list; if
    `n_rows`, the number of all such rows, is larger, "..." follows."""
    lines = [line_of(int(row)) for row in rows]
    numbers = [row if line is None else line for row, line in zip(rows, lines, strict=True)]
    more = ", ..." if n_rows > len(rows) else ""
    what = "rows" if lines[0] is None else "lines"
    cells = rows_at(table, rows[:1], rule.columns).iloc[0]
    shown = ", ".join(f"{name} {shortened(str(cell))}" for name, cell in cells.items())
    return f"{what} {', '.join(map(str, numbers))}{more}", f"the first has {shown}", lines[0]
