"""Imputation: fills missing cells from p(missing | known); known cells are returned unchanged.

A filled cell is never missing, unless a rule without exceptions requires a missing cell because of
other cells of the row. A column that equals another column in every training row is filled with the
cell of that column.

Form of the cells: in columns of text, known cells keep their exact text, and filled cells have the
format of the schema; filled truth values are written with the words of the table, such as yes and
no. Other columns keep their dtype.

Cells stay missing in identifiers, in dropped columns, and in columns that `filled_columns` leaves
or keeps. In columns that it leaves, missing cells are treated as unknown: the cells filled in other
columns are the same as if all columns were filled. In columns that it keeps, missing cells are
treated as known to be missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
import pandas as pd

from gcvae.arrays import Mask
from gcvae.cells.levels import boolean_partner
from gcvae.cells.values import format_table, is_text
from gcvae.errors import Problem, TableError
from gcvae.files.frame_dtypes import as_in
from gcvae.files.table_reader import CHUNK_ROWS, Rows, parsed_chunks
from gcvae.numerics.generators import generator_for
from gcvae.numerics.whole_numbers import whole_number
from gcvae.sampling.constrained import ConstrainedModel
from gcvae.sampling.filled_columns import FilledColumns, filled_columns
from gcvae.sampling.known_cells import BLOCK_ROWS, KnownRows
from gcvae.schema.columns import DRAW_COLUMN, Column, TableSchema
from gcvae.schema.kinds import Outcomes

assert CHUNK_ROWS % BLOCK_ROWS == 0, "a chunk ends with a block"


def impute_blocks(
    constrained: ConstrainedModel,
    rows: Rows,
    draws: int,
    seed: int,
    among: range | None = None,
    columns: Sequence[str] | None = None,
    keep_missing: Sequence[str] | None = None,
) -> Iterator[pd.DataFrame]:
    """Yields the completed rows in blocks, in order, with the completions of a row together.

    Args:
        rows: Cells as text or with the columns' dtypes. An absent modelled column
            is added, with all cells missing.
        draws: Number of completions of each row. If more than 1, a first column `draw` numbers them
            from 1.
        among: Range of the rows to complete, which begins at a multiple of BLOCK_ROWS; None
            completes all rows. The result for these rows is the same as in a full pass.
        columns: Columns to fill; None fills all whose missing cells are not kept.
        keep_missing: Columns in which a missing cell is information to keep; None for those with
            `missing.is_value` in the schema.

    Raises:
        SettingError: `draws` is not a whole number of at least 1, or a column cannot be filled.
        TableError: All modelled columns are absent, or a cell cannot be read.
        UnknownColumnError: The schema does not contain a column of the table.
    """
    draws = whole_number("draws", draws, 1)
    schema = constrained.codec.schema
    if draws > 1 and DRAW_COLUMN in schema:
        message = f"the draws would be numbered in a column {DRAW_COLUMN!r}, which the table has"
        raise TableError(Problem(message, column=DRAW_COLUMN, expected="one draw, or another name"))
    chosen = filled_columns(schema, columns, keep_missing)
    first_row = 0 if among is None else among.start
    assert first_row % BLOCK_ROWS == 0, "a run of rows begins with a block"
    numbers = count(first_row // BLOCK_ROWS)
    for cells, typed in parsed_chunks(rows, schema, among):
        _check_present(cells, chosen)
        if not len(cells):  # a frame without rows still has its columns
            yield completed_rows(cells, typed, typed.iloc[:, :0], schema, {}, draws)
        words = truth_words(cells, typed, schema)
        entities = constrained.codec.entities
        whole = typed if entities is None else entities.filled(typed)
        known = KnownRows.with_blanks(whole, constrained, chosen.kept)
        for number in range(known.n_blocks):
            generator = generator_for(seed, "impute", next(numbers))
            completed, _ = known.complete(number, draws, generator, seed)
            at = known.rows_of(number)
            filled = completed[[name for name in completed if name in chosen.filled]]
            block = cells.iloc[at], typed.iloc[at], filled
            yield completed_rows(*block, schema, words, draws)


def _check_present(cells: pd.DataFrame, chosen: FilledColumns) -> None:
    absent = [name for name in chosen.named if name not in cells]
    if absent:
        raise TableError(*(Problem("the table lacks this column", column=name) for name in absent))


def completed_rows(
    cells: pd.DataFrame,
    typed: pd.DataFrame,
    completed: pd.DataFrame,
    schema: TableSchema,
    words: Mapping[str, Mapping[bool, Any]],
    draws: int = 1,
) -> pd.DataFrame:
    """Returns `draws` copies of each row, in which drawn cells replace missing ones.

    Args:
        cells: Rows as the caller passed them.
        typed: The same rows, with cells of the columns' dtypes.
        completed: `draws` drawn rows for each row, with the columns to fill.
        words: By column, the cells that stand for False and True (`truth_words`).
        draws: Number of copies. If more than 1, a first column `draw` numbers them from 1.
    """
    repeated = np.arange(len(cells)).repeat(draws)
    block = cells.iloc[repeated].reset_index(drop=True)
    blank = typed.iloc[repeated].isna().reset_index(drop=True)
    for name in cells.columns:
        if name in completed:
            is_blank = blank[name].to_numpy()
            drawn = completed[name]
            if name in words:
                drawn = drawn.map(words[name], na_action="ignore").astype(object)
            block[name] = _filled(block[name], drawn, is_blank, schema[name], name in words)
    if draws > 1:
        block.insert(0, DRAW_COLUMN, np.tile(np.arange(1, draws + 1), len(cells)))
    return block


def truth_words(
    cells: pd.DataFrame, typed: pd.DataFrame, schema: TableSchema
) -> dict[str, dict[bool, Any]]:
    """Returns, by column of truth values, the cells that stand for False and True in a table, which
    may differ from those of the training table: yes and no, 0 and 1.

    A column is left out if its cells do not show which words it uses.

    Args:
        cells: Rows as the caller passed them.
        typed: The same rows, with cells of the columns' dtypes.
    """
    found = {}
    for column in schema:
        if column.kind.outcomes is not Outcomes.TRUTH_VALUES or column.name not in cells:
            continue
        own: dict[bool, Any] = {}
        for truth in (False, True):
            are_same = (typed[column.name] == truth).fillna(False).to_numpy(dtype=bool)
            own |= zip([truth], cells[column.name][are_same], strict=False)
        if len(own) == 1:
            [(truth, cell)] = own.items()
            if not isinstance(cell, str):
                own[not truth] = type(cell)(not truth)
            else:
                pair = ("0", "1") if cell in ("0", "1") else boolean_partner(cell)
                own |= {not truth: pair[not truth]} if pair is not None else {}
        if len(own) == 2:
            found[column.name] = own
    return found


def _filled(
    series: pd.Series[Any],
    completed: pd.Series[Any],
    blank: Mask,
    column: Column,
    are_written: bool,
) -> pd.Series[Any]:
    """Replaces missing cells by drawn ones; keeps the series' dtype if it can. `are_written` tells
    whether drawn cells already have the form of the caller's cells."""
    blank = blank & completed.notna().to_numpy()  # cells that stay missing in the completion
    if not blank.any():
        return series
    if are_written:
        values = completed[blank]
    elif is_text(series):
        values = format_table(completed[blank].to_frame(), TableSchema((column,)))[column.name]
    else:
        values = as_in(completed[blank], series, column)
    cells = series.astype(object)
    cells[blank] = values.astype(object)
    return cells if series.dtype == object else cells.astype(_holding(values, series.dtype))


def _holding(values: pd.Series[Any], dtype: Any) -> Any:
    """Returns the dtype of a series after drawn `values` replace some of its cells. Dates take the
    dtype of `values`, a categorical `dtype` gets their categories, any other stays unchanged."""
    if pd.api.types.is_datetime64_any_dtype(dtype) and values.dtype.kind == "M":
        return values.dtype
    if not isinstance(dtype, pd.CategoricalDtype):
        return dtype
    more = pd.Index(values.dropna().unique()).difference(dtype.categories)
    return pd.CategoricalDtype(dtype.categories.append(more), dtype.ordered) if len(more) else dtype
