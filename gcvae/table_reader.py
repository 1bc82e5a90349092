"""Rows of a file in blocks, read as they are asked for: memory does not grow with the table.

    for block in TableReader("rows.csv").blocks(4096): ...

Each block is a table of its own, as `gcvae.tables.read_table` would give it; cells of CSV are text,
and problems name the file's own lines.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pandas as pd

from gcvae.cells import RowNumbers
from gcvae.delimited import WINDOW_BYTES, delimited_cells
from gcvae.delimited_rows import LineNumbers, TextCells
from gcvae.errors import TableError
from gcvae.gzipped import UnzippedFile
from gcvae.parquet_files import parquet_blocks
from gcvae.schema import TableSchema
from gcvae.tables import parse_table

PART_ROWS = 4096
"""Rows that are read, encoded and worked on at once."""
_GZIP, _PARQUET = b"\x1f\x8b", b"PAR1"


def is_parquet(file: BinaryIO) -> bool:
    """Whether a file at its beginning is a Parquet file."""
    return _start_of(file) == _PARQUET


def _start_of(file: BinaryIO) -> bytes:
    start = file.read(len(_PARQUET))
    file.seek(0)
    return start


def parsed_parts(
    rows: pd.DataFrame | TableReader, schema: TableSchema, among: range | None = None
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """The cells of PART_ROWS rows after the other as they came, and their values.

    What is in memory is checked whole before the first part comes.

    Args:
        rows: A table, or a file.
        schema: Of it.
        among: Only these rows of all. No others are parsed; of a text file those before them are
            read, of Parquet those of their row group.

    Raises:
        TableError: A modelled column is absent, or a cell can not be read.
        UnknownColumnError: There is a column that the schema has not.
    """
    if isinstance(rows, TableReader):
        for part in _parts_among(rows, schema, among):
            yield part, parse_table(part, schema)
        return
    if among is not None:
        rows = rows.iloc[among.start : among.stop]
    typed = parse_table(rows, schema)
    for first in range(0, len(rows), PART_ROWS):
        at = slice(first, first + PART_ROWS)
        yield rows.iloc[at], typed.iloc[at]


def _parts_among(
    reader: TableReader, schema: TableSchema, among: range | None
) -> Iterator[pd.DataFrame]:
    """The file's parts, or those of some of its rows."""
    dropped = {column.name for column in schema if column.drop}
    if among is None:
        yield from reader.blocks(PART_ROWS, dropped=dropped)
        return
    for part in reader.blocks(PART_ROWS, among.start, dropped):
        first = reader.rows - len(part)
        yield part.iloc[: among.stop - first]
        if reader.rows >= among.stop:
            return


class TableReader:
    """Reads a CSV, gzipped CSV or Parquet file.

    Attributes:
        fraction: Of the file that has been given out, 0 to 1.
        rows: That have been given out, or were left out before them.
    """

    def __init__(self, source: str | Path | BinaryIO, *, window_bytes: int = WINDOW_BYTES) -> None:
        """Nothing is read yet.

        Args:
            source: A path, or an open file, which is read from its beginning and stays open.
            window_bytes: Of a text file, read at a time.
        """
        self._window_bytes = window_bytes
        self._source = Path(source) if isinstance(source, str) else source
        self.fraction = 0.0
        self.rows = 0

    def blocks(
        self, rows: int, first_row: int = 0, dropped: Collection[str] = ()
    ) -> Iterator[pd.DataFrame]:
        """Blocks of `rows` rows, and the rest in the last; at least one row in all.

        Args:
            first_row: Those before it are left out; the file has more.
            dropped: Columns that are left out where a Parquet file has no cells there.

        Raises:
            TableError: It is no such file; the problems name the lines.
        """
        with self.opened() as file:
            self.rows = first_row
            yield from self._regrouped(self._frames(file, rows, first_row, dropped), rows)

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """The file, at its beginning.

        Raises:
            TableError: It can not be opened.
        """
        self.fraction, self.rows = 0.0, 0
        if not isinstance(self._source, Path):
            self._source.seek(0)
            yield self._source
            return
        try:
            # Before it is opened: that would wait for whoever writes into a pipe.
            if self._source.is_fifo() or self._source.is_char_device():
                message = f"{self._source} is a pipe or a device, which can be read only once"
                raise TableError(f"{message} (expected: a file; write it to one first)")
            file = self._source.open("rb")
        except OSError as error:
            raise TableError(f"{self._source} can not be read: {error.strerror}") from None
        with file:
            yield file

    def cells(self, file: BinaryIO) -> Iterator[TextCells]:
        """The rows of an opened text file, some at a time; at least one in all.

        Raises:
            TableError: It is no table; the problems name the lines.
        """
        start = _start_of(file)
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        plain = UnzippedFile(file) if start.startswith(_GZIP) else file
        for cells in delimited_cells(plain, window_bytes=self._window_bytes):
            self.fraction = file.tell() / size
            yield cells

    def _frames(
        self, file: BinaryIO, rows: int, first_row: int, dropped: Collection[str]
    ) -> Iterator[tuple[pd.DataFrame, float]]:
        """Rows as they come, and the share of the file with which they end."""
        try:
            if is_parquet(file):
                yield from parquet_blocks(file, rows, first_row, dropped)
                return
            left_out = 0
            for cells in self.cells(file):
                leave_out = min(first_row - left_out, cells.table.num_rows)
                left_out += leave_out
                if leave_out < cells.table.num_rows:
                    yield cells.frame().iloc[leave_out:], self.fraction
        except OSError as error:
            raise TableError(f"{self._source} can not be read: {error.strerror}") from None

    def _regrouped(
        self, frames: Iterator[tuple[pd.DataFrame, float]], rows: int
    ) -> Iterator[pd.DataFrame]:
        held: list[pd.DataFrame] = []
        n_held, begun = 0, 0.0
        for frame, ended in frames:
            taken = 0
            while taken < len(frame):
                part = frame.iloc[taken : taken + rows - n_held]
                held.append(part)
                n_held += len(part)
                taken += len(part)
                if n_held == rows:
                    yield self._given_out(held, begun + (ended - begun) * taken / len(frame))
                    held, n_held = [], 0
            begun = ended
        if held:
            yield self._given_out(held, 1.0)

    def _given_out(self, parts: list[pd.DataFrame], fraction: float) -> pd.DataFrame:
        block = pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]
        block = block.reset_index(drop=True)
        kept = ("parquet_types",) if "parquet_types" in parts[0].attrs else ()
        block.attrs = {key: parts[0].attrs[key] for key in kept}
        if "rows" in parts[0].attrs:
            block.attrs["rows"] = RowNumbers(self.rows)
        if "lines" in parts[0].attrs:
            starts = [part.attrs["lines"].of_rows(part.index.to_numpy()) for part in parts]
            block.attrs["lines"] = LineNumbers(0, np.concatenate(starts))
        self.fraction = fraction
        self.rows += len(block)
        return block
