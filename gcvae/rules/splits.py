"""Splits a number or a date into parts: multiples of steps, and remainders.

    part_0 = n // s_0,    part_i = (n mod s_{i-1}) // s_i,    s_0 > s_1 > ..., each a multiple

n is the grid index of a cell (its multiple of the column's resolution), counted from a Monday if
there are weeks. A price of 19.99 is split into 19 and 99 hundredths; a moment into a week, a
weekday and a time of day. The model can thus learn shares of remainders, such as full hundreds,
endings in .99, weekdays or office hours. If the last step is wider than the resolution, n modulo
that step is the same in every cell. Months have no fixed length: part_0 is then the month, and n
the index within it, with days counted from its first or back from its last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.artifact.documents import JsonFields
from gcvae.cells.values import placed_values
from gcvae.errors import Problem, SchemaError
from gcvae.rules.endings import date_ending, number_ending
from gcvae.rules.grids import Grid, Indices
from gcvae.rules.rewritings import Rewriting
from gcvae.schema.columns import Column, Missing, TableSchema
from gcvae.schema.kinds import ColumnKind
from gcvae.schema.steps import DURATIONS, MONTH, MONTH_END, Step, duration, duration_text, exact

DAYS_TO_MONDAY = 3
"""Number of days from a Monday to 1970-01-01, a Thursday, from which indices of dates count."""
_MONTH_DAYS = 31


@dataclass(frozen=True)
class Split(JsonFields, Rewriting):
    """Splits one column of numbers or dates into parts, such as week and weekday, which replace it
    in the table that the model learns.

    Attributes:
        original: Schema of the original column.
        steps: Spacings of the values, as multiples of the column's resolution, descending.
        ending: Remainder of every cell modulo the last step, as a multiple of the resolution.
        months: Whether the first part is the month, and the steps divide the time within it.
        from_end: Whether days within a month are counted back from its last.
        taken: Names of other columns, which parts must not have.
    """

    _given = ("original",)
    original: Column
    steps: tuple[int, ...]
    ending: int = 0
    months: bool = False
    from_end: bool = False
    taken: tuple[str, ...] = ()

    @classmethod
    def of(cls, column: Column, taken: Collection[str] = ()) -> Split | None:
        """Returns the split that a column's steps (spacings) and endings (common remainders)
        define; None if they define none. Parts must not have the names `taken`.

        Raises:
            SchemaError: Steps and endings contradict each other.
        """
        grid = Grid.of(column) if column.kind.is_real else None
        if grid is None or not (column.steps or column.endings):
            return None
        try:
            found = cls._of(column, grid, tuple(sorted(taken)))
        except ValueError as error:
            message = f"steps {list(column.steps or ())} and endings {list(column.endings or ())}"
            problem = Problem(f"{message} do not fit", column=column.name, expected=str(error))
            raise SchemaError(problem) from None
        return found if found.months or found.steps != (1,) else None

    @classmethod
    def _of(cls, column: Column, grid: Grid, taken: tuple[str, ...]) -> Split:
        """Returns the split; raises a ValueError if steps and endings contradict each other."""
        names = [step for step in column.steps or () if step != MONTH]
        steps = [_multiple_of(step, grid) for step in names]
        endings = [ending for ending in column.endings or () if ending != MONTH_END]
        months = MONTH in (column.steps or ())
        from_end = MONTH_END in (column.endings or ())
        if (months and column.steps and column.steps[0] != MONTH) or (months and grid.step is None):
            raise ValueError(f"{MONTH!r} as the first step of dates")
        if from_end and not months:
            raise ValueError(f"{MONTH!r} as the first step beside {MONTH_END!r}")
        if column.steps == ():
            return cls(column, (1,), taken=taken)
        if grid.step is None:
            found = [number_ending(text, grid.per_unit) for text in endings]
            last = steps[-1] if steps else 1
            beyond = {modulus for rest, modulus in found if rest % last == 0}
            steps = sorted({*steps, last, *beyond}, reverse=True)
            rests = [rest for rest, _ in found]
        else:
            unit = names[-1] if names else MONTH
            rests = [date_ending(text, unit, grid.step) for text in endings]
        _check_chain(steps, grid, months)
        ending = _ending(rests, steps)
        return cls(column, tuple(steps), ending, months, from_end, taken)

    @property
    def column(self) -> str:
        return self.original.name

    @cached_property
    def grid(self) -> Grid:
        """Converter between cells of the split column and multiples of its resolution."""
        grid = Grid.of(self.original)
        assert grid is not None, "a split is of a column with a grid"
        return grid

    @property
    def kept_by_all(self) -> tuple[int, int]:
        """(step, remainder) such that every cell of the column, as a multiple of its resolution,
        leaves this remainder when divided by the step."""
        if self.months or not self.steps:
            return 1, 0
        return self.steps[-1], (self._origin + self.ending) % self.steps[-1]

    @property
    def has_ending(self) -> bool:
        """Whether the last part of a cell is constant: an ending that all cells have.

        This is so if the last step is wider than the column's resolution, because all cells leave
        the same remainder modulo this step. It is also so if there are no steps.
        """
        return not self.steps or self.steps[-1] > 1

    @cached_property
    def parts(self) -> tuple[Column, ...]:
        """Schemas of the parts that replace the column; the first covers its range."""
        ends = self._digits(np.array([self.grid.low, self.grid.high]))[0]
        limits = int(ends.min()), int(ends.max())
        missing = Missing(self.original.missing.allowed)
        columns = []
        for i, name in enumerate(self.part_names):
            if i == 0:
                low, high = limits
                column = Column(name, ColumnKind.INTEGER, missing, minimum=low, maximum=high)
            elif self.has_ending and i == self._n_parts - 1:
                column = Column(name, ColumnKind.ORDINAL, missing, levels=(self.ending,))
            else:
                column = _part_column(name, self._radix(i), missing)
            columns.append(column)
        return tuple(columns)

    @cached_property
    def part_names(self) -> tuple[str, ...]:
        """Names of the parts. The first part has the name of the split column; the others have
        names such as "day (weekday)"."""
        names = [self.column]
        for i in range(1, self._n_parts):
            name = draft = f"{self.column} ({self._label(i)})"
            again = 2
            while name in self.taken or name in names:
                name, again = f"{draft} {again}", again + 1
            names.append(name)
        return tuple(names)

    def reduced(self, frame: pd.DataFrame, *, blanks_unknown: bool) -> dict[str, pd.Series[Any]]:
        """Returns the cells of each part, by its name; missing where the split cell is missing.

        `blanks_unknown` is ignored, because the parts depend on no other column.
        """
        cells = frame[self.column]
        known = cells.notna().to_numpy()
        indices = np.zeros(len(cells), dtype=np.int64)
        indices[known] = self.grid.indices(cells[known])
        at = np.where(known, np.arange(len(cells)), -1)
        nullable = self.original.missing.allowed or not known.all()
        found = self._digits(indices)
        return {
            name: placed_values(digits, at, nullable)
            for name, digits in zip(self.part_names, found, strict=True)
        }

    def restored(self, frame: pd.DataFrame, parts: pd.DataFrame) -> pd.Series[Any]:
        """Returns the cells of the original column, clipped to its limits; missing where a part is
        missing."""
        own = parts[list(self.part_names[: self._n_parts - self.has_ending])]
        known = own.notna().all(axis=1).to_numpy()
        digits = [own[name].where(known, 0).to_numpy(dtype=np.int64) for name in own]
        values = self.grid.values(self._joined(digits))
        at = np.where(known, np.arange(len(values)), -1)
        return placed_values(values, at, self.original.missing.allowed or not known.all())

    def keeps(self, indices: Indices) -> npt.NDArray[np.bool_]:
        """Returns for each of n values whether it remains the same when it is split into parts and
        joined again. Values are multiples of the column's resolution. Shape: (n,) -> (n,)."""
        digits = self._digits(indices)[: self._n_parts - self.has_ending]
        return np.asarray(self._joined(digits) == indices)

    def part_intervals(
        self, part: str, earlier: pd.DataFrame, low: Indices, high: Indices
    ) -> tuple[Indices, Indices]:
        names = list(self.part_names)
        i = names.index(part)
        if i == 0:
            ends = [self._digits(end.ravel())[0].reshape(end.shape) for end in (low, high)]
            return ends[0], ends[1]
        digits = [earlier[name].fillna(0).to_numpy(dtype=np.int64) for name in names[:i]]
        if self.has_ending and i == self._n_parts - 1:
            return np.full_like(low, self.ending), np.full_like(high, self.ending)
        first, last = self._span(digits)
        inside = np.maximum(low, first[:, None]), np.minimum(high, last[:, None])
        is_empty = inside[0] > inside[1]
        ends = [
            self._digits(np.where(is_empty, first[:, None], end).ravel())[i].reshape(end.shape)
            for end in inside
        ]
        lower, upper = np.minimum(*ends), np.maximum(*ends)  # days to the month's end descend
        return np.where(is_empty, 1, lower), np.where(is_empty, 0, upper)

    def whole_limits(self) -> tuple[Any, Any]:
        """Returns (minimum, maximum) of the column extended to complete periods, such as full
        weeks.

        A period consists of the values with the same first part. Cells within these limits are
        never clipped, whatever their other parts are.
        """
        first, last = self._digits(np.array([self.grid.low, self.grid.high]))[0][:, None]
        ends = np.concatenate([self._span([first])[0], self._span([last])[1]])
        low, high = replace(self.grid, low=int(ends[0]), high=int(ends[1])).values(ends)
        return low, high

    def _span(self, digits: list[Indices]) -> tuple[Indices, Indices]:
        """Returns in each of n rows the first and the last grid index of cells whose first parts
        are `digits`. Shape: (n,) twice."""
        n_steps = len(digits) - self.months
        rest = [np.zeros(len(digits[0]), dtype=np.int64)] * (len(self.steps) - n_steps)
        if self.months and n_steps == 0:
            first = _first_days(digits[0]) * self._day
            return first, (_last_days(digits[0]) + 1) * self._day - 1
        first = self._joined([*digits, *rest]) - self.ending
        return first, first + self.steps[n_steps - 1] - 1

    def log_unit(self, part: str) -> float:
        return self.grid.log_unit if part == self.column else 0.0

    def to_json(self) -> dict[str, Any]:
        return {"split": self.column, **super().to_json()}

    @classmethod
    def from_json(cls, document: Mapping[str, Any], schema: TableSchema) -> Split:
        """Reads the split from a JSON document (`to_json`)."""
        return cls._of_document(document, original=schema[document["split"]])

    # Indices and parts

    @property
    def _n_parts(self) -> int:
        return self.months + len(self.steps) + self.has_ending

    @cached_property
    def _day(self) -> int:
        """Number of multiples of the column's resolution in a day."""
        return DURATIONS["day"] // (self.grid.step or 1)

    @property
    def _origin(self) -> int:
        """Grid index from which steps count: that of a Monday if there are weeks."""
        has_weeks = self.grid.step is not None and self.steps[:1] == (7 * self._day,)
        return -DAYS_TO_MONDAY * self._day if has_weeks else 0

    def _digits(self, indices: Indices) -> list[Indices]:
        """Returns the parts of n grid indices. Shape: (n,) -> (n,) each."""
        digits, left = [], indices
        if self.months:
            days = left // self._day
            of_month = days_of_month(days, from_end=self.from_end)
            digits, left = [months_of(days)], of_month * self._day + left % self._day
        else:
            left = left - self._origin
        for step in self.steps:
            digits.append(left // step)
            left = left % step
        return [*digits, left] if self.has_ending else digits

    def _joined(self, digits: list[Indices]) -> Indices:
        """Returns grid indices from their parts; the part of the ending is not needed, because it
        is constant. Shape: (n,) each -> (n,)."""
        own = digits[1:] if self.months else digits
        left = np.full(len(digits[0]), self.ending)
        for step, digit in zip(self.steps, own, strict=True):
            left = left + step * digit
        if not self.months:
            return left + self._origin
        first, last = _first_days(digits[0]), _last_days(digits[0])
        of_month = np.minimum(left // self._day, last - first)  # no 30th of February
        days = last - of_month if self.from_end else first + of_month
        joined: Indices = days * self._day + left % self._day
        return joined

    def _radix(self, i: int) -> int:
        """Returns the number of values of part i >= 1."""
        if self.months and i == 1:
            return _MONTH_DAYS
        steps = self.steps[i - 1 - self.months], self.steps[i - self.months]
        return steps[0] // steps[1]

    def _label(self, i: int) -> str:
        if self.months and i == 1 and self.steps:
            return "days to the month's end" if self.from_end else "day of the month"
        if self.months and i == 1:
            return "within the month"
        above = self.steps[i - 1 - self.months]
        if self.grid.step is None:
            return f"remainder of {step_of(above, self.grid)}"
        if above == 7 * self._day and self.steps[i : i + 1] == (self._day,):
            return "weekday"
        if above == self._day:
            return "time of day"
        return f"remainder of {step_of(above, self.grid)}"


def splits_of(schema: TableSchema, left_out: Collection[str] = ()) -> list[Split]:
    """Returns the splits of all columns of a schema, except `left_out`, that have steps (spacings)
    or endings (common remainders).

    Raises:
        SchemaError: Steps and endings of a column contradict each other.
    """
    taken = set(schema.names)
    splits = []
    for column in schema:
        split = Split.of(column, taken - {column.name}) if column.name not in left_out else None
        if split is not None:
            taken.update(split.part_names)
            splits.append(split)
    return splits


def step_of(multiple: int, grid: Grid) -> Step:
    """Converts a step, as a multiple of a column's resolution, to the notation of a schema, such as
    0.5 or "1 hour"."""
    if grid.step is not None:
        return duration_text(multiple * grid.step)
    number = Fraction(multiple, grid.per_unit)
    return int(number) if number.denominator == 1 else float(number)


def _multiple_of(step: Step, grid: Grid) -> int:
    """Converts a step of a schema to multiples of the column's resolution, or raises ValueError."""
    if grid.step is not None:
        length = duration(step)
        if length is None or length % grid.step:
            wanted = "steps such as '1 hour' or '5 minutes'"
            raise ValueError(f"{wanted}, multiples of {duration_text(grid.step)}")
        return length // grid.step
    number = None if isinstance(step, str) else exact(step) * grid.per_unit
    if number is None or number.denominator != 1:
        raise ValueError(f"steps that are multiples of {step_of(1, grid)}")
    return int(number)


def _check_chain(steps: list[int], grid: Grid, months: bool) -> None:
    """Raises ValueError unless each step is a multiple of the next."""
    if months and steps:
        day = DURATIONS["day"] // (grid.step or 1)
        if steps[0] != day:
            raise ValueError(f"'1 day' behind {MONTH!r}")
    for above, below in pairwise(steps):
        if above % below or above == below:
            raise ValueError("steps each of which is a multiple of the next")


def _ending(rests: Iterable[int], steps: list[int]) -> int:
    """Returns the remainder that all cells leave when divided by the last step; the ending itself
    if there are no steps. `rests` are the remainders of the column's endings, which may refer to
    wider steps.

    Raises:
        ValueError: The endings have different remainders modulo the last step.
    """
    found = {rest % steps[-1] if steps else rest for rest in rests}
    if steps and steps[-1] == 1:
        return 0
    if len(found) > 1:
        raise ValueError("one ending where the last step says that all cells have it")
    return found.pop() if found else 0


def _part_column(name: str, radix: int, missing: Missing) -> Column:
    """Returns the schema of a second or later part, whose values are 0 to radix - 1. A part of
    seven values counts as a weekday, and has ordered levels."""
    if radix == 7:
        return Column(name, ColumnKind.ORDINAL, missing, levels=tuple(range(7)))
    return Column(name, ColumnKind.INTEGER, missing, minimum=0, maximum=radix - 1)


def months_of(days: Indices) -> Indices:
    """Converts days, counted from 1970-01-01, to months, counted from 1970-01. Shape: (n,)."""
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def days_of_month(days: Indices, *, from_end: bool) -> Indices:
    """Returns, for days counted from 1970-01-01, the number of days since the first day of their
    month, or until its last day if `from_end`. Shape: (n,)."""
    months = months_of(days)
    return _last_days(months) - days if from_end else days - _first_days(months)


def _first_days(months: Indices) -> Indices:
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _last_days(months: Indices) -> Indices:
    return _first_days(months + 1) - 1
