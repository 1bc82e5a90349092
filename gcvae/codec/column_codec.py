"""Interface of the codecs that encode and decode one modelled column each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.arrays import Numbers
from gcvae.schema.columns import Column


class ColumnCodec(Protocol):
    """Codec of one modelled column, which maps each cell to an integer code and a real value.

    Attributes:
        has_missing: Whether code 0 stands for a missing cell.
        n_codes: Number of codes.
        is_real: Whether cells with the last code, n_codes - 1, are numbers, which their value
            determines.
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
        """Returns the integer code and the real value of each of n parsed cells. Shape: (n,) ->
        (n,), (n,)."""
        ...

    def decode(self, codes: npt.NDArray[np.int64], values: Numbers) -> pd.Series[Any]:
        """Returns the n cells that integer codes and real values represent. Shape: (n,), (n,) ->
        (n,)."""
        ...

    def log_units(self, codes: npt.NDArray[np.int32], values: Numbers) -> Numbers:
        """Returns log(dx / dv) for each of n cells: x is the number (in days for dates), v its
        encoded value; 0 for levels.

        It converts densities: log p(x) = log p(v) - log_units. Shape: (n,), (n,) -> (n,).
        """
        ...

    def to_json(self) -> dict[str, Any]:
        """Returns the codec as a JSON document, which `from_json` reads together with the schema's
        column."""
        ...

    @classmethod
    def fit(cls, series: pd.Series[Any], column: Column) -> Self:
        """Fits the codec to parsed cells."""
        ...

    @classmethod
    def from_json(cls, column: Column, document: Mapping[str, Any]) -> Self:
        """Restores the codec from the JSON document that `to_json` returned."""
        ...
