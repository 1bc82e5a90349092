"""Ranks of cells within their columns, from which dependency maps are computed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.table_codec import TableCodec


def ranks(frame: pd.DataFrame, rows: EncodedTable, codec: TableCodec) -> Tensor:
    """Returns the rank of each cell in its column, from 0; equal cells share a rank.

    Numbers and dates are ranked by size, levels by their integer codes, and missing cells lowest.

    Args:
        frame: Table with the cells converted to the columns' dtypes.
        rows: The same rows, encoded.

    Shape: (n, D), for n rows and D modelled columns.
    """
    places = {column.name: j for j, column in enumerate(codec.columns)}
    columns = []
    for column in codec.modelled:
        if column.kind.is_real or column.name in codec.reduction.rewritten:
            cells = frame[column.name].rank(method="dense").fillna(0.0).to_numpy(dtype=np.float64)
        else:
            cells = rows.codes[:, places[column.name]].numpy()
        columns.append(np.unique(cells, return_inverse=True)[1])
    return torch.from_numpy(np.stack(columns, axis=1))
