"""Prepares partly observed rows for scoring, in which unknown cells are integrated out.

A known cell of a computed column, such as a total, is evidence on the unknown columns from which it
is computed. So missing cells are tracked by the table's columns as well as by those of the codec,
which represents a computed column by its residual.
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
from gcvae.sampling.dependent_regions import dependent_parts, regions_of_rows
from gcvae.sampling.known_cells import with_missing


def partly_known(
    constrained: ConstrainedModel, typed: pd.DataFrame, *, per_unit: bool = True
) -> EncodedTable:
    """Encodes the known cells of rows, with the sets of possible values (regions) of unknown cells
    from which a known cell is computed.

    Args:
        constrained: Model with its hard rules; it must be autoregressive if a rule computes a
            column.
        typed: Rows with cells of the columns' dtypes; missing cells are unknown.
        per_unit: True if a computed cell counts by its density per unit of its column, False if by
            its probability.
    """
    codec = constrained.codec
    typed = typed.reset_index(drop=True)
    missing = constrained.hard_rules.blanks_of_formulas(typed)
    rows = with_missing(codec, codec.encode(typed, blanks_unknown=True), missing)
    if not len(codec.reduction):
        return rows
    order = constrained.model.order or ()
    loose = regions_of_rows(codec, typed, order, blanks_missing=True, are_scored=per_unit)
    return replace(rows, dependent=loose)


def blank_cells(codec: TableCodec, typed: pd.DataFrame, rows: EncodedTable) -> Mask:
    """Returns a mask of the unknown cells: of the codec's D columns, and of the table's C columns.

    A cell of the table's columns is marked only in rows where a computed column is known but not
    all columns of its formula, because the codec's columns then do not show which cells are
    unknown. All cells are unknown in a row without any known cell. Shape: (n, D + C).

    Args:
        typed: Rows with cells of the columns' dtypes.
        rows: The same rows, encoded.
    """
    are_blank = ~(rows.observed | codec.hidden_cells(rows)).numpy()
    are_known = np.logical_and.reduce(are_blank, axis=1)
    for region in rows.dependent.values():
        for known in dependent_parts(region):
            are_known |= known.is_informative
    written = typed[_written_columns(codec)].isna().to_numpy() & are_known[:, None]
    return np.concatenate([are_blank, written], axis=1)


def with_blank_cells(
    constrained: ConstrainedModel, rows: EncodedTable, is_blank: Mask
) -> EncodedTable:
    """Returns generated rows after making the given cells unknown.

    Cells that are missing in a generated row are integrated out, as in a scored table.

    Args:
        constrained: Model that generated the rows.
        rows: Generated rows.
        is_blank: Mask of the unknown cells of D columns of the codec and C of the table. Shape: (D
            + C,).
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
