"""Writes text cells as delimited text (CSV) that `text_tables` reads back as the same cells, and
escapes texts that a spreadsheet would evaluate as formulas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from gcvae.schema.columns import Column
from gcvae.schema.kinds import Outcomes

ROWS_PER_CHUNK = 100_000
_FORMULA = r"^[=+\-@\t\r]"
_NUMBER = r"^[+-]?[0-9][0-9., ]*([eE][+-]?[0-9]+)?%?$"


def write_delimited(
    frame: pd.DataFrame, *, separator: str = ",", header: bool = True
) -> Iterator[bytes]:
    """Yields a frame of strings as delimited text (CSV) with LF line ends, in chunks of bytes;
    cells are quoted only if necessary."""
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

    `columns` are Arrow arrays of strings without nulls, possibly dictionary-encoded. If there is
    only one column, empty cells are quoted, because readers skip blank lines.
    """
    pattern = f'["\r\n{separator}]' + ("|^$" if len(columns) == 1 else "")
    *cells, last = (_quoted(column, pattern) for column in columns)
    last = pc.binary_join_element_wise(last, "\n", "")
    rows = pc.binary_join_element_wise(*cells, last, separator)
    _, ends, text = rows.buffers()
    if text is None:
        return b""
    first, size = rows.offset, len(rows)
    at = np.frombuffer(ends, dtype=np.int32)[[first, first + size]]
    return bytes(memoryview(text)[at[0] : at[1]])


def _quoted(cells: Any, pattern: str) -> Any:
    if pa.types.is_dictionary(cells.type):
        return _quoted(cells.dictionary, pattern).take(cells.indices)
    special = pc.match_substring_regex(cells, pattern)
    if not pc.any(special).as_py():
        return cells
    doubled = pc.replace_substring(cells, '"', '""')
    wrapped = pc.binary_join_element_wise('"', doubled, '"', "")
    return pc.if_else(special, wrapped, cells)


def has_texts(column: Column) -> bool:
    """Returns whether the column's values are strings, not numbers, dates or booleans."""
    if column.kind.outcomes in (Outcomes.REAL, Outcomes.TRUTH_VALUES):
        return False
    return column.datetime_format is None and not any(
        isinstance(level, int | float) for level in column.levels or ()
    )


def without_formulas(cells: Any) -> Any:
    """Returns a dictionary-encoded Arrow array of strings with an apostrophe put before each string
    that a spreadsheet would evaluate as a formula.

    Formulas are strings that begin with =, +, -, @, a tab or a carriage return and are not plain
    numbers. Source: OWASP, CSV injection.
    """
    texts = cells.dictionary
    is_formula = pc.and_(
        pc.match_substring_regex(texts, _FORMULA),
        pc.invert(pc.match_substring_regex(texts, _NUMBER)),
    )
    written = pc.if_else(is_formula, pc.binary_join_element_wise("'", texts, ""), texts)
    return pa.DictionaryArray.from_arrays(cells.indices, written)
