"""Converts the cells of measured columns to numbers or to category codes.

A number column is continuous, integer or datetime, or ordinal with numeric levels. Every other
measured column is a level column, in which "missing" counts as one more level.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.arrays import DAY, TIMES, Codes, Numbers
from gcvae.cells.levels import are_numeric
from gcvae.errors import Problem, TableError
from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.kinds import Outcomes


def measured_columns(schema: TableSchema) -> tuple[Column, ...]:
    """Returns the columns that the model learns, in the schema's order."""
    return tuple(column for column in schema if column.is_modelled)


def is_number(column: Column) -> bool:
    """Returns whether a column is continuous, integer, datetime, or ordinal with numeric levels."""
    is_ordered = column.kind.outcomes is Outcomes.ORDERED_LEVELS
    return column.kind.is_real or (is_ordered and are_numeric(column.levels or ()))


def numbers_of(frame: pd.DataFrame, column: Column) -> Numbers:
    """Returns the cells of a number column as floats; NaN is missing.

    Dates and times become days since 1970-01-01. Shape: (n,) for n rows.

    Raises:
        TableError: A cell is neither a number nor missing.
    """
    series = frame[column.name]
    if pd.api.types.is_datetime64_any_dtype(series):
        days = series.to_numpy(dtype=TIMES).astype(np.int64) / DAY
        return np.where(series.isna().to_numpy(), np.nan, days)
    try:
        return pd.to_numeric(series).to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise TableError(
            Problem(f"a cell cannot be measured: {error}", column=column.name, expected="numbers")
        ) from None


def evenly_spaced(n: int, most: int) -> list[int]:
    """Returns at most `most` evenly spaced integers from 0 to n − 1."""
    found: list[int] = np.unique(np.linspace(0, n - 1, min(n, most)).astype(int)).tolist()
    return found


def with_outcome(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Returns the rows in which the column `name` is not missing."""
    return frame[frame[name].notna()]


def level_codes(frames: tuple[pd.DataFrame, ...], column: Column) -> tuple[Codes, ...]:
    """Returns the integer code of each cell of a column, as one array for each frame.

    A level has the same code in all frames; 0 is missing. Shape: (rows of the frame,) each.
    """
    columns = [frame[column.name].astype(object) for frame in frames]
    codes = pd.factorize(pd.concat(columns, ignore_index=True))[0].astype(np.int64) + 1
    return tuple(np.split(codes, np.cumsum([len(cells) for cells in columns])[:-1]))


def row_keys(tables: tuple[pd.DataFrame, ...], schema: TableSchema) -> list[npt.NDArray[Any]]:
    """Returns a hash of each row, as one array for each table.

    Rows of any of the tables that are equal in every measured column have the same hash.
    """
    codes = [level_codes(tables, column) for column in measured_columns(schema)]
    return [
        pd.util.hash_pandas_object(pd.DataFrame(dict(enumerate(parts))), index=False).to_numpy()
        for parts in zip(*codes, strict=True)
    ]


def total_variation(real: npt.NDArray[Any], synthetic: npt.NDArray[Any]) -> float:
    """Returns the total variation distance ½ Σ_k |P(k) − Q(k)| of two samples of integer codes.

    P(k) and Q(k) are the shares of code k in each sample. Shape: (n,), (m,).
    """
    size = int(max(real.max(initial=0), synthetic.max(initial=0))) + 1
    if size > 4 * (len(real) + len(synthetic)) + 1_000:  # too sparse to count by code
        both = np.unique(np.concatenate([real, synthetic]), return_inverse=True)[1]
        real, synthetic = both[: len(real)], both[len(real) :]
        size = int(both.max(initial=0)) + 1
    p = np.bincount(real, minlength=size) / len(real)
    q = np.bincount(synthetic, minlength=size) / len(synthetic)
    return min(1.0, float(np.abs(p - q).sum() / 2))


def quantile_edges(numbers: Numbers, n_bins: int) -> Numbers:
    """Returns the inner edges of `n_bins` bins of equal frequency; equal edges are merged.

    NaN is ignored. The result is empty if every number is NaN.
    """
    present = numbers[~np.isnan(numbers)]
    shares = np.arange(1, n_bins) / n_bins
    return np.unique(np.quantile(present, shares)) if len(present) else present


def correlation(x: Numbers, y: Numbers) -> float:
    """Returns Pearson's r over the rows where neither x nor y is NaN; 0 if it is undefined.

    Shape: (n,) for x and for y.
    """
    present = ~(np.isnan(x) | np.isnan(y))
    x, y = x[present], y[present]
    if not len(x) or x.min() == x.max() or y.min() == y.max():
        return 0.0
    x, y = x - x.mean(), y - y.mean()
    x, y = x / np.abs(x).max(), y / np.abs(y).max()  # squares stay finite
    return float((x @ y) / np.sqrt((x @ x) * (y @ y)))
