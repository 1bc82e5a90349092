"""Replacement of a column that a formula computes in some rows: f(x), or a value of its own.

    e = KEPT where y = f(x), else the place of y

For levels, which have no differences, and for numbers of which a share equals f(x) and the others
have nothing to do with it: a payment is the bill in one row of seven.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.arrays import Mask
from gcvae.cells.values import placed_values
from gcvae.files.typed_columns import TypedTable, row_chunks
from gcvae.rules.grids import NO_LEVEL, Grid, LevelGrid, grid_of
from gcvae.rules.predictions import Prediction
from gcvae.rules.residuals import Computed, prediction_of_document, type_limits, with_ties
from gcvae.schema.columns import Column, Missing, TableSchema
from gcvae.schema.kinds import ColumnKind
from gcvae.schema.rules import Rule

Places = npt.NDArray[np.int64]
_UNSEEN = -3
"""The code of a level that the column has not, beside -1 for kept of levels."""


@dataclass(frozen=True)
class Alternative(Computed):
    """e is `kept` where y = f(x), else the place of y: on its grid, or among its levels.

    Attributes:
        kept: The number that stands for f, below all places.
        own: Places that rows have which do not keep the rule: all of levels, of numbers the ends.
        has_missing: A cell of y was missing.
        fallback: The place that stands for f where that has no value.
    """

    kept: int
    own: tuple[int, ...]
    has_missing: bool
    fallback: int

    @classmethod
    def of(cls, rule: Rule, table: TypedTable, schema: TableSchema) -> Alternative:
        """Returns the alternative of a rule on a table."""
        prediction = with_ties(Prediction.of(rule, schema), table)
        draft = cls(prediction, -1, (), False, 0)
        own, has_missing = dict[int, int](), False
        low, high = math.inf, -math.inf
        for chunk in row_chunks(table, [rule.column, *rule.parents]):
            present = chunk[rule.column].dropna()
            has_missing |= len(present) < len(chunk)
            places = draft.grid.places(present)
            if len(places):
                low, high = min(low, int(places.min())), max(high, int(places.max()))
            said = prediction.predicted(chunk)
            is_kept = draft._agree(chunk[rule.column], said)[chunk[rule.column].notna().to_numpy()]
            found, counts = np.unique(places[~is_kept], return_counts=True)
            for place, count in zip(found.tolist(), counts.tolist(), strict=True):
                own[place] = own.get(place, 0) + count
        fallback = (
            max(own, key=lambda place: own[place]) if own else (0 if low == math.inf else int(low))
        )
        if isinstance(draft.grid, LevelGrid):
            return cls(prediction, -1, tuple(sorted(own)), has_missing, fallback)
        kept = 0 if low == math.inf else int(low - max(high - low, 1))
        ends = (int(low), int(high)) if own else ()
        return cls(prediction, kept, ends, has_missing, fallback)

    @property
    def is_exact(self) -> bool:
        """Whether every row of the table keeps the formula."""
        return not self.own

    @cached_property
    def grid(self) -> Grid | LevelGrid:
        """Of y."""
        return grid_of(self.written)

    @property
    def _has_levels(self) -> bool:
        return isinstance(self.grid, LevelGrid)

    @cached_property
    def parts(self) -> tuple[Column, ...]:
        """The one column e: levels, or whole numbers with one far below all others."""
        missing = Missing(self.written.missing.allowed or self.has_missing)
        if isinstance(self.grid, LevelGrid) or not self.own:
            levels = (self.kept, *self.own)
            return (Column(self.column, ColumnKind.ORDINAL, missing, levels=levels),)
        last = self.own[-1]
        return (Column(self.column, ColumnKind.INTEGER, missing, minimum=self.kept, maximum=last),)

    def reduced(self, frame: pd.DataFrame, *, blanks_unknown: bool) -> dict[str, pd.Series[Any]]:
        """Returns the cells of e; of a row in which f has no value unknown where blanks are."""
        own, said = frame[self.column], self.prediction.predicted(frame)
        known = own.notna().to_numpy()
        codes = np.full(len(own), self.kept, dtype=np.int64)
        places = self.grid.places(own[known])
        codes[known] = np.where(places == NO_LEVEL, _UNSEEN, places) if self._has_levels else places
        codes[self._agree(own, said)] = self.kept
        if blanks_unknown:  # f may have no value although no parent is missing
            are_known = frame[list(self.parents)].notna().all(axis=1)
            known = known & (said.notna() | are_known).to_numpy()
        whole = pd.Series(codes)
        if not known.all():
            whole = pd.Series(pd.arrays.IntegerArray(codes, ~known))
        return {self.column: whole}

    def restored(self, frame: pd.DataFrame, parts: pd.DataFrame) -> pd.Series[Any]:
        """y: f(x), or its own."""
        codes = parts[self.column]
        known = codes.notna().to_numpy()
        places = np.full(len(codes), self.fallback, dtype=np.int64)
        places[known] = codes[known].to_numpy(dtype=np.int64)
        is_kept = known & (places == self.kept)
        places[is_kept] = self.base(frame)[0][is_kept]
        held = None if self._has_levels else type_limits(self.written)
        places = places if held is None else places.clip(*held)
        values = (
            self.grid.values(places, limited=False)
            if isinstance(self.grid, Grid)
            else self.grid.values(places)
        )
        at = np.where(known, np.arange(len(values)), -1)
        column = self.written
        return placed_values(_plain(values), at, column.missing.allowed or self.has_missing)

    def base(self, frame: pd.DataFrame) -> tuple[Places, Mask]:
        """Returns (the places of f, or of what stands for it, where f has a value). Shape: (n,)
        twice."""
        said = self.prediction.predicted(frame)
        has_value = said.notna().to_numpy()
        base = np.full(len(frame), self.fallback, dtype=np.int64)
        found = self.grid.places(said[has_value])
        is_nowhere = (found == NO_LEVEL) & self._has_levels
        base[has_value] = np.where(is_nowhere, self.fallback, found)
        return base, has_value

    def part_places(
        self, part: str, earlier: pd.DataFrame, low: Places, high: Places
    ) -> tuple[Places, Places]:
        """Where e lies if y lies between two places: there, or at `kept` where f does."""
        base, has_base = self.base(earlier)
        inside = ((low <= base[:, None]) & (base[:, None] <= high)).any(axis=1) & has_base
        kept = np.where(inside, self.kept, 1)[:, None], np.where(inside, self.kept, 0)[:, None]
        low = np.maximum(low, self.kept + 1)
        lower, upper = (np.concatenate(ends, axis=1) for ends in ((low, kept[0]), (high, kept[1])))
        return lower, upper

    def can_solve(self, parent: str) -> bool:
        """False: where y is known its parents are drawn by themselves."""
        return False

    def solutions(
        self, parent: Column, others: pd.DataFrame, low: Places, high: Places
    ) -> tuple[Places, Places]:
        """Nothing is known of the parent. Shape: (n, m) twice."""
        return np.ones(low.shape, dtype=np.int64), np.zeros(low.shape, dtype=np.int64)

    def log_unit(self, part: str) -> float:
        """log of the unit of y between two places of its grid; 0 of levels."""
        is_real = isinstance(self.grid, Grid) and self.written.kind.is_real
        return self.grid.log_unit if is_real and isinstance(self.grid, Grid) else 0.0

    def to_json(self) -> dict[str, Any]:
        """What `from_json` needs beside the schema."""
        return {
            "rule": self.rule.to_json(),
            "ties": self.prediction.ties,
            "kept": self.kept,
            "own": list(self.own),
            "has_missing": self.has_missing,
            "fallback": self.fallback,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any], schema: TableSchema) -> Alternative:
        """Returns the alternative of a document that `to_json` wrote."""
        return cls(
            prediction_of_document(document, schema),
            int(document["kept"]),
            tuple(int(place) for place in document["own"]),
            bool(document["has_missing"]),
            int(document["fallback"]),
        )

    def _agree(self, own: pd.Series[Any], said: pd.Series[Any]) -> Mask:
        """Returns rows in which y is what f(x) is rounded to. Shape: (n,) twice -> (n,)."""
        both = own.notna().to_numpy() & said.notna().to_numpy()
        found = np.zeros(len(own), dtype=bool)
        places = [self.grid.places(cells[both]) for cells in (own, said)]
        found[both] = (places[0] == places[1]) & ~((places[0] == NO_LEVEL) & self._has_levels)
        return found


def _plain(values: npt.NDArray[Any]) -> npt.NDArray[Any] | list[Any]:
    """Values as `placed_values` takes them: texts in a list."""
    return values.tolist() if values.dtype == object else values
