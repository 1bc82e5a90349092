"""Ranks of cells within their columns, the input of maps of rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.table_codec import TableCodec


def ranks(frame: pd.DataFrame, rows: EncodedTable, codec: TableCodec) -> Tensor:
    """Returns the ranks of a typed table's cells within their columns; missing cells rank lowest.

    Numbers and dates rank by size, levels by code. Shape: (n, D), D modelled columns.
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
