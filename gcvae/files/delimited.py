"""Writes text cells as delimited text (CSV) that `text_tables` reads back as the same cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

ROWS_PER_CHUNK = 100_000


def write_delimited(
    frame: pd.DataFrame, *, separator: str = ",", header: bool = True
) -> Iterator[bytes]:
    """Yields a frame as delimited text (CSV) with LF line ends, in chunks of bytes; cells are
    quoted only if necessary.

    Args:
        frame: Frame whose cells are strings.
        separator: Character between the cells.
        header: Whether to begin with the column names.
    """
    if header:
        yield delimited_header(frame.columns, separator)
    for start in range(0, len(frame), ROWS_PER_CHUNK):
        chunk = frame.iloc[start : start + ROWS_PER_CHUNK]
        columns = [pa.array(chunk[name], pa.string()) for name in frame.columns]
        yield delimited_rows(columns, separator)


def delimited_header(names: Iterable[Any], separator: str) -> bytes:
    """Returns the line of column names for a delimited text."""
    return delimited_rows([pa.array([str(name)], pa.string()) for name in names], separator)


def delimited_rows(columns: Sequence[Any], separator: str) -> bytes:
    """Returns rows as delimited text, without a header.

    If there is only one column, empty cells are quoted, because readers skip blank lines.

    Args:
        columns: Cells of each column, as Arrow arrays of strings without nulls; may be
            dictionary-encoded.
        separator: Character between the cells.
    """
    pattern = f'["\r\n{separator}]' + ("|^$" if len(columns) == 1 else "")
    *cells, last = (_quoted(column, pattern) for column in columns)
    rows = pc.binary_join_element_wise(*cells, _with_line_ends(last), separator)
    _, ends, text = rows.buffers()
    if text is None:
        return b""
    first, size = rows.offset, len(rows)
    at = np.frombuffer(ends, dtype=np.int32)[[first, first + size]]
    return bytes(memoryview(text)[at[0] : at[1]])


def _with_line_ends(cells: Any) -> Any:
    """Returns the cells with a line end after each."""
    return pc.binary_join_element_wise(cells, "\n", "")


def _quoted(cells: Any, pattern: str) -> Any:
    """Returns the cells as strings, and puts those that match the pattern in quotes.

    In a dictionary-encoded array, each distinct text is checked only once.
    """
    if pa.types.is_dictionary(cells.type):
        return _quoted(cells.dictionary, pattern).take(cells.indices)
    special = pc.match_substring_regex(cells, pattern)
    if not pc.any(special).as_py():
        return cells
    doubled = pc.replace_substring(cells, '"', '""')
    wrapped = pc.binary_join_element_wise('"', doubled, '"', "")
    return pc.if_else(special, wrapped, cells)
