"""Rows of a delimited text: whole records of a file, header taken off, as cells.

Nothing is inferred: every cell is the text between two separators, quotes taken off. Rows that are
none are refused with their physical line in the file, counted from 1.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from gcvae.arrays import Mask
from gcvae.errors import Problem, TableError
from gcvae.files.line_rows import is_utf_8
from gcvae.files.other_files import CSV_EXPECTED
from gcvae.files.text_encodings import looks_like_utf_16, proposed_encoding

MOST_PROBLEMS = 10  # ragged rows that are listed one by one


class LineNumbers:
    """The physical line at which each row of a file begins, by the row's index label.

    It stays itself when a frame's attributes are copied, and serves every part of the frame.
    """

    def __init__(self, first: int, starts: npt.NDArray[np.int64] | None = None) -> None:
        """Rows follow each other line by line from `first`, or begin at `starts`."""
        self._first = first
        self._starts = starts

    def __getitem__(self, label: Any) -> int | None:
        """The line of the row with that label; None where it is no row of the file."""
        if not isinstance(label, int | np.integer) or label < 0:
            return None
        if self._starts is None:
            return self._first + int(label)
        return int(self._starts[label]) if label < len(self._starts) else None

    def __deepcopy__(self, memo: object) -> LineNumbers:
        """The object itself, which nothing changes."""
        return self

    def of_rows(self, labels: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The lines of rows of the file, by their labels."""
        return self._first + labels if self._starts is None else self._starts[labels]


@dataclass(frozen=True)
class TextCells:
    """Rows of cells as text.

    Attributes:
        table: An Arrow table of strings, none of them null.
        lines: Of its rows.
        separator: Between the cells, in the file.
    """

    table: Any
    lines: LineNumbers
    separator: str

    def longest(self) -> tuple[int, int]:
        """The characters of the longest cell, and its line; 0 and the first line of no rows."""
        most, row = 0, 0
        for column in self.table.columns:
            if not pc.greater(pc.max(pc.binary_length(column)), most).as_py():
                continue  # no longer in bytes, so neither in characters
            lengths = pc.utf8_length(column)
            if (length := pc.max(lengths).as_py()) > most:
                most, row = length, pc.index(lengths, length).as_py()
        return most, self.lines[row] or 0

    def frame(self) -> pd.DataFrame:
        """The cells as a frame of str, with its `lines` and its `separator` among the attrs."""
        frame: pd.DataFrame = self.table.to_pandas()
        frame.attrs |= {"lines": self.lines, "separator": self.separator}
        return frame


@dataclass(frozen=True)
class DelimitedRows:
    """Whole records of a file.

    Attributes:
        data: Their bytes.
        names: Of the columns.
        lines: Physical lines of the file before them.
        offset: Bytes of the file before them.
        quotes: Of the data, or of more that begins with it.
    """

    data: bytes
    separator: str
    names: Sequence[str]
    lines: int
    offset: int
    quotes: QuoteRuns

    def cells(self) -> TextCells:
        """The cells as text.

        Raises:
            TableError: They are no such rows; the problems name the lines.
        """
        refuse_binary(self.data, self.lines)
        refuse_stray_quotes(self.data, self.separator, self.lines, self.quotes)
        table = self._parsed()
        if table.num_rows:
            self._check_quotes(table)
        return TextCells(table, self._line_numbers(table), self.separator)

    def _parsed(self) -> Any:
        """The rows as an Arrow table of strings."""
        if not self.data.strip(b"\r\n"):
            return pa.table({name: pa.array([], pa.string()) for name in self.names})
        self._check_encoding()  # Arrow could not hand ragged rows over, and only prints that
        ragged: list[int | None] = []

        def note(row: Any) -> str:
            ragged.append(row.number)
            return "skip"

        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(self.data),
                arrow_csv.ReadOptions(
                    column_names=list(self.names), block_size=_block_bytes(self.data)
                ),
                arrow_csv.ParseOptions(
                    delimiter=self.separator,
                    newlines_in_values=b'"' in self.data,
                    invalid_row_handler=note,
                ),
                arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(self.names, pa.string()),
                    strings_can_be_null=False,
                    quoted_strings_can_be_null=False,
                ),
            )
        except pa.ArrowInvalid as error:
            raise TableError(*self._ragged(), str(error)) from None
        if ragged:
            raise TableError(*self._ragged())
        return table

    def _check_encoding(self) -> None:
        if not is_utf_8(self.data):
            self._refuse_encoding()

    def _refuse_encoding(self) -> NoReturn:
        refuse_encoding(self.data, self.lines, self.offset)

    def _check_quotes(self, table: Any) -> None:
        """Refuses a text whose last cell was opened by a quote that nothing closes."""
        last = table.column(table.num_columns - 1)[table.num_rows - 1].as_py()
        if "\n" not in last or self.data.rstrip(b"\r\n").endswith(b'"'):
            return
        opened = self.lines + 1
        for line, _, _ in self._records():  # as far as Python's reader takes them
            opened = line
        message = "a quote opened in this row is never closed"
        raise TableError(Problem(message, line=opened, expected='a closing "'))

    def _ragged(self) -> list[Problem]:
        """The rows that have another number of cells than the header has names."""
        width = len(self.names)
        problems = []
        lines_of: dict[int, list[int]] = {}
        for line, end, record in self._records():
            lines_of.setdefault(len(record), []).append(line)
            if len(record) == width:
                continue
            message = f"{_cells(len(record))}, where the header has {_cells(width)}"
            if record and "\n" in record[-1] and end > line + 100:
                message += f"; a quote opened there stays open to line {end}"
            expected = f"{_cells(width)}; a {self.separator!r} within a cell needs quotes around it"
            problems.append(Problem(message, line=line, expected=expected))
        if not problems:  # the row stands behind a cell that Python's reader does not take
            return [self._unread()]
        usual = max(lines_of, key=lambda n: len(lines_of[n]), default=width)
        if usual > width and len(lines_of[usual]) > 0.9 * len(problems) and not self.lines > 1:
            problems.insert(0, _lines_above(width, usual, lines_of[usual][0]))
        if len(problems) <= MOST_PROBLEMS:
            return problems
        rest = len(problems) - MOST_PROBLEMS
        more = Problem(f"{rest} more rows have another number of cells")
        return [*problems[:MOST_PROBLEMS], more]

    def _unread(self) -> Problem:
        """The first row that Python's reader does not take, in a text of rows of another width."""
        reader = csv.reader(self._decoded(), delimiter=self.separator)
        line, text = 0, ""
        try:
            for _ in reader:
                line = reader.line_num
        except csv.Error as error:
            text = str(error)
        cells = _cells(len(self.names))
        if "new-line" in text:
            message = "a carriage return stands alone within a row"
            expected = f"{cells} in every row; quotes around a cell that has a carriage return"
        else:
            limit = csv.field_size_limit()
            message = "from here on a row has another number of cells than the header"
            expected = f"{cells} in every row, none of over {limit:,} characters"
        return Problem(message, line=self.lines + line + 1, expected=expected)

    def _records(self) -> Iterator[tuple[int, int, list[str]]]:
        """The first line, the last line and the cells of each row."""
        reader = csv.reader(self._decoded(), delimiter=self.separator)
        last = 0
        while True:
            try:
                record = next(reader)
            except (StopIteration, csv.Error):
                return
            if record:
                yield self.lines + last + 1, self.lines + reader.line_num, record
            last = reader.line_num

    def _decoded(self) -> Iterator[str]:
        for line in io.BytesIO(self.data):
            try:
                yield line.decode()
            except UnicodeDecodeError:
                self._refuse_encoding()

    def _line_numbers(self, table: Any) -> LineNumbers:
        first, body = self.lines + 1, self.data.rstrip(b"\r\n")
        if body[:1] in (b"\r", b"\n") or b"\n\n" in body or b"\n\r\n" in body:
            starts = [line for line, _, _ in self._records()]
            return LineNumbers(first, np.array(starts, dtype=np.int64))
        if b'"' not in body:
            return LineNumbers(first)
        if body.count(b"\n") + 1 == table.num_rows:
            return LineNumbers(first)
        inner = np.zeros(table.num_rows, dtype=np.int64)
        for column in table.columns:
            inner += pc.count_substring(column, "\n").to_numpy()
        earlier = np.cumsum(inner) - inner
        return LineNumbers(first, first + np.arange(table.num_rows) + earlier)


def _lines_above(width: int, usual: int, line: int) -> Problem:
    message = f"the first line has {_cells(width)}, but most rows have {usual}"
    expected = f"the names of the columns first: if they stand in line {line}, without those above"
    return Problem(message, line=1, expected=expected)


def refuse_binary(data: bytes, lines: int) -> None:
    """Lets text pass that has no NUL bytes; `lines` of the file are before it.

    Raises:
        TableError: It has some.
    """
    nul = data.find(b"\0")
    if nul >= 0:
        line = lines + data.count(b"\n", 0, nul) + 1
        if not lines and (proposed := looks_like_utf_16(data)):
            message, expected = (
                "the file has a NUL byte in every character",
                f"{CSV_EXPECTED}; or name its encoding, {proposed} by the look of it",
            )
            raise TableError(Problem(message, line=line, expected=expected))
        message = "the file is binary, not a CSV file"
        raise TableError(Problem(message, line=line, expected=CSV_EXPECTED))


_UTF_8 = 'UTF-8, as spreadsheets save it under "CSV UTF-8"'


def refuse_encoding(data: bytes, lines: int, offset: int) -> NoReturn:
    """Says where the text stops being UTF-8.

    Args:
        data: A text that is not UTF-8.
        lines: Lines of the file before it.
        offset: Bytes of the file before it.
    """
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = lines + data.count(b"\n", 0, error.start) + 1
        place = offset + error.start
        raise TableError(
            Problem(
                f"byte 0x{data[error.start]:02x} at offset {place} is not UTF-8",
                line=line,
                expected=f"{_UTF_8}; {proposed_encoding(data, error.start)}",
            )
        ) from None
    raise AssertionError("the text is UTF-8")


def refuse_stray_quotes(data: bytes, separator: str, lines: int, quotes: QuoteRuns) -> None:
    """Lets text pass whose quoted cells end with their closing quote, spaces after it aside.

    Of `"x"y` readers make `xy`, `x` or `"x"y`: nobody knows what was meant.

    Args:
        data: Begins with a record.
        separator: Of its cells.
        lines: Of the file, before it.
        quotes: Of the data, or of more that begins with it.

    Raises:
        TableError: Something else follows a closing quote.
    """
    if not quotes.may_be_stray(len(data)):
        return
    after = re.compile(rb" *+[^ \r\n" + re.escape(separator.encode()) + rb"]")
    for cell in _quoted_cells(separator).finditer(data):
        if cell[1] and (found := after.match(data, cell.end())):
            line = lines + data.count(b"\n", 0, found.end()) + 1
            expected = f'{separator!r} or the line\'s end, or "" for a quote within quotes'
            raise TableError(Problem("text follows a closing quote", line=line, expected=expected))


@dataclass(frozen=True)
class QuoteRuns:
    """The runs of quotes of a text that begins with a record, found without reading cell by cell.

    Shape: first, last (r,), places of each run's first and last quote.

    Attributes:
        begins, ends: Whether the run stands right behind, right before a separator, a line's end or
            an end of the text. Shape: (r,).
    """

    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    begins: Mask
    ends: Mask

    @classmethod
    def of(cls, data: bytes, separator: str) -> QuoteRuns:
        """Those of the data."""
        text = np.frombuffer(data, dtype=np.uint8)
        quotes = _places(text, ord('"'))
        are_apart = np.diff(quotes) > 1
        first = quotes[np.append(True, are_apart)[: len(quotes)]]
        last = quotes[np.append(are_apart, True)[: len(quotes)]]
        is_between = np.zeros(256, dtype=bool)
        is_between[[ord(separator), ord("\r"), ord("\n")]] = True
        begins = (first == 0) | is_between[text[first - 1]]
        ends = (last == len(data) - 1) | is_between[text.take(last + 1, mode="clip")]
        return cls(first, last, begins, ends)

    def may_be_stray(self, end: int) -> bool:
        """False where no text follows a closing quote before the place `end`, where a record ends.

        A run before text closes a cell if it stands within one and is odd, or begins one and is
        even.
        """
        is_even = (self.last - self.first) & 1 == 1
        return bool((~self.ends & (is_even == self.begins) & (self.last < end)).any())

    def places_outside(self) -> npt.NDArray[np.int64] | None:
        """Where a text is outside quoted cells: from each even to the next odd of these places.

        None where a quote within a cell that is not quoted makes the count of quotes say nothing.
        """
        lengths = self.last - self.first + 1
        is_outside = (np.cumsum(lengths) - lengths) & 1 == 0
        if not self.begins[is_outside].all():
            return None
        turns = lengths & 1 == 1
        places: npt.NDArray[np.int64] = np.where(is_outside, self.first, self.last)[turns]
        return places


def _places(text: npt.NDArray[np.uint8], character: int) -> npt.NDArray[np.int64]:
    """Where a character stands. Shape: (n,) -> (k,). Block by block: blocks stay in the cache."""
    starts = range(0, max(len(text), 1), 1 << 18)
    return np.concatenate(
        [np.flatnonzero(text[start : start + (1 << 18)] == character) + start for start in starts]
    )


def _quoted_cells(separator: str) -> re.Pattern[bytes]:
    """Quoted cells with what is before them; group 1 is the closing quote, or the text's end."""
    before = re.escape(separator.encode())
    return re.compile(rb"(?:\A|[\r\n" + before + rb'])"[^"]*+(?:""[^"]*+)*+("|\Z)')


def end_of_records(data: bytes, separator: str, quotes: QuoteRuns) -> int:
    """Where the last whole record of a text ends that may go on; 0 where none does.

    `data` begins with a record. A line's end within quotes is none of a record: a quoted cell
    begins with a quote right after a separator or a line's end.
    """
    turns = quotes.places_outside()
    if turns is not None:
        return _last_line_end(data, turns) + 1
    end = outside = 0
    for cell in _quoted_cells(separator).finditer(data):
        end = max(end, data.rfind(b"\n", outside, cell.start() + 1) + 1)
        outside = cell.end()
    # The last cell may go on: were its closing quote the last byte, the next may be another.
    return max(end, data.rfind(b"\n", outside) + 1)


def _last_line_end(data: bytes, turns: npt.NDArray[np.int64]) -> int:
    """The place of the last line's end that an even number of turns precede; -1 where none does."""
    stop = len(data)
    for n_turns in range(len(turns), -1, -1):
        start = int(turns[n_turns - 1]) if n_turns else 0
        if n_turns % 2 == 0 and (found := data.rfind(b"\n", start, stop)) >= 0:
            return found
        stop = start
    return -1


def _cells(n: int) -> str:
    return f"{n} cell" if n == 1 else f"{n} cells"


def _block_bytes(data: bytes) -> int:
    """Blocks large enough for long quoted cells, and small enough to share out."""
    return max(1 << 20, min(len(data), 1 << 26)) + 1
