"""Columns of one value, which is not modelled but written into every row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from gcvae.cells.values import placed_values
from gcvae.schema.columns import Column
from gcvae.spelling.date_text import read_dates


@dataclass(frozen=True)
class ConstantCodec:
    """One value in every row; missing in every row where the column has no value."""

    column: Column

    @classmethod
    def fit(cls, chunks: Iterable[pd.Series[Any]], column: Column) -> Self:
        """The codec of the schema's constant, whatever the cells are."""
        return cls(column)

    @property
    def name(self) -> str:
        """The column's name."""
        return self.column.name

    def decode(self, n_rows: int, first_row: int = 0, seed: int = 0) -> pd.Series[Any]:
        """The constant, in as many rows."""
        levels: npt.NDArray[Any] | list[Any] = list(self.column.levels or ())
        if self.column.datetime_format is not None and len(levels):
            levels = read_dates(pa.array([str(levels[0])]), self.column.datetime_format)
        places = np.full(n_rows, 0 if len(levels) else -1)
        return placed_values(levels, places, self.column.missing.allowed)

    def to_json(self) -> dict[str, Any]:
        """Nothing: the schema's column says it all."""
        return {}

    @classmethod
    def from_json(cls, column: Column, document: Mapping[str, Any]) -> Self:
        """The codec of the schema's column."""
        return cls(column)
