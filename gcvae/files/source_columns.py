"""Reads a table column by column, so that memory holds one column of a file at a time.

A text file is converted to a temporary file of Arrow columns in one pass; Parquet files are read by
column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
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

_LOOKED_AT_ROWS = 4096
"""Number of first rows of a chunk that decide whether its column is stored by distinct texts."""


@dataclass(frozen=True)
class FrameColumns:
    """Columns of a data frame, with the interface of `FileColumns`."""

    frame: pd.DataFrame

    @property
    def names(self) -> list[Any]:
        """Names of the columns, of any type."""
        return list(self.frame.columns)

    @property
    def lines(self) -> Any:
        """Line number of each row, by its label, if the frame was read from a text file; else
        None."""
        return self.frame.attrs.get("lines")

    @property
    def separator(self) -> str:
        """Separator of the cells in the text file from which the frame was read; a comma for other
        frames."""
        return str(self.frame.attrs.get("separator", ","))

    def line_of(self, row: int) -> int | None:
        """Returns the line, from 1, of the row with index `row` in the text file from which the
        frame was read; None for other frames."""
        return None if self.lines is None else self.lines[self.frame.index[row]]

    def types(self, column: Column) -> tuple[str | None, str | None]:
        """Returns (dtype in data frames, type in Parquet files) that the schema has to store so
        that generated rows get the same types; either is None if it follows from the column's kind.

        For a column read from a Parquet file only the latter is needed; for unchanged string cells
        of a text file neither.
        """
        series = self.frame[column.name]
        if self.lines is not None and series.dtype == object and is_text(series):
            return None, None
        read_as = self.frame.attrs.get("parquet_types", {}).get(column.name)
        if read_as is not None and is_as_read(series, read_as):
            return None, read_as
        return frame_types(series, column)

    def __len__(self) -> int:
        """Returns the number of rows."""
        return len(self.frame)

    def __getitem__(self, name: str) -> pd.Series[Any]:
        """Returns the column with this name."""
        return self.frame[name]


@dataclass(frozen=True)
class FileColumns:
    """Columns of a text or Parquet file, restricted to m selected rows.

    Attributes:
        names: Names of the columns.
        read: Function that returns all rows of the column with this name.
        n_rows: Number of rows in the file.
        parquet_types: Arrow's name of each column's type in a Parquet file; empty for a text file.
        lines_of_file: Line number of each row in a text file; None for a Parquet file.
        separator: Character between the cells of the text file; a comma for a Parquet file.
        rows: Indices of the selected rows, ascending; None for all rows. Shape: (m,).
    """

    names: list[str]
    read: Callable[[str], pd.Series[Any] | TextColumn]
    n_rows: int
    parquet_types: Mapping[str, str] = field(default_factory=dict)
    lines_of_file: LineNumbers | None = None
    separator: str = ","
    rows: npt.NDArray[np.int64] | None = None

    @cached_property
    def lines(self) -> LineNumbers | None:
        """For a text file, the line number of each selected row, by its index among these; else
        None."""
        lines = self.lines_of_file
        return lines if lines is None or self.rows is None else lines.of(self.rows)

    def line_of(self, row: int) -> int | None:
        """Returns the line in the text file, from 1, of the row with index `row` among the selected
        ones; None for a Parquet file."""
        return None if self.lines is None else self.lines[row]

    def types(self, column: Column) -> tuple[None, str | None]:
        """Returns (None, Arrow's name of the column's type) for a Parquet file, and (None, None)
        for a text file.

        The first value is the dtype in data frames, which columns of files do not have.
        """
        return None, self.parquet_types.get(column.name)

    def __len__(self) -> int:
        """Returns the number of selected rows."""
        return self.n_rows if self.rows is None else len(self.rows)

    def __getitem__(self, name: str) -> pd.Series[Any] | TextColumn:
        """Returns the selected rows of the column with this name."""
        cells = self.read(name)
        if self.rows is None:
            return cells
        if not isinstance(cells, TextColumn):
            return cells.iloc[self.rows].reset_index(drop=True)
        is_selected = np.zeros(self.n_rows, dtype=bool)
        is_selected[self.rows] = True
        return TextColumn(name, cells.texts.filter(pa.array(is_selected)).cast(pa.string()))


SourceColumns = FrameColumns | FileColumns


def without_rows(source: SourceColumns, rows: npt.NDArray[np.int64]) -> SourceColumns:
    """Returns the columns without the rows at these indices."""
    if not len(rows):
        return source
    kept = np.delete(np.arange(len(source)), rows)
    if isinstance(source, FrameColumns):
        return FrameColumns(source.frame.iloc[kept])
    return replace(source, rows=kept if source.rows is None else source.rows[kept])


@contextmanager
def source_columns(rows: Rows, report: Report = report_to_nobody) -> Iterator[SourceColumns]:
    """Context manager that returns the columns of a table in memory or in a file; temporary files
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
        yield FrameColumns(rows)
        return
    with rows.opened() as file:
        if rows.is_parquet(file):
            parquet = opened_parquet(file)
            types = {field.name: str(field.type) for field in parquet.schema_arrow}
            n_rows = int(parquet.metadata.num_rows)
            yield FileColumns([*types], partial(parquet_column, parquet), n_rows, types)
            return
        with temporary_files() as folder:
            yield _text_columns(_reported(rows, file, report), folder / "cells.arrow")


def _reported(reader: TableReader, file: BinaryIO, report: Report) -> Iterator[TextRows]:
    for chunk in reader.text_rows(file):
        yield chunk
        report(reader.fraction)


def _text_columns(chunks: Iterator[TextRows], path: Path) -> FileColumns:
    """Writes at least one chunk of rows to an Arrow file of dictionary-encoded columns, and returns
    the columns, whose texts are mapped from the file and not copied."""
    lines, sink = list[LineNumbers](), None
    with ExitStack() as files:
        files.enter_context(written_to(path))
        file = files.enter_context(pa.OSFile(str(path), "wb"))
        for chunk in chunks:
            columns = [_encoded(column) for column in chunk.table.columns]
            batch = pa.RecordBatch.from_arrays(columns, chunk.table.column_names)
            sink = sink or files.enter_context(pa.ipc.new_stream(file, batch.schema))
            sink.write_batch(batch)
            lines.append(chunk.lines)
    names, whole = batch.schema.names, LineNumbers.joined(lines)

    def read(name: str) -> TextColumn:
        options = pa.ipc.IpcReadOptions(included_fields=[names.index(name)])
        with pa.memory_map(str(path)) as file:
            return TextColumn(name, pa.ipc.open_stream(file, options=options).read_all().column(0))

    return FileColumns(names, read, len(whole), {}, whole, chunk.separator)


def _encoded(column: Any) -> Any:
    """Returns a chunk of a column as a dictionary, which contains each distinct text once or, if
    most texts are different, one text for each row."""
    start = column.slice(0, _LOOKED_AT_ROWS)
    if 2 * len(start.unique()) <= len(start):
        return column.dictionary_encode().combine_chunks()
    texts = column.combine_chunks()
    return pa.DictionaryArray.from_arrays(np.arange(len(texts), dtype=np.int32), texts)
