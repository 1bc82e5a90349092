"""Delimited text: bytes to cells exactly as written, and back.

What is no such table is refused with the physical line, counted from 1.
"""

from __future__ import annotations

import csv
import io
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from gcvae.errors import Problem, TableError
from gcvae.files.delimited_rows import (
    DelimitedRows,
    LineNumbers,
    QuoteRuns,
    TextCells,
    end_of_records,
    refuse_binary,
    refuse_stray_quotes,
)
from gcvae.files.header_lines import Header, separator_line
from gcvae.files.line_rows import line_rows
from gcvae.files.other_files import CSV_EXPECTED, refuse_other_file
from gcvae.files.text_encodings import DecodedFile, Readable, proposed_encoding
from gcvae.schema.columns import SEPARATORS

SAMPLE_BYTES = 1 << 16  # of the file, from which the separator is found
WINDOW_BYTES = 1 << 24
"""Of the file, read at a time where it is read chunk by chunk."""
ROWS_PER_CHUNK = 100_000  # written at a time
_QUOTE_OR_END = re.compile(rb'"|\r\n|\r|\n')
_MOST_BYTES_OF_ONE = 4  # in UTF-8, of one byte of another encoding
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class ReadSoFar:
    """What is known of a text file that is being read: at least that much is in it.

    Attributes:
        n_bytes: After decompression.
        cell_characters: The fewest that its longest cell can have.
        line: Of the file, from 1, where that cell's row or the next one begins.
    """

    rows: int
    columns: int
    n_bytes: int
    cell_characters: int
    line: int


Check = Callable[[ReadSoFar], None]
"""Raises where a file has more than may be: it is asked before what was read is taken apart."""


def check_nothing(read: ReadSoFar) -> None:
    """Lets every file pass."""


def read_delimited(data: bytes, encoding: str | None = None) -> pd.DataFrame:
    """The cells of a delimited text as a frame of str; `attrs["lines"]` holds their LineNumbers.

    Args:
        encoding: Of the text, Python's name of it; UTF-8 where not given.

    Raises:
        TableError: It is no such table; the problems name the lines.
    """
    whole = _MOST_BYTES_OF_ONE * len(data) + 1
    (frame,) = delimited_chunks(io.BytesIO(data), window_bytes=whole, encoding=encoding)
    return frame


def delimited_chunks(
    file: Readable, *, window_bytes: int = WINDOW_BYTES, encoding: str | None = None
) -> Iterator[pd.DataFrame]:
    """The table of a text file, as many rows at a time as a window holds; at least one row in all.

    Raises:
        TableError: It is no such table; rows that were read before are out by then.
    """
    for cells in delimited_cells(file, window_bytes=window_bytes, encoding=encoding):
        yield cells.frame()


def delimited_cells(
    file: Readable,
    *,
    window_bytes: int = WINDOW_BYTES,
    encoding: str | None = None,
    check: Check = check_nothing,
) -> Iterator[TextCells]:
    """The rows of a text file as Arrow tables, which hold no object for each cell.

    Args:
        check: Sees what was read so far, again and again.
    """
    file = file if encoding is None else DecodedFile(file, encoding)
    window = _read(file, window_bytes).removeprefix(BOM_UTF8)
    _check_text(window)
    ends_in_cr = _ends_in_cr(window)
    if ends_in_cr:
        window = _with_lf(window, file)
    said = separator_line(window)
    separator = said[0] if said else _separator(window, is_whole=len(window) < window_bytes)
    header = Header.read(window, separator, said[1] if said else 0)
    names, start, lines = header.names, header.end, header.lines
    check(ReadSoFar(0, len(names), len(window), 0, lines + 1))
    if start == len(window) >= window_bytes:
        message = f"the header has not ended after {window_bytes} bytes"
        raise TableError(Problem(message, line=1, expected="a line of names"))
    header.check()
    head = window[header.start : start]
    refuse_stray_quotes(head, separator, header.lines_above, QuoteRuns.of(head, separator))
    n_rows, is_whole, held, offset = 0, False, window[start:], start
    are_lines = True  # every row a line, as far as it was read
    while not is_whole:
        more = _read(file, max(window_bytes, len(held)))  # an endless cell is not read too often
        is_whole = not more
        held += _with_lf(more, file) if ends_in_cr else more
        data = held if is_whole else held[: held.rfind(b"\n") + 1]
        table = line_rows(data, separator, names) if data and are_lines else None
        are_lines = are_lines and (table is not None or not data)
        cells = None if table is None else TextCells(table, LineNumbers(lines + 1), separator)
        if not are_lines:
            quotes = QuoteRuns.of(held, separator)
            data = held if is_whole else held[: end_of_records(held, separator, quotes)]
            rows = DelimitedRows(data, separator, names, lines, offset, quotes)
            cells = rows.cells() if data else None
        if cells is not None:
            n_rows += cells.table.num_rows
            longest, line = cells.longest()
            check(ReadSoFar(n_rows, len(names), offset + len(data), longest, line))
            if cells.table.num_rows:
                yield cells
        n_ends = data.count(b"\n") if table is None else table.num_rows - (data[-1:] != b"\n")
        lines, offset, held = lines + n_ends, offset + len(data), held[len(data) :]
        # A row that has not ended has a cell of at least its share of the bytes, in any alphabet.
        begun = len(held) // (_MOST_BYTES_OF_ONE * len(names))
        check(ReadSoFar(n_rows, len(names), offset + len(held), begun, lines + 1))
    if not n_rows:
        raise TableError(Problem("the table has a header but no rows", expected="at least one row"))


def _ends_in_cr(data: bytes) -> bool:
    """Whether the first line that ends outside of quotes ends with a carriage return alone."""
    is_quoted = False
    for found in _QUOTE_OR_END.finditer(data):
        if found[0] == b'"':
            is_quoted = not is_quoted
        elif not is_quoted:
            return found[0] == b"\r"
    return b"\n" not in data


def _with_lf(data: bytes, file: Readable) -> bytes:
    """The bytes with a line feed for each carriage return that stands alone."""
    while data.endswith(b"\r") and (more := _read(file, 1)):
        data += more
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def _read(file: Readable, n_bytes: int) -> bytes:
    """As many bytes as there are, up to n_bytes: a pipe gives them in chunks."""
    chunks = []
    while n_bytes and (chunk := file.read(n_bytes)):
        chunks.append(chunk)
        n_bytes -= len(chunk)
    return b"".join(chunks)


def write_delimited(
    frame: pd.DataFrame, *, separator: str = ",", header: bool = True
) -> Iterator[bytes]:
    """The chunks of a delimited text: LF, quotes only where a cell needs them.

    Args:
        frame: Cells as text.
        separator: Between the cells.
        header: Begin with the names; without, the text continues one that was begun.
    """
    if header:
        yield delimited_header(frame.columns, separator)
    for start in range(0, len(frame), ROWS_PER_CHUNK):
        chunk = frame.iloc[start : start + ROWS_PER_CHUNK]
        columns = [pa.array(chunk[name], pa.string()) for name in frame.columns]
        yield delimited_rows(columns, separator)


def delimited_header(names: Iterable[Any], separator: str) -> bytes:
    """The first line of a delimited text."""
    return delimited_rows([pa.array([str(name)], pa.string()) for name in names], separator)


def delimited_rows(columns: Sequence[Any], separator: str) -> bytes:
    """The rows of these columns as text; an empty single cell is quoted, else it were no row.

    Args:
        columns: Arrow arrays of strings, none null, or dictionaries of such.
        separator: Between the cells.
    """
    pattern = f'["\r\n{separator}]' + ("|^$" if len(columns) == 1 else "")
    *cells, last = (_quoted(column, pattern) for column in columns)
    rows = pc.binary_join_element_wise(*cells, _ended(last), separator)
    _, ends, text = rows.buffers()
    if text is None:
        return b""
    first, size = rows.offset, len(rows)
    at = np.frombuffer(ends, dtype=np.int32)[[first, first + size]]
    return bytes(memoryview(text)[at[0] : at[1]])


def _ended(cells: Any) -> Any:
    """The cells with the end of the row."""
    return pc.binary_join_element_wise(cells, "\n", "")


def _quoted(cells: Any, pattern: str) -> Any:
    """The cells as strings, in quotes where they match; of a dictionary each text is asked once."""
    if pa.types.is_dictionary(cells.type):
        return _quoted(cells.dictionary, pattern).take(cells.indices)
    special = pc.match_substring_regex(cells, pattern)
    if not pc.any(special).as_py():
        return cells
    doubled = pc.replace_substring(cells, '"', '""')
    wrapped = pc.binary_join_element_wise('"', doubled, '"', "")
    return pc.if_else(special, wrapped, cells)


# What is no table


def _check_text(data: bytes) -> None:
    """Refuses a file that does not begin as a delimited text does."""
    refuse_other_file(data)
    if data.startswith(_UTF_16_MARKS):
        expected = f"{CSV_EXPECTED}; or {proposed_encoding(data, 0)}"
        raise TableError(Problem("the file is text in UTF-16", expected=expected))
    if not data.strip():
        raise TableError(Problem("the file is empty", expected=CSV_EXPECTED))
    refuse_binary(data, 0)


def _separator(data: bytes, *, is_whole: bool) -> str:
    """The separator under which most records have as many cells as the header."""
    sample = data[:SAMPLE_BYTES]
    whole = is_whole and len(sample) == len(data)
    lines = sample.decode("utf-8", "replace").splitlines(keepends=True)
    scores = {
        separator: _consistency(lines if whole else lines[:-1] or lines, separator)
        for separator in SEPARATORS
    }
    return max(SEPARATORS, key=lambda separator: scores[separator])


def _consistency(lines: list[str], separator: str) -> tuple[float, int]:
    """The share of records as wide as the header, and that width; nothing for a single column."""
    try:
        records = [record for record in csv.reader(lines, delimiter=separator) if record]
    except csv.Error:
        return 0.0, 0
    width = len(records[0]) if records else 0
    if width < 2:
        return 0.0, 0
    return sum(len(record) == width for record in records) / len(records), width
