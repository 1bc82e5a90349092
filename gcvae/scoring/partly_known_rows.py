"""Rows of which some cells are not known, as scores see them: integrated out.

What is known of a column that a rule gives, such as a total, says something of its terms, where
these are blank. So a row is blank by the columns of its table and not only by those of the codec.
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


def partly_known(
    constrained: ConstrainedModel, typed: pd.DataFrame, *, per_unit: bool = True
) -> EncodedTable:
    """The known cells of typed rows, and what they say of the others.

    Args:
        constrained: The model, which has an order of its columns where rules are in it.
        typed: Rows; their blanks are not known.
        per_unit: A cell that a rule gives counts per unit of its column, and not by its mass.
    """
    codec = constrained.codec
    rows = codec.encode(typed, blanks_unknown=True)
    if not len(codec.reduction):
        return rows
    order = constrained.model.order or ()
    loose = regions_of_rows(codec, typed, order, blanks_missing=True, are_scored=per_unit)
    return replace(rows, dependent=loose)


def blank_cells(codec: TableCodec, typed: pd.DataFrame, rows: EncodedTable) -> Mask:
    """Which cells are not known: of the codec's columns; and of the table's, in rows of which the
    former do not say it, since a rule's column is known without all that it follows from.

    Shape: (n, D + C). All are blank of a row of which nothing is known.
    """
    are_blank = ~(rows.observed | codec.hidden_cells(rows)).numpy()
    are_told = np.logical_and.reduce(are_blank, axis=1)
    for region in rows.dependent.values():
        for known in dependent_parts(region):
            are_told |= known.says_more
    written = typed[_written_columns(codec)].isna().to_numpy() & are_told[:, None]
    return np.concatenate([are_blank, written], axis=1)


def with_blank_cells(
    constrained: ConstrainedModel, rows: EncodedTable, is_blank: Mask
) -> EncodedTable:
    """A model's own rows with these cells blank. Shape: (D + C,).

    Cells that a row of the model lacks itself are integrated out, as a table's are.
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
