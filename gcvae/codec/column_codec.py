"""Base class of the codecs that encode and decode one modelled column each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.arrays import Codes, Numbers
from gcvae.artifact.documents import JsonFields
from gcvae.schema.columns import Column


@dataclass(frozen=True)
class ColumnPart(JsonFields):
    """Base class of the data that a model stores for one column in addition to its schema."""

    _given: ClassVar[tuple[str, ...]] = ("column",)
    column: Column

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.column.name

    @classmethod
    def from_json(cls, column: Column, document: Mapping[str, Any]) -> Self:
        """Restores the codec from its column and the JSON document that `to_json` returned."""
        return cls._of_document(document, column=column)


@dataclass(frozen=True)
class ColumnCodec(ColumnPart, ABC):
    """Codec of one modelled column, which maps each cell to an integer code and a real value.

    Attributes:
        has_missing: Whether code 0 stands for a missing cell.
        is_real: Whether the last code, n_codes - 1, stands for many numbers or dates, which the
            real value distinguishes.
    """

    has_missing: bool
    is_real: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def fit(cls, series: pd.Series[Any], column: Column) -> Self:
        """Fits the codec to parsed cells."""

    @property
    @abstractmethod
    def n_codes(self) -> int:
        """Number of codes, including the one of missing cells."""

    @property
    def nullable(self) -> bool:
        """Whether decoded cells get a dtype that can represent missing cells."""
        return self.has_missing or self.column.missing.allowed

    @abstractmethod
    def encode(self, series: pd.Series[Any]) -> tuple[npt.NDArray[np.int32], Numbers]:
        """Returns the integer code and the real value of each of n parsed cells; code -1 for a cell
        that the codec cannot represent. Shape: (n,) -> (n,), (n,)."""

    @abstractmethod
    def decode(self, codes: Codes, values: Numbers) -> pd.Series[Any]:
        """Returns the n cells that codes and values represent. Shape: (n,), (n,) -> (n,)."""

    def log_units(self, codes: npt.NDArray[np.int32], values: Numbers) -> Numbers:
        """Returns log(dx / dv) for each of n cells: x is the number (in days for dates), v its
        encoded value; 0 for levels. Shape: (n,), (n,) -> (n,).

        It converts densities: log p(x) = log p(v) - log_units.
        """
        return np.zeros(len(codes))
