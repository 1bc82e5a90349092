"""Rules between columns read from documents, and checked against the columns that they name."""

from __future__ import annotations

import math
import zoneinfo
from collections.abc import Callable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Protocol, TypeAlias, get_args

from gcvae.errors import Problem
from gcvae.schema.kinds import ColumnKind
from gcvae.schema.rules import (
    COMMON,
    BlanksRule,
    ClockRule,
    DatePartName,
    DatePartRule,
    FunctionRule,
    Keep,
    OrderRule,
    ProductRule,
    Rule,
    Source,
    SumRule,
    Ties,
)
from gcvae.schema.suggestions import NO_SUCH_COLUMN, nearest, unknown_names

MOST_TERMS = 5
MOST_OF = 3
MOST_BESIDE = 3


class Column(Protocol):
    """What is asked of a schema's column: `gcvae.schema.columns` builds on this module."""

    @property
    def kind(self) -> ColumnKind: ...
    @property
    def drop(self) -> bool: ...
    @property
    def is_modelled(self) -> bool: ...
    @property
    def has_numbers(self) -> bool: ...
    @property
    def has_times(self) -> bool: ...
    @property
    def datetime_format(self) -> str | None: ...
    @property
    def date_format(self) -> str: ...
    @property
    def never(self) -> tuple[str, ...]: ...


class Columns(Protocol):
    """A table schema."""

    @property
    def names(self) -> tuple[str, ...]: ...
    def __getitem__(self, name: str) -> Column: ...


# Reading


def read_rules(listed: object, problems: list[Problem]) -> tuple[Rule, ...]:
    """The rules of a document; what is malformed is added to `problems` with its pointer."""
    if not isinstance(listed, list | tuple):
        problems.append(Problem("rules is not a list", "/rules", expected="[...]"))
        return ()
    rules = []
    for i, item in enumerate(listed):
        try:
            rules.append(_read_rule(item))
        except ValueError as error:
            problems.append(_malformed(item, pointer_of_rule(i), str(error)))
    return tuple(rules)


def pointer_of_rule(number: int) -> str:
    """The place of a rule in its schema document."""
    return f"/rules/{number}"


_SHAPES = {
    "order": '{"kind": "order", "low": column, "high": column, "beside": [0, ...]}',
    "sum": '{"kind": "sum", "column": column, "terms": {column: factor, ...}, "constant": 0,'
    ' "remainders": [0, ...], "ties": "even" or "away"}',
    "product": '{"kind": "product", "column": column, "factors": [column, column], "factor": 1,'
    ' "ties": "even" or "away"}',
    "clock": '{"kind": "clock", "column": column, "start": column, "minutes": column,'
    ' "midnight": 0 or 2400}',
    "date_part": '{"kind": "date_part", "column": column, "of": column, "part": "month",'
    ' "zone": "Europe/Berlin"}',
    "function": '{"kind": "function", "column": column, "of": [column, ...]}',
    "blanks": '{"kind": "blanks", "column": column, "of": column, "relation": "same" or "follows"}',
}


def _malformed(item: object, pointer: str, message: str) -> Problem:
    kind = item.get("kind") if isinstance(item, Mapping) else None
    meant = nearest(kind, _SHAPES) if isinstance(kind, str) else None
    shapes = _SHAPES.values() if meant is None else [_SHAPES[meant]]
    suggestion = None if meant == kind else meant
    return Problem(message, pointer, expected=" or ".join(shapes), suggestion=suggestion)


def _read_rule(item: object) -> Rule:
    kind = item.get("kind") if isinstance(item, Mapping) else None
    if not isinstance(item, Mapping) or not isinstance(kind, str) or kind not in _READERS:
        raise ValueError("unknown kind of rule")
    given = {key: value for key, value in item.items() if key != "kind" and value is not None}
    common: dict[str, Any] = {name: given.pop(name) for name in COMMON if name in given}
    _check_one_of(common, "keep", get_args(Keep))
    _check_one_of(common, "source", get_args(Source))
    share = common.get("share", 1.0)
    if not _is_number(share) or not 0 <= share <= 1:
        raise ValueError("share is no number from 0 to 1")
    reader, needed, optional = _READERS[kind]
    if not needed <= set(given) <= needed | optional:
        raise ValueError(f"malformed {kind}")
    rule = reader(given, common)
    if len(set(rule.columns)) < len(rule.columns):
        raise ValueError("a column is named twice")
    return rule


def _read_order(given: Mapping[str, Any], common: dict[str, Any]) -> Rule:
    beside = given.get("beside", [])
    is_list = isinstance(beside, list | tuple) and len(beside) <= MOST_BESIDE
    if not is_list or not all(isinstance(x, str) or _is_number(x) for x in beside):
        raise ValueError(f"beside is no list of at most {MOST_BESIDE} numbers, or dates")
    return OrderRule(_name(given, "low"), _name(given, "high"), tuple(beside), **common)


def _read_sum(given: Mapping[str, Any], common: dict[str, Any]) -> Rule:
    terms = given["terms"]
    if not isinstance(terms, Mapping) or not all(
        isinstance(name, str) and _is_number(factor) and factor for name, factor in terms.items()
    ):
        raise ValueError("terms are no object of columns and their factors")
    if not 1 <= len(terms) <= MOST_TERMS:
        raise ValueError(f"a sum has from 1 to {MOST_TERMS} terms")
    remainders = given.get("remainders", [])
    if not isinstance(remainders, list | tuple) or not all(map(_is_number, remainders)):
        raise ValueError("remainders is no list of numbers")
    _check_one_of(given, "ties", get_args(Ties))
    own = {"constant": _factor(given, "constant", 0), "ties": given.get("ties", "even")}
    listed = tuple(terms.items())
    return SumRule(_name(given, "column"), listed, remainders=tuple(remainders), **(own | common))


def _read_product(given: Mapping[str, Any], common: dict[str, Any]) -> Rule:
    factors = _names(given, "factors", 2, 2)
    factor = _factor(given, "factor", 1)
    if not factor:
        raise ValueError("factor is 0")
    _check_one_of(given, "ties", get_args(Ties))
    ties = given.get("ties", "even")
    return ProductRule(_name(given, "column"), factors, factor=factor, ties=ties, **common)


def _read_clock(given: Mapping[str, Any], common: dict[str, Any]) -> Rule:
    _check_one_of(given, "midnight", (0, 2400))
    column, start, minutes = (_name(given, key) for key in ("column", "start", "minutes"))
    return ClockRule(column, start, minutes, given.get("midnight", 0), **common)


def _read_date_part(given: Mapping[str, Any], common: dict[str, Any]) -> Rule:
    _check_one_of(given, "part", get_args(DatePartName))
    zone, is_weekday = given.get("zone"), given["part"] == "weekday"
    if zone is not None and not (isinstance(zone, str) and zone in zoneinfo.available_timezones()):
        raise ValueError(f"there is no time zone {zone!r}")
    _check_one_of(given, "monday", (0, 1, 2))
    _check_one_of(given, "sunday", (0, 1, 6, 7))
    if {"monday", "sunday"} & set(given) and not is_weekday:
        raise ValueError("only a weekday has monday and sunday")
    monday = given.get("monday", 0) if is_weekday else None
    sunday = given.get("sunday", {0: 6, 1: 7, 2: 1}[monday]) if monday is not None else None
    if (monday, sunday) not in ((None, None), (0, 6), (1, 7), (1, 0), (2, 1)):
        raise ValueError("monday and sunday do not go together: 0 and 6, 1 and 7, 1 and 0, 2 and 1")
    return DatePartRule(
        _name(given, "column"),
        _name(given, "of"),
        given["part"],
        zone,
        monday,
        sunday,
        **common,
    )


def _read_function(given: Mapping[str, Any], common: dict[str, Any]) -> Rule:
    return FunctionRule(_name(given, "column"), _names(given, "of", 1, MOST_OF), **common)


def _read_blanks(given: Mapping[str, Any], common: dict[str, Any]) -> Rule:
    _check_one_of(given, "relation", ("same", "follows"))
    relation = given.get("relation", "same")
    return BlanksRule(_name(given, "column"), _name(given, "of"), relation, **common)


_Reader: TypeAlias = Callable[[Mapping[str, Any], dict[str, Any]], Rule]
_READERS: dict[Any, tuple[_Reader, set[str], set[str]]] = {
    "order": (_read_order, {"low", "high"}, {"beside"}),
    "sum": (_read_sum, {"column", "terms"}, {"constant", "remainders", "ties"}),
    "product": (_read_product, {"column", "factors"}, {"factor", "ties"}),
    "clock": (_read_clock, {"column", "start", "minutes"}, {"midnight"}),
    "date_part": (_read_date_part, {"column", "of", "part"}, {"zone", "monday", "sunday"}),
    "function": (_read_function, {"column", "of"}, set()),
    "blanks": (_read_blanks, {"column", "of"}, {"relation"}),
}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _check_one_of(given: Mapping[str, Any], key: str, allowed: Sequence[Any]) -> None:
    value = given.get(key, allowed[0])
    if isinstance(value, bool | list | dict) or value not in allowed:
        raise ValueError(f"{key} is none of {', '.join(map(str, allowed))}")


def _name(given: Mapping[str, Any], key: str) -> str:
    if not isinstance(given[key], str):
        raise ValueError(f"{key} is no column name")
    return str(given[key])


def _names(given: Mapping[str, Any], key: str, least: int, most: int) -> tuple[str, ...]:
    names = given[key]
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{key} is no list of column names")
    if not least <= len(names) <= most:
        raise ValueError(f"{key} has not {' to '.join(map(str, sorted({least, most})))} columns")
    return tuple(names)


def _factor(given: Mapping[str, Any], key: str, default: float) -> float:
    value = given.get(key, default)
    if not _is_number(value):
        raise ValueError(f"{key} is no number")
    return float(value) if isinstance(value, float) else int(value)


# Checking


def unknown_in_rules(rules: Sequence[Rule], names: Sequence[str]) -> list[Problem]:
    """The problem of each column that a rule names and the schema has not."""
    places = [
        (name, {"pointer": pointer_of_rule(i), "column": name})
        for i, rule in enumerate(rules)
        for name in rule.columns
        if name not in names
    ]
    return unknown_names(NO_SUCH_COLUMN, places, list(names))


def rule_problems(rules: Sequence[Rule], schema: Columns) -> list[Problem]:
    """What does not fit: kinds of columns, two rules that rewrite one column, rules in a circle.

    Rules that are dropped may say anything of columns that there are.
    """
    kept = [(i, rule) for i, rule in enumerate(rules) if rule.keep != "drop"]
    problems = [
        Problem(message, pointer_of_rule(i), expected=expected)
        for i, rule in kept
        for message, expected in _misfits(rule, schema)
    ]
    return problems or [*_rewritten_twice(kept), *_circles(kept)]


def _rewritten_twice(kept: Sequence[tuple[int, Rule]]) -> list[Problem]:
    first: dict[str, int] = {}
    problems = []
    for i, rule in kept:
        if rule.rewrites and first.setdefault(rule.column, i) != i:
            message = f"column {rule.column!r} follows from {pointer_of_rule(first[rule.column])}"
            expected = 'one such rule for a column, "keep": "drop" for the others'
            problems.append(Problem(message, pointer_of_rule(i), expected=expected))
    return problems


def _circles(kept: Sequence[tuple[int, Rule]]) -> list[Problem]:
    parents = parents_of([rule for _, rule in kept])
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        circle = error.args[1]
        last = max(i for i, rule in kept if rule.column in circle)
        message = f"the rules go in a circle: {' → '.join(map(repr, circle))}"
        expected = "columns that do not depend on themselves"
        return [Problem(message, pointer_of_rule(last), expected=expected)]
    return []


def parents_of(rules: Sequence[Rule]) -> dict[str, set[str]]:
    """The columns that each dependent column depends on by rules; blanks that come together do
    not say which follows which."""
    parents: dict[str, set[str]] = {}
    for rule in rules:
        if not isinstance(rule, BlanksRule):
            parents.setdefault(rule.column, set()).update(rule.parents)
    return parents


def _misfits(rule: Rule, schema: Columns) -> list[tuple[str, str]]:
    """(message, what would be right) of each thing that does not fit the rule."""
    found = []
    for name in rule.columns:
        column = schema[name]
        if not column.is_modelled:
            what = "is dropped" if column.drop else f"is of kind {column.kind}"
            found.append((f"column {name!r} {what}: no rule holds it", "columns that are modelled"))
    if not found and isinstance(rule, OrderRule):
        found += _beside_misfits(rule, schema[rule.high])
    if not found:
        needs = [(name, *need) for name, need in _needs(rule, schema)]
        for name, fits, expected in needs:
            if not fits(schema[name]):
                message = f"column {name!r} is of kind {schema[name].kind}"
                found.append((message, expected))
    return found


def _beside_misfits(rule: OrderRule, high: Column) -> list[tuple[str, str]]:
    """Values beside an order that are none of its column."""
    wrong = [x for x in rule.beside if isinstance(x, str) != high.has_times]
    if high.has_times and not wrong:
        wrong = [x for x in rule.beside if not _is_date(str(x), high)]
    form = f"dates of the format {high.datetime_format}" if high.has_times else "numbers"
    return [(f"{x!r} is no value of column {rule.high!r}", form) for x in wrong]


def _is_date(text: str, column: Column) -> bool:
    import pyarrow as pa

    from gcvae.spelling.never_dates import read_times

    times = read_times(pa.array([text]), column.date_format, column.never)
    return bool(times[0] == times[0])  # NaT equals nothing


_Need: TypeAlias = tuple[Callable[[Column], bool], str]


def _needs(rule: Rule, schema: Columns) -> list[tuple[str, _Need]]:
    """What each column of a rule has to be."""
    number: _Need = (lambda c: c.has_numbers, "a column of numbers")
    date: _Need = (lambda c: c.has_times, "a column of dates")
    quantity: _Need = (lambda c: c.has_numbers or c.has_times, "a column of numbers or dates")
    if isinstance(rule, OrderRule):
        same = date if schema[rule.low].has_times else number
        return [(rule.low, quantity), (rule.high, same)]
    if isinstance(rule, SumRule):
        return [(name, quantity) for name in rule.columns]
    if isinstance(rule, ProductRule | ClockRule):
        return [(name, number) for name in rule.columns]
    if isinstance(rule, DatePartRule):
        return [(rule.column, number), (rule.of, date)]
    return []
