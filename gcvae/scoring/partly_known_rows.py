"""Partially observed rows, prepared for scoring: unknown cells are integrated out.

A known value of a computed column, such as a total, is evidence on its unknown terms. So missing
cells are tracked by the table's columns as well as by those of the codec.
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
    """Encodes the known cells of typed rows, with the regions that they imply for unknown ones.

    Args:
        constrained: The model; needs an order of columns if it has rules.
        typed: Typed rows; missing cells are unknown.
        per_unit: Whether a computed cell counts by its density per unit of its column, or by its
            mass.
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
    """Returns the mask of unknown cells: of the codec's columns, and of the table's columns where
    the former do not determine it, since a computed column may be known without its parents.

    Shape: (n, D + C). All cells are unknown in a row without any known cell.
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
    """Returns a model's own rows with these cells missing. Shape: (D + C,).

    Cells that are missing in a generated row are integrated out, as in a table.
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
