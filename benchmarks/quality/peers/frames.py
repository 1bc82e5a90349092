"""Tables as the peers take them: numbers as numbers, dates as dates, levels as text.

Ordinal levels are text too, though they may be measured as numbers: most peers that took them for
numbers would make values between them.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from gcvae.cells.values import format_table, parse_table
from gcvae.evaluation.columns import is_number
from gcvae.schema.columns import TableSchema
from gcvae.schema.kinds import ColumnKind


def plain_frame(
    train: pd.DataFrame, schema: TableSchema, *, ordinal_numbers: bool = False
) -> pd.DataFrame:
    """The modelled columns of a table of text cells; missing is NaN, NaT or None.

    Args:
        train: Cells as text.
        schema: Of the table.
        ordinal_numbers: Leave ordinal levels that are numbers what they are.
    """
    typed = parse_table(train, schema)
    texts = format_table(typed, schema)
    columns = {}
    for column in schema:
        if not column.is_modelled:
            continue
        series = typed[column.name]
        if column.kind is ColumnKind.DATETIME:
            columns[column.name] = series
        elif column.kind.is_real or (ordinal_numbers and is_number(column)):
            is_whole = pd.api.types.is_integer_dtype(series) and not series.isna().any()
            columns[column.name] = series.astype(np.int64 if is_whole else np.float64)
        else:
            columns[column.name] = texts[column.name].where(series.notna(), None)
    return pd.DataFrame(columns)


def readable_frame(sample: pd.DataFrame, schema: TableSchema) -> pd.DataFrame:
    """A peer's rows as `parse_table` can read them: whole numbers are rounded to be whole."""
    columns = {}
    for column in schema:
        if not column.is_modelled:
            continue
        series = sample[column.name]
        if column.kind is ColumnKind.DATETIME:
            series = pd.to_datetime(series).astype("datetime64[ns]")
        elif column.kind is ColumnKind.INTEGER:
            series = series.astype(np.float64).round().astype("Int64")
        elif column.kind.is_real:
            series = series.astype(np.float64)
            if column.decimals is not None:
                series = series.round(column.decimals)
        else:
            series = series.astype(object).where(series.notna(), None)
        columns[column.name] = series.reset_index(drop=True)
    return pd.DataFrame(columns)
