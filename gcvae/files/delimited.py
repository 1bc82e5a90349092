"""Cells of text to delimited text: what `text_tables` reads as the same cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

ROWS_PER_CHUNK = 100_000  # written at a time


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
