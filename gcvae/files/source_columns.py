"""Reads a table column by column, so that memory holds one column of a file at a time.

A text file is converted to a temporary file of Arrow columns in one pass; Parquet files are read by
column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from gcvae.cells.distinct_cells import TextColumn
from gcvae.cells.values import is_text
from gcvae.files.frame_dtypes import frame_types
from gcvae.files.parquet_files import is_as_read, opened_parquet, parquet_column
from gcvae.files.records import LineNumbers
from gcvae.files.table_reader import Rows, TableReader, given_rows
from gcvae.files.temporary_files import temporary_files, written_to
from gcvae.files.text_tables import TextRows
from gcvae.progress import Report, report_to_nobody
from gcvae.schema.columns import Column


@dataclass(frozen=True, eq=False)
class SourceColumns:
    """Columns of n rows of a table in memory or in a file.

    Attributes:
        names: Names of the columns; those of a frame may be of any type.
        n_rows: Number of rows.
        read: Function that returns the column with a given name; for a file, with all its rows.
        types: Function that returns (dtype in data frames, type in Parquet files) that the schema
            has to store for a column so that generated rows get the same types; either is None if
            it follows from the column's kind.
        lines: Line of each row in a text file, from 1, by the row's label; None for other tables.
        separator: Character between the cells of the text file; a comma for other tables.
        frame: The table if it is in memory, else None.
        rows: Indices of the selected rows of a file, ascending; None for all rows. Shape: (n,).
    """

    names: list[Any]
    n_rows: int
    read: Callable[[str], pd.Series[Any] | TextColumn]
    types: Callable[[Column], tuple[str | None, str | None]]
    lines: Any = None
    separator: str = ","
    frame: pd.DataFrame | None = None
    rows: npt.NDArray[np.int64] | None = None

    def line_of(self, row: int) -> int | None:
        """Returns the line, from 1, of the row with index `row` in the text file; None for other
        tables."""
        label = row if self.frame is None else self.frame.index[row]
        return None if self.lines is None else self.lines[label]

    def __len__(self) -> int:
        """Returns the number of rows."""
        return self.n_rows

    def __getitem__(self, name: str) -> pd.Series[Any] | TextColumn:
        """Returns the rows of the column with this name."""
        cells = self.read(name)
        if self.rows is None:
            return cells
        if not isinstance(cells, TextColumn):
            return cells.iloc[self.rows].reset_index(drop=True)
        is_selected = np.zeros(len(cells.texts), dtype=bool)
        is_selected[self.rows] = True
        return TextColumn(name, cells.texts.filter(pa.array(is_selected)))


def without_rows(source: SourceColumns, rows: npt.NDArray[np.int64]) -> SourceColumns:
    """Returns the columns without the rows at these indices."""
    if not len(rows):
        return source
    kept = np.delete(np.arange(len(source)), rows)
    if source.frame is not None:
        return frame_columns(source.frame.iloc[kept])
    lines = None if source.lines is None else source.lines.of(kept)
    rows = kept if source.rows is None else source.rows[kept]
    return replace(source, n_rows=len(kept), lines=lines, rows=rows)


def frame_columns(frame: pd.DataFrame) -> SourceColumns:
    """Returns the columns of a data frame."""
    names, types = list(frame.columns), partial(_types_in_frame, frame)
    lines, separator = frame.attrs.get("lines"), str(frame.attrs.get("separator", ","))
    return SourceColumns(names, len(frame), frame.__getitem__, types, lines, separator, frame)


def _types_in_frame(frame: pd.DataFrame, column: Column) -> tuple[str | None, str | None]:
    """Returns the types of a column of a frame that a schema has to store (`SourceColumns.types`):
    none for strings read from a text file, and only the Parquet type for unchanged columns that
    were read from a Parquet file."""
    series = frame[column.name]
    if frame.attrs.get("lines") is not None and series.dtype == object and is_text(series):
        return None, None
    read_as = frame.attrs.get("parquet_types", {}).get(column.name)
    if read_as is not None and is_as_read(series, read_as):
        return None, read_as
    return frame_types(series, column)


@contextmanager
def source_columns(rows: Rows, report: Report = report_to_nobody) -> Iterator[SourceColumns]:
    """Context manager that yields the columns of a table in memory or in a file; temporary files
    are deleted afterwards.

    Args:
        rows: Data frame, TableReader or path of a file.
        report: Function that receives the share of a text file that has been read.

    Raises:
        TableError: The input is not a table; errors name the lines of a text file.
        OSError: The disk is full.
    """
    rows = given_rows(rows)
    if isinstance(rows, pd.DataFrame):
        yield frame_columns(rows)
        return
    with rows.opened() as file:
        if rows.is_parquet(file):
            yield _parquet_columns(opened_parquet(file))
            return
        with temporary_files() as folder:
            yield _text_columns(_reported(rows, file, report), folder / "cells.arrow")


def _reported(reader: TableReader, file: BinaryIO, report: Report) -> Iterator[TextRows]:
    for chunk in reader.text_rows(file):
        yield chunk
        report(reader.fraction)


def _parquet_columns(file: Any) -> SourceColumns:
    types = {field.name: str(field.type) for field in file.schema_arrow}
    return SourceColumns(
        [*types],
        int(file.metadata.num_rows),
        partial(parquet_column, file),
        lambda column: (None, types[column.name]),
    )


def _text_columns(chunks: Iterator[TextRows], path: Path) -> SourceColumns:
    """Writes the rows of a text file, at least one chunk, to an Arrow file at `path`, and returns
    its columns. A column that is read is mapped into memory, not copied."""
    lines, sink = list[LineNumbers](), None
    with ExitStack() as files:
        files.enter_context(written_to(path))
        file = files.enter_context(pa.OSFile(str(path), "wb"))
        for chunk in chunks:
            sink = sink or files.enter_context(pa.ipc.new_stream(file, chunk.table.schema))
            sink.write_table(chunk.table)
            lines.append(chunk.lines)
    names, whole = chunk.table.column_names, LineNumbers.joined(lines)

    def read(name: str) -> TextColumn:
        options = pa.ipc.IpcReadOptions(included_fields=[names.index(name)])
        with pa.memory_map(str(path)) as file:
            return TextColumn(name, pa.ipc.open_stream(file, options=options).read_all().column(0))

    return SourceColumns(names, len(whole), read, lambda _: (None, None), whole, chunk.separator)
