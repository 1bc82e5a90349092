"""Reads the rows of a file in chunks, in constant memory.

    for chunk in TableReader("rows.csv").chunks(4096): ...

Each chunk is a data frame like the result of `TableReader.read`: cells of a CSV file are text, and
errors name the lines of the file.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import pandas as pd

from gcvae.cells.data_frames import data_frame, with_columns
from gcvae.cells.distinct_cells import RowNumbers
from gcvae.cells.values import (
    blank_columns,
    in_column_zones,
    is_text,
    own_dtype,
    parse_table,
    with_absent_columns,
)
from gcvae.errors import Problem, TableError
from gcvae.files.parquet_files import parquet_chunks, read_parquet
from gcvae.files.records import LineNumbers
from gcvae.files.text_encodings import UnzippedFile, checked_encoding
from gcvae.files.text_tables import WINDOW_BYTES, Check, TextRows, joined, text_rows
from gcvae.schema.columns import TableSchema

CHUNK_ROWS = 4096
"""Default number of rows that are read, encoded and processed at once."""
MOST_UNZIPPED_BYTES = 2 << 30
"""Maximum uncompressed size, in bytes, of a gzip file that is read into memory at once."""
_GZIP, _PARQUET = b"\x1f\x8b", b"PAR1"


def _start_of(file: BinaryIO) -> bytes:
    start = file.read(len(_PARQUET))
    file.seek(0)
    return start


class TableReader:
    """Reads a CSV, gzipped CSV or Parquet file.

    Attributes:
        fraction: Share of the file that has been read, 0 to 1.
        rows: Number of rows that have been returned or skipped.
    """

    def __init__(
        self,
        source: str | Path | BinaryIO,
        *,
        encoding: str | None = None,
        window_bytes: int = WINDOW_BYTES,
        check: Check | None = None,
    ) -> None:
        """Stores the source; the file is not read yet.

        Args:
            source: A path, or an open file, which is read from its beginning and stays open.
            encoding: Python's name of a text file's encoding; None for UTF-8.
            window_bytes: Number of bytes of a text file that are read at a time.
            check: Function that receives statistics of the text file read so far (`ReadSoFar`), and
                may raise an exception to stop.

        Raises:
            TableError: The encoding does not exist.
        """
        self._encoding = checked_encoding(encoding)
        self._window_bytes = window_bytes
        self._check = check
        self._source = Path(source) if isinstance(source, str) else source
        self.fraction = 0.0
        self.rows = 0

    def chunks(
        self, rows: int, first_row: int = 0, dropped: Collection[str] = ()
    ) -> Iterator[pd.DataFrame]:
        """Yields the file in chunks of `rows` rows, of which the last may be shorter.

        Args:
            rows: Number of rows in a chunk.
            first_row: Index of the first row to return; rows before it are skipped.
            dropped: Columns of a Parquet file that are left out if their type is not supported.

        Raises:
            TableError: The file is not a table or has no rows; errors name the lines.
        """
        with self.opened() as file:
            self.rows = first_row
            yield from self._regrouped(self._frames(file, rows, first_row, dropped), rows)

    def is_parquet(self, file: BinaryIO) -> bool:
        """Returns whether a file, opened and at its beginning, is a Parquet file.

        Raises:
            TableError: The file is a Parquet file, but a text encoding is specified.
        """
        found = _start_of(file) == _PARQUET
        if found and self._encoding is not None:
            message = f"the encoding is {self._encoding}, but the file is Parquet, whose texts are"
            raise TableError(Problem(f"{message} UTF-8", expected="no encoding"))
        return found

    def read(self, dropped: Collection[str] = ()) -> pd.DataFrame:
        """Returns the complete table.

        Args:
            dropped: Columns of a Parquet file that are left out if their type is not supported.

        Raises:
            TableError: The file is not a table; errors name the lines.
        """
        with self.opened() as file:
            if self.is_parquet(file):
                return read_parquet(file, dropped)
            return joined([*self.text_rows(file, MOST_UNZIPPED_BYTES)]).frame()

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Context manager that yields the file, opened and at its beginning.

        Raises:
            TableError: The file cannot be opened.
        """
        self.fraction, self.rows = 0.0, 0
        if not isinstance(self._source, Path):
            self._source.seek(0)
            yield self._source
            return
        try:
            # Before opening: opening a pipe would wait for a writer.
            if self._source.is_fifo() or self._source.is_char_device():
                message = f"{self._source} is a pipe or a device, which can be read only once"
                raise TableError(f"{message} (expected: a file; write it to one first)")
            file = self._source.open("rb")
        except OSError as error:
            raise TableError(f"{self._source} cannot be read: {error.strerror}") from None
        with file:
            yield file

    def text_rows(self, file: BinaryIO, most_unzipped: int | None = None) -> Iterator[TextRows]:
        """Yields the rows of an opened text file, which may be compressed by gzip, in chunks.

        Args:
            file: The opened file.
            most_unzipped: Maximum number of uncompressed bytes of a compressed file; None for no
                limit.

        Raises:
            TableError: The file is not a table or has no rows; errors name the lines.
        """
        start = _start_of(file)
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        plain = UnzippedFile(file, most_unzipped) if start.startswith(_GZIP) else file
        window, encoding, check = self._window_bytes, self._encoding, self._check
        for rows in text_rows(plain, window_bytes=window, encoding=encoding, check=check):
            self.fraction = file.tell() / size
            yield rows

    def _frames(
        self, file: BinaryIO, rows: int, first_row: int, dropped: Collection[str]
    ) -> Iterator[tuple[pd.DataFrame, float]]:
        """Yields (chunk, share of the file up to the end of the chunk), from `first_row` on. In a
        Parquet file, a chunk is at most `rows` rows; in a text file, those of a byte window."""
        try:
            if self.is_parquet(file):
                yield from parquet_chunks(file, rows, first_row, dropped)
                return
            left_out = 0
            for chunk in self.text_rows(file):
                leave_out = min(first_row - left_out, len(chunk))
                left_out += leave_out
                if leave_out < len(chunk):
                    yield chunk.frame().iloc[leave_out:], self.fraction
        except OSError as error:
            raise TableError(f"{self._source} cannot be read: {error.strerror}") from None

    def _regrouped(
        self, frames: Iterator[tuple[pd.DataFrame, float]], rows: int
    ) -> Iterator[pd.DataFrame]:
        held: list[pd.DataFrame] = []
        n_held, begun = 0, 0.0
        for frame, ended in frames:
            taken = 0
            while taken < len(frame):
                held.append(frame.iloc[taken : taken + rows - n_held])
                n_held += len(held[-1])
                taken += len(held[-1])
                if n_held == rows:
                    yield self._combined(held, begun + (ended - begun) * taken / len(frame))
                    held, n_held = [], 0
            begun = ended
        if held:
            yield self._combined(held, 1.0)

    def _combined(self, held: list[pd.DataFrame], fraction: float) -> pd.DataFrame:
        """Returns buffered rows as one chunk, and updates `fraction` and `rows`."""
        chunk = pd.concat(held, ignore_index=True) if len(held) > 1 else held[0]
        chunk = chunk.reset_index(drop=True)
        attrs = held[0].attrs
        chunk.attrs = {key: attrs[key] for key in {"parquet_types", "separator"} & set(attrs)}
        if "rows" in attrs:
            chunk.attrs["rows"] = RowNumbers(self.rows)
        if "lines" in attrs:
            lines = [part.attrs["lines"].of(part.index.to_numpy()) for part in held]
            chunk.attrs["lines"] = LineNumbers.joined(lines)
        self.fraction = fraction
        self.rows += len(chunk)
        return chunk


Rows: TypeAlias = Any
"""A data frame (pandas, polars, Arrow), a TableReader, or the path of a file."""


def given_rows(rows: Rows) -> pd.DataFrame | TableReader:
    """Converts a user's table to a pandas data frame if it is in memory, or to a TableReader if it
    is a file or path.

    Raises:
        TableError: The input is not a table.
    """
    if isinstance(rows, TableReader):
        return rows
    return TableReader(rows) if isinstance(rows, str | Path) else data_frame(rows)


def given_frame(rows: Rows) -> pd.DataFrame:
    """Converts a user's table to a pandas data frame; a file is read completely.

    Raises:
        TableError: The input is not a table, or the file cannot be read.
    """
    table = given_rows(rows)
    return table.read() if isinstance(table, TableReader) else table


def parsed_chunks(
    rows: Rows, schema: TableSchema, among: range | None = None
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Yields CHUNK_ROWS rows at a time as (original cells, values parsed to the schema's types).

    A table in memory is checked completely before the first chunk is returned. Modelled columns
    that the table does not contain are added as missing cells.

    Args:
        rows: Data frame, TableReader or path of a file.
        among: Range of row indices to parse; None for all rows. Rows before it are still read in a
            text file, and in a Parquet file if they are in the same row group.

    Raises:
        TableError: No modelled column is in the table, or a cell cannot be parsed.
        UnknownColumnError: The table contains a column that is not in the schema.
    """
    rows = given_rows(rows)
    if isinstance(rows, TableReader):
        for chunk in _chunks_among(rows, schema, among):
            whole = with_absent_columns(chunk, schema)
            yield whole, parse_table(in_column_zones(whole, schema), schema)
        return
    if among is not None:
        rows = rows.iloc[among.start : among.stop]
    rows = _with_blank_columns(rows, schema)
    typed = parse_table(in_column_zones(rows, schema), schema)
    for first in range(0, max(len(rows), 1), CHUNK_ROWS):
        at = slice(first, first + CHUNK_ROWS)
        yield rows.iloc[at], typed.iloc[at]


def _with_blank_columns(rows: pd.DataFrame, schema: TableSchema) -> pd.DataFrame:
    """Adds modelled columns that a table in memory does not contain, as missing cells.

    A column without any value counts as absent if its dtype does not show whether the table has
    typed cells or strings. This is so for dtype object. It is also so for dtype float if other
    columns contain numbers or dates as strings.
    """
    modelled = [column.name for column in schema if column.is_modelled and column.name in rows]
    open_ = [name for name in modelled if rows[name].dtype in (object, float)]
    blank = [name for name in open_ if len(rows) and rows[name].isna().all()]
    if len(blank) == len(modelled):
        return with_absent_columns(rows.astype(dict.fromkeys(blank, object)), schema)
    present = [name for name in modelled if name not in blank]
    are_numbers_text = any(
        is_text(rows[name]) and own_dtype(schema[name]) != "object" and not schema[name].holds_text
        for name in present
    )
    floats = [name for name in blank if rows[name].dtype == float and not are_numbers_text]
    typed = blank_columns([schema[name] for name in floats], rows.index, are_typed=True)
    known = with_columns(rows.drop(columns=blank), {name: typed[name] for name in floats})
    whole = with_absent_columns(known, schema)
    return whole[[*rows, *(name for name in whole if name not in rows)]]


def _chunks_among(
    reader: TableReader, schema: TableSchema, among: range | None
) -> Iterator[pd.DataFrame]:
    """Yields the chunks of a file, or only the rows in a range."""
    dropped = {column.name for column in schema if column.drop}
    if among is None:
        yield from reader.chunks(CHUNK_ROWS, dropped=dropped)
        return
    for chunk in reader.chunks(CHUNK_ROWS, among.start, dropped):
        first = reader.rows - len(chunk)
        yield chunk.iloc[: among.stop - first]
        if reader.rows >= among.stop:
            return
