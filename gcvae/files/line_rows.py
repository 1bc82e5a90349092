"""Texts in which every line is a row, as most files are: read without looking for quoted lines.

Arrow's parser alone tells whether a text is one: it finds as many rows as there are lines, and no
cell goes on at the end. Of any other text nothing is said here: `delimited_rows` reads or refuses
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv as arrow_csv

_BLOCK_BYTES = 1 << 20  # parsed at once: the cache holds them
_LOOKED_AT_BYTES = 1 << 16


def line_rows(data: bytes, separator: str, names: Sequence[str]) -> Any:
    """The rows as an Arrow table of strings; None where some line may be no row of its own.

    Args:
        data: Begins with a record, and ends with a line's end or the file's.
        separator: Between the cells.
        names: Of the columns.
    """
    n_lines = _lines(data)
    has_quotes = b'"' in data
    if n_lines is None or b"\0" in data or (has_quotes and may_have_stray(data, separator)):
        return None
    if not is_utf_8(data):
        return None
    table = _parsed(data, separator, names)
    if table is None or table.num_rows != n_lines:
        return None
    # A quote that nothing closes makes the last line's end a part of its cell.
    last = table.column(table.num_columns - 1)[n_lines - 1].as_py() if has_quotes else ""
    return None if "\n" in last else table


def _lines(data: bytes) -> int | None:
    """How many lines there are; None where some end in another way than others."""
    n_ends = data.count(b"\n")
    if b"\r" in data and not n_ends == data.count(b"\r\n") == data.count(b"\r"):
        return None
    return n_ends + (not data.endswith(b"\n"))


def _parsed(data: bytes, separator: str, names: Sequence[str]) -> Any:
    """As many rows as Arrow finds where no cell has a line's end; None where they are ragged."""
    try:
        return arrow_csv.read_csv(
            pa.BufferReader(data),
            arrow_csv.ReadOptions(column_names=list(names), block_size=_BLOCK_BYTES),
            arrow_csv.ParseOptions(delimiter=separator),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=False,
                quoted_strings_can_be_null=False,
                check_utf8=False,  # the whole text is
            ),
        )
    except pa.ArrowInvalid:
        return None


def is_utf_8(data: bytes) -> bool:
    """Whether the bytes are text in UTF-8."""
    ends = pa.py_buffer(np.array([0, len(data)], dtype=np.int64))
    whole = [None, ends, pa.py_buffer(data)]  # as one text, which is not copied
    try:
        pa.Array.from_buffers(pa.large_string(), 1, whole).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def may_have_stray(data: bytes, separator: str) -> bool:
    """False where every quote stands right before or behind a separator or an end of a line.

    Then no text follows a closing quote. True of doubled quotes within a cell too: of those nobody
    knows without reading on.
    """
    text = np.frombuffer(data, dtype=np.uint8)
    starts = range(0, max(len(text) - 2, 0), _LOOKED_AT_BYTES)
    return any(_has_inner_quote(text[i : i + _LOOKED_AT_BYTES + 2], separator) for i in starts)


def _has_inner_quote(text: npt.NDArray[np.uint8], separator: str) -> bool:
    """Whether a quote, neither the first byte nor the last, ends no cell and begins none."""
    is_quote = text == ord('"')
    if not is_quote.any():
        return False
    is_between = (text == ord(separator)) | (text == ord("\n")) | (text == ord("\r"))
    is_inner = is_quote[1:-1] & ~is_between[:-2] & ~(is_between | is_quote)[2:]
    return bool(is_inner.any())
