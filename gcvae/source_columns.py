"""The columns of a table one at a time, as it came: of a file, memory holds one and not all.

Text is read once and kept as Arrow columns in a temporary file; Parquet has its columns already.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from gcvae.cells import TextColumn
from gcvae.delimited_rows import LineNumbers, TextCells
from gcvae.parquet_files import is_cell, opened_parquet, parquet_column, type_of_values
from gcvae.table_reader import TableReader, is_parquet
from gcvae.temporary_files import temporary_files, written_to

Tell = Callable[[float], None]
"""Is told what share of the work is done, 0 to 1."""


@dataclass(frozen=True)
class FrameColumns:
    """The columns of a table in memory."""

    frame: pd.DataFrame

    @property
    def names(self) -> list[Any]:
        """Of the columns, as the frame has them."""
        return list(self.frame.columns)

    @property
    def lines(self) -> Any:
        """The line of each row by its label, where the rows come from a text file."""
        return self.frame.attrs.get("lines")

    def line_of(self, row: int) -> int | None:
        """The line of the row of that number."""
        return None if self.lines is None else self.lines[self.frame.index[row]]

    def parquet_type(self, name: str) -> str | None:
        """The type of the column in the Parquet file that it comes from, or in one made of it."""
        return type_of_values(self.frame[name], self.frame.attrs.get("parquet_types", {}).get(name))

    def has_cells(self, name: str) -> bool:
        """Whether the column's type is one of cells."""
        return True

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.frame)

    def __getitem__(self, name: str) -> pd.Series[Any]:
        """A column."""
        return self.frame[name]


@dataclass(frozen=True)
class TextFileColumns:
    """The columns of a text file, kept as an Arrow file.

    Attributes:
        path: Of that file, in batches of rows.
        names: Of the columns.
        lines: Of the rows.
    """

    path: Path
    names: list[str]
    lines: StackedLines

    @classmethod
    def of(cls, blocks: Iterator[TextCells], path: Path) -> TextFileColumns:
        """Writes blocks of rows to the path, block by block; at least one."""
        first = next(blocks)
        lines, schema = StackedLines(), first.table.schema
        with (
            written_to(path),
            pa.OSFile(str(path), "wb") as file,
            pa.ipc.new_file(file, schema) as sink,
        ):
            for block in _with(first, blocks):
                sink.write_table(block.table.combine_chunks())
                lines.add(block.lines, block.table.num_rows)
        return cls(path, first.table.column_names, lines)

    def line_of(self, row: int) -> int | None:
        """The line of the row of that number."""
        return self.lines[row]

    def parquet_type(self, name: str) -> None:
        """None: text has no types."""
        return

    def has_cells(self, name: str) -> bool:
        """Whether the column's type is one of cells."""
        return True

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.lines)

    def __getitem__(self, name: str) -> TextColumn:
        """A column. Its texts are mapped from the file for as long as they are used."""
        with pa.memory_map(str(self.path)) as file:
            reader = pa.ipc.open_file(file)  # without options: those would have it copy the batches
            batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
        return TextColumn(name, pa.chunked_array([batch.column(name) for batch in batches]))


@dataclass(frozen=True)
class ParquetColumns:
    """The columns of a Parquet file.

    Attributes:
        file: As `opened_parquet` gives it.
    """

    file: Any

    @property
    def names(self) -> list[str]:
        """Of the columns."""
        return list(self.file.schema_arrow.names)

    @property
    def lines(self) -> None:
        """None: such a file has no lines."""
        return

    def line_of(self, row: int) -> None:
        """None: such a file has no lines."""
        return

    def parquet_type(self, name: str) -> str:
        """The type of the column."""
        return str(self.file.schema_arrow.field(name).type)

    def has_cells(self, name: str) -> bool:
        """Whether the column's type is one of cells."""
        return is_cell(self.file.schema_arrow.field(name).type)

    def __len__(self) -> int:
        """The number of rows."""
        return int(self.file.metadata.num_rows)

    def __getitem__(self, name: str) -> pd.Series[Any] | TextColumn:
        """A column."""
        return parquet_column(self.file, name)


FileColumns = TextFileColumns | ParquetColumns
SourceColumns = FrameColumns | FileColumns


class StackedLines:
    """The physical lines of rows that come block after block, by their numbers in the table."""

    def __init__(self) -> None:
        """No rows yet."""
        self._blocks: list[LineNumbers] = []
        self._ends: list[int] = []

    def add(self, lines: LineNumbers, rows: int) -> None:
        """The lines of the next rows."""
        self._blocks.append(lines)
        self._ends.append(len(self) + rows)

    def __len__(self) -> int:
        """The number of rows."""
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, row: Any) -> int | None:
        """The line of a row; None where there is no such row."""
        if not isinstance(row, int | np.integer) or not 0 <= row < len(self):
            return None
        block = bisect_right(self._ends, row)
        return self._blocks[block][int(row) - (self._ends[block - 1] if block else 0)]


def tell_nobody(fraction: float) -> None:
    """Tells nobody."""


@contextmanager
def source_columns(
    rows: pd.DataFrame | TableReader, tell: Tell = tell_nobody
) -> Iterator[SourceColumns]:
    """The columns of a table in memory or in a file; what they need on disk goes with the block.

    Raises:
        TableError: The file is no table; the problems name the lines.
        OSError: The disk is full.
    """
    if isinstance(rows, pd.DataFrame):
        yield FrameColumns(rows)
        return
    with rows.opened() as file:
        if is_parquet(file):
            yield ParquetColumns(opened_parquet(file))
            return
        with temporary_files() as folder:
            blocks = _told(rows.cells(file), rows, tell)
            yield TextFileColumns.of(blocks, folder / "cells.arrow")


def _told(blocks: Iterator[TextCells], reader: TableReader, tell: Tell) -> Iterator[TextCells]:
    for block in blocks:
        yield block
        tell(reader.fraction)


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
