"""Constraints between columns as documents: parsed, and checked for structure.

What an expression means is in `expressions`, which rows satisfy a constraint in `constraint_set`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gcvae.errors import Problem
from gcvae.schema.suggestions import nearest


@dataclass(frozen=True)
class Inequality:
    """low ≤ high in every row, or low < high where `strict`."""

    low: str
    high: str
    strict: bool = False

    def __str__(self) -> str:
        """The constraint as it is written in messages."""
        return f"{self.low} {'<' if self.strict else '<='} {self.high}"

    def to_json(self) -> dict[str, Any]:
        """The constraint's part of a schema document."""
        return {"kind": "inequality", "low": self.low, "high": self.high, "strict": self.strict}


@dataclass(frozen=True)
class UniqueCombinations:
    """Only combinations of these columns that the table has may come out."""

    columns: tuple[str, ...]

    def __str__(self) -> str:
        """The constraint as it is written in messages."""
        return f"unique combinations of {', '.join(self.columns)}"

    def to_json(self) -> dict[str, Any]:
        """The constraint's part of a schema document."""
        return {"kind": "unique_combinations", "columns": list(self.columns)}


@dataclass(frozen=True)
class Expression:
    """An expression over columns, true in every row; a name with spaces stands in backticks."""

    expression: str

    def __str__(self) -> str:
        """The constraint as it is written in messages."""
        return self.expression

    def to_json(self) -> dict[str, Any]:
        """The constraint's part of a schema document."""
        return {"kind": "expression", "expression": self.expression}


Constraint = Inequality | UniqueCombinations | Expression

_SHAPES = {
    "inequality": '{"kind": "inequality", "low": column, "high": column, "strict": false}',
    "unique_combinations": '{"kind": "unique_combinations", "columns": [column, column, ...]}',
    "expression": '{"kind": "expression", "expression": "a + b <= c"}',
}
# A string literal comes first, so that a backtick in it is none.
_QUOTED_NAME = re.compile(r"""("[^"]*"|'[^']*')|`([^`]+)`""")
_STAND_IN = "\ua644"  # a letter that no name begins with
_SLIPS = (
    (re.compile(r"=>|=<|<>"), "; comparisons are ==, !=, <, <=, > and >="),
    (re.compile(r"(?<![=<>!])=(?!=)"), "; values are compared with =="),
    (re.compile(r"\b(AND|OR|NOT)\b|&&|\|\|"), "; terms are joined by and, or, not"),
)
"""What is written so in other languages, and what to write."""
_DEEPEST = 100  # nested terms, far under Python's limit of recursion
_ALLOWED_NODES = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.UAdd,
    ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow,
    ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn,
    ast.Name, ast.Load, ast.Constant, ast.Tuple, ast.List, ast.Call,
)  # fmt: skip


def read_constraints(listed: object, problems: list[Problem]) -> tuple[Constraint, ...]:
    """The constraints of a document; what is wrong is added to `problems` with its pointer."""
    if not isinstance(listed, list | tuple):
        problems.append(Problem("constraints is not a list", "/constraints", expected="[...]"))
        return ()
    constraints = []
    for i, item in enumerate(listed):
        try:
            constraints.append(_read_constraint(item))
        except ValueError as error:
            problems.append(_problem(item, f"/constraints/{i}", str(error)))
    return tuple(constraints)


def constraint_columns(constraint: Constraint) -> tuple[str, ...]:
    """The columns that a constraint names, in order.

    >>> constraint_columns(Expression("`net price` <= price"))
    ('net price', 'price')
    """
    if isinstance(constraint, Inequality):
        return (constraint.low, constraint.high)
    if isinstance(constraint, UniqueCombinations):
        return constraint.columns
    return _names_in(parse_expression(constraint.expression))


def parse_expression(text: str) -> ast.expr:
    """The tree of an expression, of allowed nodes only; its names are the columns' own.

    Raises:
        ValueError: It can not be read, or holds what is not allowed.
    """
    quoted: dict[str, str] = {}

    def stand_in(match: re.Match[str]) -> str:
        if match[1] is not None:
            return match[1]
        # As long as what it stands for, so that a place in the text is one in the expression.
        name = f"{_STAND_IN}{len(quoted)}".ljust(len(match[0]), "_")
        quoted[name] = match[2]
        return name

    source = _QUOTED_NAME.sub(stand_in, text)
    before = len(source) - len(source.lstrip())
    source = source.strip()
    try:
        tree = ast.parse(source, mode="eval").body
    except SyntaxError as error:
        lines = source.splitlines(keepends=True)[: (error.lineno or 1) - 1]
        place = before + sum(map(len, lines)) + (error.offset or 1)
        hint = next((hint for slip, hint in _SLIPS if slip.search(text)), "")
        raise ValueError(
            f"the expression {text!r} can not be read: {error.msg} at character {place}{hint}"
        ) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"the expression {text!r} can not be read: {error}") from None
    _check_depth(tree)
    for node in ast.walk(tree):
        _check_node(node, source, before)
        if isinstance(node, ast.Name):
            node.id = quoted.get(node.id, node.id)
    if not _names_in(tree):
        raise ValueError("the expression names no column")
    return tree


def _names_in(tree: ast.expr) -> tuple[str, ...]:
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    found = [node for node in names if id(node) not in functions]
    found.sort(key=lambda node: (node.lineno, node.col_offset))
    return tuple(dict.fromkeys(node.id for node in found))


def _check_depth(tree: ast.expr) -> None:
    level: list[ast.AST] = [tree]
    for _ in range(_DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
    raise ValueError(f"the expression nests more than {_DEEPEST} terms in each other")


def _check_node(node: ast.AST, source: str, before: int) -> None:
    """Checks that a node is allowed; `before` are the characters before the expression."""
    place = ""
    if isinstance(node, ast.expr):
        lines = source.splitlines(keepends=True)
        own = lines[node.lineno - 1].encode()[: node.col_offset].decode()
        place = f" at character {before + sum(map(len, lines[: node.lineno - 1])) + len(own) + 1}"
    if not isinstance(node, _ALLOWED_NODES):
        raise ValueError(f"{type(node).__name__} is not allowed in an expression{place}")
    if isinstance(node, ast.Constant) and not isinstance(node.value, str | bool | int | float):
        hint = "; is_missing(column) is true of blanks" if node.value is None else ""
        raise ValueError(f"{node.value!r} is not allowed in an expression{place}{hint}")
    if isinstance(node, ast.Call) and (not isinstance(node.func, ast.Name) or node.keywords):
        raise ValueError(f"only a function's name and its arguments make a call{place}")


def _problem(item: object, pointer: str, message: str) -> Problem:
    kind = item.get("kind") if isinstance(item, Mapping) else None
    meant = nearest(kind, _SHAPES) if isinstance(kind, str) else None
    shapes = _SHAPES.values() if meant is None else [_SHAPES[meant]]
    return Problem(
        message,
        pointer,
        expected=" or ".join(shapes),
        suggestion=None if meant == kind else meant,
    )


def _read_constraint(item: object) -> Constraint:
    kind = item.get("kind") if isinstance(item, Mapping) else None
    if not isinstance(item, Mapping) or not isinstance(kind, str) or kind not in _SHAPES:
        raise ValueError("unknown kind of constraint")
    given = {key: value for key, value in item.items() if key != "kind"}
    if kind == "inequality":
        return _read_inequality(given)
    if kind == "unique_combinations":
        return _read_unique_combinations(given)
    return _read_expression(given)


def _read_inequality(given: Mapping[str, Any]) -> Inequality:
    strict = given.get("strict", False)
    if not {"low", "high"} <= set(given) <= {"low", "high", "strict"} or not isinstance(
        strict, bool
    ):
        raise ValueError("malformed inequality")
    if not isinstance(given["low"], str) or not isinstance(given["high"], str):
        raise ValueError("low and high are not column names")
    if given["low"] == given["high"]:
        raise ValueError("low and high are the same column")
    return Inequality(given["low"], given["high"], strict)


def _read_unique_combinations(given: Mapping[str, Any]) -> UniqueCombinations:
    columns = given.get("columns")
    if set(given) != {"columns"} or not isinstance(columns, list | tuple):
        raise ValueError("malformed unique_combinations")
    if not all(isinstance(name, str) for name in columns) or len(set(columns)) < 2:
        raise ValueError("unique_combinations needs two or more column names")
    return UniqueCombinations(tuple(columns))


def _read_expression(given: Mapping[str, Any]) -> Expression:
    text = given.get("expression")
    if set(given) != {"expression"} or not isinstance(text, str):
        raise ValueError("malformed expression")
    parse_expression(text)
    return Expression(text)
