"""Rules between the columns of a table: one expression each.

    Rule("total == net + tax")            Rule("shipped >= ordered", keep="hard")

A rule holds in most rows of a table. `keep` says what becomes of it: "soft" learns it with its
exceptions, "hard" makes every row keep it, "off" leaves it alone. Four forms say something of one
column, and a model keeps them by construction; any other expression that is true or false can be
hard, and is kept by drawing anew:

    y == f(x, ...)    y ≈ f(x, ...) ± 0.1            a formula, rounded to the decimals of y
    y <= f(x, ...)    y >= x or y == 0               an inequality, and values apart from it
    determines(country; currency)                    a functional dependency
    is_missing(y) if is_missing(x)                   missing cells that follow others

How rules are read from documents is in `rule_documents`. This module loads without pandas.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

from gcvae.schema.expressions import (
    names_in,
    outside_quotes,
    parse_expression,
    quoted_name,
    unquoted,
)

Keep = Literal["soft", "hard", "off"]
Source = Literal["found", "given"]
Relation = Literal["==", "≈", "<=", ">="]
Entry: TypeAlias = bool | int | float | str
Tables: TypeAlias = Mapping[str, Mapping[str, Entry]]

_SIGNS: dict[type[ast.cmpop], Relation] = {ast.Eq: "==", ast.LtE: "<=", ast.GtE: ">="}
_TURNED: dict[Relation, Relation] = {"==": "==", "≈": "≈", "<=": ">=", ">=": "<="}
_MOST_SHOWN = 7
_NEARLY = re.compile(r"≈|~=")
_TOLERANCE = re.compile(r"(?:±|\+-)\s*([0-9.]+(?:[eE][+-]?\d+)?)\s*$")


@dataclass(frozen=True)
class Formula:
    """y is f(x, ...), nearly that, or on one side of it.

    Attributes:
        column: y.
        relation: Between y and f.
        value: f.
        parents: The columns x, in the order in which f names them.
        beside: Values of y that stand apart from an inequality, and break none: 0 for none,
            "2099-12-31" for no end.
        tolerance: How far y is from f at most, where it is nearly that.
    """

    column: str
    relation: Relation
    value: ast.expr = field(compare=False)
    parents: tuple[str, ...]
    beside: tuple[float | str, ...] = ()
    tolerance: float = 0.0

    @property
    def is_inequality(self) -> bool:
        """Whether y is on one side of f."""
        return self.relation in ("<=", ">=")

    @property
    def is_of_one(self) -> bool:
        """Whether f is another column as it is."""
        return isinstance(self.value, ast.Name)


@dataclass(frozen=True)
class Dependency:
    """The cells of the parents determine that of y."""

    column: str
    parents: tuple[str, ...]


@dataclass(frozen=True)
class Missingness:
    """y is missing where its parent is; nowhere else if they go together."""

    column: str
    parents: tuple[str, ...]
    is_same: bool


@dataclass(frozen=True)
class Condition:
    """Any other expression that is true or false."""

    tree: ast.expr = field(compare=False)
    columns: tuple[str, ...] = ()

    @property
    def column(self) -> str:
        """The first column that it names."""
        return self.columns[0]

    @property
    def parents(self) -> tuple[str, ...]:
        """The others."""
        return self.columns[1:]


Form: TypeAlias = Formula | Dependency | Missingness | Condition


@dataclass(frozen=True)
class Rule:
    """A rule of a table.

    Attributes:
        text: The expression.
        keep: What becomes of the rule in a model.
        source: Whether it was found in a table or given by a user.
        share: Of the rows in which all its columns are known, those that keep it; None where it is
            not measured.
        tables: By name, what `name[key]` stands for in the expression: `{"rate": {"G1": 0.02}}`.

    Raises:
        ValueError: The expression can not be read; the message names the character.
    """

    text: str
    keep: Keep = "soft"
    source: Source = "given"
    share: float | None = None
    tables: Tables = field(default_factory=dict)

    def __post_init__(self) -> None:
        _ = self.form

    @cached_property
    def form(self) -> Form:
        """What the rule says of which column."""
        return read_form(self.text)

    @property
    def column(self) -> str:
        """The column that the rule says something of."""
        return self.form.column

    @property
    def parents(self) -> tuple[str, ...]:
        """The columns that this depends on."""
        return self.form.parents

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the rule, the dependent one first."""
        return (self.column, *self.parents)

    @property
    def is_dependency(self) -> bool:
        """Whether it is a functional dependency."""
        return isinstance(self.form, Dependency)

    @property
    def turned(self) -> str | None:
        """The rule between two columns with the other one dependent; None if it has no such side.

        >>> Rule("shipped >= ordered").turned
        'ordered <= shipped'
        """
        form = self.form
        if not isinstance(form, Formula) or not form.is_of_one or form.beside:
            return None
        [other] = form.parents
        sign = _TURNED[form.relation]
        near = f" ± {form.tolerance:.12g}" if form.relation == "≈" else ""
        return f"{quoted_name(other)} {sign} {quoted_name(form.column)}{near}"

    def __str__(self) -> str:
        """The rule as it is read aloud.

        >>> str(Rule("determines(country; currency)")), str(Rule("total == net + tax"))
        ('country determines currency', 'total == net + tax')
        """
        form = self.form
        if isinstance(form, Dependency):
            verb = "determines" if len(form.parents) == 1 else "determine"
            return f"{' and '.join(form.parents)} {verb} {form.column}"
        if isinstance(form, Missingness):
            where = "exactly where" if form.is_same else "wherever"
            return f"{form.column} is missing {where} {form.parents[0]} is"
        return self.text

    @property
    def with_tables(self) -> str:
        """The rule as it is read aloud, with the first entries of its tables."""
        return str(self) + "".join(map(_table_in_words, self.tables.items()))

    def to_json(self) -> dict[str, Any]:
        """The rule's part of a schema document; a member that has its default is left out."""
        document: dict[str, Any] = {"rule": self.text}
        if self.tables:
            document["tables"] = {name: dict(entries) for name, entries in self.tables.items()}
        document |= {"keep": self.keep, "source": self.source}
        return document if self.share is None else document | {"share": self.share}


def _table_in_words(table: tuple[str, Mapping[str, Entry]]) -> str:
    """A table as messages and pages show it.

    >>> _table_in_words(("rate", {"G1": 0.02, "G2": 0.05}))
    ', rate: G1 → 0.02, G2 → 0.05'
    """
    name, entries = table
    shown = [f"{key} → {entry}" for key, entry in list(entries.items())[:_MOST_SHOWN]]
    more = ", …" if len(entries) > _MOST_SHOWN else ""
    return f", {name}: {', '.join(shown)}{more}"


def dependency(of: tuple[str, ...], column: str) -> str:
    """The text of a functional dependency."""
    return f"determines({', '.join(map(quoted_name, of))}; {quoted_name(column)})"


def missingness(of: str, column: str, *, is_same: bool) -> str:
    """The text of missing cells that follow others."""
    here, there = (f"is_missing({quoted_name(name)})" for name in (column, of))
    return f"{here} == {there}" if is_same else f"{here} if {there}"


def read_form(text: str) -> Form:
    """What an expression says of which column.

    Raises:
        ValueError: It can not be read.
    """
    given, parts = text, unquoted(text).split(";")
    is_dependency = len(parts) == 2 and "," not in parts[1]
    if is_dependency:
        text = outside_quotes(text, lambda part: part.replace(";", ","))
    plain, tolerance, is_near = _without_tolerance(text)
    try:
        tree = parse_expression(plain)
    except ValueError as error:
        raise ValueError(str(error).replace(repr(plain), repr(given))) from None
    if is_dependency or (
        isinstance(tree, ast.Call) and getattr(tree.func, "id", "") == "determines"
    ):
        return _dependency(tree, is_dependency)
    form = _missingness(tree) or _formula(tree)
    if is_near:
        if not isinstance(form, Formula) or form.relation != "==":
            raise ValueError(
                "≈ stands between a column and an expression without it: y ≈ f(x) ± 0.1"
            )
        return Formula(form.column, "≈", form.value, form.parents, (), tolerance)
    return form or Condition(tree, names_in(tree))


def _without_tolerance(text: str) -> tuple[str, float, bool]:
    """(the text with == for ≈, the tolerance behind ±, whether there was an ≈)."""
    if not _NEARLY.search(unquoted(text)):
        return text, 0.0, False
    found = _TOLERANCE.search(text)
    if found is None:
        raise ValueError("≈ needs a tolerance: y ≈ f(x) ± 0.1")
    rest = outside_quotes(text[: found.start()], lambda part: _NEARLY.sub("==", part))
    try:
        return rest, float(found[1]), True
    except ValueError:
        raise ValueError(f"± {found[1]} is no number") from None


def _dependency(tree: ast.expr, is_parted: bool) -> Dependency:
    """Of determines(a, b; y)."""
    match tree:
        case ast.Call(func=ast.Name(id="determines"), args=[_, *_, _] as arguments) if is_parted:
            if all(isinstance(argument, ast.Name) for argument in arguments):
                *of, column = names = [argument.id for argument in arguments]  # type: ignore[attr-defined]
                if len({*names}) == len(names):
                    return Dependency(column, tuple(of))
    raise ValueError(
        "a functional dependency is written determines(a, b; y), of columns that differ"
    )


def _missingness(tree: ast.expr) -> Missingness | None:
    """Of is_missing(y) if is_missing(x), or is_missing(y) == is_missing(x)."""
    match tree:
        case ast.IfExp(body=here, test=there):
            is_same = False
        case ast.Compare(left=here, ops=[ast.Eq()], comparators=[there]):
            is_same = True
        case _:
            return None
    column, of = _missing_column(here), _missing_column(there)
    return (
        None
        if column is None or of is None or column == of
        else Missingness(column, (of,), is_same)
    )


def _missing_column(tree: ast.expr) -> str | None:
    match tree:
        case ast.Call(func=ast.Name(id="is_missing"), args=[ast.Name(id=name)]):
            return name
    return None


def _formula(tree: ast.expr) -> Formula | None:
    """Of y == f(x), y <= f(x), y >= f(x) or y == c, with y on either side."""
    if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.Or):
        first, *others = tree.values
        form = _formula(first)
        beside = [_value_of(other, form.column) for other in others] if form else [None]
        if form is None or not form.is_inequality or None in beside:
            return None
        return Formula(form.column, form.relation, form.value, form.parents, tuple(beside))  # type: ignore[arg-type]
    match tree:
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _SIGNS:
            relation = _SIGNS[type(sign)]
            if isinstance(left, ast.Name) and _is_of_others(right, left.id):
                return Formula(left.id, relation, right, names_in(right))
            if isinstance(right, ast.Name) and _is_of_others(left, right.id):
                return Formula(right.id, _TURNED[relation], left, names_in(left))
    return None


def _is_of_others(tree: ast.expr, name: str) -> bool:
    names = names_in(tree)
    return bool(names) and name not in names


def _value_of(tree: ast.expr, name: str) -> float | str | None:
    """The value c of name == c."""
    match tree:
        case ast.Compare(left=ast.Name(id=found), ops=[ast.Eq()], comparators=[right]) if (
            found == name
        ):
            match right:
                case ast.UnaryOp(
                    op=ast.USub(), operand=ast.Constant(value=int() | float() as value)
                ):
                    return -value
                case ast.Constant(value=int() | float() | str() as value):
                    return value
    return None
