"""The columns of a table one at a time, as it came: of a file, memory holds one and not all.

Text is read once and kept as Arrow columns in a temporary file; Parquet has its columns already.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from gcvae.cells.distinct_cells import TextColumn
from gcvae.cells.values import is_text
from gcvae.files.delimited_rows import LineNumbers, TextCells
from gcvae.files.frame_dtypes import frame_types
from gcvae.files.parquet_files import is_as_read, opened_parquet, parquet_column
from gcvae.files.table_reader import Rows, TableReader, given_rows
from gcvae.files.temporary_files import temporary_files, written_to
from gcvae.progress import Report, report_to_nobody
from gcvae.schema.columns import Column


@dataclass(frozen=True)
class FrameColumns:
    """The columns of a table in memory."""

    frame: pd.DataFrame

    @property
    def names(self) -> list[Any]:
        """The names of the columns, as the frame has them."""
        return list(self.frame.columns)

    @property
    def lines(self) -> Any:
        """The line of each row by its label, where the rows come from a text file."""
        return self.frame.attrs.get("lines")

    @property
    def separator(self) -> str:
        """Between the cells of the text file that they come from, or of one made of them."""
        return str(self.frame.attrs.get("separator", ","))

    def line_of(self, row: int) -> int | None:
        """The line of the row of that number."""
        return None if self.lines is None else self.lines[self.frame.index[row]]

    def types(self, column: Column) -> tuple[str | None, str | None]:
        """The column's dtype, and its type in Parquet files, where the schema's do not say them.

        What comes from a Parquet file has the type that it had there, and no dtype; the cells of a
        text file, as they were read, have neither.
        """
        series = self.frame[column.name]
        if self.lines is not None and series.dtype == object and is_text(series):
            return None, None
        read_as = self.frame.attrs.get("parquet_types", {}).get(column.name)
        if read_as is not None and is_as_read(series, read_as):
            return None, read_as
        return frame_types(series, column)

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.frame)

    def __getitem__(self, name: str) -> pd.Series[Any]:
        """The column of a name."""
        return self.frame[name]


@dataclass(frozen=True)
class TextFileColumns:
    """The columns of a text file, kept as an Arrow file.

    Attributes:
        path: Of that file, in batches of rows.
        names: Of the columns.
        places: Of each chunk the bytes before each of its columns, which are streams by themselves.
        lines: Of the rows.
        separator: Between the cells.
    """

    path: Path
    names: list[str]
    places: list[list[int]]
    lines: StackedLines
    separator: str

    @classmethod
    def of(cls, chunks: Iterator[TextCells], path: Path) -> TextFileColumns:
        """Writes chunks of rows to the path, chunk by chunk; at least one."""
        first = next(chunks)
        places, lines = list[list[int]](), StackedLines()
        with written_to(path), pa.OSFile(str(path), "wb") as file:
            for chunk in _with(first, chunks):
                places.append([_written(column, file) for column in chunk.table.columns])
                lines.add(chunk.lines, chunk.table.num_rows)
        return cls(path, first.table.column_names, places, lines, first.separator)

    def line_of(self, row: int) -> int | None:
        """The line of the row of that number."""
        return self.lines[row]

    def types(self, column: Column) -> tuple[None, None]:
        """None: text has no types."""
        return None, None

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.lines)

    def __getitem__(self, name: str) -> TextColumn:
        """A column. Its texts are mapped from the file for as long as they are used."""
        number, texts = self.names.index(name), []
        with pa.memory_map(str(self.path)) as file:
            for places in self.places:
                file.seek(places[number])
                texts.append(pa.ipc.open_stream(file).read_next_batch().column(0))
        return TextColumn(name, pa.chunked_array(texts, _ENCODED))


_ENCODED = pa.dictionary(pa.int32(), pa.string())
_ONE_COLUMN = pa.schema([("texts", _ENCODED)])
_LOOKED_AT_ROWS = 4096
"""Of a chunk, in which the distinct texts of a column are counted."""


def _written(column: Any, file: Any) -> int:
    """Writes a chunk of a column to the end of a file. Returns: The bytes before it."""
    place: int = file.tell()
    with pa.ipc.new_stream(file, _ONE_COLUMN) as sink:
        sink.write_batch(pa.record_batch([_encoded(column)], schema=_ONE_COLUMN))
    return place


def _encoded(column: Any) -> Any:
    """A chunk of a column with each text once; where most differ, each row with its own text."""
    start = column.slice(0, _LOOKED_AT_ROWS)
    if 2 * len(start.unique()) <= len(start):
        return column.dictionary_encode().combine_chunks()
    texts = column.combine_chunks()
    return pa.DictionaryArray.from_arrays(np.arange(len(texts), dtype=np.int32), texts)


@dataclass(frozen=True)
class ParquetColumns:
    """The columns of a Parquet file.

    Attributes:
        file: As `opened_parquet` gives it.
    """

    file: Any

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.file.schema_arrow.names)

    @property
    def lines(self) -> None:
        """None: such a file has no lines."""
        return

    @property
    def separator(self) -> str:
        """The separator of a text file that is made of the rows."""
        return ","

    def line_of(self, row: int) -> None:
        """None: such a file has no lines."""
        return

    def types(self, column: Column) -> tuple[None, str]:
        """No dtype, and the type in the file."""
        return None, str(self.file.schema_arrow.field(column.name).type)

    def __len__(self) -> int:
        """The number of rows."""
        return int(self.file.metadata.num_rows)

    def __getitem__(self, name: str) -> pd.Series[Any] | TextColumn:
        """The column of a name."""
        return parquet_column(self.file, name)


FileColumns = TextFileColumns | ParquetColumns


class StackedLines:
    """The physical lines of rows that come chunk after chunk, by their numbers in the table."""

    def __init__(self) -> None:
        """Begins without rows."""
        self._chunks: list[LineNumbers] = []
        self._ends: list[int] = []

    def add(self, lines: LineNumbers, rows: int) -> None:
        """The lines of the next rows."""
        self._chunks.append(lines)
        self._ends.append(len(self) + rows)

    def __len__(self) -> int:
        """The number of rows."""
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, row: Any) -> int | None:
        """The line of a row; None where there is no such row."""
        if not isinstance(row, int | np.integer) or not 0 <= row < len(self):
            return None
        chunk = bisect_right(self._ends, row)
        return self._chunks[chunk][int(row) - (self._ends[chunk - 1] if chunk else 0)]


@dataclass(frozen=True)
class SelectedLines:
    """The physical lines of selected rows, by their numbers among these. Shape: rows (m,)."""

    lines: Any
    rows: npt.NDArray[np.int64]

    def __getitem__(self, row: Any) -> int | None:
        """The line of a row; None where there is no such row."""
        if not isinstance(row, int | np.integer) or not 0 <= row < len(self.rows):
            return None
        return self.lines[int(self.rows[row])]  # type: ignore[no-any-return]


@dataclass(frozen=True)
class SelectedRows:
    """The columns of some rows of a file. Shape: rows (m,), ascending."""

    source: FileColumns | SelectedRows
    rows: npt.NDArray[np.int64]

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return self.source.names

    @property
    def lines(self) -> Any:
        """The line of each row by its number, where the rows come from a text file."""
        is_text = isinstance(self.source, TextFileColumns)
        return SelectedLines(self.source.lines, self.rows) if is_text else None

    @property
    def separator(self) -> str:
        """Between the cells of a text file."""
        return self.source.separator

    def line_of(self, row: int) -> int | None:
        """The line of the row of that number."""
        return self.source.line_of(int(self.rows[row]))

    def types(self, column: Column) -> tuple[None, str | None]:
        """As the whole file has them."""
        return self.source.types(column)

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.rows)

    def __getitem__(self, name: str) -> pd.Series[Any] | TextColumn:
        """The column of a name."""
        cells = self.source[name]
        if not isinstance(cells, TextColumn):
            return cells.iloc[self.rows].reset_index(drop=True)
        is_selected = np.zeros(len(self.source), dtype=bool)
        is_selected[self.rows] = True
        return TextColumn(name, cells.texts.filter(pa.array(is_selected)).cast(pa.string()))


SourceColumns = FrameColumns | FileColumns | SelectedRows


def without_rows(source: SourceColumns, rows: npt.NDArray[np.int64]) -> SourceColumns:
    """The columns of all rows but these."""
    if not len(rows):
        return source
    kept = np.delete(np.arange(len(source)), rows)
    if isinstance(source, FrameColumns):
        return FrameColumns(source.frame.iloc[kept])
    return SelectedRows(source, kept)


@contextmanager
def source_columns(rows: Rows, report: Report = report_to_nobody) -> Iterator[SourceColumns]:
    """The columns of a table in memory or in a file; what they need on disk goes with the block.

    Raises:
        TableError: It is no table, or the file is no table; the problems name the lines.
        OSError: The disk is full.
    """
    rows = given_rows(rows)
    if isinstance(rows, pd.DataFrame):
        yield FrameColumns(rows)
        return
    with rows.opened() as file:
        if rows.is_parquet(file):
            yield ParquetColumns(opened_parquet(file))
            return
        with temporary_files() as folder:
            chunks = _reported(rows.cells(file), rows, report)
            yield TextFileColumns.of(chunks, folder / "cells.arrow")


def _reported(
    chunks: Iterator[TextCells], reader: TableReader, report: Report
) -> Iterator[TextCells]:
    for chunk in chunks:
        yield chunk
        report(reader.fraction)


def _with(first: TextCells, rest: Iterator[TextCells]) -> Iterator[TextCells]:
    yield first
    yield from rest


def shown_cells(source: SourceColumns, row: int, names: Sequence[str]) -> dict[str, str]:
    """The cells of one row as text, by column."""
    return {name: _shown(source[name], row) for name in names}


def _shown(column: pd.Series[Any] | TextColumn, row: int) -> str:
    if isinstance(column, TextColumn):
        return str(column.texts[row].as_py())
    return str(column.iloc[row])
