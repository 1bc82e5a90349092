"""Converts Arrow columns to the types that the library knows: numbers, booleans, times and text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from gcvae.arrays import FIRST_TIME, LAST_TIME
from gcvae.errors import Problem, TableError
from gcvae.spelling.date_text import DAY_OF_TIMES


def plain_series(series: pd.Series[Any]) -> pd.Series[Any]:
    """Converts a column to the dtype that it would have if it were read from a Parquet file.

    Columns of three sorts are converted: columns with an Arrow dtype, times in a unit other than
    nanoseconds, and floats of at most 32 bits. All other columns are returned unchanged.

    Raises:
        TableError: The type is not supported, or a time is out of range.
    """
    dtype = series.dtype
    is_arrows = isinstance(dtype, pd.ArrowDtype)
    if not (is_arrows or _is_coarse_time(dtype) or str(dtype) in _FEW_BITS):
        return series
    column = pa.chunked_array([pa.array(series, from_pandas=True)])
    name = str(series.name)
    return arrow_series(arrow_cells(column, name), name).set_axis(series.index)


_FEW_BITS = ("float16", "float32", "Float32")


def _is_coarse_time(dtype: Any) -> bool:
    return str(dtype).startswith("datetime64[") and not str(dtype).startswith("datetime64[ns")


def arrow_series(column: Any, name: str) -> pd.Series[Any]:
    """Converts an Arrow column to a pandas series; integers and booleans with nulls get a nullable
    dtype."""
    kind = column.type
    dtype: Any = None
    if column.null_count and (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        dtype = pd.BooleanDtype() if pa.types.is_boolean(kind) else pd.Int64Dtype()
    series: pd.Series[Any] = column.to_pandas(types_mapper=lambda _: dtype)
    return series.rename(name)


def arrow_cells(column: Any, name: str) -> Any:
    """Converts an Arrow column to one of the types that the library knows: numbers, booleans, times
    or text. `gcvae.files.to_arrow` converts back.

    Args:
        name: Name of the column, for errors.

    Raises:
        TableError: The type of the column is not supported, or a time is out of range.
    """
    kind = column.type
    if not is_cell(kind):
        raise TableError(Problem(f"values of type {kind} cannot be cells", column=name,
                                 expected="text, numbers, booleans or dates"))  # fmt: skip
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _times(column, name)
    if pa.types.is_time(kind):
        unit = "ns" if kind.unit == "ns" else "us"
        day = DAY_OF_TIMES.astype(f"datetime64[{unit}]").astype(np.int64)
        since_midnight = column.cast(pa.time64(unit)).cast(pa.int64())
        return pc.add(since_midnight, day).cast(pa.timestamp(unit))
    if pa.types.is_float16(kind) or pa.types.is_float32(kind):
        return column.cast(pa.string()).cast(pa.float64())  # 0.1, not 0.10000000149011612
    if pa.types.is_uint64(kind):  # integers beyond int64 become text
        most = pc.max(column).as_py() or 0
        return column.cast(pa.int64() if most <= np.iinfo(np.int64).max else pa.string())
    as_text = any(is_one(kind) for is_one in _AS_TEXT)
    return column.cast(pa.string()) if as_text else column


def _times(column: Any, name: str) -> Any:
    """Converts an Arrow column of dates or times to timestamps in microseconds.

    Times in nanoseconds keep their unit. A time zone that pandas does not know is replaced by UTC.

    Raises:
        TableError: A time is outside the years 1 to 9999.
    """
    kind = column.type
    zone = kind.tz if pa.types.is_timestamp(kind) else None
    if zone is not None and not _is_known(zone):
        zone = "UTC"
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return column.cast(pa.timestamp("ns", zone))
    try:
        times = column.cast(pa.timestamp("us", zone))
        ends = pc.min_max(times.cast(pa.int64())).as_py()
        is_far = ends["min"] is not None and not (
            FIRST_TIME.astype(np.int64) <= ends["min"] and ends["max"] <= LAST_TIME.astype(np.int64)
        )
    except pa.ArrowInvalid:
        is_far = True
    if is_far:
        message = "a time is of a year that cannot be written"
        raise TableError(Problem(message, column=name, expected="years 1 to 9999"))
    return times


def _is_known(zone: str) -> bool:
    try:
        pa.array([], pa.timestamp("us", zone)).to_pandas()
    except (LookupError, ValueError):  # unknown name, invalid offset
        return False
    return True


def is_cell(kind: Any) -> bool:
    """Returns whether the library can read columns of this Arrow type."""
    return not (pa.types.is_nested(kind) or any(is_one(kind) for is_one in _NO_CELLS))


_NO_CELLS = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
    lambda kind: isinstance(kind, pa.BaseExtensionType),
)
_AS_TEXT = (
    pa.types.is_decimal,  # exact, in contrast to a double
    pa.types.is_large_string,
    pa.types.is_string_view,
)
