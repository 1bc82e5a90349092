"""Stores the dtypes of data frame columns by name, so that synthetic rows get the same dtypes.

int8, Int8, float32, Float32, bool, boolean      names of pandas
datetime64[s, Europe/Berlin], timedelta64[ms], period[M]
string[python], string[pyarrow], str
category, object, arrow                          stored with the Arrow type of their values
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from gcvae.cells.from_arrow import is_cell
from gcvae.cells.values import own_dtype
from gcvae.errors import Problem, TableError
from gcvae.files.to_arrow import arrow_column, level_values, written_type
from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.dtypes import _BY_TYPE, _STRINGS, checked_dtype
from gcvae.schema.kinds import Outcomes
from gcvae.schema.parquet_types import parquet_type

_OTHERS = ("empty", "mixed", "mixed-integer")
"""Results of pandas' `infer_dtype` for a column of objects without a common type."""
_NANOSECOND_YEARS = 1678, 2261
"""First and last year that lie completely within the range of int64 nanoseconds."""


def frame_types(series: pd.Series[Any], column: Column) -> tuple[str | None, str | None]:
    """Returns (name of the dtype, name of the Parquet type) that a schema has to store for a column
    of a user's data frame; either is None if it follows from the column's kind."""
    name = _name_of(series)
    if name is None or name == own_dtype(column):
        return None, None
    return name, _type_of(series)


def with_dtypes(frame: pd.DataFrame, schema: TableSchema) -> pd.DataFrame:
    """Converts values, as `parse_table` returns them, to the dtypes that the schema names.

    Raises:
        TableError: A value does not fit the dtype of its column.
    """
    if all(column.dtype is None for column in schema):
        return frame
    columns = {name: with_dtype(frame[name], schema[name]) for name in frame.columns}
    found = pd.DataFrame(columns, index=frame.index)
    found.attrs = dict(frame.attrs)
    return found


def as_in(series: pd.Series[Any], own: pd.Series[Any], column: Column) -> pd.Series[Any]:
    """Converts values of a column to the dtype of `own`, a series of the same column whose cells
    are not strings.

    Dates outside the range of nanoseconds are converted to microseconds instead.
    """
    if str(own.dtype).startswith("datetime64[ns"):
        near = series.dropna().dt.year.between(*_NANOSECOND_YEARS)
        own = own if near.all() else own.dt.as_unit("us")
    if own.dtype.kind in "biuf" and "b" in (own.dtype.kind, series.dtype.kind):
        return series.astype(own.dtype)  # 0 and 1 are truth values
    name = _name_of(own)
    if column.duration_unit is not None and own.dtype.kind == "m":
        unit: Any = column.duration_unit
        durations: pd.Series[Any] = pd.to_timedelta(series, unit=unit).astype(own.dtype)
        return durations
    return with_dtype(series, replace(column, dtype=name, parquet_type=_type_of(own)))


def with_dtype(series: pd.Series[Any], column: Column) -> pd.Series[Any]:
    """Converts values of one column to the dtype that the schema names; values are unchanged if it
    names none.

    Raises:
        TableError: A value does not fit the dtype.
    """
    if column.dtype is None:
        return series
    try:
        return _with_dtype(series, column).set_axis(series.index)
    except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
        message = f"a value cannot be of dtype {column.dtype}: {error}"
        expected = "values that it can hold, or another dtype in the schema"
        raise TableError(Problem(message, column=column.name, expected=expected)) from None


def _with_dtype(series: pd.Series[Any], column: Column) -> pd.Series[Any]:
    name = str(column.dtype)
    kind = None if column.parquet_type is None else parquet_type(column.parquet_type)
    if name == "category":
        return _categorical(series, column, kind)
    if name in _STRINGS:
        texts = arrow_column(series, column, pa.string()).to_pylist()
        return pd.Series(pd.array(texts, dtype=_STRINGS[name]))
    if name.startswith("period["):
        periods: pd.Series[Any] = series.dt.to_period(name[len("period[") : -1])
        return periods
    if kind is None and name in _BY_TYPE:
        return series.astype(object) if name == "object" else series
    if kind is None:
        kind = pa.array(pd.Series([], dtype=pd.api.types.pandas_dtype(name))).type
    if column.kind.outcomes is Outcomes.KEYS and not _fits(series, kind):
        return series  # synthetic keys may be too large for the type of the table's keys
    if column.kind.outcomes is Outcomes.KEYS and written_type(column, series) != kind:
        # Synthetic keys are text although the table's keys are not.
        as_text = "arrow" if name == "arrow" else "object"
        return _with_dtype(series, replace(column, dtype=as_text, parquet_type="string"))
    array = arrow_column(series, column, kind)
    if name == "object":
        return pd.Series(array.to_pylist(), dtype=object)
    found = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([array])))
    if name == "arrow":
        return found
    is_time = pa.types.is_timestamp(kind) or pa.types.is_duration(kind)
    found = pd.Series(array.to_pandas()) if is_time else found
    return found.astype(pd.api.types.pandas_dtype(name))


def _fits(series: pd.Series[Any], kind: Any) -> bool:
    """Returns whether whole numbers are in the range of an integer type; True for other types."""
    if not pa.types.is_integer(kind) or not pd.api.types.is_integer_dtype(series.dtype):
        return True
    limits = np.iinfo(kind.to_pandas_dtype())
    return bool(series.dropna().between(limits.min, limits.max).all())


def _categorical(series: pd.Series[Any], column: Column, kind: Any) -> pd.Series[Any]:
    """Returns a categorical series whose categories are the column's levels or, for columns without
    levels, its distinct values."""
    is_dictionary = kind is not None and pa.types.is_dictionary(kind)
    value_type = kind.value_type if is_dictionary else pa.string()
    ordered = kind.ordered if is_dictionary else column.kind.outcomes is Outcomes.ORDERED_LEVELS
    values = arrow_column(series, column, value_type)
    if column.levels:
        categories = level_values(column, value_type)
    else:
        categories = values.unique().drop_null().sort()
    codes = pc.index_in(values, value_set=categories).fill_null(-1).to_numpy()
    index = pd.Index(categories.to_pandas())
    return pd.Series(pd.Categorical.from_codes(codes, index, ordered=ordered))


def _name_of(series: pd.Series[Any]) -> str | None:
    """Returns the name under which a schema stores a column's dtype; None if it is not supported or
    cells are of several types."""
    dtype = series.dtype
    if isinstance(dtype, pd.ArrowDtype):
        return "arrow"
    if isinstance(dtype, pd.StringDtype):
        return next((name for name, own in _STRINGS.items() if own == dtype), None)
    if isinstance(dtype, pd.CategoricalDtype):
        return "category"
    if pd.api.types.is_object_dtype(dtype):
        held = pd.api.types.infer_dtype(series, skipna=True)
        return None if held in _OTHERS or _type_of(series) is None else "object"
    name = str(dtype)
    try:
        return name if pd.api.types.pandas_dtype(checked_dtype(name)) == dtype else None
    except ValueError:
        return None


def _type_of(series: pd.Series[Any]) -> str | None:
    """Returns the name of the Arrow type of a column's values; None if cells cannot have this
    type."""
    dtype = series.dtype
    try:
        if isinstance(dtype, pd.CategoricalDtype):
            value_type = pa.array(dtype.categories).type
            value_type = value_type if is_cell(value_type) else pa.string()
            codes = pa.from_numpy_dtype(series.cat.codes.dtype)
            found = pa.dictionary(codes, value_type, ordered=bool(dtype.ordered))
        else:
            if pd.api.types.infer_dtype(series, skipna=True) in ("timedelta", "timedelta64"):
                series = pd.to_timedelta(series)  # determines the unit
            shown = series if pd.api.types.is_object_dtype(dtype) else series.iloc[:0]
            found = pa.array(shown, from_pandas=True).type
        return str(parquet_type(str(found))) if is_cell(found) else None
    except (ValueError, TypeError, pa.ArrowException):  # objects of several kinds, ...
        return None
