"""Measures of numbers in a score: what a number contributes to the log-likelihood of its row.

    density         its probability density
    rounding_cell   the probability of the interval of values that are rounded to the number
    pmf             the probability of the bin between two quantiles that contains the number

Levels, frequent values and missing cells contribute their probability in every measure.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from gcvae.arrays import Numbers
from gcvae.codec.column_codecs import RealCodec
from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.quantile_codec import QuantileCodec
from gcvae.codec.table_codec import TableCodec
from gcvae.errors import Problem, SettingError


def measured(codec: TableCodec, table: EncodedTable, measure: str) -> EncodedTable:
    """Returns the rows, prepared for scoring by a measure.

    Each number gets the interval whose probability it contributes to the score. With the measure
    `density`, there are no intervals and the rows are returned unchanged.

    Args:
        table: Encoded rows.
        measure: `density`, `rounding_cell` (rounding interval) or `pmf` (bin between quantiles).

    Raises:
        SettingError: The measure is `pmf`, and the model standardises its numbers instead of
            dividing them into bins.
    """
    if measure == "density":
        return table
    if measure == "pmf" and any(isinstance(column, RealCodec) for column in codec.columns):
        message = "measure is pmf, but this model has no bins: its numbers are standardised"
        raise SettingError(Problem(message, "/measure", expected="density or rounding_cell"))
    intervals = np.full((*table.codes.shape, 2), np.nan)
    codes, values, observed = (t.numpy() for t in (table.codes, table.values, table.observed))
    for j, column in enumerate(codec.columns):
        if isinstance(column, RealCodec | QuantileCodec):
            is_number = observed[:, j] & (codes[:, j] == column.n_codes - 1)
            found = _intervals(column, values[:, j], measure)
            intervals[is_number, j] = found[is_number]
    return replace(table, intervals=torch.from_numpy(intervals))


def _intervals(column: RealCodec | QuantileCodec, values: Numbers, measure: str) -> Numbers:
    if measure == "pmf":
        assert isinstance(column, QuantileCodec), "bins were looked for"
        return column.bins(values)
    return column.rounding_cells(values)
