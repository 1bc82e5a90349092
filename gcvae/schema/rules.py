"""Rules between the columns of a table, each of which is one expression.

    Rule("total == net + tax")            Rule("shipped >= ordered", keep="hard")

A rule holds in most rows of a table. `keep` says how a model uses it: "soft" learns the rule with
its exceptions, "hard" makes every synthetic row satisfy it, "off" ignores it. Rules of these forms
are satisfied by construction:

    y == f(x, ...)    y ≈ f(x, ...) ± 0.1            a formula, rounded to the decimals of y
    y <= f(x, ...)    y >= f(x, ...)                 an inequality
    y == f(x, ...) or y == 0                         a formula or inequality with exempt values
    determines(country; currency)                    a functional dependency
    is_missing(y) if is_missing(x)                   missing cells that imply each other
    is_missing(y) if not is_missing(x)               columns of which only one has a value

There are two more forms. Rows that violate a hard rule of these forms are rejected:

    combinations(city, country)                      only combinations that the table has
    a + b <= c or d == 'x'                           any other expression that is true or false

A rule of the last form can be soft if it concerns only the levels, or the missing cells, of two
columns, because the decoder can then satisfy it. Examples are `is_missing(left) == (status ==
'active')` and `origin != destination`.

`rule_documents` reads rules from JSON documents. This module loads without pandas.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

from gcvae.schema.expressions import (
    names_in,
    outside_quotes,
    parse_expression,
    quoted_name,
    unquoted,
    written,
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
    """Rule by which a column y equals an expression f of other columns x, equals it approximately,
    or is at most or at least f.

    Attributes:
        column: Dependent column y.
        relation: Relation between y and f: ==, ≈, <= or >=.
        value: Syntax tree of the expression f.
        parents: Columns x, in the order in which f names them.
        exempt: Values of y to which the rule does not apply, such as 0 for "none" or "2099-12-31"
            for "no end".
        tolerance: Largest difference between y and f if the relation is ≈.
    """

    column: str
    relation: Relation
    value: ast.expr = field(compare=False)
    parents: tuple[str, ...]
    exempt: tuple[float | str, ...] = ()
    tolerance: float = 0.0

    @property
    def is_inequality(self) -> bool:
        """Whether the relation is <= or >=."""
        return self.relation in ("<=", ">=")

    @property
    def is_of_one(self) -> bool:
        """Whether f is just the name of one column."""
        return isinstance(self.value, ast.Name)


@dataclass(frozen=True)
class Dependency:
    """A functional dependency: the cells of the columns `parents` determine the cell of
    `column`."""

    column: str
    parents: tuple[str, ...]


@dataclass(frozen=True)
class Missingness:
    """A rule on missing cells: `column` is missing wherever another column, its parent, is missing.
    With `is_inverse`: wherever the parent has a value. With `is_same`: there and nowhere else."""

    column: str
    parents: tuple[str, ...]
    is_same: bool
    is_inverse: bool = False


@dataclass(frozen=True)
class _OfColumns:
    """A rule on several columns that does not compute any of them."""

    columns: tuple[str, ...]

    @property
    def column(self) -> str:
        """First column that the rule names."""
        return self.columns[0]

    @property
    def parents(self) -> tuple[str, ...]:
        """Columns that the rule names after the first one."""
        return self.columns[1:]


@dataclass(frozen=True)
class Combination(_OfColumns):
    """A rule that permits only those combinations of its columns' values that the table
    contains."""


@dataclass(frozen=True)
class Condition(_OfColumns):
    """Any other rule that is true or false for a row, such as a + b <= c or d == 'x'. If it is
    hard, rows that violate it are rejected."""

    tree: ast.expr = field(compare=False)

    @cached_property
    def of_missing(self) -> frozenset[str]:
        """Columns of which the rule only asks whether they are missing."""
        nodes = list(ast.walk(self.tree))
        asked = Counter(_missing_column(node) for node in nodes)
        named = Counter(node.id for node in nodes if isinstance(node, ast.Name))
        return frozenset(name for name in self.columns if asked[name] == named[name])


Form: TypeAlias = Formula | Dependency | Missingness | Combination | Condition


@dataclass(frozen=True)
class Rule:
    """A rule between columns of a table, such as "total == net + tax".

    Attributes:
        text: The expression.
        keep: How a model uses the rule: "soft" (learned with exceptions), "hard" (every synthetic
            row satisfies it) or "off" (ignored).
        source: "found" if the rule was inferred from a table, "given" if a user specified it.
        share: Share of rows that satisfy the rule, among the rows without missing cells in its
            columns; None if it has not been measured.
        tables: Lookup tables by name, for `name[key]` in the expression: `{"rate": {"G1": 0.02}}`.

    Raises:
        ValueError: The expression cannot be parsed; the message gives the character position.
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
        """The rule, parsed to a Formula, Dependency, Missingness, Combination or Condition."""
        return read_form(self.text)

    @property
    def column(self) -> str:
        """Column y that the rule computes, bounds, or says to be missing; for other rules, the
        first column that they name."""
        return self.form.column

    @property
    def parents(self) -> tuple[str, ...]:
        """Columns x from which the rule derives the value of `column`, a bound on it, or whether it
        is missing; for other rules, all columns except `column`."""
        return self.form.parents

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the rule; `column` is the first."""
        return (self.column, *self.parents)

    @property
    def is_dependency(self) -> bool:
        """Whether the rule is a functional dependency: some columns determine another."""
        return isinstance(self.form, Dependency)

    @property
    def sides(self) -> list[Rule]:
        """The rule and, if it relates two columns directly, the rule solved for the other one."""
        turned = self.reversed_text
        return [self] if turned is None else [self, replace(self, text=turned)]

    @property
    def is_inequality(self) -> bool:
        """Whether the rule is an inequality, y <= f(x) or y >= f(x)."""
        return isinstance(self.form, Formula) and self.form.is_inequality

    @property
    def reversed_text(self) -> str | None:
        """The rule solved for its other column, if it relates two columns directly; else None.

        >>> Rule("shipped >= ordered").reversed_text
        'ordered <= shipped'
        """
        form = self.form
        if not isinstance(form, Formula) or not form.is_of_one or form.exempt:
            return None
        [other] = form.parents
        sign = _TURNED[form.relation]
        near = f" ± {form.tolerance:.12g}" if form.relation == "≈" else ""
        return f"{quoted_name(other)} {sign} {quoted_name(form.column)}{near}"

    def __str__(self) -> str:
        """Returns the rule in words, for messages.

        >>> str(Rule("determines(country; currency)")), str(Rule("total == net + tax"))
        ('country determines currency', 'total == net + tax')
        """
        form = self.form
        if isinstance(form, Dependency):
            verb = "determines" if len(form.parents) == 1 else "determine"
            return f"{' and '.join(form.parents)} {verb} {form.column}"
        if isinstance(form, Missingness):
            where = "exactly where" if form.is_same else "wherever"
            value = "has a value" if form.is_inverse else "is"
            return f"{form.column} is missing {where} {form.parents[0]} {value}"
        if isinstance(form, Combination):
            names = ", ".join(form.columns[:-1])
            return f"only combinations of {names} and {form.columns[-1]} that the table has"
        return self.text

    @property
    def with_tables(self) -> str:
        """The rule in words, with the first entries of each of its lookup tables."""
        return str(self) + "".join(map(_table_in_words, self.tables.items()))

    def to_json(self) -> dict[str, Any]:
        """Returns the rule as a JSON object for the list `rules` of a schema document."""
        document: dict[str, Any] = {"rule": self.text}
        if self.tables:
            document["tables"] = {name: dict(entries) for name, entries in self.tables.items()}
        document |= {"keep": self.keep, "source": self.source}
        return document if self.share is None else document | {"share": self.share}


def _table_in_words(table: tuple[str, Mapping[str, Entry]]) -> str:
    """Returns a lookup table as text to follow its rule, hence the comma at the beginning.

    >>> _table_in_words(("rate", {"G1": 0.02, "G2": 0.05}))
    ', rate: G1 → 0.02, G2 → 0.05'
    """
    name, entries = table
    shown = [f"{key} → {entry}" for key, entry in list(entries.items())[:_MOST_SHOWN]]
    more = ", …" if len(entries) > _MOST_SHOWN else ""
    return f", {name}: {', '.join(shown)}{more}"


def dependency(of: tuple[str, ...], column: str) -> str:
    """Returns the rule, as a string, that the columns `of` determine `column`: "determines(of;
    column)"."""
    return f"determines({', '.join(map(quoted_name, of))}; {quoted_name(column)})"


def missingness(of: str, column: str, *, is_same: bool, is_inverse: bool = False) -> str:
    """Returns the rule, as a string, that `column` is missing wherever the column `of` is missing.
    With `is_inverse`: wherever `of` has a value. With `is_same`: there and nowhere else."""
    here, there = (f"is_missing({quoted_name(name)})" for name in (column, of))
    if is_same:
        return f"{here} {'!=' if is_inverse else '=='} {there}"
    return f"{here} if {'not ' if is_inverse else ''}{there}"


def read_form(text: str) -> Form:
    """Parses a rule's expression into a Formula, Dependency, Missingness, Combination or Condition.

    Raises:
        ValueError: The expression cannot be parsed.
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
    form = _combination(tree) or _missingness(tree) or _formula(tree)
    if is_near:
        if not isinstance(form, Formula) or form.relation != "==":
            raise ValueError(
                "≈ stands between a column and an expression without it: y ≈ f(x) ± 0.1"
            )
        return Formula(form.column, "≈", form.value, form.parents, (), tolerance)
    return form or Condition(names_in(tree), tree)


def implied_formulas(rules: Iterable[Rule]) -> list[Rule]:
    """Returns the formulas and inequalities that hard rules of the form `Condition` imply. They are
    terms that "and" joins in a condition, or a whole condition.

    For "net < gross and gross == net + tax and net != 5", these are "net <= gross" and
    "gross == net + tax". The model satisfies the returned rules by construction. Rows that violate
    the rest of the condition are rejected.
    """
    trees: list[ast.expr] = []
    for rule in rules:
        if rule.keep == "hard" and isinstance(rule.form, Condition):
            tree = rule.form.tree
            is_joined = isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And)
            trees += tree.values if is_joined else [tree]  # type: ignore[attr-defined]
    texts = (written(_not_strict(tree)) for tree in trees)
    return [Rule(text, share=1.0) for text in texts if isinstance(read_form(text), Formula)]


def _not_strict(tree: ast.expr) -> ast.expr:
    match tree:
        case ast.Compare(ops=[ast.Lt()]):
            return ast.Compare(tree.left, [ast.LtE()], tree.comparators)
        case ast.Compare(ops=[ast.Gt()]):
            return ast.Compare(tree.left, [ast.GtE()], tree.comparators)
    return tree


def _without_tolerance(text: str) -> tuple[str, float, bool]:
    """Returns (the text with == for ≈, the tolerance after ±, whether the text has an ≈)."""
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
    """Converts the syntax tree of determines(a, b; y), in which a comma replaces the semicolon.
    `is_parted` says whether the text had a semicolon before its last column; without one, the rule
    is an error."""
    match tree:
        case ast.Call(func=ast.Name(id="determines"), args=[_, *_, _] as arguments) if is_parted:
            if all(isinstance(argument, ast.Name) for argument in arguments):
                *of, column = names = [argument.id for argument in arguments]  # type: ignore[attr-defined]
                if len({*names}) == len(names):
                    return Dependency(column, tuple(of))
    raise ValueError(
        "a functional dependency is written determines(a, b; y), of columns that differ"
    )


def _combination(tree: ast.expr) -> Combination | None:
    if not isinstance(tree, ast.Call) or getattr(tree.func, "id", "") != "combinations":
        return None
    names = [getattr(argument, "id", "") for argument in tree.args]
    if len(names) < 2 or not all(names) or len({*names}) < len(names):
        raise ValueError("combinations are written combinations(a, b), of columns that differ")
    return Combination(tuple(names))


def _missingness(tree: ast.expr) -> Missingness | None:
    """Converts the tree of is_missing(y) if is_missing(x), of is_missing(y) == is_missing(x), or of
    the same with `if not` or `!=`; returns None for any other tree."""
    match tree:
        case ast.IfExp(body=here, test=ast.UnaryOp(op=ast.Not(), operand=there)):
            is_same, is_inverse = False, True
        case ast.IfExp(body=here, test=there):
            is_same, is_inverse = False, False
        case ast.Compare(left=here, ops=[ast.Eq() | ast.NotEq() as sign], comparators=[there]):
            is_same, is_inverse = True, isinstance(sign, ast.NotEq)
        case _:
            return None
    column, of = _missing_column(here), _missing_column(there)
    if column is None or of is None or column == of:
        return None
    return Missingness(column, (of,), is_same, is_inverse)


def _missing_column(tree: ast.AST) -> str | None:
    match tree:
        case ast.Call(func=ast.Name(id="is_missing"), args=[ast.Name(id=name)]):
            return name
    return None


def _formula(tree: ast.expr) -> Formula | None:
    """Converts the tree of y == f(x), y <= f(x) or y >= f(x), with y on either side, or of one of
    these with exempt values, as in y == f(x) or y == 0; returns None for any other tree."""
    if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.Or):
        first, *others = tree.values
        form = _formula(first)
        exempt = [_value_of(other, form.column) for other in others] if form else [None]
        if form is None or None in exempt:
            return None
        return Formula(form.column, form.relation, form.value, form.parents, tuple(exempt))  # type: ignore[arg-type]
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
    """Returns the value c if the tree is name == c, else None."""
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


def sum_text(terms: Sequence[tuple[float, str]], constant: float = 0) -> str:
    """Returns the expression of a sum, given pairs (factor, term) and a constant.

    >>> sum_text([(1, "net"), (-1, "off"), (1 / 60, "seconds")], 2.5)
    'net - off + seconds / 60 + 2.5'
    """
    words = "".join(term_text(factor, name) for factor, name in terms)
    words += term_text(constant, "") if constant else ""
    return words.removeprefix(" + ") if words.startswith(" + ") else f"-{words[3:]}"


def term_text(factor: float, name: str) -> str:
    """Returns the text of a term in a sum: its sign, its factor and its name, such as " - 2 * net";
    without the name if this is ""."""
    sign, size = " - " if factor < 0 else " + ", abs(factor)
    number, inverse = (f"{x:.12g}" for x in (size, 1 / size if size else 0.0))
    if not name:
        return f"{sign}{number}"
    if size == 1:
        return f"{sign}{name}"
    is_unit = len(number) > 4 or inverse.strip("0") == "1"  # 1 / 60 and 1 / 100, not 1 / 0.8
    if inverse.isdecimal() and len(inverse) < len(number) and is_unit:
        return f"{sign}{name} / {inverse}"
    return f"{sign}{number} * {name}"
