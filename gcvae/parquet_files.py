"""Parquet: files to typed cells, whole or block by block.

A frame's `attrs["parquet_types"]` holds the columns' types, and `attrs["rows"]` of a block where it
stands in the file.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from gcvae.cells import RowNumbers, TextColumn
from gcvae.dates import DAY_OF_TIMES
from gcvae.errors import Problem, TableError
from gcvae.far_dates import far_texts, far_unit, in_nanoseconds
from gcvae.parquet_types import parquet_type

ROWS_PER_GROUP = 1 << 16
NEAR_YEARS = (1678, 2261)  # whole ones that nanoseconds count


def read_parquet(data: bytes, dropped: Collection[str] = ()) -> pd.DataFrame:
    """The values of a file.

    Args:
        dropped: As of `parquet_blocks`.

    Raises:
        TableError: It is no such file, or has values that are no cells.
    """
    file = opened_parquet(pa.BufferReader(data))
    with _reading():
        table = file.read(columns=_read_columns(file, dropped))
    return _frame(table, _far_units(file))


def parquet_blocks(
    source: BinaryIO, rows: int, first_row: int = 0, dropped: Collection[str] = ()
) -> Iterator[tuple[pd.DataFrame, float]]:
    """At most `rows` rows at a time, and the share of all rows with which they end.

    Args:
        first_row: Those before it are left out, their row groups not read.
        dropped: Columns that may hold what are no cells; they are left out if they do.

    Raises:
        TableError: It is no such file, or has values that are no cells.
    """
    file = opened_parquet(source)
    far_units = _far_units(file)
    groups, read = _groups_from(file.metadata, first_row)
    names = _read_columns(file, dropped)
    batches = file.iter_batches(batch_size=rows, row_groups=groups, columns=names)
    while True:
        with _reading():
            batch = next(batches, None)
        if batch is None:
            return
        wanted = batch.slice(max(first_row - read, 0))
        read += batch.num_rows
        if wanted.num_rows:
            rows_before = read - wanted.num_rows
            frame = _frame(pa.Table.from_batches([wanted]), far_units)
            frame.attrs["rows"] = RowNumbers(rows_before)
            yield frame, read / file.metadata.num_rows


def _read_columns(file: Any, dropped: Collection[str]) -> list[str] | None:
    """All columns but dropped ones without cells; None where that leaves out none."""
    left_out = {f.name for f in file.schema_arrow if f.name in dropped and not is_cell(f.type)}
    names = [name for name in file.schema_arrow.names if name not in left_out]
    return names if left_out else None


def _groups_from(metadata: Any, first_row: int) -> tuple[range, int]:
    """The row groups that have this row and those behind it, and the rows before them."""
    before = 0
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group).num_rows
        if before + rows > first_row:
            return range(group, metadata.num_row_groups), before
        before += rows
    return range(0), before


def write_parquet(blocks: Iterable[pd.DataFrame], target: BinaryIO) -> None:
    """Writes blocks of the same columns as one file, in constant memory; at least one."""
    writer: Any = None
    for group in _row_groups(blocks):
        table = pa.Table.from_pandas(group, preserve_index=False)
        writer = writer or parquet.ParquetWriter(target, table.schema)
        writer.write_table(table)
    writer.close()


def _row_groups(blocks: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    held: list[pd.DataFrame] = []
    n_held = 0
    for block in blocks:
        held.append(block)
        n_held += len(block)
        if n_held >= ROWS_PER_GROUP:
            yield pd.concat(held, ignore_index=True)
            held, n_held = [], 0
    if held:
        yield pd.concat(held, ignore_index=True)


def opened_parquet(source: Any) -> Any:
    """The file, its columns not read yet.

    Raises:
        TableError: It is no such file, or has no rows, or a name twice.
    """
    with _reading():
        file = parquet.ParquetFile(_by_arrow(source))
    names = file.schema_arrow.names
    if len(set(names)) < len(names):
        raise TableError("the Parquet file uses a column name twice")
    if not file.metadata.num_rows:
        raise TableError("the table has columns but no rows")
    return file


def _by_arrow(source: Any) -> Any:
    """A file as Arrow opens it by itself, which it keeps open.

    Bytes that come through a file of Python's are objects of Python's, which Arrow frees in threads
    of its own; one that does so when Python is just ending aborts the process.
    """
    if not isinstance(source, io.BufferedReader | io.BufferedRandom):
        return source
    source.flush()
    return pa.OSFile(f"/dev/fd/{source.fileno()}")


@contextmanager
def _reading() -> Iterator[None]:
    """What Arrow raises of bytes that it can not read, as the error of their table."""
    try:
        yield
    # Arrow says OSError of damaged pages, and NotImplemented of damaged headers, which name
    # encodings that are none.
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise TableError(f"the Parquet file is damaged or truncated: {error}") from None


def _far_units(file: Any) -> dict[str, str]:
    """The units of the columns that have times too far for nanoseconds; see `far_dates`.

    The whole file says it, so that each block of it has the same cells.
    """
    found = {}
    for field in file.schema_arrow:
        if _is_time(field.type) and not _are_near(file.metadata, field.name):
            with _reading():
                unit = far_unit(
                    batch.column(0) for batch in file.iter_batches(columns=[field.name])
                )
            if unit is not None:
                found[field.name] = unit
    return found


def _is_time(kind: Any) -> bool:
    """Whether the type is one of dates or times that may be far."""
    if pa.types.is_timestamp(kind):
        return bool(kind.unit != "ns")
    return bool(pa.types.is_date(kind))


def _are_near(metadata: Any, name: str) -> bool:
    """Whether the file's statistics show that a column has no far time, so none is to be read."""
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        column = next(c for c in map(group.column, range(group.num_columns))
                      if c.path_in_schema == name)  # fmt: skip
        if not column.is_stats_set or not column.statistics.has_min_max:
            return False
        try:
            years = column.statistics.min.year, column.statistics.max.year
        except (OverflowError, ValueError):  # beyond what Python counts
            return False
        if not NEAR_YEARS[0] <= years[0] <= years[1] <= NEAR_YEARS[1]:
            return False
    return True


def _frame(table: Any, far_units: dict[str, str]) -> pd.DataFrame:
    columns = {
        name: _series(_cells(table.column(name), name, far_units.get(name)), name)
        for name in table.column_names
    }
    frame = pd.DataFrame(columns)
    frame.attrs["parquet_types"] = {field.name: str(field.type) for field in table.schema}
    return frame


def type_of_values(series: pd.Series[Any], read_as: str | None) -> str | None:
    """The type of a column in a Parquet file; None where its dtype and `parse_table`'s tell it.

    Args:
        series: A column in memory.
        read_as: The type that it had in a file, if it comes from one. It may have changed since.
    """
    if read_as is not None and _group_of(series.dtype) == _group_of(_dtype_as_read(read_as)):
        return read_as
    held = pd.api.types.infer_dtype(series, skipna=True)
    if held in ("timedelta", "timedelta64"):
        series = pd.to_timedelta(series)
    elif held not in ("date", "time") and not isinstance(series.dtype, pd.DatetimeTZDtype):
        return None
    return str(pa.array(series.dropna().iloc[:1]).type)


def _dtype_as_read(type_: str) -> Any:
    """The dtype of a column of that type."""
    cells = _cells(pa.array([], parquet_type(type_)), "")
    return _series(cells, "").dtype


def _group_of(dtype: Any) -> str:
    """Which dtypes a column may have that is read as the same type: whole numbers are one group."""
    return "i" if dtype.kind == "u" else str(dtype.kind)


def parquet_column(file: Any, name: str) -> pd.Series[Any] | TextColumn:
    """One column of an opened file: values, or text without an object for each cell.

    Raises:
        TableError: It is damaged, or has values that are no cells.
    """
    with _reading():
        column = file.read(columns=[name]).column(name)
    cells = _cells(column, name, far_unit(column.chunks) if _is_time(column.type) else None)
    return TextColumn(name, cells) if pa.types.is_string(cells.type) else _series(cells, name)


def _series(column: Any, name: str) -> pd.Series[Any]:
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


def _cells(column: Any, name: str, far_unit: str | None = None) -> Any:
    """The column as numbers, booleans, times in nanoseconds, or text; see `arrow_tables`.

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
    if pa.types.is_duration(kind):
        return column.cast(pa.int64())
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
