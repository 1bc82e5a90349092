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
    """Codec of one modelled column: maps each cell to a code and a value.

    Attributes:
        column: Column of the schema.
        has_missing: Whether code 0 is the missing level.
        is_real: Whether the last code, n_codes - 1, has a value.
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
        """Returns codes and values of typed cells. Shape: (n,) -> (n,), (n,)."""
        ...

    def decode(self, codes: npt.NDArray[np.int64], values: Numbers) -> pd.Series[Any]:
        """Returns the typed cells of codes and values. Shape: (n,), (n,) -> (n,)."""
        ...

    def log_units(self, codes: npt.NDArray[np.int32], values: Numbers) -> Numbers:
        """Returns the log of the column's units (days for dates) per unit of value; 0 for levels.

        log p(x) = log p(value) - log_units. Shape: (n,), (n,) -> (n,).
        """
        ...

    def to_json(self) -> dict[str, Any]:
        """Returns the document from which `from_json`, with the schema's column, restores the
        codec."""
        ...

    @classmethod
    def fit(cls, series: pd.Series[Any], column: Column) -> Self:
        """Fits the codec to typed cells."""
        ...

    @classmethod
    def from_json(cls, column: Column, document: Mapping[str, Any]) -> Self:
        """Restores the codec from a document that `to_json` wrote."""
        ...
