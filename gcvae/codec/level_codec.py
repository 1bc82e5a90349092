"""Codec of level columns, in which a code is the index of a level."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.arrays import Codes, Numbers
from gcvae.cells.values import placed_values
from gcvae.codec.column_codec import ColumnCodec
from gcvae.schema.columns import Column, Level


@dataclass(frozen=True)
class LevelCodec(ColumnCodec):
    """Encodes a level (category) as its index in the schema; with `has_missing`, code 0 is a
    missing cell and the levels follow."""

    @classmethod
    def fit(cls, series: pd.Series[Any], column: Column) -> Self:
        """Fits the codec to parsed cells, from which it only learns whether some are missing."""
        return cls(column, bool(series.isna().any()))

    @property
    def n_codes(self) -> int:
        return len(self.levels) + self.has_missing

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """Levels in order, typed as in parsed tables: False and True for a boolean column."""
        return self.column.typed_levels

    def encode(self, series: pd.Series[Any]) -> tuple[npt.NDArray[np.int32], Numbers]:
        found, distinct = pd.factorize(series)
        known = {level: i + self.has_missing for i, level in enumerate(self.levels)}
        codes = [known.get(level, -1) for level in distinct.tolist()]
        codes.append(0 if self.has_missing else -1)
        return np.array(codes, dtype=np.int32)[found], np.zeros(len(series))

    def decode(self, codes: Codes, values: Numbers) -> pd.Series[Any]:
        return placed_values(list(self.levels), codes - self.has_missing, self.nullable)
