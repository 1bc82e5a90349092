"""What replaces a column that a rule gives from others: its residual e = y - g(x).

e is a whole number of steps of y's own grid, so that y <-> e is one to one given the others. What
stands beside a rule, as 0 for "none", has a place of its own below all residuals. Of an order e
counts in the step that all cells of y keep, such as whole days of times that are written to the
second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from gcvae.arrays import Mask
from gcvae.cells.values import placed_values
from gcvae.errors import Problem, SchemaError
from gcvae.files.typed_columns import TypedTable, row_chunks
from gcvae.numerics.outward import plain_limits
from gcvae.rules.grids import LARGEST_PLACE, Grid
from gcvae.rules.predictions import beside, predicted
from gcvae.rules.solutions import can_solve, solutions
from gcvae.rules.splits import Split
from gcvae.schema.columns import Column, Missing, TableSchema
from gcvae.schema.kinds import ColumnKind
from gcvae.schema.parquet_types import parquet_type
from gcvae.schema.rule_documents import MOST_BESIDE, read_rules
from gcvae.schema.rules import OrderRule, ProductRule, Rule, SumRule
from gcvae.spelling.never_dates import MOST_NEVER, are_never, without_never

Places = npt.NDArray[np.int64]
_FURTHEST = 1 << 62
_NO_LIMITS = (-LARGEST_PLACE, LARGEST_PLACE)
_USUAL_SHARE, _MOST_USUAL, _MOSTLY = 0.01, 4, 0.8


class Rewriting(Protocol):
    """What replaces one column of the written table.

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
        """The parts' cells of typed written rows. Shape: (n,) each."""
        ...

    def restored(self, frame: pd.DataFrame, parts: pd.DataFrame) -> pd.Series[Any]:
        """The written cells, of the written parents and the parts. Shape: (n,)."""
        ...

    def part_places(
        self, part: str, earlier: pd.DataFrame, low: Places, high: Places
    ) -> tuple[Places, Places]:
        """Where a part must lie for the written cell to lie between two places.

        Args:
            part: One of the parts.
            earlier: The written parents, and the parts before it. n rows.
            low: Of the written column's grid. Shape: (n, m).
            high: The same.

        Returns: Ends of intervals, those that are empty with low > high. Shape: (n, m) twice.
        """
        ...

    def can_solve(self, parent: str) -> bool:
        """Whether `solutions` finds the cells of a parent."""
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

    @property
    def never(self) -> tuple[int, ...]:
        """The cells of the first part that stand for never."""
        ...

    def to_json(self) -> dict[str, Any]:
        """What the way back needs beside the schema."""
        ...


@dataclass(frozen=True)
class Residual:
    """e = y - g(x) in steps of y's grid; where a parent is missing, y less what stands for g.

    A tax that is blank where there is none is 0 in the sum: that stands for g. Where no such value
    is that of most rows in which the parent is blank, a fallback does.

    Attributes:
        rule: Gives g.
        written: The schema's column of y.
        lowest, highest: Of the residuals of the table, or beyond where few rows have these.
        limits: The lowest and the highest where g has a value: a drawn residual stays within.
        has_missing: A cell of y was missing.
        fallback: The place of y's grid that stands for g where that has no value.
        usual: Where the residuals of most rows lie: at a few places, or from one to another.
        beside: Places of y that stand beside the rule. They have the residuals lowest, lowest + 1,
            and so on, which lie below the limits.
        stride, offset: All cells of y have a place that is the offset and so many strides more;
            residuals count strides, from the first such place on that is no less than g.
        neutral: Parents of which a blank adds nothing to a sum, or changes nothing of a product.
    """

    rule: Rule
    written: Column
    lowest: int
    highest: int
    has_missing: bool
    fallback: int
    usual: tuple[tuple[int, int], ...] = ()
    limits: tuple[int, int] = (-LARGEST_PLACE, LARGEST_PLACE)
    beside: tuple[int, ...] = ()
    stride: int = 1
    offset: int = 0
    neutral: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, rule: Rule, table: TypedTable, written: Column, rare_rows: int = 1
    ) -> Residual | None:
        """The residual of a rule on a table; None where the column has no grid."""
        if Grid.of(written) is None:
            return None
        fallback = _middle(table, written)
        apart, kept = _places_beside(rule, written), _steps_kept(rule, written)
        neutral = _neutral_parents(rule, table, written)
        draft = cls(
            rule, written, -_FURTHEST, 0, False, fallback, (), _NO_LIMITS, apart, *kept, neutral
        )
        has_missing = False
        counts: Counter[int] = Counter()
        defined_counts: Counter[int] = Counter()
        for chunk in row_chunks(table, [rule.column, *rule.parents]):
            residuals = draft.reduced(chunk, blanks_unknown=False)[rule.column]
            has_missing |= bool(residuals.isna().any())
            present = _residuals_alone(residuals)
            defined = _residuals_alone(draft.reduced(chunk, blanks_unknown=True)[rule.column])
            for found, cells in ((counts, present), (defined_counts, defined)):
                found.update({int(str(e)): n for e, n in cells.value_counts().items()})
        if not counts:
            return None
        ends = _ends(counts, rare_rows)
        within = _ends(defined_counts, rare_rows) if defined_counts else ends
        if apart:
            # As far below all residuals as these are apart.
            ends = min(ends[0], within[0]) - max(ends[1] - ends[0], 1), ends[1]
        usual = _usual(counts)
        return cls(
            rule, written, *ends, has_missing, fallback, usual, within, apart, *kept, neutral
        )

    def __str__(self) -> str:
        """The rule in words."""
        return str(self.rule)

    @property
    def column(self) -> str:
        """The name of y."""
        return self.rule.column

    @property
    def parents(self) -> tuple[str, ...]:
        """The columns of g."""
        return self.rule.parents

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
        """The residuals; of a row with a blank parent unknown where blanks are."""
        own = frame[self.column]
        base, has_base = self.base(frame)
        known = own.notna().to_numpy()
        if blanks_unknown:
            known = known & (has_base | self._has_never(frame))
        residuals = np.zeros(len(own), dtype=np.int64)
        places = self.grid.places(own[known])
        steps, rest = np.divmod(places - base[known], self.stride)
        # What is no whole step has no place; nor what is so far off its rule that it would be one
        # of those that stand beside it.
        is_nowhere = (rest != 0) | (steps < self._bottom)
        residuals[known] = np.where(is_nowhere, self.lowest - 1, steps)
        at = np.flatnonzero(known)
        for i, place in enumerate(self.beside):
            residuals[at[places == place]] = self.lowest + i
        return {self.column: _whole_numbers(residuals, ~known)}

    def restored(self, frame: pd.DataFrame, parts: pd.DataFrame) -> pd.Series[Any]:
        """y = g(x) + e, within the limits of y where the rule holds there, too.

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
        steps = np.where(has_base, steps.clip(*self.limits), steps)
        found = self._within(base, self.stride * steps, has_base)
        if self.beside:
            found[apart] = np.array(self.beside)[which.clip(0, len(self.beside) - 1)]
        values = self.grid.values(found, limited=False)
        places = np.where(known, np.arange(len(values)), -1)
        return placed_values(values, places, self.written.missing.allowed or self.has_missing)

    def _within(self, base: Places, steps: Places, has_base: Mask) -> Places:
        """The places of y, moved within its limits where that costs no row its rule."""
        low = self.grid.low + (self.offset - self.grid.low) % self.stride
        high = self.grid.high - (self.grid.high - self.offset) % self.stride
        inside = np.clip(base + steps, low, max(low, high))
        few = [self.stride * first for first, last in self.usual if first == last]
        loses_rule = has_base & np.isin(steps, few) & ~np.isin(inside - base, few)
        found = np.where(loses_rule, base + steps, inside)
        held = _type_limits(self.written)
        return found if held is None else found.clip(*held)

    def can_solve(self, parent: str) -> bool:
        """Whether `solutions` finds the cells of a parent."""
        return can_solve(self.rule, parent)

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
        is_within = (~has_base | ((low <= last) & (high >= first))) & (high >= bottom)
        low = np.maximum(np.where(has_base & (low <= first), bottom, low), bottom)
        high = np.where(has_base & (high >= last), LARGEST_PLACE, high)
        ends = [(np.where(is_within, low, 1), np.where(is_within, high, 0)), *apart]
        lower, upper = (np.concatenate(part, axis=1) for part in zip(*ends, strict=True))
        return lower, upper

    def _place_beside(self, i: int, low: Places, high: Places) -> tuple[Places, Places]:
        """The residual of the i-th place beside the rule, where y may be there. Shape: (n, 1)."""
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
                self.rule,
                parent,
                self.written,
                others,
                low - self.stride * last - (self.stride - 1),
                high - self.stride * first,
            )
            for first, last in self.usual
        ]
        firsts, lasts = (np.concatenate(part, axis=1) for part in zip(*ends, strict=True))
        return firsts, lasts

    def base(self, frame: pd.DataFrame) -> tuple[npt.NDArray[np.int64], Mask]:
        """(the places of g, or of what stands for it, where g has a value). Shape: (n,) twice."""
        given = predicted(self.rule, frame, self.written)
        has_value = given.notna().to_numpy()
        if self.neutral and not has_value.all():
            given = predicted(
                self.rule, _without_blanks(self.rule, frame, self.neutral), self.written
            )
        has_place = given.notna().to_numpy()
        base = np.full(len(frame), self.fallback, dtype=np.int64)
        base[has_place] = self.grid.places(given[has_place])
        return base + (self.offset - base) % self.stride, has_value

    @cached_property
    def never(self) -> tuple[int, ...]:
        """The residuals that stand for never."""
        places = self.grid.places_of_never
        return tuple(self.lowest + i for i, place in enumerate(self.beside) if place in places)

    def _has_never(self, frame: pd.DataFrame) -> Mask:
        """Rows in which all parents are known, and g has no value for one is never. Shape: (n,)."""
        parents = [frame[name] for name in self.parents]
        never = np.any([are_never(cells) for cells in parents], axis=0)
        known = np.all([cells.notna().to_numpy() for cells in parents], axis=0)
        return np.asarray(never & known)

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
            "lowest": self.lowest,
            "highest": self.highest,
            "has_missing": self.has_missing,
            "fallback": self.fallback,
            "limits": list(self.limits),
            "usual": [list(ends) for ends in self.usual],
            "beside": list(self.beside),
            "stride": self.stride,
            "offset": self.offset,
            "neutral": list(self.neutral),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any], schema: TableSchema) -> Residual:
        """The residual of a document that `to_json` wrote."""
        problems: list[Problem] = []
        rules = read_rules([document["rule"]], problems)
        if problems:
            raise SchemaError(*problems)
        [rule] = rules
        written = schema[rule.column]
        if Grid.of(written) is None:
            raise ValueError(f"column {written.name!r} has no grid")
        return cls(
            rule,
            written,
            int(document["lowest"]),
            int(document["highest"]),
            bool(document["has_missing"]),
            int(document["fallback"]),
            tuple((int(first), int(last)) for first, last in document["usual"]),
            (int(document["limits"][0]), int(document["limits"][1])),
            tuple(int(place) for place in document["beside"]),
            max(int(document["stride"]), 1),
            int(document["offset"]),
            tuple(name for name in document["neutral"] if name in rule.parents),
        )


def _places_beside(rule: Rule, written: Column) -> tuple[int, ...]:
    """The places of a column that stand beside its rule."""
    grid = Grid.of(written)
    assert grid is not None, "asked before"
    return tuple(int(place) for place in grid.places(beside(rule, written)))


def _neutral_parents(rule: Rule, table: TypedTable, written: Column) -> tuple[str, ...]:
    """The parents of a sum or a product whose blank changes nothing in most rows that have it."""
    if not isinstance(rule, SumRule | ProductRule):
        return ()
    found: Counter[str] = Counter()
    rows: Counter[str] = Counter()
    for chunk in row_chunks(table, [rule.column, *rule.parents]):
        blank = chunk[list(rule.parents)].isna()
        is_alone = (blank.sum(axis=1) == 1) & chunk[rule.column].notna()
        for name in rule.parents:
            some = chunk[is_alone & blank[name]]
            if len(some) and some[name].dtype.kind != "M":
                given = predicted(rule, _without_blanks(rule, some, (name,)), written)
                rows[name] += len(some)
                found[name] += int((given == some[rule.column]).fillna(False).sum())
    return tuple(name for name in rule.parents if 2 * found[name] > rows[name] > 0)


def _without_blanks(rule: Rule, frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The parents' cells, with 0 for a blank of these names in a sum, and 1 in a product."""
    neutral = 1 if isinstance(rule, ProductRule) else 0
    parents = frame[list(rule.parents)]
    return parents.assign(**{name: parents[name].fillna(neutral) for name in names})


def _type_limits(column: Column) -> tuple[int, int] | None:
    """The first and the last place that the type of a column of whole numbers holds, if it has one
    that decides."""
    kind = None if column.parquet_type is None else parquet_type(column.parquet_type)
    if kind is None or not column.kind.is_whole or not pa.types.is_integer(kind):
        return None
    bits = kind.bit_width - int(pa.types.is_signed_integer(kind))
    last = min(2**bits - 1, LARGEST_PLACE)
    return (-last - 1 if pa.types.is_signed_integer(kind) else 0), last


def _steps_kept(rule: Rule, written: Column) -> tuple[int, int]:
    """(stride, offset) of an order's column; of other rules (1, 0): their sums are on no step."""
    split = Split.of(written) if isinstance(rule, OrderRule) else None
    return (1, 0) if split is None else split.kept_by_all


def _residuals_alone(residuals: pd.Series[Any]) -> pd.Series[Any]:
    """The residuals of the cells that follow the rule, or break it. Shape: (n,) -> (m,)."""
    present = residuals.dropna()
    return present[present > MOST_BESIDE + MOST_NEVER - _FURTHEST]


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
    """The lowest and the highest residual, or plain numbers beyond where few rows have these."""
    residuals = np.array(sorted(counts), dtype=np.int64)
    if len(residuals) == 1:
        return int(residuals[0]), int(residuals[0])
    rows = np.array([counts[e] for e in residuals.tolist()])
    low, high = plain_limits(residuals, rows, rare_rows, Decimal(1))
    first, last = int(residuals[0]), int(residuals[-1])
    return max(int(low), min(first, -_FURTHEST)), min(int(high), max(last, _FURTHEST))


def _middle(table: TypedTable, written: Column) -> int:
    """The place of the middle of a column's cells; 0 where all are missing."""
    grid = Grid.of(written)
    assert grid is not None, "asked before"
    present = without_never(table[written.name]).dropna()
    return int(np.median(grid.places(present))) if len(present) else 0


def _whole_numbers(numbers: npt.NDArray[np.int64], blank: Mask) -> pd.Series[Any]:
    if not blank.any():
        return pd.Series(numbers)
    return pd.Series(pd.arrays.IntegerArray(numbers, blank.copy()))
