"""Cells of measured columns as numbers or as category codes.

number    continuous, integer and datetime columns, and ordinal columns of numeric levels
level     all other columns; a missing cell is a level like any other
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.arrays import DAY, TIMES, Codes, Numbers
from gcvae.errors import Problem, TableError
from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.kinds import Outcomes


def measured_columns(schema: TableSchema) -> tuple[Column, ...]:
    """Returns the modelled columns, in the schema's order."""
    return tuple(column for column in schema if column.is_modelled)


def is_number(column: Column) -> bool:
    """Returns whether differences between the column's values have a meaning."""
    levels = column.levels or ()
    are_numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in levels)
    is_ordered = column.kind.outcomes is Outcomes.ORDERED_LEVELS
    return column.kind.is_real or (is_ordered and are_numbers)


def numbers_of(frame: pd.DataFrame, column: Column) -> Numbers:
    """Returns the cells of a number column; NaN for missing, dates as days since 1970.

    Shape: (n,).

    Raises:
        TableError: A cell is not a number.
    """
    series = frame[column.name]
    if pd.api.types.is_datetime64_any_dtype(series):
        days = series.to_numpy(dtype=TIMES).astype(np.int64) / DAY
        return np.where(series.isna().to_numpy(), np.nan, days)
    try:
        return pd.to_numeric(series).to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise TableError(
            Problem(f"a cell can not be measured: {error}", column=column.name, expected="numbers")
        ) from None


def with_outcome(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Returns the rows whose cell of a column is not missing."""
    return frame[frame[name].notna()]


def level_codes(frames: tuple[pd.DataFrame, ...], column: Column) -> tuple[Codes, ...]:
    """Returns codes of the cells, with one code per level in all frames; 0 is missing."""
    columns = [frame[column.name].astype(object) for frame in frames]
    codes = pd.factorize(pd.concat(columns, ignore_index=True))[0].astype(np.int64) + 1
    return tuple(np.split(codes, np.cumsum([len(cells) for cells in columns])[:-1]))


def total_variation(real: npt.NDArray[Any], synthetic: npt.NDArray[Any]) -> float:
    """Returns ½ Σ_k |P(k) − Q(k)|, with the shares of each code in two samples. Shape: (n,),
    (m,)."""
    size = int(max(real.max(initial=0), synthetic.max(initial=0))) + 1
    if size > 4 * (len(real) + len(synthetic)) + 1_000:  # a sparse table of counts
        both = np.unique(np.concatenate([real, synthetic]), return_inverse=True)[1]
        real, synthetic = both[: len(real)], both[len(real) :]
        size = int(both.max(initial=0)) + 1
    p = np.bincount(real, minlength=size) / len(real)
    q = np.bincount(synthetic, minlength=size) / len(synthetic)
    return min(1.0, float(np.abs(p - q).sum() / 2))


def correlation(x: Numbers, y: Numbers) -> float:
    """Returns Pearson's r over rows where both are present; 0 if it is undefined. Shape: (n,)
    twice."""
    present = ~(np.isnan(x) | np.isnan(y))
    x, y = x[present], y[present]
    if not len(x) or x.min() == x.max() or y.min() == y.max():
        return 0.0
    x, y = x - x.mean(), y - y.mean()
    x, y = x / np.abs(x).max(), y / np.abs(y).max()  # squares stay finite
    return float((x @ y) / np.sqrt((x @ x) * (y @ y)))
