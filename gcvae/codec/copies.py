"""Columns that equal an earlier one in every row: they are copied, not modelled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from gcvae.files.typed_columns import TypedTable, row_chunks
from gcvae.schema.columns import Column, Missing

LEAST_ROWS_OF_COPIES = 10
"""Two columns that agree everywhere are copies if so many rows have another value than the most
frequent one; fewer agree by chance."""


def find_copies(table: TypedTable, columns: Sequence[Column]) -> dict[str, str]:
    """The columns that equal an earlier one in every row, with the earlier one's name.

    Only columns of the same limits and levels: a cell of the one must be possible in the other.

    Args:
        table: Typed.
        columns: Of it, to look at.
    """
    copies: dict[str, str] = {}
    seen: dict[Column, list[str]] = {}
    for column in columns:
        missing = Missing(column.missing.allowed)
        possible = replace(column, name="", missing=missing, parquet_type=None, dtype=None)
        alike = seen.setdefault(possible, [])
        source = next((name for name in alike if _are_equal(table, column.name, name)), None)
        if source is None:
            alike.append(column.name)
        elif _has_enough_rows(table[source]):
            copies[column.name] = source
    return copies


def _are_equal(table: TypedTable, one: str, other: str) -> bool:
    """Whether two columns are equal in every row; most that are not differ in the first chunk."""
    chunks = zip(row_chunks(table, [one]), row_chunks(table, [other]), strict=True)
    return all(a[one].equals(b[other]) for a, b in chunks)


def _has_enough_rows(series: pd.Series[Any]) -> bool:
    """Whether enough rows have another value than the most frequent one."""
    counts = series.value_counts(dropna=False)
    return len(series) - int(counts.max() if len(counts) else 0) >= LEAST_ROWS_OF_COPIES
