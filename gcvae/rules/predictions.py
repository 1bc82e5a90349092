"""Predictions f(x) of a column y by the formula of a rule, rounded to the resolution of y.

The resolution is 10^-decimals or, for a date, the smallest unit of its format; multiples of it form
the column's grid. As a prediction is rounded to the grid, y - f is a multiple too. A row satisfies
y == f(x) if y is within half a unit of f(x), in whichever direction halves are rounded.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from gcvae.arrays import TIMES, Mask, Numbers
from gcvae.cells.grid_units import decimals_of, grid_unit, microseconds, slack
from gcvae.cells.values import own_dtype
from gcvae.expressions.functions import NO_DATE, Type
from gcvae.expressions.rounded_numbers import TRUE, UNKNOWN
from gcvae.expressions.terms import (
    Rows,
    Term,
    column_values,
    compile_condition,
    compile_term,
    type_of,
)
from gcvae.rules.grids import Grid
from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.rules import Combination, Condition, Formula, Missingness, Rule
from gcvae.spelling.date_text import read_dates

Ties = Literal["even", "away", "binary"]
"""How numbers half way between two multiples of the resolution are rounded: to the even one, away
from 0 as in SQL, or by the binary fraction, as in pandas: 1.35 · 2.1 is 2.8350000000000004, thus
2.84."""
TIES: tuple[Ties, ...] = get_args(Ties)
_NOISE_DIGITS = 6
"""Number of decimals to which multiples of the resolution are rounded first, against floating-point
noise: 0.1 + 0.2 is then 0.3, and 2.675 lies half way between 2.67 and 2.68."""
_LARGEST = 2.0**53
"""Limit up to which float64 represents all whole numbers."""


@dataclass(frozen=True)
class Prediction:
    """Compiled formula f of a rule y == f(x), y >= f(x) or y <= f(x) between columns, which
    predicts y.

    Attributes:
        column: Schema of y.
        parents: Schema of the columns x that f uses.
        ties: How numbers half way between two multiples of y's resolution are rounded.
    """

    rule: Rule
    column: Column
    parents: TableSchema
    ties: Ties = "even"

    @classmethod
    def of(cls, rule: Rule, schema: Mapping[str, Column] | TableSchema) -> Self:
        """Compiles the formula f of a rule y == f(x), y >= f(x) or y <= f(x).

        Raises:
            ValueError: The types do not fit, or a value that the rule exempts is not a value of y.
        """
        assert isinstance(rule.form, Formula), "other rules predict nothing"
        found = cls(rule, schema[rule.column], TableSchema(tuple(schema[n] for n in rule.parents)))
        own = type_of(found.column)
        if found.term.type is not own:
            raise ValueError(f"{rule.column} is {own}, and {found.term.text} is {found.term.type}")
        if rule.form.is_inequality and not (found.column.has_numbers or found.column.has_times):
            raise ValueError(f"{rule.column} has no order that an inequality asks for")
        _ = found.exempt
        return found

    @property
    def form(self) -> Formula:
        """The rule, parsed as formula or inequality."""
        assert isinstance(self.rule.form, Formula), "checked in `of`"
        return self.rule.form

    @cached_property
    def term(self) -> Term:
        """Compiled right side f of the rule y == f(x). If f is itself rounded to the decimals of y,
        this rounding is left out, because it does not change which rows satisfy the rule."""
        tree = self.form.value
        match tree:
            case ast.Call(func=ast.Name(id="round"), args=[inner, *digits]) if len(digits) < 2:
                decimals = getattr(digits[0], "value", None) if digits else 0
                is_same = self.column.has_numbers and decimals == decimals_of(self.column)
                tree = inner if is_same and self.form.relation == "==" else tree
        return compile_term(tree, self.parents, self.rule.tables)

    @cached_property
    def is_of_levels(self) -> bool:
        """Whether the predicted column consists of levels (categories), not of numbers or dates."""
        return Grid.of(self.column) is None and not self.column.kind.is_real

    @property
    def is_lookup(self) -> bool:
        """Whether f is an entry of a lookup table, such as value[product]."""
        return isinstance(self.form.value, ast.Subscript)

    @cached_property
    def exempt(self) -> pd.Series[Any]:
        """The k values of the predicted column to which the rule does not apply. Shape: (k,).

        Raises:
            ValueError: A value does not have the column's type.
        """
        values, column = self.form.exempt, self.column
        if self.is_of_levels:
            return pd.Series(values, dtype=object)
        wrong = [x for x in values if isinstance(x, str) != column.has_times]
        if column.has_times:
            times = read_dates(pa.array(map(str, values), pa.string()), column.date_format)
            wrong += [text for text, time in zip(values, times, strict=True) if np.isnat(time)]
        if wrong:
            form = f"a date like {column.datetime_format}" if column.has_times else "a number"
            raise ValueError(f"{wrong[0]!r} is no value of column {column.name!r}: it has {form}")
        return pd.Series(times if column.has_times else np.array(values, dtype=np.float64))

    def evaluated(self, frame: pd.DataFrame) -> npt.NDArray[Any]:
        """Returns the formula's value f(x) in each of n rows before rounding: numbers as float64,
        dates as seconds since 1970, levels as objects. It is NaN or None where a column of f is
        missing, or where f has no value, such as 1 / 0. Shape: (n,)."""
        rows = Rows({c.name: column_values(frame[c.name], c) for c in self.parents})
        with np.errstate(all="ignore"):  # numbers that are too large become missing
            value = self.term.evaluate(rows)
        if self.term.type is Type.NUMBER:
            numbers = np.where(value.known, value.values.astype(np.float64), np.nan)
            found = np.where(np.isfinite(numbers), numbers, np.nan)
        elif self.term.type is Type.DATE:
            found = np.where(value == NO_DATE, np.nan, value / 1e6)
        elif self.term.type is Type.TRUTH:
            found = np.array([False, None, True], dtype=object)[np.atleast_1d(value)]
        else:
            found = value
        return np.broadcast_to(found, len(frame))

    def predicted(self, frame: pd.DataFrame) -> pd.Series[Any]:
        """Returns the predicted cell f(x) of y in each of n rows, with the frame's index and the
        dtype of y. Shape: (n,).

        The value is rounded to the resolution of y: to the nearest multiple for a formula, up for
        >= and down for <=. It is missing where f has no value, or one too large to be exact.
        """
        found = self.evaluated(frame)
        if self.is_of_levels:
            return pd.Series(found, frame.index, dtype=object)
        to_whole: Callable[[Numbers], Numbers]
        if self.form.is_inequality:
            to_whole = np.ceil if self.form.relation == ">=" else np.floor
        else:
            to_whole = _away_from_zero if self.ties == "away" else np.rint
        digits = None if self.ties == "binary" else _NOISE_DIGITS
        on_grid = _on_grid(found, self.column, to_whole, digits)
        return _typed(on_grid, self.column).set_axis(frame.index)

    def at_tie(self, frame: pd.DataFrame) -> Mask:
        """Returns for each of n rows whether the formula's value lies half way between two
        multiples of the predicted column's resolution. Shape: (n,)."""
        unit = grid_unit(self.column)
        if unit is None or self.is_of_levels:
            return np.zeros(len(frame), dtype=bool)
        rest = np.round(np.abs(self.evaluated(frame)) / unit, _NOISE_DIGITS) % 1.0
        return np.asarray(rest == 0.5)

    def keeps(self, frame: pd.DataFrame) -> tuple[Mask, Mask]:
        """Returns (mask of the rows in which no column of the rule is missing, mask of the rows
        that satisfy the rule). Shape: (n,), (n,)."""
        f_values = self.evaluated(frame)
        values = self.values(frame[self.column.name])
        known = ~(pd.isna(values) | pd.isna(f_values))
        return known, known & self.agrees(values, f_values)

    def values(self, cells: pd.Series[Any]) -> npt.NDArray[Any]:
        """Converts n cells of the predicted column to the values that `evaluated` returns: numbers
        to float64, dates to seconds since 1970, levels to objects. Shape: (n,)."""
        if not self.is_of_levels:
            return quantities(cells)
        if self.term.type is Type.NUMBER:
            return pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        found = cells.to_numpy(dtype=object).copy()
        found[cells.isna().to_numpy()] = None
        return found

    def agrees(self, values: npt.NDArray[Any], f_values: npt.NDArray[Any]) -> Mask:
        """Returns a mask of the n rows that satisfy the rule. Shape: (n,).

        Args:
            values: Value of y in each row, as the method `values` returns it. Shape: (n,).
            f_values: Value of f in each row, as `evaluated` returns it. Shape: (n,).
        """
        is_exempt = self.exempts(values)
        if values.dtype == object:
            return np.asarray(values == f_values, dtype=bool) | is_exempt
        size = np.maximum(np.abs(values), np.abs(f_values))
        if self.form.is_inequality:
            above = values - f_values if self.form.relation == ">=" else f_values - values
            return np.asarray(above >= -slack(self.column, size)) | is_exempt
        furthest = slack(self.column, size, is_rounded=True) + self.form.tolerance
        return np.asarray(np.abs(values - f_values) <= furthest) | is_exempt

    def exempts(self, values: npt.NDArray[Any]) -> Mask:
        """Returns a mask of the values of y to which the rule does not apply. Shape: (n,).

        Args:
            values: Values of y in n rows, as the method `values` returns them. Shape: (n,).
        """
        if values.dtype == object:
            return np.array([value in self.form.exempt for value in values], dtype=bool)
        return np.isin(values, quantities(self.exempt))


def keeps(rule: Rule, frame: pd.DataFrame, schema: TableSchema) -> tuple[Mask, Mask]:
    """Returns (mask of the rows to which a rule applies, mask of the rows that satisfy it).

    Shape: (n,), (n,).

    Args:
        rule: Any rule except a functional dependency. A formula applies to rows in which none of
            its columns is missing. A rule on missing cells applies to rows in which, according to
            the rule, one of its cells has to be missing. A condition applies to rows in which it is
            true or false, not unknown. A rule that permits only the table's combinations of values
            (`Combination`) counts as satisfied in all rows, because it permits every combination
            that occurs in the table.
        frame: Columns of the rule, with cells of their dtypes.
    """
    if isinstance(rule.form, Combination):  # combinations of the table are those permitted
        everywhere = np.ones(len(frame), dtype=bool)
        return everywhere, everywhere
    if isinstance(rule.form, Missingness):
        here, there = (frame[name].isna().to_numpy() for name in rule.columns)
        there = there != rule.form.is_inverse
        return (here | there if rule.form.is_same else there), here & there
    if isinstance(rule.form, Condition):
        term = compile_condition(rule.form.tree, schema, rule.tables)
        rows = Rows({name: column_values(frame[name], schema[name]) for name in rule.columns})
        found = term.evaluate(rows)
        return found != UNKNOWN, found == TRUE
    return Prediction.of(rule, schema).keeps(frame)


def quantities(series: pd.Series[Any]) -> Numbers:
    """Converts n cells to float64, dates to seconds since 1970; NaN for missing cells and for text
    among numbers. Shape: (n,)."""
    if series.dtype.kind != "M":
        numbers = pd.to_numeric(series, errors="coerce")  # text is an unseen level
        return numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(series.isna(), np.nan, series.to_numpy(TIMES).view("i8") / 1e6)


def rounded(values: Numbers, column: Column) -> Numbers:
    """Rounds n numbers, or dates in seconds since 1970, to the column's resolution. Shape: (n,)."""
    return _on_grid(values, column, np.rint)


def _on_grid(
    values: Numbers,
    column: Column,
    to_whole: Callable[[Numbers], Numbers],
    digits: int | None = _NOISE_DIGITS,
) -> Numbers:
    """Rounds numbers or seconds to multiples of the column's resolution. Against floating-point
    noise, the multiples are first rounded to `digits` decimals, unless that is None."""
    decimals = decimals_of(column)
    if column.has_times:
        scale = 1e6 / microseconds(column)
    elif decimals is not None:
        scale = 10.0**decimals  # division by 10^d gives the float64 of the decimal text
    else:
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = values * scale
        whole = to_whole(scaled if digits is None else np.round(scaled, digits))
        return np.where(np.abs(whole) < _LARGEST, whole, np.nan) / scale


def _away_from_zero(values: Numbers) -> Numbers:
    return np.copysign(np.floor(np.abs(values) + 0.5), values)


def _typed(values: Numbers, column: Column) -> pd.Series[Any]:
    """Converts numbers or seconds to the dtype of the column's cells."""
    missing = ~np.isfinite(values)
    known = np.where(missing, 0.0, values)
    if column.has_times:
        unit = microseconds(column)
        times = (np.rint(known * (1e6 / unit)).astype(np.int64) * unit).view(TIMES)
        return pd.Series(np.where(missing, np.datetime64("NaT", "us"), times))
    dtype = own_dtype(column)
    if dtype.lower() != "int64":
        return pd.Series(np.where(missing, np.nan, values))
    whole = pd.Series(pd.arrays.IntegerArray(known.astype(np.int64), missing))
    return whole if missing.any() or dtype == "Int64" else whole.astype("int64")
