"""Blanks filled from p(missing | known), every known cell returned as it came.

A blank becomes a value: it is drawn given that it is not missing. Text cells stay text, to the
letter, and what is filled in is written like the schema's table; typed cells stay typed.

Left blank: identifiers, and columns that are dropped. A column that equals another in every row of
training is filled with that one's cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.errors import Problem, SettingError, TableError
from gcvae.generators import generator_for
from gcvae.imputation_stream import DRAW_COLUMN
from gcvae.known_rows import BLOCK_ROWS, KnownRows
from gcvae.rejection import ConstrainedModel
from gcvae.schema import Column, ColumnKind, TableSchema
from gcvae.table_reader import PART_ROWS, TableReader, parsed_parts
from gcvae.tables import format_table

assert PART_ROWS % BLOCK_ROWS == 0, "a part ends with a block"


def impute_blocks(
    constrained: ConstrainedModel,
    rows: pd.DataFrame | TableReader,
    draws: int,
    seed: int,
    among: range | None = None,
) -> Iterator[pd.DataFrame]:
    """The completed rows in blocks, in order, a row's draws one after the other.

    Args:
        constrained: The model.
        rows: Cells as text or typed, with all modelled columns.
        draws: Completions of each row; more than one are numbered from 1 in a first column `draw`.
        seed: Of all draws.
        among: Only these rows, completed as among all; they begin at a multiple of BLOCK_ROWS.

    Raises:
        SettingError: draws is under 1.
        TableError: A modelled column is absent, or a cell can not be read.
        UnknownColumnError: The table has a column that the schema has not.
    """
    if draws < 1:
        raise SettingError(Problem(f"draws is {draws}", "/draws", expected="at least 1"))
    schema = constrained.codec.schema
    if draws > 1 and DRAW_COLUMN in schema:
        message = f"the draws would be numbered in a column {DRAW_COLUMN!r}, which the table has"
        raise TableError(Problem(message, column=DRAW_COLUMN, expected="one draw, or another name"))
    first_row = 0 if among is None else among.start
    assert first_row % BLOCK_ROWS == 0, "a run of rows begins with a block"
    numbers = count(first_row // BLOCK_ROWS)
    for cells, typed in parsed_parts(rows, schema, among):
        known = KnownRows.with_blanks(typed, constrained)
        for number in range(known.n_blocks):
            generator = generator_for(seed, "impute", next(numbers))
            completed, _ = known.complete(number, draws, generator)
            at = known.rows_of(number)
            yield _completed_block(cells.iloc[at], typed.iloc[at], completed, schema, draws)


def _completed_block(
    cells: pd.DataFrame,
    typed: pd.DataFrame,
    completed: pd.DataFrame,
    schema: TableSchema,
    draws: int,
) -> pd.DataFrame:
    repeated = np.arange(len(cells)).repeat(draws)
    block = cells.iloc[repeated].reset_index(drop=True)
    blank = typed.iloc[repeated].isna().reset_index(drop=True)
    for name in cells.columns:
        column = schema[name]
        if name in completed and column.kind is not ColumnKind.IDENTIFIER:
            block[name] = _filled(block[name], completed[name], blank[name].to_numpy(), column)
    if draws > 1:
        block.insert(0, DRAW_COLUMN, np.tile(np.arange(1, draws + 1), len(cells)))
    return block


def _filled(
    series: pd.Series[Any], completed: pd.Series[Any], blank: npt.NDArray[np.bool_], column: Column
) -> pd.Series[Any]:
    """The cells with the blanks among them replaced, in the column's own dtype if it can be."""
    if not blank.any():
        return series
    held = pd.api.types.infer_dtype(series, skipna=True)
    values = _alike(completed[blank], held, series.dtype)
    if held in ("string", "empty"):
        values = format_table(completed[blank].to_frame(), TableSchema((column,)))[column.name]
    cells = series.astype(object)
    cells[blank] = values.astype(object)
    return cells if series.dtype == object else cells.astype(series.dtype)


def _alike(values: Any, held: str, dtype: Any) -> Any:
    """Values like the cells beside them, where the library's own are others.

    Times that know their zone, durations, and dates and times of day that are objects.
    """
    if isinstance(dtype, pd.DatetimeTZDtype):
        return values.dt.tz_localize("UTC").dt.tz_convert(dtype.tz)
    if held in ("timedelta", "timedelta64"):
        unit = dtype if dtype.kind == "m" else "timedelta64[ns]"
        return values.astype(np.int64).astype(unit)
    if held in ("date", "time"):
        times = values.dt.date if held == "date" else values.dt.time
        return times.astype(object)
    return values
