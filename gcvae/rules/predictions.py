"""Prediction of a formula for a column: f(x), on the column's own grid.

The grid of a column is the whole multiples of 10^-decimals, of a date those of the smallest unit of
its format. A prediction is rounded to it in whole multiples, so that y - f is a whole multiple too.
A row keeps y == f(x) where y is within half a unit of f(x), whichever way halves are rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

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

Ties = Literal["even", "away"]
"""Where a number half way between two of the grid goes: to the even one, or away from 0."""
_NOISE_DIGITS = 6
"""Digits of a grid unit that count: 0.1 + 0.2 is 0.3, and 2.675 is half way."""
_LARGEST = 2.0**53
"""Whole numbers up to here are float64's own."""


@dataclass(frozen=True)
class Prediction:
    """A formula, compiled for the columns of a schema.

    Attributes:
        rule: Its rule.
        column: y.
        parents: The columns of f.
        ties: How y is rounded.
    """

    rule: Rule
    column: Column
    parents: TableSchema
    ties: Ties = "even"

    @classmethod
    def of(cls, rule: Rule, schema: Mapping[str, Column] | TableSchema) -> Self:
        """Returns the prediction of a rule that is a formula.

        Raises:
            ValueError: Types do not fit each other, or a value beside is none of the column's.
        """
        assert isinstance(rule.form, Formula), "other rules predict nothing"
        found = cls(rule, schema[rule.column], TableSchema(tuple(schema[n] for n in rule.parents)))
        own = type_of(found.column)
        if found.term.type is not own:
            raise ValueError(f"{rule.column} is {own}, and {found.term.text} is {found.term.type}")
        if rule.form.is_inequality and not (found.column.has_numbers or found.column.has_times):
            raise ValueError(f"{rule.column} has no order that an inequality asks for")
        _ = found.beside
        return found

    @property
    def form(self) -> Formula:
        """The rule's form."""
        assert isinstance(self.rule.form, Formula), "checked in `of`"
        return self.rule.form

    @cached_property
    def term(self) -> Term:
        """f."""
        return compile_term(self.form.value, self.parents, self.rule.tables)

    @cached_property
    def is_of_levels(self) -> bool:
        """Whether y is a level, and no number or date on a grid."""
        return Grid.of(self.column) is None and not self.column.kind.is_real

    @cached_property
    def beside(self) -> pd.Series[Any]:
        """The typed values of y that the rule names as standing apart.

        Shape: (k,). Raises: ValueError: One is none of the column's.
        """
        values, column = self.form.beside, self.column
        wrong = [x for x in values if isinstance(x, str) != column.has_times]
        if column.has_times:
            times = read_dates(pa.array(map(str, values), pa.string()), column.date_format)
            wrong += [text for text, time in zip(values, times, strict=True) if np.isnat(time)]
        if wrong:
            form = f"a date like {column.datetime_format}" if column.has_times else "a number"
            raise ValueError(f"{wrong[0]!r} is no value of column {column.name!r}: it has {form}")
        return pd.Series(times if column.has_times else np.array(values, dtype=np.float64))

    def said(self, frame: pd.DataFrame) -> npt.NDArray[Any]:
        """f(x) before it is rounded: numbers and dates as `quantities`, levels as objects.

        Shape: (n,). NaN or None where a parent is missing, or where f has no value.
        """
        rows = Rows({c.name: column_values(frame[c.name], c) for c in self.parents})
        with np.errstate(all="ignore"):  # what is too large is missing
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
        """f(x) of each row as a cell of y.

        On y's grid: rounded, of an inequality upwards or downwards. In y's typed dtype (Int64 where
        a whole number is missing), with the frame's index. Missing where `said` is, and where
        numbers are too large to be exact. Shape: (n,).
        """
        found = self.said(frame)
        if self.is_of_levels:
            return pd.Series(found, frame.index, dtype=object)
        to_whole: Callable[[Numbers], Numbers]
        if self.form.is_inequality:
            to_whole = np.ceil if self.form.relation == ">=" else np.floor
        else:
            to_whole = np.rint if self.ties == "even" else _away_from_zero
        return _typed(_on_grid(found, self.column, to_whole), self.column).set_axis(frame.index)

    def at_tie(self, frame: pd.DataFrame) -> Mask:
        """Returns rows in which f lies half way between two places of y's grid. Shape: (n,)."""
        unit = grid_unit(self.column)
        if unit is None or self.is_of_levels:
            return np.zeros(len(frame), dtype=bool)
        rest = np.round(np.abs(self.said(frame)) / unit, _NOISE_DIGITS) % 1.0
        return np.asarray(rest == 0.5)

    def keeps(self, frame: pd.DataFrame) -> tuple[Mask, Mask]:
        """Returns (all is known, the row keeps the rule) for each row. Shape: (n,), (n,).

        Args:
            frame: The typed columns of the rule.
        """
        said = self.said(frame)
        values = self.values(frame[self.column.name])
        known = ~(pd.isna(values) | pd.isna(said))
        return known, known & self.agrees(values, said)

    def values(self, cells: pd.Series[Any]) -> npt.NDArray[Any]:
        """Typed cells of y, as `said` has them. Shape: (n,)."""
        if not self.is_of_levels:
            return quantities(cells)
        if self.term.type is Type.NUMBER:
            return pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        found = cells.to_numpy(dtype=object).copy()
        found[cells.isna().to_numpy()] = None
        return found

    def agrees(self, values: npt.NDArray[Any], said: npt.NDArray[Any]) -> Mask:
        """Returns whether each value of y keeps the rule. Shape: (n,), (n,) -> (n,)."""
        if values.dtype == object:
            return np.asarray(values == said, dtype=bool)
        size = np.maximum(np.abs(values), np.abs(said))
        if self.form.is_inequality:
            above = values - said if self.form.relation == ">=" else said - values
            is_kept = above >= -slack(self.column, size)
            return np.asarray(is_kept | np.isin(values, quantities(self.beside)))
        furthest = slack(self.column, size, is_rounded=True) + self.form.tolerance
        return np.asarray(np.abs(values - said) <= furthest)


def keeps(rule: Rule, frame: pd.DataFrame, schema: TableSchema) -> tuple[Mask, Mask]:
    """Returns (all columns of a rule are known, the row keeps it) for each row. Shape: (n,), (n,).

    Args:
        rule: Any but a functional dependency. Of missing cells "known" is where one asks for
            another, of a condition where it is true or false.
        frame: The typed columns of the rule.
        schema: Schema of the columns.
    """
    if isinstance(rule.form, Combination):  # as it is fitted to the rows
        everywhere = np.ones(len(frame), dtype=bool)
        return everywhere, everywhere
    if isinstance(rule.form, Missingness):
        here, there = (frame[name].isna().to_numpy() for name in rule.columns)
        return (here | there if rule.form.is_same else there), here & there
    if isinstance(rule.form, Condition):
        term = compile_condition(rule.form.tree, schema, rule.tables)
        rows = Rows({name: column_values(frame[name], schema[name]) for name in rule.columns})
        found = term.evaluate(rows)
        return found != UNKNOWN, found == TRUE
    return Prediction.of(rule, schema).keeps(frame)


def quantities(series: pd.Series[Any]) -> Numbers:
    """Typed cells as float64, dates in seconds; NaN where missing. Shape: (n,)."""
    if series.dtype.kind != "M":
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(series.isna(), np.nan, series.to_numpy(TIMES).view("i8") / 1e6)


def rounded(values: Numbers, column: Column) -> Numbers:
    """Quantities on the column's grid. Shape: (n,)."""
    return _on_grid(values, column, np.rint)


def _on_grid(values: Numbers, column: Column, to_whole: Callable[[Numbers], Numbers]) -> Numbers:
    """Quantities as multiples of the grid's unit, made whole. Shape: (n,)."""
    decimals = decimals_of(column)
    if column.has_times:
        scale = 1e6 / microseconds(column)
    elif decimals is not None:
        scale = 10.0**decimals  # k / 10^d is the float64 that the text of k / 10^d reads as
    else:
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        whole = to_whole(np.round(values * scale, _NOISE_DIGITS))
        return np.where(np.abs(whole) < _LARGEST, whole, np.nan) / scale


def _away_from_zero(values: Numbers) -> Numbers:
    return np.copysign(np.floor(np.abs(values) + 0.5), values)


def _typed(values: Numbers, column: Column) -> pd.Series[Any]:
    """Quantities in the dtype of the column's cells."""
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
