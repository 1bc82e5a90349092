"""Reads delimited text in chunks of rows, with every cell exactly as written.

    for rows in text_rows(file): rows.table      # strings, none of them null

Arrow parses the cells; `records` finds the ends of records and their lines. Only the separator is
inferred. Invalid text raises an error that names the line.
"""

from __future__ import annotations

import csv
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from gcvae.errors import EmptyTableError, Problem, TableError
from gcvae.files.header_lines import MOST_PROBLEMS, check_names, read_names, separator_line
from gcvae.files.other_files import CSV_EXPECTED, refuse_other_file
from gcvae.files.records import (
    LineNumbers,
    end_of_record,
    end_of_records,
    n_line_ends,
    record_lines,
    refuse_stray_quotes,
)
from gcvae.files.text_encodings import (
    DecodedFile,
    Readable,
    proposed_encoding,
    refuse_encoding,
)
from gcvae.schema.columns import SEPARATORS

WINDOW_BYTES = 1 << 23
"""Number of bytes of a file that are read at a time."""
_SAMPLE_BYTES = 1 << 16  # bytes in which the separator is inferred
_BLOCK_BYTES = 1 << 20  # bytes parsed at once, within the cache
_MOST_BYTES_OF_ONE = 4  # maximum bytes of a character in UTF-8
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class ReadSoFar:
    """Statistics of the part of a text file that has been read, by which a caller may stop the
    reading of files that are too large.

    Attributes:
        rows: Number of rows.
        columns: Number of columns.
        n_bytes: Number of uncompressed bytes.
        cell_characters: Lower bound on the length of the longest cell, which may be incomplete.
        line: Line, counted from 1, at which the row with the longest cell begins.
    """

    rows: int
    columns: int
    n_bytes: int
    cell_characters: int
    line: int


Check = Callable[[ReadSoFar], None]
"""Function that receives statistics of the text read so far, and may raise an exception if the file
exceeds limits."""


@dataclass(frozen=True)
class TextRows:
    """Consecutive rows of a delimited text file, with every cell as written.

    Attributes:
        table: Cells: an Arrow table of strings without nulls.
        lines: Line number of each row.
        separator: Character between the cells of the file.
    """

    table: Any
    lines: LineNumbers
    separator: str

    def __len__(self) -> int:
        """Returns the number of rows."""
        return int(self.table.num_rows)

    def frame(self) -> pd.DataFrame:
        """Returns the cells as a data frame of strings; its `attrs` contain the line number of each
        row and the separator of the file."""
        frame: pd.DataFrame = self.table.to_pandas()
        frame.attrs |= {"lines": self.lines, "separator": self.separator}
        return frame

    def longest(self) -> tuple[int, int]:
        """Returns (length of the longest cell in characters, line at which its row begins in the
        file); the length is 0 if all cells are empty."""
        most, row = 0, 0
        for column in self.table.columns:
            if not pc.greater(pc.max(pc.binary_length(column)), most).as_py():
                continue  # not longer in bytes, and so not in characters
            lengths = pc.utf8_length(column)
            if (length := pc.max(lengths).as_py()) > most:
                most, row = length, pc.index(lengths, length).as_py()
        return most, self.lines[row] or 0


def joined(chunks: Sequence[TextRows]) -> TextRows:
    """Concatenates consecutive chunks of rows of one file, of which there is at least one."""
    table = pa.concat_tables([chunk.table for chunk in chunks])
    lines = LineNumbers.joined([chunk.lines for chunk in chunks])
    return TextRows(table, lines, chunks[0].separator)


def text_rows(
    file: Readable,
    *,
    window_bytes: int = WINDOW_BYTES,
    encoding: str | None = None,
    check: Check | None = None,
) -> Iterator[TextRows]:
    """Yields the rows of a delimited text file in chunks: after each `window_bytes` bytes, the rows
    that are complete.

    Args:
        file: Stream of bytes.
        window_bytes: Number of bytes that are read at a time.
        encoding: Python's name of the encoding; None for UTF-8.
        check: Function that receives statistics of the text read so far, and may raise an exception
            to stop.

    Raises:
        TableError: The text is not a table or has no rows; rows before the error may already have
            been returned.
    """
    text = _TextFile(file if encoding is None else DecodedFile(file, encoding), check)
    window = text.more(window_bytes).removeprefix(BOM_UTF8)
    _refuse_no_text(window)
    named = separator_line(window)
    text.separator, start = named or (_separator(window, is_whole=text.is_at_end), 0)
    start = len(window) - len(window[start:].lstrip(b"\r\n"))
    text.pass_over(window[:start])
    header, held = text.split_header(window[start:])
    line = text.line
    text.names = read_names(header, text.separator, line, start)
    text.pass_over(header)
    text.report()
    check_names(text.names, text.line - 1)
    while True:
        if text.is_at_end and not held.endswith((b"\n", b"\r")):
            held += b"\n"  # the last line may have none
        data, held = text.whole_records(held)
        rows = text.rows(data) if data.lstrip(b"\r\n") else None
        text.pass_over(data)
        text.report(rows, held)
        if rows is not None:
            yield rows
        if text.is_at_end:
            break
        held += text.more(max(window_bytes, len(held)))  # doubling avoids rescans of long cells
    text.refuse_open_quote(held)
    if not text.n_rows:
        empty = Problem("the table has a header but no rows", expected="at least one row")
        error = EmptyTableError(empty)
        error.names = tuple(text.names)
        raise error


class _TextFile:
    """A text file that is read in windows of bytes, and the position at which its next record (row)
    begins.

    Attributes:
        separator: Character between the cells.
        names: Names of the columns.
        line: Line of the next record, counted from 1.
        n_rows: Number of rows before it.
        is_at_end: Whether all bytes have been read.
    """

    def __init__(self, file: Readable, check: Check | None) -> None:
        self._file, self._check = file, check
        self._n_bytes = 0  # read so far
        self._offset = 0  # of the next record
        self.separator, self.names = "", list[str]()
        self.line, self.n_rows = 1, 0
        self.is_at_end = False

    def more(self, n_bytes: int) -> bytes:
        """Reads up to `n_bytes` further bytes; a CR and its LF are not separated."""
        chunks = []
        while n_bytes > 0 and not self.is_at_end:  # a pipe returns them in chunks
            chunks.append(self._file.read(n_bytes))
            self.is_at_end = not chunks[-1]
            n_bytes = max(n_bytes - len(chunks[-1]), int(chunks[-1].endswith(b"\r")))
        data = b"".join(chunks)
        self._n_bytes += len(data)
        return data

    def pass_over(self, data: bytes) -> None:
        """Moves the position to the end of `data`, which begins at the position."""
        self.line += n_line_ends(data)
        self._offset += len(data)

    def report(self, rows: TextRows | None = None, held: bytes = b"") -> None:
        """Passes statistics of the file so far to the caller's check function. `rows` are those
        since the last call, `held` the bytes of the incomplete row at the end."""
        self.n_rows += 0 if rows is None else len(rows)
        if self._check is None:
            return
        # At least one cell of an incomplete row has the mean number of bytes per column, and
        # a character has at most four bytes.
        begun = len(held) // (_MOST_BYTES_OF_ONE * len(self.names))
        longest = (0, 0) if rows is None else rows.longest()
        most, line = max(longest, (begun, self.line))
        self._check(ReadSoFar(self.n_rows, len(self.names), self._n_bytes, most, line))

    def split_header(self, window: bytes) -> tuple[bytes, bytes]:
        """Splits bytes of the file that begin with its header line into (header line, the bytes
        after it).

        Raises:
            TableError: The line is incomplete, or is not a header.
        """
        _refuse_binary(window, self.line)
        end = end_of_record(window, self.separator)
        if end is None and self.is_at_end:
            window += b"\n"
            end = end_of_record(window, self.separator)
        if end is not None:
            return window[:end], window[end:]
        refuse_stray_quotes(window, self.separator, self.line)
        if self.is_at_end:
            self.refuse_open_quote(window)
        message = f"the header has not ended after {len(window)} bytes"
        raise TableError(Problem(message, line=self.line, expected="a line of names"))

    def whole_records(self, held: bytes) -> tuple[bytes, bytes]:
        """Splits bytes that begin at the position into (complete records, the bytes after them,
        which may begin another record)."""
        end = end_of_records(held, self.separator)
        data, rest = held[:end], held[end:]
        if b'"' in rest:
            refuse_stray_quotes(rest, self.separator, self.line + n_line_ends(data))
        return data, rest

    def refuse_open_quote(self, rest: bytes) -> None:
        """Raises a TableError if bytes are left after the last record, because a quote is never
        closed."""
        if rest:
            message = "a quote opened in this row is never closed"
            raise TableError(Problem(message, line=self.line, expected='a closing "'))

    def rows(self, data: bytes) -> TextRows:
        """Parses bytes of the file: complete records, the first of which is the next record that
        has not been parsed.

        Raises:
            TableError: A record is invalid; errors name the lines.
        """
        _refuse_binary(data, self.line)
        try:
            table = self._parsed(data, _BLOCK_BYTES)
        except pa.ArrowInvalid:  # some records are longer than a block, or invalid
            table = self._parsed_or_refused(data)
        lines = record_lines(data, self.separator, self.line, table.num_rows)
        return TextRows(table, lines, self.separator)

    def _parsed(self, data: bytes, block_bytes: int, handler: Any = None) -> Any:
        return arrow_csv.read_csv(
            pa.BufferReader(data),
            arrow_csv.ReadOptions(
                column_names=self.names,
                block_size=block_bytes,
                use_threads=handler is None,  # with threads, errors do not give row numbers
            ),
            arrow_csv.ParseOptions(
                delimiter=self.separator,
                newlines_in_values=b'"' in data,
                invalid_row_handler=handler,
            ),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(self.names, pa.string()),
                strings_can_be_null=False,
                quoted_strings_can_be_null=False,
                check_utf8=not data.isascii(),
            ),
        )

    def _parsed_or_refused(self, data: bytes) -> Any:
        refuse_encoding(data, self.line, self._offset)
        ragged: list[Any] = []

        def skip(row: Any) -> str:
            ragged.append(row)
            return "skip"

        table = self._parsed(data, len(data) + 1, skip)
        if ragged:
            raise TableError(*self._ragged(data, table.num_rows, ragged))
        return table

    def _ragged(self, data: bytes, n_others: int, ragged: list[Any]) -> list[Problem]:
        """Returns the problems of rows that have more or fewer cells than the header.

        Args:
            data: Complete records, which begin at the position.
            n_others: Number of rows in `data` with as many cells as the header.
            ragged: All other rows in `data`, as Arrow reports them.
        """
        width, line = len(self.names), self.line
        line_of = record_lines(data, self.separator, line, n_others + len(ragged))
        problems = []
        for row in ragged[:MOST_PROBLEMS]:
            message = f"{_cells(row.actual_columns)}, where the header has {_cells(width)}"
            start = line_of[row.number - 1] or 0
            end = start + n_line_ends(row.text.encode())
            if end > start + 100:
                message += f"; a quote opened there stays open to line {end}"
            expected = f"{_cells(width)}; a {self.separator!r} within a cell needs quotes around it"
            if width == 1:
                expected = f"columns separated by one of {' '.join(map(repr, SEPARATORS))}"
            problems.append(Problem(message, line=start, expected=expected))
        widths = Counter(row.actual_columns for row in ragged)
        usual, n_usual = widths.most_common(1)[0]
        if line == 2 and usual > width and n_usual > max(n_others, 0.9 * len(ragged)):
            first = next(row.number for row in ragged if row.actual_columns == usual)
            message = f"the first line has {_cells(width)}, but most rows have {usual}"
            expected = (
                "the names of the columns first: if they stand in line "
                f"{line_of[first - 1]}, without those above"
            )
            problems = [Problem(message, line=1, expected=expected), *problems]
        n_more = len(ragged) - MOST_PROBLEMS
        if n_more > 0:
            problems.append(Problem(f"{n_more} more rows have another number of cells"))
        return problems


def _cells(n: int) -> str:
    return f"{n} cell" if n == 1 else f"{n} cells"


def _refuse_no_text(data: bytes) -> None:
    refuse_other_file(data)
    if data.startswith(_UTF_16_MARKS):
        expected = f"{CSV_EXPECTED}; or {proposed_encoding(data, 0)}"
        raise TableError(Problem("the file is text in UTF-16", expected=expected))
    if not data.strip():
        raise TableError(Problem("the file is empty", expected=CSV_EXPECTED))
    _refuse_binary(data, 1)


def _refuse_binary(data: bytes, line: int) -> None:
    """Raises a TableError if the data, which begins at the line `line` of the file, contains a NUL
    byte."""
    nul = data.find(b"\0")
    if nul < 0:
        return
    message = "the file is binary, not a CSV file"
    expected = f"{CSV_EXPECTED}; or name its encoding, if it is utf-16-le or utf-16-be"
    line += n_line_ends(data[:nul])
    raise TableError(Problem(message, line=line, expected=expected))


def _separator(data: bytes, *, is_whole: bool) -> str:
    """Returns the separator with which most records have as many cells as the header. Unless
    `is_whole`, `data` is only the beginning of the file, and its last line is ignored as
    incomplete."""
    sample = data[:_SAMPLE_BYTES]
    whole = is_whole and len(sample) == len(data)
    lines = sample.decode("utf-8", "replace").splitlines(keepends=True)
    scores = {
        separator: _consistency(lines if whole else lines[:-1] or lines, separator)
        for separator in SEPARATORS
    }
    return max(SEPARATORS, key=lambda separator: scores[separator])


def _consistency(lines: list[str], separator: str) -> tuple[float, int]:
    """Returns (share of records with as many cells as the header, that number of cells); (0, 0) for
    a single column."""
    try:
        records = [record for record in csv.reader(lines, delimiter=separator) if record]
    except csv.Error:
        return 0.0, 0
    width = len(records[0]) if records else 0
    if width < 2:
        return 0.0, 0
    return sum(len(record) == width for record in records) / len(records), width
