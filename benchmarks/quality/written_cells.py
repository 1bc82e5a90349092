"""The measure in which all models' rows are scored: the probability of the cells as written.

A level has its probability; a number that is written with d decimals has the probability of its
rounding cell, of width 10^−d. A missing cell is integrated out. A density f at a number is
f × width, which is exact where f is constant across the cell.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.kinds import ColumnKind
from gcvae.spelling.date_text import resolution

_UNLIMITED_DECIMALS = 6
"""A number without a limit to its decimals counts as rounded to this many."""


def cell_width(column: Column) -> float:
    """The width of a number's rounding cell, in the column's units (days for dates)."""
    if column.kind is ColumnKind.DATETIME:
        step = resolution(column.datetime_format or "%Y-%m-%d", column.decimals)
        return float(step / np.timedelta64(1, "D"))
    if column.kind is ColumnKind.INTEGER:
        return 1.0
    decimals = _UNLIMITED_DECIMALS if column.decimals is None else column.decimals
    return math.pow(10.0, -decimals)


def rows_with_known_levels(
    train: pd.DataFrame, test: pd.DataFrame, schema: TableSchema
) -> pd.DataFrame:
    """The typed test rows whose levels the training rows have: those that every model can score."""
    known = pd.Series(True, index=test.index)
    for column in schema:
        if column.is_modelled and column.kind.has_levels:
            cells = test[column.name].astype(object)
            known &= cells.isna() | cells.isin(train[column.name].astype(object).unique())
    return test[known]
