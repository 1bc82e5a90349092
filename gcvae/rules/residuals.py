"""Residuals, which replace a column that a formula computes from others: e = y - f(x).

e is a whole number of steps of y's own grid, so that y <-> e is one to one given the others. What
stands apart from an inequality, as 0 for "none", has a place of its own below all residuals. Of an
inequality e counts in the step that all cells of y keep, such as whole days of times that are
written to the second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from gcvae.arrays import Mask
from gcvae.cells.grid_units import grid_unit
from gcvae.cells.values import placed_values
from gcvae.errors import Problem, SchemaError
from gcvae.files.typed_columns import TypedTable, row_chunks
from gcvae.numerics.outward import plain_limits
from gcvae.rules.grids import LARGEST_PLACE, Grid
from gcvae.rules.predictions import Prediction, Ties, quantities
from gcvae.rules.solutions import can_solve, solutions
from gcvae.rules.splits import Split
from gcvae.schema.columns import Column, Missing, TableSchema
from gcvae.schema.kinds import ColumnKind
from gcvae.schema.parquet_types import parquet_type
from gcvae.schema.rule_documents import MOST_BESIDE, read_rules
from gcvae.schema.rules import Formula, Rule

Places = npt.NDArray[np.int64]
_FURTHEST = 1 << 62
_FEW_UNITS = 4
_NO_LIMITS = (-LARGEST_PLACE, LARGEST_PLACE)
_USUAL_SHARE, _MOST_USUAL, _MOSTLY = 0.01, 4, 0.8


class Rewriting(Protocol):
    """Replacement of one column of the original table.

    Attributes:
        column: The name of the written column.
        parents: Columns that must be known before it is.
        parts: The columns that stand in its place; the first has its name.
    """

    @property
    def column(self) -> str: ...
    @property
    def parents(self) -> tuple[str, ...]: ...
    @property
    def parts(self) -> tuple[Column, ...]: ...

    def reduced(self, frame: pd.DataFrame, *, blanks_unknown: bool) -> dict[str, pd.Series[Any]]:
        """Returns the parts' cells of typed written rows. Shape: (n,) each."""
        ...

    def restored(self, frame: pd.DataFrame, parts: pd.DataFrame) -> pd.Series[Any]:
        """Returns the written cells, of the written parents and the parts. Shape: (n,)."""
        ...

    def part_places(
        self, part: str, earlier: pd.DataFrame, low: Places, high: Places
    ) -> tuple[Places, Places]:
        """Returns the interval of a part for which the original cell lies between two grid indices.

        Args:
            part: One of the parts.
            earlier: The written parents, and the parts before it. n rows.
            low: Low of the written column's grid. Shape: (n, m).
            high: The same.

        Returns: Ends of intervals, those that are empty with low > high. Shape: (n, m) twice.
        """
        ...

    def can_solve(self, parent: str) -> bool:
        """Returns whether `solutions` finds the cells of a parent."""
        ...

    def solutions(
        self, parent: Column, others: pd.DataFrame, low: Places, high: Places
    ) -> tuple[Places, Places]:
        """Where a parent must lie for the column to lie between two places, in most rows.

        See `gcvae.rules.solutions`. Shape: (n, m) twice -> (n, m') twice.
        """
        ...

    def log_unit(self, part: str) -> float:
        """log of the written column's unit per unit of a part that is a number."""
        ...

    def to_json(self) -> dict[str, Any]:
        """What the way back needs beside the schema."""
        ...


@dataclass(frozen=True)
class Computed:
    """Replacement of a column that a formula computes.

    Attributes:
        prediction: Gives f.
    """

    prediction: Prediction

    def __str__(self) -> str:
        """Returns the rule in words."""
        return str(self.rule)

    @property
    def rule(self) -> Rule:
        """The rule that computes y."""
        return self.prediction.rule

    @property
    def written(self) -> Column:
        """The schema's column of y."""
        return self.prediction.column

    @property
    def is_inequality(self) -> bool:
        """Whether y is on one side of f, and not mostly f itself."""
        return self.prediction.form.is_inequality

    @property
    def column(self) -> str:
        """The name of y."""
        return self.rule.column

    @property
    def parents(self) -> tuple[str, ...]:
        """The columns of f."""
        return self.rule.parents


@dataclass(frozen=True)
class Residual(Computed):
    """e = y - f(x) in steps of y's grid; where a parent is missing, y less what stands for f.

    A tax that is blank where there is none is 0 in the sum: that stands for f. Where no such value
    is that of most rows in which the parent is blank, a fallback does.

    Attributes:
        lowest, highest: Lowest of the residuals of the table, or beyond where few rows have these.
        limits: The lowest and the highest where f has a value: a drawn residual stays within.
        has_missing: A cell of y was missing.
        fallback: The place of y's grid that stands for f where that has no value.
        usual: Where the residuals of most rows lie in which f has a value: at a few places, or from
            one to another.
        beside: Places of y that stand beside the rule. They have the residuals lowest, lowest + 1,
            and so on, which lie below the limits.
        stride, offset: All cells of y have a place that is the offset and so many strides more;
            residuals count strides, from the first such place on that keeps the inequality.
        by_side: e counts from the place nearest to f towards the side on which f lies, 1 for the
            second nearest and -1 for the third, of what nearly is f: else a small difference would
            take y to the far side as often as to the near one.
        at_ties: e is 0, or 1 or -1 where f is half way between two places, as of a table that was
            computed in binary fractions. Elsewhere y is f, whatever e says.
        reach: The first and the last place of y beside those that stand beside the rule.
        neutral: By parent the number that a blank of it stands for: 0 in a sum, 1 in a product.
    """

    lowest: int
    highest: int
    has_missing: bool
    fallback: int
    usual: tuple[tuple[int, int], ...] = ()
    limits: tuple[int, int] = (-LARGEST_PLACE, LARGEST_PLACE)
    beside: tuple[int, ...] = ()
    stride: int = 1
    offset: int = 0
    reach: tuple[int, int] = _NO_LIMITS
    neutral: Mapping[str, int] = field(default_factory=dict)
    by_side: bool = False
    at_ties: bool = False

    @classmethod
    def of(
        cls, rule: Rule, table: TypedTable, schema: TableSchema, rare_rows: int = 1
    ) -> Residual | None:
        """Returns the residual of a rule on a table; None where the column has no grid."""
        written = schema[rule.column]
        if Grid.of(written) is None:
            return None
        prediction = with_ties(Prediction.of(rule, schema), table)
        fallback = _middle(table, written)
        apart = _places_beside(prediction)
        others = _other_places(table, written, apart)
        kept = _steps_kept(prediction, others)
        neutral, by_side = _neutral_parents(prediction, table), _is_by_side(prediction)
        draft = cls(
            prediction,
            -_FURTHEST,
            0,
            False,
            fallback,
            (),
            _NO_LIMITS,
            apart,
            *kept,
            neutral=neutral,
            by_side=by_side,
        )
        has_missing = False
        counts: Counter[int] = Counter()
        defined_counts: Counter[int] = Counter()
        at_ties = prediction.form.relation == "=="
        for chunk in row_chunks(table, [rule.column, *rule.parents]):
            residuals = draft.reduced(chunk, blanks_unknown=False)[rule.column]
            has_missing |= bool(residuals.isna().any())
            present = _residuals_alone(residuals)
            defined = _residuals_alone(draft.reduced(chunk, blanks_unknown=True)[rule.column])
            if at_ties:
                is_off = residuals.notna().to_numpy() & (residuals != 0).fillna(False).to_numpy()
                is_near = (residuals.abs() <= 1).fillna(False).to_numpy()
                at_ties = bool((~is_off | (is_near & prediction.at_tie(chunk))).all())
            for found, cells in ((counts, present), (defined_counts, defined)):
                found.update({int(str(e)): n for e, n in cells.value_counts().items()})
        if not counts:
            return None
        ends = _ends(counts, rare_rows)
        within = _ends(defined_counts, rare_rows) if defined_counts else ends
        if apart:
            # As far below all residuals as these are apart.
            ends = min(ends[0], within[0]) - max(ends[1] - ends[0], 1), ends[1]
        usual = _usual(defined_counts or counts)
        return cls(
            prediction,
            *ends,
            has_missing,
            fallback,
            usual,
            within,
            apart,
            *kept,
            _ends(others, rare_rows) if others else (draft.grid.low, draft.grid.high),
            neutral,
            by_side,
            at_ties and ends[0] < ends[1],
        )

    @property
    def is_exact(self) -> bool:
        """Whether every row of the table keeps a formula to the last digit, or to a tie."""
        return not self.is_inequality and (self.lowest == self.highest or self.at_ties)

    @property
    def kept(self) -> int:
        """The residual of most rows of an exact formula."""
        return 0 if self.at_ties else self.lowest

    @cached_property
    def grid(self) -> Grid:
        """Of y."""
        grid = Grid.of(self.written)
        assert grid is not None, "rules without one are left out"
        return grid

    @cached_property
    def parts(self) -> tuple[Column, ...]:
        """The residual: of one level where every row of the table keeps the rule to the digit."""
        missing = Missing(self.written.missing.allowed or self.has_missing)
        if self.lowest == self.highest:  # no row has another, so another has no probability
            levels = (self.lowest,)
            return (Column(self.column, ColumnKind.ORDINAL, missing, levels=levels),)
        low, high = self.lowest, self.highest
        return (Column(self.column, ColumnKind.INTEGER, missing, minimum=low, maximum=high),)

    def reduced(self, frame: pd.DataFrame, *, blanks_unknown: bool) -> dict[str, pd.Series[Any]]:
        """Returns the residuals; of a row with a blank parent unknown where blanks are."""
        own = frame[self.column]
        base, has_base = self.base(frame)
        known = own.notna().to_numpy()
        if blanks_unknown:
            known = known & has_base
        residuals = np.zeros(len(own), dtype=np.int64)
        places = self.grid.places(own[known])
        steps, rest = np.divmod(places - base[known], self.stride)
        steps = steps * self._sides(frame)[known]
        # What is no whole step has no place; nor what is so far off its rule that it would be one
        # of those that stand beside it.
        is_nowhere = (rest != 0) | (steps < self._bottom)
        residuals[known] = np.where(is_nowhere, self.lowest - 1, steps)
        at = np.flatnonzero(known)
        for i, place in enumerate(self.beside):
            residuals[at[places == place]] = self.lowest + i
        return {self.column: _whole_numbers(residuals, ~known)}

    def restored(self, frame: pd.DataFrame, parts: pd.DataFrame) -> pd.Series[Any]:
        """y = f(x) + e, within the limits of y where the rule holds there, too.

        A sum that lies beyond them is drawn as it is: another would be no sum, and the row one to
        which the model gives no mass.
        """
        residuals = parts[self.column]
        known = residuals.notna().to_numpy()
        base, has_base = self.base(frame)
        steps = np.zeros(len(residuals), dtype=np.int64)
        steps[known] = residuals[known].to_numpy(dtype=np.int64)
        apart = known & (steps < self.lowest + len(self.beside))
        which = steps[apart] - self.lowest
        steps = np.where(has_base, steps.clip(*self.limits), steps) * self._sides(frame)
        if self.at_ties:
            steps = np.where(has_base & ~self.prediction.at_tie(frame), 0, steps)
        found = self._within(base, self.stride * steps, has_base)
        if self.beside:
            found[apart] = np.array(self.beside)[which.clip(0, len(self.beside) - 1)]
        values = self.grid.values(found, limited=False)
        places = np.where(known, np.arange(len(values)), -1)
        return placed_values(values, places, self.written.missing.allowed or self.has_missing)

    def _within(self, base: Places, steps: Places, has_base: Mask) -> Places:
        """Returns the places of y, moved within its limits where that costs no row its rule."""
        first, last = self.reach
        low = first + (self.offset - first) % self.stride
        high = last - (last - self.offset) % self.stride
        inside = np.clip(base + steps, low, max(low, high))
        few = [self.stride * first for first, last in self.usual if first == last]
        loses_rule = has_base & np.isin(steps, few) & ~np.isin(inside - base, few)
        found = np.where(loses_rule, base + steps, inside)
        held = type_limits(self.written)
        return found if held is None else found.clip(*held)

    def can_solve(self, parent: str) -> bool:
        """Returns whether `solutions` finds the cells of a parent."""
        return can_solve(self.prediction.form, parent)

    def part_places(
        self, part: str, earlier: pd.DataFrame, low: Places, high: Places
    ) -> tuple[Places, Places]:
        """Where the residual lies if y lies between two places; drawn ones beyond the limits count
        as the nearest limit."""
        base, has_base = (found[:, None] for found in self.base(earlier))
        first, last = self.limits
        apart = [self._place_beside(i, low, high) for i in range(len(self.beside))]
        bottom = self._bottom
        low, high = -((base - low) // self.stride), (high - base) // self.stride
        is_turned = self._sides(earlier)[:, None] < 0
        low, high = np.where(is_turned, -high, low), np.where(is_turned, -low, high)
        is_within = (~has_base | ((low <= last) & (high >= first))) & (high >= bottom)
        low = np.maximum(np.where(has_base & (low <= first), bottom, low), bottom)
        high = np.where(has_base & (high >= last), LARGEST_PLACE, high)
        ends = [(np.where(is_within, low, 1), np.where(is_within, high, 0)), *apart]
        lower, upper = (np.concatenate(part, axis=1) for part in zip(*ends, strict=True))
        return lower, upper

    def _place_beside(self, i: int, low: Places, high: Places) -> tuple[Places, Places]:
        """Returns the residual of the i-th place beside the rule, where y may be there. Shape: (n,
        1)."""
        is_inside = np.asarray((low <= self.beside[i]) & (self.beside[i] <= high))
        is_asked = is_inside.any(axis=1, keepdims=True)
        residual = self.lowest + i
        return np.where(is_asked, residual, 1), np.where(is_asked, residual, 0)

    def solutions(
        self, parent: Column, others: pd.DataFrame, low: Places, high: Places
    ) -> tuple[Places, Places]:
        """Where a parent lies if y lies between two places and has one of the usual residuals."""
        ends = [
            solutions(
                self.prediction,
                parent,
                others,
                low - self.stride * last - (self.stride - 1),
                high - self.stride * first,
            )
            for first, last in self._usual_steps
        ]
        firsts, lasts = (np.concatenate(part, axis=1) for part in zip(*ends, strict=True))
        return firsts, lasts

    @property
    def _usual_steps(self) -> tuple[tuple[int, int], ...]:
        """`usual`, on whichever side of f they count from."""
        if not self.by_side:
            return self.usual
        most = max((max(abs(first), abs(last)) for first, last in self.usual), default=0)
        return ((-most, most),)

    def base(self, frame: pd.DataFrame) -> tuple[npt.NDArray[np.int64], Mask]:
        """Returns (the places of f, or of what stands for it, where f has a value). Shape: (n,)
        twice."""
        given = self.prediction.predicted(frame)
        has_value = given.notna().to_numpy()
        if self.neutral and not has_value.all():
            given = self.prediction.predicted(_without_blanks(self.prediction, frame, self.neutral))
        has_place = given.notna().to_numpy()
        base = np.full(len(frame), self.fallback, dtype=np.int64)
        base[has_place] = self.grid.places(given[has_place])
        if self.prediction.form.relation == "<=":
            return base - (base - self.offset) % self.stride, has_value
        return base + (self.offset - base) % self.stride, has_value

    def _sides(self, frame: pd.DataFrame) -> Places:
        """1, or -1 where f lies below the place that it is rounded to. Shape: (n,)."""
        if not self.by_side:
            return np.ones(len(frame), dtype=np.int64)
        with np.errstate(invalid="ignore"):
            off = self.prediction.said(frame) - quantities(self.prediction.predicted(frame))
        return np.where(off < 0, -1, 1)

    @property
    def _bottom(self) -> int:
        """The lowest residual of a cell that does not stand beside the rule."""
        return self.lowest + len(self.beside) if self.beside else -_FURTHEST

    def log_unit(self, part: str) -> float:
        """log of the unit of y between two places of its grid."""
        return self.grid.log_unit

    def to_json(self) -> dict[str, Any]:
        """What `of_json` needs beside the schema."""
        return {
            "rule": self.rule.to_json(),
            "ties": self.prediction.ties,
            "lowest": self.lowest,
            "highest": self.highest,
            "has_missing": self.has_missing,
            "fallback": self.fallback,
            "limits": list(self.limits),
            "usual": [list(ends) for ends in self.usual],
            "beside": list(self.beside),
            "stride": self.stride,
            "offset": self.offset,
            "reach": list(self.reach),
            "neutral": dict(self.neutral),
            "by_side": self.by_side,
            "at_ties": self.at_ties,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any], schema: TableSchema) -> Residual:
        """Returns the residual of a document that `to_json` wrote."""
        prediction = prediction_of_document(document, schema)
        if Grid.of(prediction.column) is None:
            raise ValueError(f"column {prediction.column.name!r} has no grid")
        return cls(
            prediction,
            int(document["lowest"]),
            int(document["highest"]),
            bool(document["has_missing"]),
            int(document["fallback"]),
            tuple((int(first), int(last)) for first, last in document["usual"]),
            (int(document["limits"][0]), int(document["limits"][1])),
            tuple(int(place) for place in document["beside"]),
            max(int(document["stride"]), 1),
            int(document["offset"]),
            (int(document["reach"][0]), int(document["reach"][1])),
            {name: int(x) for name, x in document["neutral"].items()},
            bool(document["by_side"]),
            bool(document["at_ties"]),
        )


def prediction_of_document(document: Mapping[str, Any], schema: TableSchema) -> Prediction:
    """Returns the formula of a document of a rewriting.

    Raises:
        SchemaError, ValueError: It is none of the schema's.
    """
    problems: list[Problem] = []
    rules = read_rules([document["rule"]], problems)
    if problems:
        raise SchemaError(*problems)
    if not isinstance(rules[0].form, Formula):
        raise ValueError(f"{rules[0]} computes no column")
    ties: Ties = "away" if document.get("ties") == "away" else "even"
    return replace(Prediction.of(rules[0], schema), ties=ties)


def with_ties(prediction: Prediction, table: TypedTable) -> Prediction:
    """Returns the formula with halves rounded as most rows of the table have them."""
    if prediction.form.is_inequality or prediction.is_of_levels:
        return prediction
    away = replace(prediction, ties="away")
    rows = next(iter(row_chunks(table, [prediction.column.name, *prediction.rule.parents])), None)
    if rows is None:
        return prediction
    values = prediction.values(rows[prediction.column.name])
    kept = [int((prediction.values(p.predicted(rows)) == values).sum()) for p in (prediction, away)]
    return away if kept[1] > kept[0] else prediction


def _is_by_side(prediction: Prediction) -> bool:
    """Returns whether a column is a formula to a few units of its grid."""
    unit = grid_unit(prediction.column)
    if prediction.form.relation != "≈" or unit is None:
        return False
    return prediction.form.tolerance <= _FEW_UNITS * unit


def _places_beside(prediction: Prediction) -> tuple[int, ...]:
    """Returns the places of a column that stand apart from its inequality."""
    grid = Grid.of(prediction.column)
    assert grid is not None, "asked before"
    return tuple(int(place) for place in grid.places(prediction.beside))


def _neutral_parents(prediction: Prediction, table: TypedTable) -> dict[str, int]:
    """Returns the number that a blank of a parent stands for in most rows that have one."""
    if prediction.form.is_inequality:
        return {}
    names = [column.name for column in prediction.parents if column.has_numbers]
    rows: Counter[str] = Counter()
    found: Counter[tuple[str, int]] = Counter()
    column = prediction.column.name
    for chunk in row_chunks(table, [column, *prediction.rule.parents]):
        blank = chunk[list(prediction.rule.parents)].isna()
        is_alone = (blank.sum(axis=1) == 1) & chunk[column].notna()
        for name in names:
            some = chunk[is_alone & blank[name]]
            rows[name] += len(some)
            for number in (0, 1) if len(some) else ():
                given = prediction.predicted(_without_blanks(prediction, some, {name: number}))
                found[name, number] += int((given == some[column]).fillna(False).sum())
    best = {name: int(found[name, 1] > found[name, 0]) for name in names}
    return {name: x for name, x in best.items() if 2 * found[name, x] > rows[name] > 0}


def _without_blanks(
    prediction: Prediction, frame: pd.DataFrame, numbers: Mapping[str, int]
) -> pd.DataFrame:
    """Returns the parents' cells, with these numbers for their blanks."""
    parents = frame[list(prediction.rule.parents)]
    return parents.assign(**{name: parents[name].fillna(x) for name, x in numbers.items()})


def type_limits(column: Column) -> tuple[int, int] | None:
    """Returns the first and the last place that the type of a column of whole numbers holds, levels
    or not, if it has one that decides."""
    kind = None if column.parquet_type is None else parquet_type(column.parquet_type)
    if kind is None or column.decimals or not pa.types.is_integer(kind):
        return None
    bits = kind.bit_width - int(pa.types.is_signed_integer(kind))
    last = min(2**bits - 1, LARGEST_PLACE)
    return (-last - 1 if pa.types.is_signed_integer(kind) else 0), last


def _other_places(table: TypedTable, written: Column, apart: tuple[int, ...]) -> Counter[int]:
    """Returns how many cells have each place, beside those that stand apart; none without such."""
    grid, places = Grid.of(written), Counter[int]()
    assert grid is not None, "asked before"
    for chunk in row_chunks(table, [written.name]) if apart else ():
        own = grid.places(chunk[written.name].dropna())
        places.update(own[~np.isin(own, apart)].tolist())
    return places


def _steps_kept(prediction: Prediction, others: Counter[int]) -> tuple[int, int]:
    """Returns (stride, offset) of an inequality's column; (1, 0) of other formulas, on no step.

    Args:
        prediction: The formula.
        others: Places of the cells beside those that stand apart, if some do.
    """
    split = Split.of(prediction.column) if prediction.form.is_inequality else None
    if split is None or not others:
        return (1, 0) if split is None else split.kept_by_all
    places = np.array(list(others))
    common = int(np.gcd.reduce(places - places[0]))
    stride = max((step for step in split.steps if common % step == 0), default=1)
    return stride, int(places[0] % stride)


def _residuals_alone(residuals: pd.Series[Any]) -> pd.Series[Any]:
    """Returns the residuals of the cells that follow the rule, or break it. Shape: (n,) -> (m,)."""
    present = residuals.dropna()
    return present[present > MOST_BESIDE - _FURTHEST]


def _usual(counts: Counter[int]) -> tuple[tuple[int, int], ...]:
    """Where most residuals lie: at the most frequent ones, if these are most, else from one end
    of the middle 98 % to the other."""
    frequent = counts.most_common(_MOST_USUAL)
    if sum(n for _, n in frequent) >= _MOSTLY * counts.total():
        return tuple((int(e), int(e)) for e, n in frequent if n >= _USUAL_SHARE * counts.total())
    residuals = np.array(sorted(counts))
    below = np.cumsum([counts[e] for e in residuals.tolist()]) / counts.total()
    first, last = residuals[np.searchsorted(below, (0.01, 0.99))]
    return ((int(first), int(last)),)


def _ends(counts: Counter[int], rare_rows: int) -> tuple[int, int]:
    """Returns the lowest and the highest residual, or plain numbers beyond where few rows have
    these."""
    residuals = np.array(sorted(counts), dtype=np.int64)
    if len(residuals) == 1:
        return int(residuals[0]), int(residuals[0])
    rows = np.array([counts[e] for e in residuals.tolist()])
    low, high = plain_limits(residuals, rows, rare_rows, Decimal(1))
    first, last = int(residuals[0]), int(residuals[-1])
    return max(int(low), min(first, -_FURTHEST)), min(int(high), max(last, _FURTHEST))


def _middle(table: TypedTable, written: Column) -> int:
    """Returns the place of the middle of a column's cells; 0 where all are missing."""
    grid = Grid.of(written)
    assert grid is not None, "asked before"
    present = table[written.name].dropna()
    return int(np.median(grid.places(present))) if len(present) else 0


def _whole_numbers(numbers: npt.NDArray[np.int64], blank: Mask) -> pd.Series[Any]:
    if not blank.any():
        return pd.Series(numbers)
    return pd.Series(pd.arrays.IntegerArray(numbers, blank.copy()))
