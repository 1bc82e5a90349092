"""Constraints between columns as documents: parsed, and checked for structure.

What an expression means is in `expressions`, which rows satisfy a constraint in `constraint_set`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gcvae.errors import Problem
from gcvae.schema.expressions import names_in, parse_expression, quoted_name, written
from gcvae.schema.rules import Formula, read_form
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
    return names_in(parse_expression(constraint.expression))


def formula_texts(constraint: Constraint) -> list[str]:
    """The texts of the formulas and inequalities that a constraint asks for.

    >>> formula_texts(Expression("net <= gross and gross == net + tax and net != 5"))
    ['net <= gross', 'gross == net + tax']
    >>> formula_texts(Inequality("start", "end", strict=True))
    ['end >= start']
    """
    if isinstance(constraint, UniqueCombinations):
        return []
    if isinstance(constraint, Inequality):
        return [f"{quoted_name(constraint.high)} >= {quoted_name(constraint.low)}"]
    tree = parse_expression(constraint.expression)
    is_joined = isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And)
    parts = tree.values if isinstance(tree, ast.BoolOp) and is_joined else [tree]
    texts = [written(part) for part in parts]
    return [text for text in texts if isinstance(read_form(text), Formula)]


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
