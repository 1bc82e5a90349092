"""Encodes the cells of a real table as indices of the values that the schema allows.

The code of a cell depends only on the cell and the schema, so adding or removing a row does not
change the codes of other rows. Numbers beyond the limits in the schema are clipped. Rows with a
cell that does not fit the schema are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from gcvae.arrays import Codes, Mask
from gcvae.cells.distinct_cells import Cells, TextColumn, cells_of
from gcvae.cells.levels import read_levels
from gcvae.cells.values import are_missing
from gcvae.codec.rare_levels import OTHER
from gcvae.files.source_columns import SourceColumns
from gcvae.schema.columns import Column
from gcvae.schema.kinds import Outcomes
from gcvae.spelling.date_text import read_dates
from gcvae.spelling.number_text import are_numbers, numbers_of
from gcvae.training.differential_privacy.declared import ValueLine

MISSING, UNFIT = -1, -2
"""Codes of a missing cell, and of a cell that does not fit the schema."""


def column_codes(source: SourceColumns, column: Column) -> Codes:
    """Returns an integer code for each of n cells: the index of its value in the list of all values
    that the schema allows.

    In a column of numbers or dates, these are all multiples of the resolution between the limits.
    In any other column, they are the levels. The code is `MISSING` for missing cells, and `UNFIT`
    for cells that do not fit the schema.

    Args:
        source: Columns of the real table.
        column: Column with levels or limits.

    Shape: (n,).
    """
    cells, is_unfit = column_cells(source, column)
    is_missing = are_missing(cells, column)
    codes = np.where(is_missing, MISSING, UNFIT)
    present = cells.select(~is_missing)
    of_present = _line_codes if column.kind.outcomes is Outcomes.REAL else _level_codes
    codes[~is_missing] = of_present(present, column)
    of_rows = np.append(codes, MISSING)[cells.codes]
    if not column.missing.allowed:
        of_rows[of_rows == MISSING] = UNFIT
    of_rows[is_unfit] = UNFIT
    return of_rows


def column_cells(source: SourceColumns, column: Column) -> tuple[Cells, Mask]:
    """Returns the cells of a column, stored by their distinct values, and a mask of the rows with
    infinite numbers, which count as missing."""
    series: pd.Series[Any] | TextColumn = source[column.name]
    infinite = np.zeros(len(source), dtype=bool)
    if not isinstance(series, TextColumn) and series.dtype.kind == "f":
        infinite = np.isinf(series.to_numpy())
        series = series.mask(infinite)
    return cells_of(series, None, column.datetime_format, column.number_format), infinite


def _line_codes(cells: Cells, column: Column) -> Codes:
    """Returns for each of U distinct cells the index of its value among all values between the
    column's limits; `UNFIT` if the cell is not a number or date. Shape: (U,)."""
    line = ValueLine.of(column)
    codes = np.full(len(cells.texts), UNFIT, dtype=np.int64)
    if column.has_times:
        times = read_dates(cells.texts, column.date_format)
        known = ~np.isnat(times)
        values = times[known]
    else:
        known = are_numbers(cells.numerals)
        values = numbers_of(cells.select(known).numerals)
        values = np.rint(values) if column.kind.is_whole else values
        values = np.clip(values.astype(np.float64), float(column.minimum), float(column.maximum))  # type: ignore[arg-type]
    places = line.grid.indices(pd.Series(values))
    codes[known] = np.clip((places - line.first) // line.stride, 0, line.n - 1)
    return codes


def _level_codes(cells: Cells, column: Column) -> Codes:
    """Returns the index of the level of each of U distinct cells. A cell that is no level of the
    schema has the index of the level `OTHER`, or `UNFIT` if the column does not have it. Shape:
    (U,)."""
    numbers = {level: i for i, level in enumerate(column.typed_levels)}
    other = numbers.get(OTHER, UNFIT)
    return np.array([numbers.get(x, other) for x in read_levels(column, cells)], dtype=np.int64)
