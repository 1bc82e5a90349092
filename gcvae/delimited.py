"""Delimited text: bytes to cells exactly as written, and back.

Nothing is inferred: every cell is the text between two separators, quotes taken off. What is no
such table is refused with the physical line, counted from 1.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from gcvae.errors import Problem, TableError

SEPARATORS = (",", ";", "\t", "|")
MOST_PROBLEMS = 10  # ragged rows that are listed one by one
SAMPLE_BYTES = 1 << 16  # of the file, from which the separator is told
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
_CSV_EXPECTED = "a CSV file in UTF-8 with a header row"


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
        """Itself."""
        return self


def read_delimited(data: bytes) -> pd.DataFrame:
    """The cells of a delimited text as a frame of str; `attrs["lines"]` holds their LineNumbers.

    Raises:
        TableError: It is no such table; the problems name the lines.
    """
    data = _checked(data)
    separator = _separator(data)
    names, start, lines = _header(data, separator)
    table = _parse(data, start, names, separator, lines)
    if not table.num_rows:
        raise TableError(Problem("the table has a header but no rows", expected="at least one row"))
    _check_quotes(data, start, lines, separator, table)
    frame: pd.DataFrame = table.to_pandas()
    frame.attrs["lines"] = _line_numbers(data, start, lines, separator, table)
    return frame


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


def _checked(data: bytes) -> bytes:
    """The text without its byte order mark, its lines ended by LF or CR LF."""
    data = data.removeprefix(_BYTE_ORDER_MARK)
    for magic, what in _NOT_TEXT.items():
        if data.startswith(magic):
            raise TableError(Problem(f"the file is {what}, not a CSV file", expected=_CSV_EXPECTED))
    if not data.strip():
        raise TableError(Problem("the file is empty", expected=_CSV_EXPECTED))
    nul = data.find(b"\0")
    if nul >= 0:
        line = data.count(b"\n", 0, nul) + 1
        raise TableError(
            Problem("the file is binary, not a CSV file", line=line, expected=_CSV_EXPECTED)
        )
    if data.lstrip()[:9].lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        raise TableError(Problem("the file is a web page or XML", expected=_CSV_EXPECTED))
    if data.lstrip()[:2] in (b'{"', b"[{", b"[[", b"{\n", b"[\n"):
        raise TableError(Problem("the file is JSON, not a CSV file", expected=_CSV_EXPECTED))
    return data.replace(b"\r", b"\n") if b"\n" not in data else data


def _refuse_encoding(data: bytes) -> NoReturn:
    """Says where the text stops being UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TableError(
            Problem(
                f"byte 0x{data[error.start]:02x} at offset {error.start} is not UTF-8",
                line=line,
                expected="UTF-8; the file may be in Windows-1252 or Latin-1: save it as UTF-8",
            )
        ) from None
    raise AssertionError("the text is UTF-8")


def _separator(data: bytes) -> str:
    """The separator under which most records have as many cells as the header."""
    sample = data[:SAMPLE_BYTES]
    whole = len(sample) == len(data)
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
            _refuse_encoding(data)


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


# Rows


def _parse(data: bytes, start: int, names: list[str], separator: str, lines: int) -> Any:
    """The rows as an Arrow table of strings."""
    if not data[start:].strip(b"\r\n"):
        return pa.table({name: pa.array([], pa.string()) for name in names})
    ragged: list[int | None] = []

    def note(row: Any) -> str:
        ragged.append(row.number)
        return "skip"

    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(memoryview(data)[start:]),
            arrow_csv.ReadOptions(column_names=names, block_size=_block_bytes(data)),
            arrow_csv.ParseOptions(
                delimiter=separator,
                newlines_in_values=b'"' in data,
                invalid_row_handler=note,
            ),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=False,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        if "UTF8" in str(error):
            _refuse_encoding(data)
        raise TableError(*_ragged(data, start, lines, separator, len(names)), str(error)) from None
    if ragged:
        raise TableError(*_ragged(data, start, lines, separator, len(names)))
    return table


def _check_quotes(data: bytes, start: int, lines: int, separator: str, table: Any) -> None:
    """Refuses a text whose last cell was opened by a quote that nothing closes."""
    last = table.column(table.num_columns - 1)[table.num_rows - 1].as_py()
    if "\n" not in last or data.rstrip(b"\r\n").endswith(b'"'):
        return
    for line, _, _ in _records(data, start, lines, separator):
        opened = line
    raise TableError(
        Problem("a quote opened in this row is never closed", line=opened, expected='a closing "')
    )


def _block_bytes(data: bytes) -> int:
    """Blocks large enough for long quoted cells, and small enough to share out."""
    return max(1 << 20, min(len(data), 1 << 26)) + 1


def _ragged(data: bytes, start: int, lines: int, separator: str, width: int) -> list[Problem]:
    """The rows that have another number of cells than the header has names."""
    problems = []
    for line, end, record in _records(data, start, lines, separator):
        if len(record) == width:
            continue
        message = f"{_cells(len(record))}, where the header has {_cells(width)}"
        if record and "\n" in record[-1] and end > line + 100:
            message += f"; a quote opened there stays open to line {end}"
        problems.append(Problem(message, line=line, expected=_cells(width)))
    if len(problems) <= MOST_PROBLEMS:
        return problems
    rest = len(problems) - MOST_PROBLEMS
    return [*problems[:MOST_PROBLEMS], Problem(f"{rest} more rows have another number of cells")]


def _cells(n: int) -> str:
    return f"{n} cell" if n == 1 else f"{n} cells"


def _records(
    data: bytes, start: int, lines: int, separator: str
) -> Iterator[tuple[int, int, list[str]]]:
    """The first line, the last line and the cells of each row."""
    stream = io.BytesIO(data)
    stream.seek(start)
    reader = csv.reader(_decoded(stream, data), delimiter=separator)
    last = 0
    while True:
        try:
            record = next(reader)
        except (StopIteration, csv.Error):
            return
        if record:
            yield lines + last + 1, lines + reader.line_num, record
        last = reader.line_num


def _line_numbers(data: bytes, start: int, lines: int, separator: str, table: Any) -> LineNumbers:
    body = memoryview(data)[start:].tobytes() if start else data
    body = body.strip(b"\r\n")
    if b"\n\n" in body or b"\n\r\n" in body:
        starts = [line for line, _, _ in _records(data, start, lines, separator)]
        return LineNumbers(lines + 1, np.array(starts, dtype=np.int64))
    if b'"' not in body:
        return LineNumbers(lines + 1)
    inner = np.zeros(table.num_rows, dtype=np.int64)
    for column in table.columns:
        inner += pc.count_substring(column, "\n").to_numpy()
    if not inner.any():
        return LineNumbers(lines + 1)
    earlier = np.cumsum(inner) - inner
    return LineNumbers(lines + 1, lines + 1 + np.arange(table.num_rows) + earlier)
