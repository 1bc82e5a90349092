"""Delimited text: bytes to cells exactly as written, and back.

What is no such table is refused with the physical line, counted from 1.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any, Protocol

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from gcvae.delimited_rows import (
    CSV_EXPECTED,
    DelimitedRows,
    TextCells,
    end_of_records,
    refuse_binary,
    refuse_encoding,
    refuse_stray_quotes,
)
from gcvae.errors import Problem, TableError

SEPARATORS = (",", ";", "\t", "|")
SAMPLE_BYTES = 1 << 16  # of the file, from which the separator is told
WINDOW_BYTES = 1 << 24
"""Of the file, read at a time where it is read block by block."""
ROWS_PER_BLOCK = 100_000  # written at a time
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NOT_TEXT = {
    b"PK\x03\x04": "a zip archive or an Excel workbook",
    b"%PDF": "a PDF document",
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"SQLite": "an SQLite database",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
}


class Readable(Protocol):
    """What bytes are read from."""

    def read(self, n_bytes: int, /) -> bytes:
        """At most n_bytes more; none at the end."""
        ...


def read_delimited(data: bytes) -> pd.DataFrame:
    """The cells of a delimited text as a frame of str; `attrs["lines"]` holds their LineNumbers.

    Raises:
        TableError: It is no such table; the problems name the lines.
    """
    (frame,) = delimited_blocks(io.BytesIO(data), window_bytes=len(data) + 1)
    return frame


def delimited_blocks(file: Readable, *, window_bytes: int = WINDOW_BYTES) -> Iterator[pd.DataFrame]:
    """The same, as many rows at a time as a window of the file holds; at least one row in all.

    Raises:
        TableError: It is no such table; rows that were read before are out by then.
    """
    for cells in delimited_cells(file, window_bytes=window_bytes):
        yield cells.frame()


def delimited_cells(file: Readable, *, window_bytes: int = WINDOW_BYTES) -> Iterator[TextCells]:
    """The same as Arrow tables, which hold no object for each cell."""
    window = _read(file, window_bytes).removeprefix(_BYTE_ORDER_MARK)
    _check_text(window)
    ends_in_cr = b"\n" not in window
    if ends_in_cr:
        window = window.replace(b"\r", b"\n")
    separator = _separator(window, is_whole=len(window) < window_bytes)
    names, start, lines = _header(window, separator)
    refuse_stray_quotes(window[:start], separator, 0)
    has_rows, is_whole, held, offset = False, False, window[start:], start
    while not is_whole:
        more = _read(file, max(window_bytes, len(held)))  # an endless cell is not read too often
        is_whole = not more
        held += more.replace(b"\r", b"\n") if ends_in_cr else more
        end = len(held) if is_whole else end_of_records(held, separator)
        rows = DelimitedRows(held[:end], separator, names, lines, offset)
        if end:
            cells = rows.cells()
            if cells.table.num_rows:
                has_rows = True
                yield cells
        lines, offset, held = lines + rows.data.count(b"\n"), offset + end, held[end:]
    if not has_rows:
        raise TableError(Problem("the table has a header but no rows", expected="at least one row"))


def _read(file: Readable, n_bytes: int) -> bytes:
    """As many bytes as there are, up to n_bytes: a pipe gives them in pieces."""
    pieces = []
    while n_bytes and (piece := file.read(n_bytes)):
        pieces.append(piece)
        n_bytes -= len(piece)
    return b"".join(pieces)


def write_delimited(frame: pd.DataFrame, *, header: bool = True) -> Iterator[bytes]:
    """The blocks of a CSV text: commas, LF, quotes only where a cell needs them.

    Args:
        frame: Cells as text.
        header: Begin with the names; without, the text continues one that was begun.
    """
    if header:
        names = [pa.array([str(name)], pa.string()) for name in frame.columns]
        yield _joined(names)
    for start in range(0, len(frame), ROWS_PER_BLOCK):
        block = frame.iloc[start : start + ROWS_PER_BLOCK]
        yield _joined([pa.array(block[name], pa.string()) for name in frame.columns])


def _joined(columns: list[Any]) -> bytes:
    """The rows of these columns as text; an empty single cell is quoted, else it were no row."""
    cells = [_quoted(column, len(columns) == 1) for column in columns]
    rows = pc.binary_join_element_wise(pc.binary_join_element_wise(*cells, ","), "", "\n")
    return "".join(rows.to_pylist()).encode()


def _quoted(cells: Any, alone: bool) -> Any:
    pattern = '[",\r\n]|^$' if alone else '[",\r\n]'
    special = pc.match_substring_regex(cells, pattern)
    if not pc.any(special).as_py():
        return cells
    doubled = pc.replace_substring(cells, '"', '""')
    wrapped = pc.binary_join_element_wise('"', doubled, '"', "")
    return pc.if_else(special, wrapped, cells)


# What is no table


def _check_text(data: bytes) -> None:
    """Refuses a file that does not begin as a delimited text does."""
    for magic, what in _NOT_TEXT.items():
        if data.startswith(magic):
            raise TableError(Problem(f"the file is {what}, not a CSV file", expected=CSV_EXPECTED))
    if not data.strip():
        raise TableError(Problem("the file is empty", expected=CSV_EXPECTED))
    refuse_binary(data, 0)
    if data.lstrip()[:9].lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        raise TableError(Problem("the file is a web page or XML", expected=CSV_EXPECTED))
    if data.lstrip()[:2] in (b'{"', b"[{", b"[[", b"{\n", b"[\n"):
        raise TableError(Problem("the file is JSON, not a CSV file", expected=CSV_EXPECTED))


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


def _header(data: bytes, separator: str) -> tuple[list[str], int, int]:
    """The names, where the rows begin, and how many lines the names take.

    Raises:
        TableError: A name is empty or used twice.
    """
    stream = io.BytesIO(data)
    reader = csv.reader(_decoded(stream, data), delimiter=separator)
    try:
        names = next(record for record in reader if record)
    except csv.Error as error:
        raise TableError(Problem(f"the header can not be read: {error}", line=1)) from None
    _check_names(names, reader.line_num)
    return names, stream.tell(), reader.line_num


def _decoded(stream: io.BytesIO, data: bytes) -> Iterator[str]:
    while line := stream.readline():
        try:
            yield line.decode()
        except UnicodeDecodeError:
            refuse_encoding(data, 0, 0)


def _check_names(names: list[str], line: int) -> None:
    problems = [
        Problem(
            f"the name of column {i + 1} is empty", line=line, expected="a name in every column"
        )
        for i, name in enumerate(names)
        if not name.strip()
    ]
    first = {name: i for i, name in reversed(list(enumerate(names)))}
    problems += [
        Problem(
            f"the name {name!r} is used for columns {first[name] + 1} and {i + 1}",
            line=line,
            expected="every name once",
        )
        for i, name in enumerate(names)
        if name.strip() and first[name] != i
    ]
    if problems:
        raise TableError(*problems)
