"""Interface of the codecs of modelled columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.arrays import Numbers
from gcvae.schema.columns import Column


class ColumnCodec(Protocol):
    """Codec of one modelled column: a cell becomes a code and a value.

    Attributes:
        column: Column of the schema.
        has_missing: Code 0 is the missing level.
        is_real: The last code, n_codes - 1, has a value.
    """

    @property
    def column(self) -> Column: ...
    @property
    def has_missing(self) -> bool: ...
    @property
    def name(self) -> str: ...
    @property
    def n_codes(self) -> int: ...
    @property
    def is_real(self) -> bool: ...

    def encode(self, series: pd.Series[Any]) -> tuple[npt.NDArray[np.int32], Numbers]:
        """Codes and values of typed cells. Shape: (n,) -> (n,), (n,)."""
        ...

    def decode(self, codes: npt.NDArray[np.int64], values: Numbers) -> pd.Series[Any]:
        """Typed cells of codes and values. Shape: (n,), (n,) -> (n,)."""
        ...

    def log_units(self, codes: npt.NDArray[np.int32], values: Numbers) -> Numbers:
        """log of the column's units (days for dates) per unit of value at each cell; 0 for levels.

        log p(x) = log p(value) - log_units. Shape: (n,), (n,) -> (n,).
        """
        ...

    def to_json(self) -> dict[str, Any]:
        """Returns the document that `from_json` reads together with the schema's column."""
        ...

    @classmethod
    def fit(cls, series: pd.Series[Any], column: Column) -> Self:
        """Returns the codec of these typed cells."""
        ...

    @classmethod
    def from_json(cls, column: Column, document: Mapping[str, Any]) -> Self:
        """Returns the codec of a document that `to_json` wrote."""
        ...
