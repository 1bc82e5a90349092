"""Parquet: files to typed cells, whole or block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from gcvae.cells import TextColumn
from gcvae.errors import Problem, TableError

ROWS_PER_GROUP = 1 << 16
_FIRST, _LAST = "1677-09-22", "2262-04-10"


def read_parquet(data: bytes) -> pd.DataFrame:
    """The values of a file.

    Raises:
        TableError: It is no such file, or has values that are no cells.
    """
    file = opened_parquet(pa.BufferReader(data))
    with _reading():
        table = file.read()
    return _frame(table)


def parquet_blocks(
    source: BinaryIO, rows: int, first_row: int = 0
) -> Iterator[tuple[pd.DataFrame, float]]:
    """At most `rows` rows at a time, and the share of all rows with which they end.

    Args:
        first_row: Those before it are left out, their row groups not read.

    Raises:
        TableError: It is no such file, or has values that are no cells.
    """
    file = opened_parquet(source)
    groups, read = _groups_from(file.metadata, first_row)
    batches = file.iter_batches(batch_size=rows, row_groups=groups)
    while True:
        with _reading():
            batch = next(batches, None)
        if batch is None:
            return
        wanted = batch.slice(max(first_row - read, 0))
        read += batch.num_rows
        if wanted.num_rows:
            yield _frame(pa.Table.from_batches([wanted])), read / file.metadata.num_rows


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
        file = parquet.ParquetFile(source)
    names = file.schema_arrow.names
    if len(set(names)) < len(names):
        raise TableError("the Parquet file uses a column name twice")
    if not file.metadata.num_rows:
        raise TableError("the table has columns but no rows")
    return file


@contextmanager
def _reading() -> Iterator[None]:
    """What Arrow raises of bytes that it can not read, as the error of their table."""
    try:
        yield
    # Arrow says OSError of damaged pages, and NotImplemented of damaged headers, which name
    # encodings that are none.
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise TableError(f"the Parquet file is damaged or truncated: {error}") from None


def _frame(table: Any) -> pd.DataFrame:
    return pd.DataFrame({name: _series(table.column(name), name) for name in table.column_names})


def parquet_column(file: Any, name: str) -> pd.Series[Any] | TextColumn:
    """One column of an opened file: values, or text without an object for each cell.

    Raises:
        TableError: It is damaged, or has values that are no cells.
    """
    with _reading():
        column = file.read(columns=[name]).column(name)
    cells = _cells(column, name)
    return TextColumn(name, cells) if pa.types.is_string(cells.type) else _series(cells, name)


def _series(column: Any, name: str) -> pd.Series[Any]:
    """The values of a column; whole numbers and booleans keep their kind beside nulls."""
    column = _cells(column, name)
    kind = column.type
    nullable = pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    if nullable and column.null_count:
        return _with_nulls(column).rename(name)
    series: pd.Series[Any] = column.to_pandas()
    return series.rename(name)


def _with_nulls(column: Any) -> pd.Series[Any]:
    """Whole numbers or booleans, some of them null."""
    if pa.types.is_uint64(column.type):  # beyond int64 it is an error, not another number
        return pd.Series(column.to_pylist(), dtype=object).astype("Int64")
    is_null = np.asarray(column.is_null().to_numpy(), dtype=bool)
    values = column.fill_null(False if pa.types.is_boolean(column.type) else 0).to_numpy()
    if pa.types.is_boolean(column.type):
        return pd.Series(pd.arrays.BooleanArray(values, is_null))
    return pd.Series(pd.arrays.IntegerArray(values.astype(np.int64), is_null))


def _cells(column: Any, name: str) -> Any:
    """The column as numbers, booleans, times in nanoseconds, or text."""
    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        raise TableError(Problem(f"values of type {kind} are no cells", column=name,
                                 expected="text, numbers, booleans or dates"))  # fmt: skip
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        column = _nanoseconds(column, name)
    if pa.types.is_decimal(kind):  # to the digit, as text: a double is not
        column = column.cast(pa.string())
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        column = column.cast(pa.string())
    return column


def _nanoseconds(column: Any, name: str) -> Any:
    """Times that int64 can count in nanoseconds.

    Raises:
        TableError: One is before 1677-09-22 or after 2262-04-10.
    """
    zone = column.type.tz if pa.types.is_timestamp(column.type) else None
    try:
        return column.cast(pa.timestamp("ns", zone))
    except pa.ArrowInvalid:
        texts = column.cast(pa.string()).to_pylist()
        row = next(i for i, text in enumerate(texts) if text and not _FIRST <= text[:10] <= _LAST)
        message = f"the date {texts[row][:10]} can not be counted in nanoseconds (row {row + 1})"
        expected = f"{_FIRST} to {_LAST}; blank where the date means that there is none"
        raise TableError(Problem(message, column=name, expected=expected)) from None
