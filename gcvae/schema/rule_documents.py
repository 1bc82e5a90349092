"""Reads rules between columns from JSON documents, and checks them against the columns.

    {"rule": "total == net + tax", "keep": "hard"}

The members are those of `Rule.to_json`; only `rule` is required.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Protocol, get_args

from gcvae.errors import Problem
from gcvae.schema.kinds import ColumnKind, Outcomes
from gcvae.schema.rules import (
    Combination,
    Condition,
    Formula,
    Keep,
    Missingness,
    Rule,
    Source,
)
from gcvae.schema.suggestions import NO_SUCH_COLUMN, unknown_names

MOST_EXEMPT = 3
_SHAPE = '{"rule": "total == net + tax", "keep": "soft", "hard" or "off"}'
_MEMBERS = {"rule", "tables", "keep", "source", "share"}


class Column(Protocol):
    """Interface of a schema column that the checks of rules use; it avoids an import cycle with
    `gcvae.schema.columns`, which defines columns."""

    @property
    def kind(self) -> ColumnKind: ...
    @property
    def drop(self) -> bool: ...
    @property
    def is_key(self) -> bool: ...
    @property
    def is_modelled(self) -> bool: ...


class Columns(Protocol):
    """Interface of a table schema that the checks of rules use: column names and columns."""

    @property
    def names(self) -> tuple[str, ...]: ...
    def __getitem__(self, name: str) -> Column: ...


# Reading


def read_rules(listed: object, problems: list[Problem]) -> tuple[Rule, ...]:
    """Reads the rules of a schema's JSON document.

    Args:
        listed: Value of the member `rules`.
        problems: List to which errors are appended, each with its JSON pointer.
    """
    if not isinstance(listed, list | tuple):
        problems.append(Problem("rules is not a list", "/rules", expected="[...]"))
        return ()
    rules = []
    for i, item in enumerate(listed):
        try:
            rules.append(_read_rule(item))
        except ValueError as error:
            problems.append(Problem(str(error), pointer_of_rule(i), expected=_SHAPE))
    return tuple(rules)


def pointer_of_rule(number: int) -> str:
    """Returns the JSON pointer of the rule with index `number` in the schema document."""
    return f"/rules/{number}"


def _read_rule(item: object) -> Rule:
    if not isinstance(item, Mapping):
        raise ValueError('a rule is an object with a member "rule"')
    given = {key: value for key, value in item.items() if value is not None}
    keep = given.get("keep", "soft")
    if unknown := sorted(map(str, set(given) - _MEMBERS)):
        raise ValueError(f"a rule has no member {unknown[0]}")
    if not isinstance(given.get("rule"), str):
        raise ValueError('a rule has a member "rule", an expression')
    _check_one_of(keep, "keep", get_args(Keep))
    source = given.get("source", "given")
    _check_one_of(source, "source", get_args(Source))
    share = given.get("share")
    if share is not None and not (_is_number(share) and 0 <= share <= 1):
        raise ValueError("share is not a number from 0 to 1")
    rule = Rule(given["rule"], keep, source, share, _read_tables(given.get("tables", {})))
    if isinstance(rule.form, Formula) and len(rule.form.exempt) > MOST_EXEMPT:
        raise ValueError(f"at most {MOST_EXEMPT} values stand apart from an inequality")
    return rule


def _read_tables(given: object) -> dict[str, dict[str, Any]]:
    is_object = isinstance(given, Mapping) and all(
        isinstance(t, Mapping) and t for t in given.values()
    )
    if not is_object:
        raise ValueError('tables is no object such as {"rate": {"G1": 0.02, "G2": 0.04}}')
    tables = {str(name): dict(entries) for name, entries in given.items()}  # type: ignore[attr-defined]
    for name, entries in tables.items():
        kinds = {float if _is_number(entry) else type(entry) for entry in entries.values()}
        is_one = len(kinds) == 1 and kinds <= {float, str, bool}
        if not is_one or not all(_is_finite(entry) for entry in entries.values()):
            raise ValueError(f"table {name!r} has not numbers alone, texts alone or truths alone")
        if not name.isidentifier():
            raise ValueError(f"{name!r} is no name of a table: letters, digits and _ are")
    return tables


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_finite(value: object) -> bool:
    """Whether a number is finite in float64; True for other values."""
    if not isinstance(value, int | float):
        return True
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _check_one_of(value: object, key: str, allowed: Sequence[str]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{key} is none of {', '.join(allowed)}")


# Checking


def unknown_in_rules(rules: Sequence[Rule], names: Sequence[str]) -> list[Problem]:
    """Returns a problem for each column name in the rules that is not in `names`."""
    places = [
        (name, {"pointer": pointer_of_rule(i), "column": name})
        for i, rule in enumerate(rules)
        for name in rule.columns
        if name not in names
    ]
    return unknown_names(NO_SUCH_COLUMN, places, list(names))


def rule_problems(rules: Sequence[Rule], schema: Columns) -> list[Problem]:
    """Returns the problems of rules: columns that a rule cannot use, several formulas for one
    column, and rules that depend on each other in a cycle.

    Types in expressions are not checked here, and rules with keep "off" not at all.
    """
    kept = [(i, rule) for i, rule in enumerate(rules) if rule.keep != "off"]
    problems = [
        Problem(message, pointer_of_rule(i), expected=expected)
        for i, rule in kept
        for message, expected in _misfits(rule, schema)
    ]
    return problems or [*_computed_twice(kept), *_circles(kept)]


def _computed_twice(kept: Sequence[tuple[int, Rule]]) -> list[Problem]:
    first: dict[str, int] = {}
    problems = []
    for i, rule in kept:
        is_formula = isinstance(rule.form, Formula) and not rule.form.is_inequality
        if is_formula and first.setdefault(rule.column, i) != i:
            message = f"column {rule.column!r} follows from {pointer_of_rule(first[rule.column])}"
            expected = 'one formula for a column, "keep": "off" for the others'
            problems.append(Problem(message, pointer_of_rule(i), expected=expected))
    return problems


def _circles(kept: Sequence[tuple[int, Rule]]) -> list[Problem]:
    formulas = [rule for _, rule in kept if not _needs_no_order(rule)]
    try:
        TopologicalSorter(parents_of(formulas)).prepare()
    except CycleError as error:
        circle = error.args[1]
        last = max(i for i, rule in kept if rule.column in circle)
        message = f"the rules go in a circle: {' → '.join(map(repr, circle))}"
        expected = "columns that do not depend on themselves"
        return [Problem(message, pointer_of_rule(last), expected=expected)]
    return []


def _needs_no_order(rule: Rule) -> bool:
    """Returns whether a rule does not determine which of its columns is generated first: it can be
    reversed, or it is enforced by rejecting rows."""
    if not isinstance(rule.form, Formula):
        return False
    is_rejected = rule.keep == "hard" or rule.form.is_of_one
    return rule.reversed_text is not None or (rule.form.is_inequality and is_rejected)


def parents_of(rules: Sequence[Rule]) -> dict[str, set[str]]:
    """Returns, for each column that rules compute or limit, the columns from which its value or
    limit is computed.

    Rules on missing cells or on combinations, and conditions, are left out, because they do not
    make one column depend on the others.
    """
    parents: dict[str, set[str]] = {}
    for rule in rules:
        if not isinstance(rule.form, Missingness | Combination | Condition):
            parents.setdefault(rule.column, set()).update(rule.parents)
    return parents


def depends_on(names: Collection[str], column: str, parents: Mapping[str, Collection[str]]) -> bool:
    """Returns whether one of the named columns is `column`, or is computed from it directly or
    indirectly.

    Args:
        parents: For each computed column, the columns from which it is computed.
    """
    before, waiting = set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name not in before:
            before.add(name)
            waiting += parents.get(name, ())
    return column in before


def is_of_entity(rule: Rule, schema: Columns) -> bool:
    """Returns whether a rule says that a key, such as a customer number, determines a column."""
    return rule.is_dependency and len(rule.parents) == 1 and schema[rule.parents[0]].is_key


def is_of_pair(rule: Rule, schema: Columns) -> bool:
    """Returns whether a rule is a `Condition` on two columns, each of which has levels or occurs
    only within `is_missing`."""
    form = rule.form
    if not isinstance(form, Condition) or len(form.columns) != 2:
        return False
    return all(name in form.of_missing or schema[name].kind.has_levels for name in form.columns)


def _misfits(rule: Rule, schema: Columns) -> list[tuple[str, str]]:
    """Returns (message, description of valid input) for each column that a rule cannot use, and for
    a condition that cannot be soft."""
    found = []
    is_condition = isinstance(rule.form, Combination | Condition)
    is_of_key = is_of_entity(rule, schema)
    for name in rule.columns:
        column = schema[name]
        if is_of_key and not column.drop:
            continue
        is_known = is_condition and column.kind.outcomes is Outcomes.ONE_VALUE and not column.drop
        if not column.is_modelled and not is_known:
            what = "is dropped" if column.drop else f"is of kind {column.kind}"
            found.append(
                (f"column {name!r} {what}: no rule can use it", "columns that are modelled")
            )
    is_found = rule.source == "found" and isinstance(rule.form, Condition)
    is_possible = is_found or not is_condition or is_of_pair(rule, schema)
    if not found and rule.keep == "soft" and not is_possible:
        message = f"{rule} computes no column, and such a rule cannot be soft"
        forms = "y == f(x), y <= f(x), determines(a; y) or is_missing(y) if is_missing(x)"
        found.append((message, f'"keep": "hard", or a rule of the form {forms}'))
    return found
