"""Prepares partly observed rows for scoring, in which unknown cells are integrated out.

A known cell of a computed column, such as a total, is evidence on the unknown columns from which it
is computed. The codec represents a computed column by its residual, which is unknown in such a row
although the total is known. Unknown cells are therefore recorded twice: for the columns of the
table and for the columns of the codec.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import torch

from gcvae.arrays import Mask
from gcvae.cells.values import parse_table, with_absent_columns
from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.table_codec import TableCodec
from gcvae.sampling.constrained import ConstrainedModel
from gcvae.sampling.deductions import determined
from gcvae.sampling.dependent_regions import dependent_parts, evaluation_rank, regions_of_rows
from gcvae.sampling.known_cells import with_missing


def partly_known(
    constrained: ConstrainedModel, typed: pd.DataFrame, *, per_unit: bool = True
) -> EncodedTable:
    """Encodes the known cells of rows, with the sets of possible values (regions) of unknown cells
    from which a known cell is computed.

    Args:
        constrained: Model with its hard rules; must be autoregressive if a rule computes a column.
        typed: Rows with cells of the columns' dtypes; missing cells are unknown.
        per_unit: True if a computed cell counts by its density per unit of its column, False if by
            its probability.
    """
    codec = constrained.codec
    known = with_determined(codec, typed)
    missing = constrained.hard_rules.blanks_of_formulas(known)
    rows = with_missing(codec, codec.encode(known, blanks_unknown=True), missing)
    if not len(codec.reduction):
        return rows
    order = constrained.model.order or ()
    loose = regions_of_rows(codec, known, order, may_be_missing=True, are_scored=per_unit)
    are_determined = _of_parts(codec, known.notna() & typed.reset_index(drop=True).isna())
    return replace(rows, dependent=loose, determined=are_determined)


def with_determined(codec: TableCodec, typed: pd.DataFrame) -> pd.DataFrame:
    """Returns rows completed with the unknown cells that a known computed cell determines, such as
    the gross that follows from a known net and tax, even beyond the training table's range; rows
    are numbered anew.

    Cells that may be missing values stay unknown. Rows stay unchanged if only computed columns
    could be completed, because their scores do not need these cells.

    Args:
        typed: Rows with cells of the columns' dtypes; missing cells are unknown.
    """
    typed = typed.reset_index(drop=True)
    everywhere = np.ones(len(typed), dtype=bool)
    barred = {
        codec.reduction.owners.get(column.name, column.name): everywhere
        for column in codec.columns
        if column.has_missing
    }
    found = determined(codec, typed, barred | dict.fromkeys(codec.copies, everywhere))
    computed = {
        r.column for r in codec.reduction.rewritings if evaluation_rank(codec, r.column) == 1
    }
    solved = [name for name in found if name not in computed]
    are_solved = (found[solved].notna() & typed[solved].isna()).any(axis=1)
    return typed if not are_solved.any() else typed.where(~are_solved, found)


def _of_parts(codec: TableCodec, cells: pd.DataFrame) -> torch.Tensor | None:
    """Converts a mask of cells of the table to a mask of cells of the codec's D columns, which
    represent the table's columns; None if no cell is marked. Shape: (n, D)."""
    if not cells.any(axis=None):
        return None
    owners = [codec.reduction.owners.get(c.name, c.name) for c in codec.columns]
    return torch.from_numpy(cells[owners].to_numpy().copy())


def blank_cells(codec: TableCodec, typed: pd.DataFrame, rows: EncodedTable) -> Mask:
    """Returns a mask of the unknown cells of each row: D entries for its encoded columns, then C
    entries for the table's columns. Shape: (n, D + C).

    The last C entries are used only in rows in which a computed column is known but a column of its
    formula is unknown, because the encoded columns then do not show which cells are unknown. They
    also mark unknown cells that follow from known ones. In a row without any known cell, all cells
    are marked.

    Args:
        typed: Rows with cells of the columns' dtypes.
        rows: The same rows, encoded.
    """
    are_blank = ~(rows.observed | codec.hidden_cells(rows)).numpy()
    are_known = np.logical_and.reduce(are_blank, axis=1)
    if rows.determined is not None:
        are_known |= rows.determined.numpy().any(axis=1)
    for region in rows.dependent.values():
        for known in dependent_parts(region):
            are_known |= known.is_restricted
    written = typed[_written_columns(codec)].isna().to_numpy() & are_known[:, None]
    return np.concatenate([are_blank, written], axis=1)


def with_blank_cells(
    constrained: ConstrainedModel, rows: EncodedTable, is_blank: Mask
) -> EncodedTable:
    """Returns generated rows after making the given cells unknown.

    Missing cells of generated rows also become unknown, as in rows that are scored.

    Args:
        constrained: Model that generated the rows.
        rows: Generated rows.
        is_blank: Mask of the cells to make unknown in every row: D entries for the encoded columns,
            then C entries for the table's columns. Shape: (D + C,).
    """
    codec = constrained.codec
    coded, written = np.split(is_blank, [len(codec.columns)])
    if not written.any():
        rows = codec.without_missing_level(rows)
        return replace(rows, observed=rows.observed & ~torch.from_numpy(coded))
    names = np.array(_written_columns(codec))[written]
    known = with_absent_columns(codec.decode(rows).drop(columns=list(names)), codec.schema)
    return partly_known(constrained, parse_table(known, codec.schema))


def _written_columns(codec: TableCodec) -> list[str]:
    return [column.name for column in codec.schema if column.is_modelled]
