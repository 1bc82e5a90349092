"""Blanks filled from p(missing | known), every known cell returned as it came.

A blank becomes a value: it is drawn given that it is not missing. Text cells stay text, to the
letter, and what is filled in is written like the schema's table; typed cells stay typed.

Left blank: identifiers, columns that are dropped, and what `filled_columns` says. A blank that is
left is a value that is not known, so the cells that are filled are those of an imputation of
everything; one that is kept is the missing level. A column that equals another in every row of
training is filled with that one's cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np
import pandas as pd

from gcvae.arrays import Mask
from gcvae.cells.values import format_table, is_text
from gcvae.errors import Problem, TableError
from gcvae.files.frame_dtypes import as_in
from gcvae.files.table_reader import CHUNK_ROWS, Rows, parsed_chunks
from gcvae.numerics.generators import generator_for
from gcvae.numerics.whole_numbers import whole_number
from gcvae.sampling.constrained import ConstrainedModel
from gcvae.sampling.filled_columns import FilledColumns, filled_columns
from gcvae.sampling.imputation_stream import DRAW_COLUMN
from gcvae.sampling.known_cells import BLOCK_ROWS, KnownRows
from gcvae.schema.columns import Column, TableSchema

assert CHUNK_ROWS % BLOCK_ROWS == 0, "a chunk ends with a block"


def impute_blocks(
    constrained: ConstrainedModel,
    rows: Rows,
    draws: int,
    seed: int,
    among: range | None = None,
    columns: Sequence[str] | None = None,
    keep_blanks: Sequence[str] | None = None,
) -> Iterator[pd.DataFrame]:
    """The completed rows in blocks, in order, a row's draws one after the other.

    Args:
        constrained: The model.
        rows: Cells as text or typed; a modelled column that they lack is added, and all blank.
        draws: Completions of each row; more than one are numbered from 1 in a first column `draw`.
        seed: Of all draws.
        among: Only these rows, completed as among all; they begin at a multiple of BLOCK_ROWS.
        columns, keep_blanks: As of `filled_columns`.

    Raises:
        SettingError: draws is no whole number or under 1, or a column can not be filled.
        TableError: All modelled columns are absent, or a cell can not be read.
        UnknownColumnError: The table has a column that the schema has not.
    """
    draws = whole_number("draws", draws, 1)
    schema = constrained.codec.schema
    if draws > 1 and DRAW_COLUMN in schema:
        message = f"the draws would be numbered in a column {DRAW_COLUMN!r}, which the table has"
        raise TableError(Problem(message, column=DRAW_COLUMN, expected="one draw, or another name"))
    chosen = filled_columns(schema, columns, keep_blanks)
    first_row = 0 if among is None else among.start
    assert first_row % BLOCK_ROWS == 0, "a run of rows begins with a block"
    numbers = count(first_row // BLOCK_ROWS)
    for cells, typed in parsed_chunks(rows, schema, among):
        _check_present(cells, chosen)
        if not len(cells):  # a frame without rows has its columns all the same
            yield _completed_block(cells, typed, typed.iloc[:, :0], schema, draws)
        known = KnownRows.with_blanks(typed, constrained, chosen.kept)
        for number in range(known.n_blocks):
            generator = generator_for(seed, "impute", next(numbers))
            completed, _ = known.complete(number, draws, generator, seed)
            at = known.rows_of(number)
            filled = completed[[name for name in completed if name in chosen.filled]]
            yield _completed_block(cells.iloc[at], typed.iloc[at], filled, schema, draws)


def _check_present(cells: pd.DataFrame, chosen: FilledColumns) -> None:
    """Lets a table pass that has the columns which are asked; of constants it need not have any."""
    absent = [name for name in chosen.asked if name not in cells]
    if absent:
        raise TableError(*(Problem("the table lacks this column", column=name) for name in absent))


def _completed_block(
    cells: pd.DataFrame,
    typed: pd.DataFrame,
    completed: pd.DataFrame,
    schema: TableSchema,
    draws: int,
) -> pd.DataFrame:
    """The cells, `draws` of each row, with the blanks of the completed columns filled."""
    repeated = np.arange(len(cells)).repeat(draws)
    block = cells.iloc[repeated].reset_index(drop=True)
    blank = typed.iloc[repeated].isna().reset_index(drop=True)
    for name in cells.columns:
        if name in completed:
            is_blank = blank[name].to_numpy()
            block[name] = _filled(block[name], completed[name], is_blank, schema[name])
    if draws > 1:
        block.insert(0, DRAW_COLUMN, np.tile(np.arange(1, draws + 1), len(cells)))
    return block


def _filled(
    series: pd.Series[Any], completed: pd.Series[Any], blank: Mask, column: Column
) -> pd.Series[Any]:
    """The cells with the blanks among them replaced, in the column's own dtype if it can be."""
    blank = blank & completed.notna().to_numpy()  # what is missing in every row stays as it is
    if not blank.any():
        return series
    if is_text(series):
        values = format_table(completed[blank].to_frame(), TableSchema((column,)))[column.name]
    else:
        values = as_in(completed[blank], series, column)
    cells = series.astype(object)
    cells[blank] = values.astype(object)
    return cells if series.dtype == object else cells.astype(_holding(values, series.dtype))


def _holding(values: pd.Series[Any], dtype: Any) -> Any:
    """The dtype, which is to hold values that need not be among its categories yet, or that are
    too far for nanoseconds."""
    if pd.api.types.is_datetime64_any_dtype(dtype) and values.dtype.kind == "M":
        return values.dtype
    if not isinstance(dtype, pd.CategoricalDtype):
        return dtype
    more = pd.Index(values.dropna().unique()).difference(dtype.categories)
    return pd.CategoricalDtype(dtype.categories.append(more), dtype.ordered) if len(more) else dtype
