"""Arrow columns as the values that the library has: numbers, booleans, times, texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from gcvae.cells.far_dates import far_texts, far_unit, in_nanoseconds
from gcvae.errors import Problem, TableError
from gcvae.spelling.date_text import DAY_OF_TIMES


def plain_series(series: pd.Series[Any]) -> pd.Series[Any]:
    """The column as the same column of a Parquet file comes, where its dtype is Arrow's.

    So do times of other units than nanoseconds, which may be too far for those, and numbers of few
    bits, of which the shortest digits are meant.

    Raises:
        TableError: Its values are no cells.
    """
    dtype = series.dtype
    is_arrows = isinstance(dtype, pd.ArrowDtype)
    if not (is_arrows or _is_coarse_time(dtype) or str(dtype) in _FEW_BITS):
        return series
    column = pa.chunked_array([pa.array(series, from_pandas=True)])
    name = str(series.name)
    unit = far_unit(column.chunks) if is_time(column.type) else None
    return arrow_series(arrow_cells(column, name, unit), name).set_axis(series.index)


_FEW_BITS = ("float16", "float32", "Float32")


def _is_coarse_time(dtype: Any) -> bool:
    """Whether times are counted in another unit than nanoseconds."""
    return str(dtype).startswith("datetime64[") and not str(dtype).startswith("datetime64[ns")


def is_time(kind: Any) -> bool:
    """Whether the type is one of dates or times that may be far."""
    if pa.types.is_timestamp(kind):
        return bool(kind.unit != "ns")
    return bool(pa.types.is_date(kind))


def arrow_series(column: Any, name: str) -> pd.Series[Any]:
    """The values of a column; whole numbers and booleans keep their kind beside nulls."""
    kind = column.type
    nullable = pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    if nullable and column.null_count:
        return _with_nulls(column).rename(name)
    series: pd.Series[Any] = column.to_pandas()
    return series.rename(name)


def _with_nulls(column: Any) -> pd.Series[Any]:
    """Whole numbers or booleans, some of them null."""
    is_null = np.asarray(column.is_null().to_numpy(), dtype=bool)
    values = column.fill_null(False if pa.types.is_boolean(column.type) else 0).to_numpy()
    if pa.types.is_boolean(column.type):
        return pd.Series(pd.arrays.BooleanArray(values, is_null))
    return pd.Series(pd.arrays.IntegerArray(values.astype(np.int64), is_null))


def arrow_cells(column: Any, name: str, far_unit: str | None = None) -> Any:
    """The column as numbers, booleans, times in nanoseconds, or text; see `gcvae.files.to_arrow`.

    Args:
        column: Of a file.
        name: Of the column.
        far_unit: Of times that become text; see `far_dates`.
    """
    kind = column.type
    if not is_cell(kind):
        raise TableError(Problem(f"values of type {kind} are no cells", column=name,
                                 expected="text, numbers, booleans or dates"))  # fmt: skip
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return in_nanoseconds(column) if far_unit is None else far_texts(column, far_unit, name)
    if pa.types.is_time(kind):
        since_midnight = column.cast(pa.time64("ns")).cast(pa.int64())
        return pc.add(since_midnight, DAY_OF_TIMES.astype(np.int64)).cast(pa.timestamp("ns"))
    if pa.types.is_float16(kind) or pa.types.is_float32(kind):
        return column.cast(pa.string()).cast(pa.float64())  # 0.1, and not 0.10000000149011612
    if pa.types.is_uint64(kind):  # what an int64 does not hold stays what it is, as text
        most = pc.max(column).as_py() or 0
        return column.cast(pa.int64() if most <= np.iinfo(np.int64).max else pa.string())
    as_text = any(is_one(kind) for is_one in _AS_TEXT)
    return column.cast(pa.string()) if as_text else column


def is_cell(kind: Any) -> bool:
    """Whether values of an Arrow type are cells of a table."""
    return not (pa.types.is_nested(kind) or any(is_one(kind) for is_one in _NO_CELLS))


_NO_CELLS = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
    lambda kind: isinstance(kind, pa.BaseExtensionType),
)
_AS_TEXT = (
    pa.types.is_decimal,  # to the digit, which a double is not
    pa.types.is_large_string,
    pa.types.is_string_view,
)
