"""Codec of level columns, in which a code is the index of a level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.arrays import Codes, Numbers
from gcvae.cells.values import placed_values
from gcvae.schema.columns import Column, Level


@dataclass(frozen=True)
class LevelCodec:
    """Encodes a level (category) as its index in the schema; with `has_missing`, code 0 is a
    missing cell and the levels follow."""

    column: Column
    has_missing: bool

    @classmethod
    def fit(cls, series: pd.Series[Any], column: Column) -> Self:
        """Fits the codec to parsed cells, which only determine `has_missing`: all levels of the
        schema get codes."""
        return cls(column, bool(series.isna().any()))

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.column.name

    @property
    def n_codes(self) -> int:
        """Number of codes: one for each level, and one for missing (if `has_missing`)."""
        return len(self.levels) + self.has_missing

    @property
    def is_real(self) -> bool:
        """False, because levels are encoded by codes alone, without a real value."""
        return False

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """Levels (categories) in order, typed as in parsed tables: False and True for a boolean
        column."""
        return self.column.typed_levels

    def encode(self, series: pd.Series[Any]) -> tuple[npt.NDArray[np.int32], Numbers]:
        """Returns (integer codes of n parsed cells, -1 for unknown levels; zeros as values). Shape:
        (n,) -> (n,), (n,)."""
        found, distinct = pd.factorize(series)
        known = {level: i + self.has_missing for i, level in enumerate(self.levels)}
        codes = [known.get(level, -1) for level in distinct.tolist()]
        codes.append(0 if self.has_missing else -1)
        return np.array(codes, dtype=np.int32)[found], np.zeros(len(series))

    def decode(self, codes: Codes, values: Numbers) -> pd.Series[Any]:
        """Returns the n cells that the codes represent; `values` is ignored. Shape: (n,)."""
        nullable = self.has_missing or self.column.missing.allowed
        return placed_values(list(self.levels), codes - self.has_missing, nullable)

    def log_units(self, codes: npt.NDArray[np.int32], values: Numbers) -> Numbers:
        """Returns zeros for n cells, because levels have probabilities instead of densities. Shape:
        (n,)."""
        return np.zeros(len(codes))

    def to_json(self) -> dict[str, Any]:
        """Returns the codec as a JSON document, which `from_json` reads together with the schema's
        column."""
        return {"has_missing": self.has_missing}

    @classmethod
    def from_json(cls, column: Column, document: Mapping[str, Any]) -> Self:
        """Restores the codec from the JSON document that `to_json` returned."""
        return cls(column, document["has_missing"])
