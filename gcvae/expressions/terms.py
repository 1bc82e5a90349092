"""Compiles expressions over a schema's columns: determines types, and evaluates whole columns.

A term is a part of an expression. Each has one of four types, determined by the schema:

    number   continuous or integer columns, and levels that are numbers
    date     datetime columns; date - date is a number of days, date + number a later date
    text     levels that are text; those of an ordinal column are ordered as in the schema
    truth    boolean columns, comparisons, and their combinations by and, or, not

A comparison with a missing cell, or with an undefined number such as x / 0, is unknown; `unknown
and false` is false, `unknown or true` is true.

No Python code is evaluated: the allowed nodes of the syntax tree become numpy operations on
columns. Functions are defined in `functions`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC
from functools import partial, reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from gcvae.arrays import DAY, FIRST_TIME, LAST_TIME, TIMES, Numbers
from gcvae.cells.grid_units import grid_unit, slack
from gcvae.cells.levels import are_numeric, level_texts
from gcvae.expressions.date_spans import span_of
from gcvae.expressions.functions import (
    FUNCTIONS,
    NO_DATE,
    Type,
    are_missing,
    check_part,
    known_zone,
)
from gcvae.expressions.rounded_numbers import (
    TRUE,
    UNKNOWN,
    Amount,
    Truths,
    amount_of,
    compare,
    compute,
    truths,
)
from gcvae.schema.columns import Column, Level, TableSchema
from gcvae.schema.expressions import Percentage, quoted_name
from gcvae.schema.kinds import Outcomes
from gcvae.schema.rules import Tables
from gcvae.schema.suggestions import nearest
from gcvae.spelling.date_text import WEEKDAYS, read_dates
from gcvae.spelling.number_formats import read_number

_FIRST, _LAST = int(FIRST_TIME.astype(np.int64)), int(LAST_TIME.astype(np.int64))
_ISO_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d{1,9})?)?")
_MEANT = dict.fromkeys(("isnull", "isna", "is_null", "isblank", "missing"), "is_missing")
_ORDERINGS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip


_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE,
}  # fmt: skip


@dataclass(frozen=True)
class Rows:
    """Cells of the rows in which an expression is evaluated.

    Attributes:
        values: Values by column name, as `column_values` returns them.
        blanks_are_unknown: Whether a missing cell stands for one that is not observed, so that the
            expression `is_missing(column)` is unknown for it.
        known_missing: By column name, the value that `is_missing(column)` has in each row if the
            cell is not observed; UNKNOWN for columns without an entry. Only used with
            `blanks_are_unknown`.
    """

    values: Mapping[str, Any]
    blanks_are_unknown: bool = False
    known_missing: Mapping[str, Truths] = field(default_factory=dict)


@dataclass(frozen=True)
class Term:
    """A compiled part of an expression, such as a column, a literal or a comparison, which can be
    evaluated on rows.

    Attributes:
        text: Source text of the part.
        type: Type of its value.
        evaluate: Function from rows to the values: an Amount for numbers, microseconds since 1970
            for dates, strings, or truth values (true, false, unknown).
        column: The column, if the part is one or is a date computed from one; else None.
        literal: The value of a literal; else None.
        outcomes: All strings that a function can return, such as weekdays; None if they are
            unknown.
        last: For a literal time span such as "2022", the term of its last moment (`evaluate`
            returns the first); else None.
    """

    text: str
    type: Type
    evaluate: Callable[[Rows], Any]
    column: Column | None = None
    literal: Level | None = None
    outcomes: tuple[str, ...] | None = None
    last: Term | None = None

    @property
    def is_column(self) -> bool:
        """Whether this part of an expression is just a column, without any operation."""
        return self.column is not None and self.text == quoted_name(self.column.name)

    @property
    def is_nominal(self) -> bool:
        """Whether this part of an expression is a column of unordered levels (categories)."""
        kind = None if self.column is None else self.column.kind
        return kind is not None and kind.outcomes is Outcomes.NOMINAL_LEVELS

    @property
    def order(self) -> tuple[Level, ...] | None:
        """Levels (categories), lowest first, if this part of an expression is an ordinal column;
        else None."""
        if self.column is None or self.column.kind.outcomes is not Outcomes.ORDERED_LEVELS:
            return None
        return self.column.levels


def compile_condition(tree: ast.expr, schema: TableSchema, tables: Tables | None = None) -> Term:
    """Compiles the syntax tree of a condition: an expression that is true, false or unknown in a
    row.

    Args:
        tree: Syntax tree from `parse_expression`.
        tables: Lookup tables by name, for parts such as `rates[country]`.

    Raises:
        ValueError: The types of the parts do not match, or the expression is not a condition.
        UnknownColumnError: The expression names a column that the schema does not contain.
    """
    return _truth(compile_term(tree, schema, tables or {}), "the expression")


def compile_term(tree: ast.expr, schema: TableSchema, tables: Tables) -> Term:
    """Compiles the syntax tree of an expression over a schema's columns to an evaluable term.

    Args:
        tree: Syntax tree from `parse_expression`.
        tables: Lookup tables by name, for parts such as `rates[country]`.

    Raises:
        ValueError: The types of the parts do not match.
        UnknownColumnError: The expression names a column that the schema does not contain.
    """
    return _Compiler(schema, tables).term(tree)


def column_values(cells: pd.Series[Any], column: Column) -> Any:
    """Converts n parsed cells to the values that expressions compute with: an Amount for numbers,
    microseconds since 1970 for dates, strings, or truth values. Shape: (n,)."""
    kind = type_of(column)
    known = cells.notna().to_numpy()
    if kind is Type.DATE:
        return cells.to_numpy(dtype=TIMES).astype(np.int64)  # blank is NO_DATE
    if kind is Type.TRUTH:
        return truths(cells.isin([True]).to_numpy(dtype=bool), known)
    if kind is Type.TEXT:
        return cells.to_numpy(dtype=object)  # blank is None
    numbers = pd.to_numeric(cells, errors="coerce")  # a word among numbers is an unseen level
    if pd.api.types.is_integer_dtype(numbers.dtype):
        return Amount(numbers.fillna(0).to_numpy(dtype=np.int64), known=known)
    return Amount(numbers.to_numpy(dtype=np.float64, na_value=np.nan), known=known)


@dataclass(frozen=True)
class _Compiler:
    """Compiles the nodes of a syntax tree to terms."""

    schema: TableSchema
    tables: Tables = field(default_factory=dict)

    def _looked_up(self, name: str, keys: Sequence[Term]) -> Term:
        """Compiles `name[key, ...]`, the entry of a lookup table; missing where the table has no
        entry."""
        if name not in self.tables:
            known = ", ".join(self.tables) or "none"
            raise ValueError(f"there is no table {name}; the rule's tables are: {known}")
        text = f"{name}[{', '.join(key.text for key in keys)}]"
        for key in keys:
            if key.type is Type.DATE:
                raise ValueError(f"{text} needs a key of levels, and {key.text} is a date")
        entries = self.tables[name]
        kind = _type_of_levels(tuple(entries.values()))

        def evaluate(rows: Rows) -> Any:
            texts = [key_texts(key.evaluate(rows), key.type) for key in keys]
            return _entries(entries, kind, joint_keys(texts))

        return Term(text, kind, evaluate)

    def term(self, node: ast.expr) -> Term:
        match node:
            case ast.Constant(value=value):
                return _literal_term(value)  # type: ignore[arg-type]
            case ast.Name(id=name):
                return _column_term(self.schema[name])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return _negation(_truth(self.term(operand), "what follows `not`"))
            case ast.UnaryOp(op=operator, operand=operand):
                return _signed(operator, self.term(operand))
            case ast.BoolOp(op=operator, values=values):
                return _joined(operator, [self.term(value) for value in values])
            case ast.BinOp(left=left, op=operator, right=right):
                return _arithmetic(self.term(left), operator, self.term(right))
            case ast.Compare():
                return self._chain(node)
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self._called(name, arguments)
            case ast.Subscript(value=ast.Name(id=name), slice=key):
                keys = key.elts if isinstance(key, ast.Tuple) else [key]
                return self._looked_up(name, [self.term(part) for part in keys])
            case ast.IfExp(test=test, body=body):
                return _joined(
                    ast.Or(),
                    [_negation(_truth(self.term(test), "what follows `if`")), self.term(body)],
                )
        raise ValueError(f"a list stands where no list can: {_shown(node)}")

    def _called(self, name: str, arguments: Sequence[ast.expr]) -> Term:
        terms = [self.term(argument) for argument in arguments]
        if name == "is_missing":
            return _missing(terms)
        if name not in FUNCTIONS:
            known = (*FUNCTIONS, "is_missing")
            meant = _MEANT.get(name.lower()) or nearest(name, known)
            hint = f"did you mean {meant}?" if meant else f"there are {', '.join(known)}"
            raise ValueError(f"there is no function {name}; {hint}")
        function = FUNCTIONS[name]
        dates = [term for term in terms if term.type is Type.DATE and term.column is not None]
        if dates and not FUNCTIONS[name].by_clock:
            terms = [_coerced(term, dates[0]) for term in terms]
        text = f"{name}({', '.join(term.text for term in terms)})"
        function.check(name, [term.type for term in terms])
        for term in terms:
            if term.type is Type.NUMBER:
                _require_number(term, text)
        compute = function.compute
        if function.by_clock:
            check_part(name, terms[0].column)
            compute = partial(compute, zone=_zone(terms))
            terms = terms[:1]
        return Term(
            text,
            function.gives,
            lambda rows: compute(*(term.evaluate(rows) for term in terms)),
            column=dates[0].column if dates and function.gives is Type.DATE else None,
            outcomes=WEEKDAYS if name == "weekday" else None,
        )

    def _chain(self, node: ast.Compare) -> Term:
        """Compiles a comparison; a < b < c as a < b and b < c."""
        sides = [node.left, *node.comparators]
        links = [
            self._link(left, operator, right)
            for left, operator, right in zip(sides, node.ops, sides[1:], strict=False)
        ]
        return links[0] if len(links) == 1 else _joined(ast.And(), links)

    def _link(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> Term:
        if not isinstance(operator, ast.In | ast.NotIn):
            return _comparison(self.term(left), operator, self.term(right))
        if not isinstance(right, ast.List | ast.Tuple) or not right.elts:
            raise ValueError(f"after `in` stands {_shown(right)}, not a list such as (1, 2)")
        sought = self.term(left)
        equal = [_comparison(sought, ast.Eq(), self.term(item)) for item in right.elts]
        found = _joined(ast.Or(), equal)
        return found if isinstance(operator, ast.In) else _negation(found)


def _zone(terms: Sequence[Term]) -> Any:
    """Returns the time zone for a function of a date: the one named in the call, or that of the
    date's column; None if there is neither."""
    if len(terms) > 1:
        named = terms[1].literal
        if not isinstance(named, str):
            raise ValueError(f"{terms[1].text} is not the name of a time zone")
        return known_zone(named)
    return None if terms[0].column is None else terms[0].column.zone


def key_texts(value: Any, kind: Type) -> npt.NDArray[Any]:
    """Converts n values of an expression of type `kind` to keys of lookup tables. Keys are strings:
    "true" or "false" for a truth value, the result of `number_key` for a number. A missing value
    becomes None. Shape: (n,)."""
    if kind is Type.TEXT:
        return np.asarray(value)
    if kind is Type.TRUTH:
        words = np.array(["false", None, "true"], dtype=object)
        return np.asarray(words[value])
    numbers = np.atleast_1d(value.values).astype(np.float64)
    known = np.logical_and(value.known, ~np.isnan(numbers))
    texts = [
        number_key(number) if k else None
        for number, k in zip(numbers.tolist(), known.tolist(), strict=True)
    ]
    return np.array(texts, dtype=object)


def joint_keys(texts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Returns the keys of a lookup table for n combinations of key texts: the texts, joined by
    " | "; None where one is missing. Shape: (n,) each -> (n,)."""
    if len(texts) == 1:
        return texts[0]
    joint = [None if None in row else " | ".join(row) for row in zip(*texts, strict=True)]
    return np.array(joint, dtype=object)


def number_key(number: float) -> str:
    """Returns a number as a key of a lookup table, a string; whole numbers have no decimal point.

    >>> number_key(3.0), number_key(0.19)
    ('3', '0.19')
    """
    return (
        str(int(number)) if number == int(number) and abs(number) < 2**53 else repr(float(number))
    )


def _entries(entries: Mapping[str, Level], kind: Type, keys: npt.NDArray[Any]) -> Any:
    found = [entries.get(key) for key in keys.tolist()]
    known = np.array([entry is not None for entry in found], dtype=bool)
    if kind is Type.TEXT:
        return np.array(found, dtype=object)
    if kind is Type.TRUTH:
        return truths(np.array([entry is True for entry in found], dtype=bool), known)
    return Amount(
        np.array([np.nan if entry is None else entry for entry in found], dtype=np.float64),
        0.0,
        known,
    )


# Leaves


def _column_term(column: Column) -> Term:
    name = column.name
    kind = type_of(column)
    return Term(quoted_name(name), kind, lambda rows: rows.values[name], column)


def type_of(column: Column) -> Type:
    """Returns the type of a column's cells in expressions.

    Raises:
        ValueError: The column has no value in any row, so that its type is unknown.
    """
    levels = column.typed_levels
    if column.datetime_format is not None:
        return Type.DATE
    if column.kind.is_real:
        return Type.NUMBER
    if not levels:
        raise ValueError(f"column {column.name!r} has no value in any row")
    return _type_of_levels(levels)


def _type_of_levels(levels: Sequence[Level]) -> Type:
    if all(isinstance(level, bool) for level in levels):
        return Type.TRUTH
    return Type.NUMBER if are_numeric(tuple(levels)) else Type.TEXT


def _literal_term(value: Level) -> Term:
    if isinstance(value, bool):
        return _fixed(value, Type.TRUTH, _truth_of(value))
    if isinstance(value, str):
        return _fixed(value, Type.TEXT, np.asarray(value, dtype=object))
    try:
        return _fixed(value, Type.NUMBER, amount_of(value))
    except OverflowError:
        raise ValueError("a number is too large") from None


def _truth_of(value: bool) -> Truths:
    return truths(np.asarray(value), True)


def _fixed(literal: Level, kind: Type, value: Any) -> Term:
    return Term(repr(literal), kind, lambda rows: value, literal=literal)


def _missing(terms: Sequence[Term]) -> Term:
    if len(terms) != 1 or terms[0].column is None or terms[0].text.startswith("is_missing"):
        raise ValueError("is_missing takes a column")
    [term] = terms
    name = terms[0].column.name

    def evaluate(rows: Rows) -> Truths:
        found = are_missing(term.evaluate(rows), term.type)
        if not rows.blanks_are_unknown:
            return found
        return np.where(found == TRUE, rows.known_missing.get(name, UNKNOWN), found)

    return Term(f"is_missing({term.text})", Type.TRUTH, evaluate)


# Arithmetic


def _signed(operator: ast.unaryop, term: Term) -> Term:
    sign = "+" if isinstance(operator, ast.UAdd) else "-"
    _require_number(term, f"{sign}{_part(term)}")
    if sign == "+":
        return term

    def evaluate(rows: Rows) -> Amount:
        amount: Amount = term.evaluate(rows)
        return replace(amount, values=-amount.values)

    return Term(f"-{_part(term)}", Type.NUMBER, evaluate)


def _arithmetic(left: Term, operator: ast.operator, right: Term) -> Term:
    left, right = _coerced(left, right), _coerced(right, left)
    text = f"{_part(left)} {_SYMBOLS[type(operator)]} {_part(right)}"
    if isinstance(operator, ast.Add | ast.Sub) and Type.DATE in (left.type, right.type):
        return _date_arithmetic(left, operator, right, text)
    for term in (left, right):
        _require_number(term, text)
    return Term(
        text,
        Type.NUMBER,
        lambda rows: compute(operator, left.evaluate(rows), right.evaluate(rows)),
    )


_SYMBOLS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**",
}  # fmt: skip


def _part(term: Term) -> str:
    """Returns the text of a term within a longer expression, in parentheses if needed."""
    is_leaf = term.literal is not None or " " not in term.text
    return term.text if is_leaf or term.text.startswith("`") else f"({term.text})"


def _require_number(term: Term, whole: str) -> None:
    if term.type is not Type.NUMBER:
        raise ValueError(f"{whole} needs numbers, but {term.text} is {term.type}")
    if term.is_nominal:
        raise ValueError(
            f"{whole} needs numbers, but the levels of {term.text} are names: "
            "its kind is categorical, not ordinal"
        )


def _date_arithmetic(left: Term, operator: ast.operator, right: Term, text: str) -> Term:
    """Compiles date - date to a number of days; date + days, days + date and date - days to
    dates."""
    subtract = isinstance(operator, ast.Sub)
    if subtract and left.type is right.type:
        return Term(
            text,
            Type.NUMBER,
            lambda rows: _days_between(left.evaluate(rows), right.evaluate(rows)),
        )
    date, number = (left, right) if left.type is Type.DATE else (right, left)
    if number.type is Type.DATE or (subtract and date is right):
        raise ValueError(f"{text} has no meaning: a date takes + or - and a number of days")
    _require_number(number, text)
    sign = -1.0 if subtract else 1.0
    return Term(
        text,
        Type.DATE,
        lambda rows: _moved(date.evaluate(rows), number.evaluate(rows), sign),
        date.column,
    )


def _days_between(later: npt.NDArray[np.int64], earlier: npt.NDArray[np.int64]) -> Amount:
    exists = (later != NO_DATE) & (earlier != NO_DATE)
    values = np.where(exists, (later - earlier) / DAY, np.nan)
    return Amount(values, np.finfo(np.float64).eps * np.where(exists, np.abs(values), 0.0))


def _moved(times: npt.NDArray[np.int64], days: Amount, sign: float) -> npt.NDArray[np.int64]:
    """Adds `sign` times a number of days to dates, clipped to the years 1 to 9999."""
    with np.errstate(all="ignore"):
        distance = np.rint(sign * days.values.astype(np.float64) * DAY)
    exists = days.known & ~np.isnan(distance) & (times != NO_DATE)
    steps = np.where(exists, distance.clip(_FIRST - _LAST, _LAST - _FIRST), 0.0).astype(np.int64)
    return np.where(exists, np.clip(times + steps, _FIRST, _LAST), NO_DATE)


# Comparisons


def _comparison(left: Term, operator: ast.cmpop, right: Term) -> Term:
    left, right = _coerced(left, right), _coerced(right, left)
    text = f"{left.text} {_SIGNS[type(operator)]} {right.text}"
    if left.type is not right.type:
        raise ValueError(
            f"{text} cannot be compared: {left.text} is {left.type} and {right.text} {right.type}"
        )
    if left.last is not None or right.last is not None:
        return replace(_compared_with_span(left, operator, right), text=text)
    compared = _compared_texts if left.type is Type.TEXT else _compared_values
    return Term(text, Type.TRUTH, compared(left, operator, right, text))


def _compared_values(
    left: Term, operator: ast.cmpop, right: Term, text: str
) -> Callable[[Rows], Truths]:
    ordered = isinstance(operator, _ORDERINGS)
    for term in (left, right):
        if ordered and (term.is_nominal or term.type is Type.TRUTH):
            raise ValueError(
                f"{text} asks for an order, but the levels of {term.text} have none: "
                "its kind is not ordinal"
            )
    rounded = None if ordered else _rounded_column(left, right)

    def compared(rows: Rows) -> Truths:
        first, second = _amount(left, rows), _amount(right, rows)
        if rounded is not None:
            second = replace(second, error=second.error + _rounding(rounded, first, second))
        return compare(operator, first, second)

    return compared


def _amount(term: Term, rows: Rows) -> Amount:
    found = term.evaluate(rows)
    if term.type is Type.NUMBER:
        return found  # type: ignore[no-any-return]
    return Amount(found, known=found != (NO_DATE if term.type is Type.DATE else UNKNOWN))


def _rounded_column(left: Term, right: Term) -> Column | None:
    """Returns the column that is one side of an equality, if the other side is rounded to the
    column's resolution. Returns None if the sides are compared exactly; two columns of the same
    resolution are."""
    if left.type is Type.TRUTH or left.literal is not None or right.literal is not None:
        return None
    if left.column is not None and left.is_column:
        is_same = right.is_column and right.column is not None
        is_same = is_same and grid_unit(left.column) == grid_unit(right.column)  # type: ignore[arg-type]
        return None if is_same else left.column
    return right.column if right.is_column else None


def _rounding(column: Column, first: Amount, second: Amount) -> Numbers:
    """Returns by how much the sides of an equality may differ because one is rounded to the
    resolution of `column`; in units of the column, for dates in microseconds. Shape: (n,)."""
    size = np.maximum(*(np.abs(amount.values.astype(np.float64)) for amount in (first, second)))
    scale = 1e6 if column.has_times else 1.0
    return scale * slack(column, size / scale, is_rounded=True)


def _compared_with_span(left: Term, operator: ast.cmpop, right: Term) -> Term:
    """Compiles a comparison of a date with a time span: `==` means that the date lies in the span,
    `<` that it lies before the first moment, `>` that it lies after the last moment."""
    if left.last is not None and right.last is None:
        left, right, operator = right, left, _TURNED.get(type(operator), type(operator))()
    first, last = replace(right, last=None), right.last
    if last is None or left.last is not None:
        raise ValueError(f"{left.text} and {right.text} are no column")
    if isinstance(operator, ast.Eq | ast.NotEq):
        within = [_comparison(left, ast.GtE(), first), _comparison(left, ast.LtE(), last)]
        found = _joined(ast.And(), within)
        return found if isinstance(operator, ast.Eq) else _negation(found)
    return _comparison(left, operator, last if isinstance(operator, ast.LtE | ast.Gt) else first)


def _compared_texts(
    left: Term, operator: ast.cmpop, right: Term, text: str
) -> Callable[[Rows], Truths]:
    for term, other in ((left, right), (right, left)):
        _check_level(term, other)
    if not isinstance(operator, _ORDERINGS):
        return lambda rows: _same_texts(left.evaluate(rows), operator, right.evaluate(rows))
    order = left.order if left.order is not None else right.order
    for term in (left, right):
        if order is None or (term.column is not None and term.order != order):
            raise ValueError(
                f"{text} asks for an order, but the texts of {term.text} have none: "
                "both sides must be ordinal with the same levels"
            )
    assert order is not None
    ranked = pd.Index(order)
    return lambda rows: compare(
        operator, _ranks(left.evaluate(rows), ranked), _ranks(right.evaluate(rows), ranked)
    )


def _same_texts(left: npt.NDArray[Any], operator: ast.cmpop, right: npt.NDArray[Any]) -> Truths:
    same = np.asarray(left == right, dtype=bool)
    return truths(same if isinstance(operator, ast.Eq) else ~same, pd.notna(left) & pd.notna(right))


def _ranks(texts: npt.NDArray[Any], order: pd.Index[Any]) -> Amount:
    places = order.get_indexer(pd.Index(np.atleast_1d(texts), dtype=object)).reshape(texts.shape)
    return Amount(places.astype(np.int64), known=places >= 0)


def _check_level(term: Term, other: Term) -> None:
    """Raises a ValueError if a text literal is no level of the column with which it is compared,
    because it is probably misspelled."""
    levels = other.outcomes if other.column is None else other.column.levels
    if term.literal is None or levels is None or term.literal in levels:
        return
    listed = ", ".join(map(repr, levels[:20])) + (", ..." if len(levels) > 20 else "")
    raise ValueError(f"{term.text} is no level of {other.text}: those are {listed}")


def _coerced(term: Term, other: Term) -> Term:
    """Converts a literal to the type of the other side, if that is a column: to a date, a number,
    or a truth value. Other terms are unchanged."""
    if term.literal is None or other.column is None or isinstance(term.literal, bool):
        return term
    if other.type is Type.DATE and term.type is Type.TEXT:
        assert isinstance(term.literal, str), "a text"
        return _date_term(term.literal, other.column)
    if other.type is Type.TRUTH and other.column.kind.outcomes is Outcomes.TRUTH_VALUES:
        return _boolean_term(term, other.column)
    if other.type is Type.NUMBER and isinstance(term.literal, str):
        number = read_number(term.literal, other.column.number_format)
        return term if number is None else replace(_literal_term(number), text=term.text)
    if other.type is Type.NUMBER and isinstance(term.literal, Percentage):
        text = term.literal.percent
        is_in_percent = _is_in_percent(other.column) and other.is_column
        return replace(_literal_term(float(text)), text=term.text) if is_in_percent else term
    if other.type is Type.TEXT and isinstance(term.literal, int | float):
        raise ValueError(
            f"{other.text} holds text, and {term.text} is a number: write '{term.text}'"
        )
    return term


def _date_term(text: str, column: Column) -> Term:
    time = read_dates(pa.array([text]), column.date_format)[0]
    span = span_of(text, column) if np.isnat(time) else None
    if span is not None:
        first, last = (_moment(text, moment.to_datetime64()) for moment in span)
        return replace(first, last=last)
    if np.isnat(time) and _ISO_MOMENT.fullmatch(text):
        with suppress(ValueError):
            local = pd.Timestamp(text).as_unit("us").tz_localize(column.zone or UTC)
            time = local.tz_convert("UTC").tz_localize(None).to_datetime64()
    if np.isnat(time):
        raise ValueError(
            f"{text!r} beside column {column.name!r} is no date of the format "
            f"{column.datetime_format}, nor one like 2024-01-31"
        )
    return _moment(text, time)


def _moment(text: str, time: np.datetime64) -> Term:
    return _fixed(text, Type.DATE, np.asarray(time, dtype=TIMES).astype(np.int64))


def _is_in_percent(column: Column) -> bool:
    """Returns whether a column's cells are written as percentages; `23 %` then means 23, not
    0.23."""
    form = column.number_format
    return form is not None and "%" in (form.prefix.strip(), form.suffix.strip())


def _boolean_term(term: Term, column: Column) -> Term:
    words = dict(
        zip((*level_texts(column), *(column.levels or ())), (False, True) * 2, strict=True)
    )
    if term.literal not in words:
        listed = " or ".join(map(repr, column.levels or ()))
        raise ValueError(f"{term.text} is no level of {column.name}: those are {listed}")
    truth = words[term.literal]
    return replace(_fixed(truth, Type.TRUTH, _truth_of(truth)), text=term.text)


# Truths


def _truth(term: Term, use: str) -> Term:
    if term.type is not Type.TRUTH:
        raise ValueError(f"{use} must be true or false, but {term.text} is {term.type}")
    return term


def _negation(term: Term) -> Term:
    return Term(f"not {term.text}", Type.TRUTH, lambda rows: TRUE - term.evaluate(rows))


def _joined(operator: ast.boolop, terms: Sequence[Term]) -> Term:
    word = "and" if isinstance(operator, ast.And) else "or"
    join = np.minimum if word == "and" else np.maximum
    parts = [_truth(term, f"what `{word}` joins") for term in terms]

    def evaluate(rows: Rows) -> Truths:
        return reduce(join, (part.evaluate(rows) for part in parts))

    return Term(f" {word} ".join(part.text for part in parts), Type.TRUTH, evaluate)


def _shown(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 60 else text[:57] + "..."
