"""Residuals e = y - f(x), which the model learns instead of a column y that a formula f determines.

e is a multiple of y's resolution, so that y and e determine each other given x. Values of y to
which a rule does not apply ("exempt"), such as 0 for "none", are represented by integers below all
residuals. If all cells of y are multiples of a wider step, such as midnights in a format with
seconds, the residual of an inequality counts these steps.

The index of a number or date is its multiple of the column's resolution (`grids`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from gcvae.arrays import Mask
from gcvae.artifact.documents import JsonFields
from gcvae.cells.data_frames import with_columns
from gcvae.cells.grid_units import grid_unit
from gcvae.cells.values import placed_values
from gcvae.errors import Problem, SchemaError
from gcvae.files.typed_columns import TypedTable, row_chunks
from gcvae.numerics.outward import plain_limits
from gcvae.rules.grids import LARGEST_INDEX, NO_INDEX, Grid, Indices
from gcvae.rules.predictions import TIES, Prediction, quantities
from gcvae.rules.rewritings import Rewriting
from gcvae.rules.solutions import can_solve, solutions
from gcvae.rules.splits import Split
from gcvae.schema.columns import Column, Missing, TableSchema
from gcvae.schema.kinds import ColumnKind
from gcvae.schema.parquet_types import parquet_type
from gcvae.schema.rule_documents import MOST_EXEMPT, read_rules
from gcvae.schema.rules import Formula, Rule

_FURTHEST = 1 << 62
_FEW_UNITS = 4
_NO_LIMITS = (-LARGEST_INDEX, LARGEST_INDEX)
_USUAL_SHARE, _MOST_USUAL, _MOSTLY = 0.01, 4, 0.8


@dataclass(frozen=True)
class Computed(JsonFields, Rewriting):
    """Base class of replacements of a column y that a formula f of other columns x computes.

    Attributes:
        prediction: Compiled formula f.
    """

    _given = ("prediction",)
    prediction: Prediction

    def __str__(self) -> str:
        """Returns the text of the rule."""
        return str(self.rule)

    @property
    def rule(self) -> Rule:
        """Rule y == f(x), y >= f(x) or y <= f(x) by which the column y is replaced."""
        return self.prediction.rule

    @property
    def original(self) -> Column:
        """Schema of the replaced column, as in the original table."""
        return self.prediction.column

    @property
    def is_inequality(self) -> bool:
        """Whether the rule is an inequality, y >= f(x) or y <= f(x)."""
        return self.prediction.form.is_inequality

    @property
    def column(self) -> str:
        return self.rule.column

    @property
    def parents(self) -> tuple[str, ...]:
        return self.rule.parents

    def to_json(self) -> dict[str, Any]:
        return {"rule": self.rule.to_json(), "ties": self.prediction.ties, **super().to_json()}

    @classmethod
    def from_json(cls, document: Mapping[str, Any], schema: TableSchema) -> Self:
        """Reads the object from a JSON document (`to_json`) and the schema of the original table.

        Raises:
            SchemaError, KeyError, TypeError, ValueError: The document contains no formula of the
                schema's columns.
        """
        return cls._of_document(document, prediction=prediction_of_document(document, schema))


@dataclass(frozen=True)
class Residual(Computed):
    """Replaces a column y by its residual e = y - f(x) from the formula f of a rule. Residuals and
    indices of y are multiples of y's resolution.

    If a column of f is missing, f has no value. A number that is neutral in f then replaces the
    missing cell (0 in a sum: a missing tax), if this reproduces y in most such rows; otherwise
    `fallback` replaces f.

    Attributes:
        lowest, highest: Smallest and largest residual in the table, including the residuals of
            exempt values. If few rows contain the smallest or the largest residual, a round number
            beyond it stands in its place.
        has_missing: Whether a cell of y was missing in the table.
        fallback: Index of y that replaces f where f has no value.
        usual: Intervals that contain most residuals where f has a value: up to four single numbers,
            or one range.
        limits: Range of the residuals where f has a value; generated residuals are clipped to it.
        exempt: Indices of values of y to which the rule does not apply. Their residuals are lowest,
            lowest + 1, and so on, below the limits.
        stride, offset: All cells of y have an index offset + k * stride. Residuals count strides,
            from the first such index that satisfies the inequality.
        reach: First and last index of y among the cells to which the rule applies.
        neutral: By column of f, the number that replaces a missing cell: 0 in a sum, 1 in a
            product.
        by_side: Whether the sign of e is reversed in rows where f lies below its rounded value.
            Positive residuals then always lead from the rounded f towards the exact f.
        at_ties: Whether f determines y except at ties, where f lies half way between two multiples
            of the resolution. Residuals are then 0, or at a tie 0 or 1; those of exempt values do
            not count. This occurs in tables that were computed in binary fractions.
    """

    lowest: int
    highest: int
    has_missing: bool
    fallback: int
    usual: tuple[tuple[int, int], ...] = ()
    limits: tuple[int, int] = _NO_LIMITS
    exempt: tuple[int, ...] = ()
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
        """Fits the residual y - f(x) of a rule's column y on a table; returns None if y has no
        fixed resolution, or if no residual is known.

        Args:
            rule: Formula or inequality.
            rare_rows: If fewer rows than this contain the largest residual, a larger round number
                becomes the upper limit of the residuals. The same holds for the smallest residual.
        """
        grid = Grid.of(schema[rule.column])
        if grid is None:
            return None
        prediction = with_ties(Prediction.of(rule, schema), table)
        present = table[rule.column].dropna()
        exempt = tuple(int(index) for index in grid.indices(prediction.exempt))
        others = _ordinary_indices(table, grid, exempt)
        stride, offset = _kept_steps(prediction, others)
        draft = cls(
            prediction,
            lowest=-_FURTHEST,
            highest=0,
            has_missing=False,
            fallback=int(np.median(grid.indices(present))) if len(present) else 0,
            exempt=exempt,
            stride=stride,
            offset=offset,
            reach=_ends(others, rare_rows) if others else (grid.low, grid.high),
            neutral=_neutral_parents(prediction, table),
            by_side=_is_by_side(prediction),
        )
        has_missing, at_ties = False, prediction.form.relation == "=="
        counts, defined_counts = Counter[int](), Counter[int]()
        for chunk in row_chunks(table, list(rule.columns)):
            residuals = draft.reduced(chunk, blanks_unknown=False)[rule.column]
            defined = draft.reduced(chunk, blanks_unknown=True)[rule.column]
            has_missing |= bool(residuals.isna().any())
            if at_ties:
                own = residuals.fillna(0).to_numpy(dtype=np.int64)
                is_off = (own != 0) & (own > MOST_EXEMPT - _FURTHEST)
                at_ties = bool((np.abs(own[is_off]) <= 1).all())
                at_ties &= bool(prediction.at_tie(chunk)[is_off].all())
            for found, cells in ((counts, residuals), (defined_counts, defined)):
                ordinary = cells.dropna()
                ordinary = ordinary[ordinary > MOST_EXEMPT - _FURTHEST]  # on the grid, not exempt
                found.update({int(str(e)): n for e, n in ordinary.value_counts().items()})
        if not counts:
            return None
        if at_ties and set(counts) != {0}:  # e = 1 leads to the other grid point beside f
            draft = replace(draft, by_side=True)
            counts, defined_counts = map(_of_sizes, (counts, defined_counts))
        lowest, highest = _ends(counts, rare_rows)
        limits = _ends(defined_counts, rare_rows) if defined_counts else (lowest, highest)
        at_ties &= lowest < highest
        if exempt:
            # Exempt values lie below all residuals, at a distance of the residuals' range.
            lowest = min(lowest, limits[0]) - max(highest - lowest, len(exempt))
        return replace(
            draft,
            lowest=lowest,
            highest=highest,
            has_missing=has_missing,
            usual=_usual(defined_counts or counts),
            limits=limits,
            at_ties=at_ties,
        )

    @property
    def is_exact(self) -> bool:
        """Whether f determines y: every row of the table has the same residual, except where f lies
        half way between two multiples of y's resolution. An inequality, too, can be exact: if
        payment is always due 14 days after the end, `due >= end` determines both dates."""
        return self.lowest == self.highest or (self.at_ties and not self.exempt)

    @property
    def only_residual(self) -> int | None:
        """Residual of every row in which f has a value, except where f lies half way between two
        multiples of the resolution; None if residuals differ."""
        first, last = (0, 0) if self.at_ties else self.limits
        return first if first == last else None

    @property
    def kept(self) -> int:
        """The only residual of an exact formula (`is_exact`); not meaningful for other formulas.

        Rows in which f lies half way between two multiples of the resolution may have a second
        residual.
        """
        return 0 if self.at_ties else self.lowest

    @cached_property
    def grid(self) -> Grid:
        """Converter between cells of the replaced column and multiples of its resolution."""
        grid = Grid.of(self.original)
        assert grid is not None, "rules without one are left out"
        return grid

    @cached_property
    def parts(self) -> tuple[Column, ...]:
        """Schema of the residual: a column of whole numbers, or of levels if all rows to which the
        rule applies have the same residual."""
        missing = Missing(self.original.missing.allowed or self.has_missing)
        if self.highest - self.lowest == len(self.exempt):  # no other residuals occur
            levels = tuple(range(self.lowest, self.highest + 1))
            return (Column(self.column, ColumnKind.ORDINAL, missing, levels=levels),)
        low, high = self.lowest, self.highest
        return (Column(self.column, ColumnKind.INTEGER, missing, minimum=low, maximum=high),)

    def reduced(self, frame: pd.DataFrame, *, blanks_unknown: bool) -> dict[str, pd.Series[Any]]:
        """Returns the residual y - f(x) of each of n rows, in a dictionary with the name of y as
        its only key. Shape: (n,).

        The residual is missing where y is. Where f has no value, it is missing if `blanks_unknown`;
        otherwise it is the difference between y and the number that replaces f (`base`).
        """
        own = frame[self.column]
        base, has_base = self.base(frame)
        known = own.notna().to_numpy()
        if blanks_unknown:
            known = known & has_base
        residuals = np.zeros(len(own), dtype=np.int64)
        indices = self.grid.indices(own[known])
        steps, rest = np.divmod(indices - base[known], self.stride)
        steps = steps * self._sides(frame)[known]
        # Cells between two steps have no residual, and cells so far below f that their residual
        # would be that of an exempt value have none either.
        is_nowhere = (indices == NO_INDEX) | (rest != 0) | (steps < self._bottom)
        residuals[known] = np.where(is_nowhere, self.lowest - 1, steps)
        if self.is_exact and self.prediction.is_lookup:
            # A level that the table lacks, such as a new product, determines an unknown value.
            has_keys = frame[list(self.parents)].notna().all(axis=1).to_numpy()
            residuals[known & has_keys & ~has_base] = self.kept
        at = np.flatnonzero(known)
        for i, index in enumerate(self.exempt):
            residuals[at[indices == index]] = self.lowest + i
        return {self.column: whole_numbers(residuals, ~known)}

    def restored(self, frame: pd.DataFrame, parts: pd.DataFrame) -> pd.Series[Any]:
        """Returns the cells y = f(x) + e, clipped to the range of y unless that would violate the
        rule; missing where the residual e is."""
        residuals = parts[self.column]
        known = residuals.notna().to_numpy()
        base, has_base = self.base(frame)
        steps = np.zeros(len(residuals), dtype=np.int64)
        steps[known] = residuals[known].to_numpy(dtype=np.int64)
        apart = known & (steps < self.lowest + len(self.exempt))
        which = steps[apart] - self.lowest
        steps = np.where(has_base, steps.clip(*self.limits), steps) * self._sides(frame)
        if self.at_ties:
            steps = np.where(has_base & ~self.prediction.at_tie(frame), 0, steps)
        found = self._within(base, self.stride * steps, has_base)
        if self.exempt:
            found[apart] = np.array(self.exempt)[which.clip(0, len(self.exempt) - 1)]
        values = self.grid.values(found, limited=False)
        indices = np.where(known, np.arange(len(values)), -1)
        return placed_values(values, indices, self.original.missing.allowed or self.has_missing)

    def _within(self, base: Indices, steps: Indices, has_base: Mask) -> Indices:
        """Returns base + steps, clipped to `reach`: the range of y without exempt values. An index
        that satisfies the rule is not clipped to one that violates it. Shape: (n,)."""
        first, last = self.reach
        low = first + (self.offset - first) % self.stride
        high = last - (last - self.offset) % self.stride
        inside = np.clip(base + steps, low, max(low, high))
        few = [self.stride * first for first, last in self.usual if first == last]
        loses_rule = has_base & np.isin(steps, few) & ~np.isin(inside - base, few)
        found = np.where(loses_rule, base + steps, inside)
        held = type_limits(self.original)
        return found if held is None else found.clip(*held)

    def can_solve(self, parent: str) -> bool:
        minimum = self.prediction.parents[parent].minimum
        is_positive = isinstance(minimum, int | float) and minimum > 0
        return can_solve(self.prediction.form, parent, is_positive)

    def part_intervals(
        self, part: str, earlier: pd.DataFrame, low: Indices, high: Indices
    ) -> tuple[Indices, Indices]:
        """Returns the intervals in which the residual may lie if y lies in given intervals.

        An interval that reaches the upper or lower end of `limits` extends beyond it, because
        residuals beyond an end are clipped to it when rows are generated. Each exempt value has a
        further interval.

        Args:
            part: Ignored, because the residual is the only part.
            earlier: Cells of the columns of f. n rows.
            low, high: First and last values of m intervals of y, as multiples of its resolution.
                Shape: (n, m) each.

        Returns:
            (First values, last values) of m' intervals of the residual. An interval is empty if
            first > last. Shape: (n, m') each.
        """
        base, has_base = (found[:, None] for found in self.base(earlier))
        first, last = self.limits
        apart = [self._exempt_interval(i, low, high) for i in range(len(self.exempt))]
        bottom = self._bottom
        low, high = -((base - low) // self.stride), (high - base) // self.stride
        is_turned = self._sides(earlier)[:, None] < 0
        low, high = np.where(is_turned, -high, low), np.where(is_turned, -low, high)
        is_within = (~has_base | ((low <= last) & (high >= first))) & (high >= bottom)
        low = np.maximum(np.where(has_base & (low <= first), bottom, low), bottom)
        high = np.where(has_base & (high >= last), LARGEST_INDEX, high)
        ends = [(np.where(is_within, low, 1), np.where(is_within, high, 0)), *apart]
        lower, upper = (np.concatenate(part, axis=1) for part in zip(*ends, strict=True))
        return lower, upper

    def _exempt_interval(self, i: int, low: Indices, high: Indices) -> tuple[Indices, Indices]:
        """Returns an interval with only the residual of the i-th exempt value; an empty one in rows
        where no given interval contains that value. Shape: (n, 1) each."""
        is_inside = np.asarray((low <= self.exempt[i]) & (self.exempt[i] <= high))
        is_asked = is_inside.any(axis=1, keepdims=True)
        residual = self.lowest + i
        return np.where(is_asked, residual, 1), np.where(is_asked, residual, 0)

    def solutions(
        self, parent: Column, others: pd.DataFrame, low: Indices, high: Indices
    ) -> tuple[Indices, Indices]:
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
        """Intervals that contain most differences between y and the rounded f, in strides
        (`stride`). If the sign of a residual may be reversed, both signs are included."""
        if self.at_ties:
            return (0, 0), (-1, -1), (1, 1)
        if not self.by_side:
            return self.usual
        most = max((max(abs(first), abs(last)) for first, last in self.usual), default=0)
        return ((-most, most),)

    def base(self, frame: pd.DataFrame) -> tuple[npt.NDArray[np.int64], Mask]:
        """Returns, for n rows, (f(x) as a multiple of y's resolution, or a replacement where f has
        no value; mask of the rows in which f has a value). Shape: (n,), (n,)."""
        given = self.prediction.predicted(frame)
        has_value = given.notna().to_numpy()
        if self.neutral and not has_value.all():
            given = self.prediction.predicted(_without_blanks(self.prediction, frame, self.neutral))
        is_computed = given.notna().to_numpy()
        base = np.full(len(frame), self.fallback, dtype=np.int64)
        base[is_computed] = self.grid.indices(given[is_computed])
        if self.prediction.form.relation == "<=":
            return base - (base - self.offset) % self.stride, has_value
        return base + (self.offset - base) % self.stride, has_value

    def _sides(self, frame: pd.DataFrame) -> Indices:
        """Returns the factor that gives the residual of each of n rows its sign: -1 where `by_side`
        reverses the sign, else 1. Shape: (n,)."""
        if not self.by_side:
            return np.ones(len(frame), dtype=np.int64)
        with np.errstate(invalid="ignore"):
            off = self.prediction.evaluated(frame) - quantities(self.prediction.predicted(frame))
        return np.where(off < 0, -1, 1)

    @property
    def _bottom(self) -> int:
        """Lowest residual of a cell that is not exempt."""
        return self.lowest + len(self.exempt) if self.exempt else -_FURTHEST

    def log_unit(self, part: str) -> float:
        return self.grid.log_unit

    @classmethod
    def from_json(cls, document: Mapping[str, Any], schema: TableSchema) -> Self:
        found = super().from_json(document, schema)
        if Grid.of(found.original) is None or found.stride < 1:
            raise ValueError(f"{found.rule} has no grid, or no positive stride")
        return found


def prediction_of_document(document: Mapping[str, Any], schema: TableSchema) -> Prediction:
    """Restores the compiled formula of a rule from the JSON document of a `Residual` or
    `Alternative`.

    Raises:
        SchemaError, ValueError: The document does not contain a formula of the schema's columns.
    """
    problems: list[Problem] = []
    rules = read_rules([document["rule"]], problems)
    if problems:
        raise SchemaError(*problems)
    if not isinstance(rules[0].form, Formula):
        raise ValueError(f"{rules[0]} computes no column")
    if document["ties"] not in TIES:
        raise ValueError(f"ties are rounded {' or '.join(TIES)}, not {document['ties']!r}")
    return replace(Prediction.of(rules[0], schema), ties=document["ties"])


def with_ties(prediction: Prediction, table: TypedTable) -> Prediction:
    """Returns the formula with the way of rounding ties by which it equals y most often.

    Ties are numbers half way between two multiples of the resolution. Only the first chunk of the
    table's rows is compared. Inequalities and formulas of levels are returned unchanged.
    """
    if prediction.form.is_inequality or prediction.is_of_levels:
        return prediction
    rows = next(iter(row_chunks(table, [prediction.column.name, *prediction.rule.parents])), None)
    if rows is None:
        return prediction
    values = prediction.values(rows[prediction.column.name])
    ways = [replace(prediction, ties=ties) for ties in TIES]
    return max(ways, key=lambda way: int((prediction.values(way.predicted(rows)) == values).sum()))


def _of_sizes(counts: Counter[int]) -> Counter[int]:
    found: Counter[int] = Counter()
    for e, n in counts.items():
        found[abs(e)] += n
    return found


def _is_by_side(prediction: Prediction) -> bool:
    """Returns whether the sign of residuals is reversed where f lies below its rounded value.

    This holds for approximate formulas with a tolerance of at most four multiples of the
    resolution, because it then matters on which side of the rounded value f lies.
    """
    unit = grid_unit(prediction.column)
    if prediction.form.relation != "≈" or unit is None:
        return False
    return prediction.form.tolerance <= _FEW_UNITS * unit


def _neutral_parents(prediction: Prediction, table: TypedTable) -> dict[str, int]:
    """Returns, by column name, the number (0 or 1) that replaces missing cells in columns of a
    formula, such as 0 for a missing summand.

    A column is left out unless the formula, computed with this number, equals the predicted column
    in most of the rows in which this is the only missing column of the formula.
    """
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
    parents = frame[list(prediction.rule.parents)]
    filled = {name: parents[name].fillna(x) for name, x in numbers.items()}
    return with_columns(parents, filled)


def type_limits(column: Column) -> tuple[int, int] | None:
    """Returns the smallest and largest number that a column's integer type in Parquet files can
    store, as multiples of the column's resolution.

    Returns None if the column has no such type.
    """
    kind = None if column.parquet_type is None else parquet_type(column.parquet_type)
    if kind is None or column.decimals or not pa.types.is_integer(kind):
        return None
    bits = kind.bit_width - int(pa.types.is_signed_integer(kind))
    last = min(2**bits - 1, LARGEST_INDEX)
    return (-last - 1 if pa.types.is_signed_integer(kind) else 0), last


def _ordinary_indices(table: TypedTable, grid: Grid, exempt: tuple[int, ...]) -> Counter[int]:
    """Counts the cells of a column at each index, except exempt ones. Nothing is counted if no
    value is exempt, because the schema then tells the range and steps of the column."""
    found, name = Counter[int](), grid.column.name
    for chunk in row_chunks(table, [name]) if exempt else ():
        own = grid.indices(chunk[name].dropna())
        found.update(own[~np.isin(own, exempt)].tolist())
    return found


def _kept_steps(prediction: Prediction, others: Counter[int]) -> tuple[int, int]:
    """Returns (stride, offset), such that all cells of an inequality's column have an index offset
    + k * stride with a whole number k; (1, 0) for other formulas. `others` is the result of
    `_ordinary_indices`."""
    split = Split.of(prediction.column) if prediction.form.is_inequality else None
    if split is None or not others:
        return (1, 0) if split is None else split.kept_by_all
    indices = np.array(list(others))
    common = int(np.gcd.reduce(indices - indices[0]))
    stride = max((step for step in split.steps if common % step == 0), default=1)
    return stride, int(indices[0] % stride)


def _usual(counts: Counter[int]) -> tuple[tuple[int, int], ...]:
    """Returns intervals that contain most residuals: up to four frequent values, else the middle 98
    %."""
    frequent = counts.most_common(_MOST_USUAL)
    if sum(n for _, n in frequent) >= _MOSTLY * counts.total():
        return tuple((int(e), int(e)) for e, n in frequent if n >= _USUAL_SHARE * counts.total())
    residuals = np.array(sorted(counts))
    below = np.cumsum([counts[e] for e in residuals.tolist()]) / counts.total()
    first, last = residuals[np.searchsorted(below, (0.01, 0.99))]
    return ((int(first), int(last)),)


def _ends(counts: Counter[int], rare_rows: int) -> tuple[int, int]:
    """Returns the smallest and the largest of the counted numbers. If fewer than `rare_rows` rows
    contain one of them, a round number beyond it takes its place, so that these rows are not
    disclosed."""
    residuals = np.array(sorted(counts), dtype=np.int64)
    if len(residuals) == 1:
        return int(residuals[0]), int(residuals[0])
    rows = np.array([counts[e] for e in residuals.tolist()])
    low, high = plain_limits(residuals, rows, rare_rows, Decimal(1))
    first, last = int(residuals[0]), int(residuals[-1])
    return max(int(low), min(first, -_FURTHEST)), min(int(high), max(last, _FURTHEST))


def whole_numbers(numbers: npt.NDArray[np.int64], blank: Mask) -> pd.Series[Any]:
    """Returns n whole numbers as a series that is missing where `blank`. Shape: (n,)."""
    if not blank.any():
        return pd.Series(numbers)
    return pd.Series(pd.arrays.IntegerArray(numbers, blank.copy()))
