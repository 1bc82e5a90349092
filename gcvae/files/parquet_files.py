"""Reads Parquet files as values, whole or in chunks, and writes them.

`attrs["parquet_types"]` of a frame contains the names of the columns' types in the file.
`attrs["rows"]` of a chunk contains the number of rows before it (`RowNumbers`).
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, BinaryIO

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from gcvae.cells.data_frames import refuse_empty
from gcvae.cells.distinct_cells import RowNumbers, TextColumn
from gcvae.cells.from_arrow import arrow_cells, arrow_series, is_cell
from gcvae.errors import Problem, TableError
from gcvae.schema.parquet_types import parquet_type

import_module("pandas.core.arrays.arrow.extension_types")  # otherwise periods become numbers

ROWS_PER_GROUP = 1 << 16
_ROWS_AT_ONCE = 1 << 9  # of one column, in longest_cells


def read_parquet(source: BinaryIO, dropped: Collection[str] = ()) -> pd.DataFrame:
    """Returns the values of an opened Parquet file as a data frame.

    Args:
        source: The opened file.
        dropped: Names of columns that are left out if their type is not supported.

    Raises:
        TableError: The file is not a Parquet file, or a column has an unsupported type.
    """
    file = opened_parquet(source)
    with _reading():
        table = file.read(columns=_read_columns(file, dropped))
    _check_rows(table.num_rows, file)
    return _frame(table)


def parquet_chunks(
    source: BinaryIO, rows: int, first_row: int = 0, dropped: Collection[str] = ()
) -> Iterator[tuple[pd.DataFrame, float]]:
    """Yields (chunk, share of the file's rows up to the end of the chunk) for an opened Parquet
    file, in chunks of at most `rows` rows.

    Args:
        source: The opened file.
        rows: Maximum number of rows of a chunk.
        first_row: Index of the row at which the first chunk begins.
        dropped: Names of columns that are left out if their type is not supported.

    Raises:
        TableError: The file is not a Parquet file, or a column has an unsupported type.
    """
    file = opened_parquet(source)
    groups, read = _groups_from(file.metadata, first_row)
    names = _read_columns(file, dropped)
    for batch in _batches(file, batch_size=rows, row_groups=groups, columns=names):
        wanted = batch.slice(max(first_row - read, 0))
        read += batch.num_rows
        if wanted.num_rows:
            rows_before = read - wanted.num_rows
            frame = _frame(pa.Table.from_batches([wanted]))
            frame.attrs["rows"] = RowNumbers(rows_before)
            yield frame, read / file.metadata.num_rows
    _check_rows(read, file)


def _batches(file: Any, **options: Any) -> Iterator[Any]:
    batches = file.iter_batches(**options)
    while True:
        with _reading():
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def _read_columns(file: Any, dropped: Collection[str]) -> list[str] | None:
    """Returns the names of the columns to read; None for all. Columns in `dropped` are left out if
    their type is not supported."""
    left_out = {f.name for f in file.schema_arrow if f.name in dropped and not is_cell(f.type)}
    names = [name for name in file.schema_arrow.names if name not in left_out]
    return names if left_out else None


def _groups_from(metadata: Any, first_row: int) -> tuple[range, int]:
    """Returns (indices of the row group with the row `first_row` and of all later ones; number of
    rows before these groups)."""
    before = 0
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group).num_rows
        if before + rows > first_row:
            return range(group, metadata.num_row_groups), before
        before += rows
    return range(0), before


def write_parquet(chunks: Iterable[pd.DataFrame], target: BinaryIO) -> None:
    """Writes a table into an opened Parquet file, in constant memory.

    Args:
        chunks: Consecutive rows of the table, at least one chunk, all with the same columns.
    """
    groups = _row_groups(chunks)
    target.writelines(
        parquet_bytes(pa.Table.from_pandas(group, preserve_index=False) for group in groups)
    )


def parquet_bytes(tables: Iterable[pa.Table]) -> Iterator[bytes]:
    """Yields the bytes of one Parquet file that contains a row group for each table."""
    sink = _Sink()
    writer: parquet.ParquetWriter | None = None
    for table in tables:
        writer = writer or parquet.ParquetWriter(sink, table.schema)
        writer.write_table(table)
        yield sink.take()
    if writer is not None:
        writer.close()
    yield sink.take()


class _Sink(io.RawIOBase):
    """Append-only file in memory; `take` returns and removes its content."""

    def __init__(self) -> None:
        self._written: list[bytes] = []
        self._n_bytes = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._n_bytes  # Parquet's footer holds positions in the whole file

    def write(self, data: Any) -> int:
        self._written.append(bytes(data))
        self._n_bytes += len(data)
        return len(data)

    def take(self) -> bytes:
        """Returns the bytes written since the last call."""
        written, self._written = self._written, []
        return b"".join(written)


def _row_groups(chunks: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    held: list[pd.DataFrame] = []
    n_held = 0
    for chunk in chunks:
        held.append(chunk)
        n_held += len(chunk)
        if n_held >= ROWS_PER_GROUP:
            yield pd.concat(held, ignore_index=True)
            held, n_held = [], 0
    if held:
        yield pd.concat(held, ignore_index=True)


def opened_parquet(source: Any) -> Any:
    """Opens a Parquet file without reading its columns; returns a `pyarrow.parquet.ParquetFile`.

    Raises:
        TableError: The file is not a Parquet file, is damaged, has no rows or no columns, or
            contains a column name twice.
    """
    with _reading():
        file = parquet.ParquetFile(_by_arrow(source))
    names = file.schema_arrow.names
    if len(set(names)) < len(names):
        raise TableError("the Parquet file uses a column name twice")
    told = file.metadata.num_rows
    groups = (file.metadata.row_group(number) for number in range(file.num_row_groups))
    if min([told, *(group.num_rows for group in groups)]) < 0:
        raise TableError(_damaged("its footer says that it has fewer rows than none"))
    refuse_empty(names, told)
    return file


def _check_rows(found: int, file: Any) -> None:
    told = file.metadata.num_rows
    if found != told:
        raise TableError(_damaged(f"its footer says {told} rows, and it has {found}"))


def _damaged(how: str) -> Problem:
    message = f"the Parquet file is damaged: {how}"
    return Problem(message, expected="a file that its writer closed")


def _by_arrow(source: Any) -> Any:
    """Returns an open file or bytes in memory in a form that Arrow reads without calling Python.
    Arrow's threads would free Python's buffers, which may abort a process that is exiting."""
    if isinstance(source, io.BytesIO):
        return pa.BufferReader(source.getvalue())
    if not isinstance(source, io.BufferedReader | io.BufferedRandom):
        return source
    source.flush()
    return pa.OSFile(f"/dev/fd/{source.fileno()}")


@contextmanager
def _reading() -> Iterator[None]:
    """Context manager that converts Arrow's errors on damaged data to a TableError."""
    try:
        yield
    # Arrow raises OSError for damaged pages, and ArrowNotImplementedError for damaged headers,
    # which name unknown encodings.
    except (
        pa.ArrowInvalid,
        pa.ArrowNotImplementedError,
        OSError,
        UnicodeDecodeError,
    ) as error:
        raise TableError(f"the Parquet file is damaged or truncated: {error}") from None


def _frame(table: Any) -> pd.DataFrame:
    columns = {
        name: arrow_series(arrow_cells(table.column(name), name), name)
        for name in table.column_names
    }
    frame = pd.DataFrame(columns)
    frame.attrs["parquet_types"] = {field.name: str(field.type) for field in table.schema}
    return frame


def is_as_read(series: pd.Series[Any], type_: str) -> bool:
    """Returns whether a column in memory has the kind of dtype that reading a Parquet column of
    this type gives; otherwise the user has changed the column since reading it."""
    as_read = arrow_series(arrow_cells(pa.chunked_array([[]], parquet_type(type_)), ""), "")
    own, other = (dtype.kind.replace("u", "i") for dtype in (series.dtype, as_read.dtype))
    return own == other


def longest_cells(file: Any) -> Iterator[tuple[str, int]]:
    """Yields, for each batch of rows in each text column, (name of the column, length of its
    longest cell).

    Raises:
        TableError: The file is damaged.
    """
    for field in file.schema_arrow:
        if not (pa.types.is_string(field.type) or pa.types.is_large_string(field.type)):
            continue
        for batch in _batches(file, batch_size=_ROWS_AT_ONCE, columns=[field.name]):
            yield field.name, pc.max(pc.utf8_length(batch.column(0))).as_py() or 0


def parquet_column(file: Any, name: str) -> pd.Series[Any] | TextColumn:
    """Returns one column of an opened Parquet file, as a TextColumn if it contains text.

    Raises:
        TableError: The file is damaged, or the column has an unsupported type.
    """
    with _reading():
        column = file.read(columns=[name]).column(name)
    _check_rows(len(column), file)
    cells = arrow_cells(column, name)
    return TextColumn(name, cells) if pa.types.is_string(cells.type) else arrow_series(cells, name)
