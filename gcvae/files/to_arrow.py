"""Converts values to Arrow tables with the column types of the Parquet file from which they were
read.

A schema stores Arrow's name of each column's type: `date32[day]`, `timestamp[us, tz=UTC]`,
`decimal128(12, 2)`. The library itself represents values of some types by values of others:

    times of day    dates of 1900-01-01, in a format without a date
    durations       whole numbers, counts of the type's unit
    time zones      times in UTC
    decimals        numbers with at most as many decimals as the type has
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import time
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from gcvae.arrays import DAY, TIMES
from gcvae.cells.values import format_table, placed_values, values_of
from gcvae.errors import Problem, TableError
from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.kinds import Outcomes
from gcvae.schema.parquet_types import parquet_type


def arrow_table(frame: pd.DataFrame, schema: TableSchema, like: Any = None) -> Any:
    """Converts parsed values to an Arrow table with the schema's column types.

    Args:
        frame: Values, as `parse_table` returns them. `attrs["parquet_types"]` may contain the types
            of columns read unchanged from a Parquet file; they override the schema's.
        like: Arrow schema of an earlier chunk of the same table, whose types are used; None for the
            first chunk.

    Raises:
        TableError: A value does not fit the type of its column.
    """
    frame = values_of(frame, schema)
    if like is None:
        own = frame.attrs.get("parquet_types", {})
        types = {
            name: parquet_type(own[name])
            if name in own
            else written_type(schema[name], frame[name])
            for name in frame.columns
        }
        like = pa.schema(list(types.items()))
    columns = [arrow_column(frame[field.name], schema[field.name], field.type) for field in like]
    return pa.Table.from_arrays(columns, schema=like)


def written_type(column: Column, series: pd.Series[Any]) -> Any:
    """Returns the Arrow type in which a column is written: the type in the schema, or else the type
    of its values.

    The type does not depend on which cells of a chunk are missing. Synthetic keys that are strings
    are written as strings, whatever the type of the original identifiers.
    """
    if column.parquet_type is not None:
        kept = parquet_type(column.parquet_type)
        is_text = column.kind.outcomes is Outcomes.KEYS and series.dtype == object
        return pa.string() if is_text and not _is_text(kept) else kept
    if series.dtype != object:
        return pa.array(series.iloc[:0], from_pandas=True).type
    kinds = {type(level) for level in column.levels or ()}
    if kinds == {bool}:
        return pa.bool_()
    if kinds == {int}:
        return pa.int64()
    return pa.float64() if kinds and kinds <= {int, float} else pa.string()


def arrow_column(series: pd.Series[Any], column: Column, kind: Any) -> Any:
    """Converts values of one column, as `parse_table` returns them, to an array of the Arrow type
    `kind`.

    Raises:
        TableError: A value does not fit the type.
    """
    try:
        return _converted(series, column, kind)
    # Raised by Arrow and fromisoformat for values that do not fit the type; ArrowInvalid is a
    # ValueError.
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError, ValueError) as error:
        message = f"a value cannot be written as {kind}: {error}"
        expected = "values within its limits, or another parquet_type in the schema"
        raise TableError(Problem(message, column=column.name, expected=expected)) from None


def _converted(series: pd.Series[Any], column: Column, kind: Any) -> Any:
    if pa.types.is_dictionary(kind):
        values = _converted(series, column, kind.value_type)
        found = values.unique().drop_null()
        if kind.ordered and column.levels:  # in the order of the column's levels
            found = pc.unique(pa.concat_arrays([level_values(column, kind.value_type), found]))
        indices = pc.index_in(values, value_set=found).cast(kind.index_type)
        return pa.DictionaryArray.from_arrays(indices, found, ordered=kind.ordered)
    if _is_text(kind):
        return _texts(series, column).cast(kind)
    is_number = pd.api.types.is_any_real_numeric_dtype(series)
    if not is_number and not pd.api.types.is_datetime64_dtype(series):
        return _of_levels(series, column, kind)
    unit: Any = column.duration_unit
    if is_number and pa.types.is_duration(kind) and unit not in (None, kind.unit):
        return pa.array(pd.to_timedelta(series, unit=unit), from_pandas=True).cast(kind)
    chosen = next((write for is_one, write in _WRITERS if is_one(kind)), _of_numbers)
    return _with_marker(chosen(series, kind), column, kind)


def _with_marker(cells: Any, column: Column, kind: Any) -> Any:
    """Replaces missing dates by the column's marker of missing cells, such as 9999-12-31. Cells are
    unchanged unless a missing cell has a meaning (`missing.is_value`), and the Arrow type `kind`
    can represent the marker."""
    if not (pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        return cells
    marker = column.missing.markers[:1] if column.missing.is_value else ()
    try:
        return cells.fill_null(pa.array(marker).cast(kind)[0]) if marker else cells
    except pa.ArrowInvalid:  # a word, or out of the type's range
        return cells


def level_values(column: Column, kind: Any) -> Any:
    """Returns the levels (categories) of a column, in order, as an Arrow array of the Arrow type
    `kind`."""
    levels = list(column.typed_levels)
    held = placed_values(levels, np.arange(len(levels)), nullable=False)
    return arrow_column(held, column, kind)


def _is_text(kind: Any) -> bool:
    is_view = pa.types.is_string_view(kind)
    return bool(is_view or pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _texts(series: pd.Series[Any], column: Column) -> Any:
    if pd.api.types.infer_dtype(series, skipna=True) == "string":
        return pa.array(series, pa.string(), from_pandas=True)
    written = format_table(series.to_frame(column.name), TableSchema((column,)))[column.name]
    return pa.array(written, pa.string(), mask=series.isna().to_numpy())


def _of_levels(series: pd.Series[Any], column: Column, kind: Any) -> Any:
    if pa.types.is_null(kind):
        return pa.array(series, kind, from_pandas=True)
    if pa.types.is_boolean(kind) and pd.api.types.is_bool_dtype(series):
        return pa.array(series, kind, from_pandas=True)
    texts = _texts(series, column)
    if pa.types.is_time(kind):
        return pa.array([text and time.fromisoformat(text) for text in texts.to_pylist()], kind)
    return (texts.cast(pa.int64()) if pa.types.is_duration(kind) else texts).cast(kind)


def _of_times_of_day(series: pd.Series[Any], kind: Any) -> Any:
    since_1970 = series.to_numpy(dtype=TIMES).astype(np.int64)
    in_day = pa.array(since_1970 % DAY, mask=series.isna().to_numpy())
    return in_day.cast(pa.time64("us")).cast(kind, safe=False)


def _of_timestamps(series: pd.Series[Any], kind: Any) -> Any:
    times = pa.array(series, pa.timestamp("us"), from_pandas=True)
    unit = pc.CastOptions(pa.timestamp(kind.unit), allow_time_truncate=True)
    return pc.cast(times, options=unit).cast(pa.int64()).cast(kind)


def _of_dates(series: pd.Series[Any], kind: Any) -> Any:
    return pa.array(series, pa.timestamp("us"), from_pandas=True).cast(kind, safe=False)


def _of_numbers(series: pd.Series[Any], kind: Any) -> Any:
    numbers = pa.array(series, from_pandas=True)
    return numbers if kind is None else numbers.cast(kind)


def _of_counts(series: pd.Series[Any], kind: Any) -> Any:
    return _of_numbers(series, pa.int64()).cast(kind)


def _of_decimals(series: pd.Series[Any], kind: Any) -> Any:
    # Integers are cast through text, because Arrow's cast would require a precision of 19 digits.
    numbers = _of_numbers(series, None)
    return (numbers.cast(pa.string()) if pa.types.is_integer(numbers.type) else numbers).cast(kind)


_WRITERS: tuple[tuple[Callable[[Any], bool], Callable[[pd.Series[Any], Any], Any]], ...] = (
    (pa.types.is_time, _of_times_of_day),
    (pa.types.is_timestamp, _of_timestamps),
    (pa.types.is_date, _of_dates),
    (pa.types.is_duration, _of_counts),
    (pa.types.is_decimal, _of_decimals),
)
