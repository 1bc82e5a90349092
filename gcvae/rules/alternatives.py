"""Represents a column y by a code e, for rules y == f(x) that hold in only some of the rows.

    e = kept if y = f(x), else the grid index of y

`kept` is an integer below all indices. The grid index of a number is its multiple of the column's
resolution; that of a level is its index in the schema. The model learns e instead of y. This is
used for levels, which cannot be subtracted, and for numbers that are unrelated to f(x) in the
remaining rows, such as a payment that equals the bill in one row of seven.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.arrays import Mask
from gcvae.cells.values import placed_values
from gcvae.files.typed_columns import TypedTable, row_chunks
from gcvae.rules.grids import NO_LEVEL, Grid, Indices, LevelGrid, grid_of
from gcvae.rules.predictions import Prediction
from gcvae.rules.residuals import (
    Computed,
    type_limits,
    whole_numbers,
    with_ties,
)
from gcvae.schema.columns import Column, Missing, TableSchema
from gcvae.schema.kinds import ColumnKind
from gcvae.schema.rules import Rule

_UNSEEN = -3
"""Code of a level that the schema does not contain; for levels, -1 is the code `kept`."""


@dataclass(frozen=True)
class Alternative(Computed):
    """Replaces a column y, which equals a formula f(x) of other columns in some rows, by a code e.

    The code is `kept` if y = f(x), else the index of y. The index of a number is its multiple of
    the column's resolution; that of a level is its index in the schema.

    Attributes:
        kept: Code of the rows in which y = f(x), less than all indices.
        exceptions: Empty if y = f(x) in all rows. Otherwise, for levels, the indices of y in the
            rows where y differs from f(x); for numbers, the smallest and the largest index of y in
            any row.
        has_missing: Whether a cell of y was missing in the fitted table.
        fallback: Index that replaces f where f has no value.
    """

    kept: int
    exceptions: tuple[int, ...]
    has_missing: bool
    fallback: int

    @classmethod
    def of(cls, rule: Rule, table: TypedTable, schema: TableSchema) -> Alternative:
        """Returns the replacement of the column y of a rule y == f(x).

        Its codes are chosen by the cells of y in a table.
        """
        prediction = with_ties(Prediction.of(rule, schema), table)
        draft = cls(prediction, -1, (), False, 0)
        own, ends, has_missing = Counter[int](), list[int](), False
        for chunk in row_chunks(table, list(rule.columns)):
            cells = chunk[rule.column]
            known = cells.notna().to_numpy()
            has_missing |= not known.all()
            indices = draft.grid.indices(cells[known])
            ends += [int(indices.min()), int(indices.max())] if len(indices) else []
            is_kept = draft._agree(cells, prediction.predicted(chunk))[known]
            own.update(np.sort(indices[~is_kept]).tolist())
        low, high = min(ends, default=0), max(ends, default=0)
        fallback = own.most_common(1)[0][0] if own else low
        if isinstance(draft.grid, LevelGrid):
            return cls(prediction, -1, tuple(sorted(own)), has_missing, fallback)
        kept = low - max(high - low, 1) if ends else 0
        return cls(prediction, kept, (low, high) if own else (), has_missing, fallback)

    @property
    def is_exact(self) -> bool:
        """Whether y = f(x) in every row of the fitted table."""
        return not self.exceptions

    @cached_property
    def grid(self) -> Grid | LevelGrid:
        """Converter between cells of the column y and their indices."""
        return grid_of(self.original)

    @property
    def _has_levels(self) -> bool:
        return isinstance(self.grid, LevelGrid)

    @cached_property
    def parts(self) -> tuple[Column, ...]:
        """Schema of the one column that replaces the original one; it contains codes. They are
        ordered levels if the original column has levels or always equals the formula f(x), else
        whole numbers."""
        missing = Missing(self.original.missing.allowed or self.has_missing)
        if isinstance(self.grid, LevelGrid) or not self.exceptions:
            levels = (self.kept, *self.exceptions)
            return (Column(self.column, ColumnKind.ORDINAL, missing, levels=levels),)
        last = self.exceptions[-1]
        return (Column(self.column, ColumnKind.INTEGER, missing, minimum=self.kept, maximum=last),)

    def reduced(self, frame: pd.DataFrame, *, blanks_unknown: bool) -> dict[str, pd.Series[Any]]:
        """Returns the code e: `kept` where y equals f(x), else the index of y.

        The code is missing where y is missing. With `blanks_unknown`, it is also missing where a
        column of f is missing.
        """
        own, predicted = frame[self.column], self.prediction.predicted(frame)
        known = own.notna().to_numpy()
        codes = np.full(len(own), self.kept, dtype=np.int64)
        indices = self.grid.indices(own[known])
        codes[known] = (
            np.where(indices == NO_LEVEL, _UNSEEN, indices) if self._has_levels else indices
        )
        codes[self._agree(own, predicted)] = self.kept
        if blanks_unknown:
            known = known & frame[list(self.parents)].notna().all(axis=1).to_numpy()
        return {self.column: whole_numbers(codes, ~known)}

    def restored(self, frame: pd.DataFrame, parts: pd.DataFrame) -> pd.Series[Any]:
        """Returns f(x) where the code is `kept`, else the value whose index is the code."""
        codes = parts[self.column]
        known = codes.notna().to_numpy()
        indices = np.full(len(codes), self.fallback, dtype=np.int64)
        indices[known] = codes[known].to_numpy(dtype=np.int64)
        is_kept = known & (indices == self.kept)
        indices[is_kept] = self.base(frame)[0][is_kept]
        held = None if self._has_levels else type_limits(self.original)
        indices = indices if held is None else indices.clip(*held)
        values = (
            self.grid.values(indices, limited=False)
            if isinstance(self.grid, Grid)
            else self.grid.values(indices)
        )
        at = np.where(known, np.arange(len(values)), -1)
        column = self.original
        return placed_values(_plain(values), at, column.missing.allowed or self.has_missing)

    def base(self, frame: pd.DataFrame) -> tuple[Indices, Mask]:
        """Returns, for n rows and the rule y == f(x), (index of f(x); mask of the rows in which f
        has a value). Where f has no value, the index is `fallback`. Shape: (n,), (n,)."""
        predicted = self.prediction.predicted(frame)
        has_value = predicted.notna().to_numpy()
        base = np.full(len(frame), self.fallback, dtype=np.int64)
        found = self.grid.indices(predicted[has_value])
        is_nowhere = (found == NO_LEVEL) & self._has_levels
        base[has_value] = np.where(is_nowhere, self.fallback, found)
        return base, has_value

    def part_intervals(
        self, part: str, earlier: pd.DataFrame, low: Indices, high: Indices
    ) -> tuple[Indices, Indices]:
        """Returns the intervals in which the code e may lie if y lies in given intervals.

        The code is the index of y in general, so that the intervals of y are those of the code. In
        rows where f(x) lies in an interval of y, the code may also be `kept`, which is a further
        interval.

        Args:
            part: Ignored, because the code is the only part.
            earlier: Cells of the columns of f. n rows.
            low, high: First and last index of y in m intervals. Shape: (n, m) each.

        Returns:
            (First values, last values) of m + 1 intervals of the code. An interval is empty if
            first > last. Shape: (n, m + 1) each.
        """
        base, has_base = self.base(earlier)
        inside = ((low <= base[:, None]) & (base[:, None] <= high)).any(axis=1) & has_base
        kept = np.where(inside, self.kept, 1)[:, None], np.where(inside, self.kept, 0)[:, None]
        low = np.maximum(low, self.kept + 1)
        lower, upper = (np.concatenate(ends, axis=1) for ends in ((low, kept[0]), (high, kept[1])))
        return lower, upper

    def log_unit(self, part: str) -> float:
        is_real = isinstance(self.grid, Grid) and self.original.kind.is_real
        return self.grid.log_unit if is_real and isinstance(self.grid, Grid) else 0.0

    def _agree(self, own: pd.Series[Any], predicted: pd.Series[Any]) -> Mask:
        """Returns a mask of the rows in which y (`own`) equals the rounded f(x)."""
        both = own.notna().to_numpy() & predicted.notna().to_numpy()
        found = np.zeros(len(own), dtype=bool)
        indices = [self.grid.indices(cells[both]) for cells in (own, predicted)]
        found[both] = (indices[0] == indices[1]) & ~((indices[0] == NO_LEVEL) & self._has_levels)
        return found


def _plain(values: npt.NDArray[Any]) -> npt.NDArray[Any] | list[Any]:
    """Converts an array of objects, such as texts, to a list for `placed_values`; arrays of other
    dtypes are unchanged."""
    return values.tolist() if values.dtype == object else values
