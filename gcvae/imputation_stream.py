"""Completed tables that come in blocks as the bytes of one file.

Loads without pandas: the service names the formats before its port is open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from gcvae.pieces import WHOLE, Piece
from gcvae.schema import Column, ColumnKind, TableSchema

if TYPE_CHECKING:
    import pandas as pd

DRAW_COLUMN = "draw"


def stream_completed(
    blocks: Iterable[pd.DataFrame], schema: TableSchema, format: str, piece: Piece = WHOLE
) -> Iterator[bytes]:
    """The bytes of one file, piece by piece.

    In CSV text cells are written as they are, so that known ones are the file's own; other formats
    hold values.

    Args:
        blocks: As `Synthesizer.impute_blocks` gives them; at least one.
        schema: Of the model's table.
        format: As in `gcvae.table_stream`.
        piece: Of the file that the blocks are, as there.

    Raises:
        TableError: There is no such format.
    """
    from gcvae.table_stream import stream_table

    if format == "csv":
        return _csv(blocks, schema, piece)
    number = Column(DRAW_COLUMN, ColumnKind.INTEGER)
    has_draws = DRAW_COLUMN not in schema
    # The types of the completed table, which need not be the ones that the model learnt from.
    first = next(rest := iter(blocks))
    types = first.attrs.get("parquet_types", {})
    columns = [replace(c, parquet_type=types.get(c.name, c.parquet_type)) for c in schema]
    whole = replace(schema, columns=(*([number] if has_draws else []), *columns))
    return stream_table(_typed(chain([first], rest), schema), whole, format, piece)


def _csv(blocks: Iterable[pd.DataFrame], schema: TableSchema, piece: Piece) -> Iterator[bytes]:
    from pandas.api.types import infer_dtype

    from gcvae.delimited import write_delimited
    from gcvae.tables import format_table

    for number, block in enumerate(blocks):
        written = block.copy()
        for name in block.columns:
            is_text = infer_dtype(block[name], skipna=True) in ("string", "empty")
            if name == DRAW_COLUMN and name not in schema:
                written[name] = block[name].astype(str)
            elif not is_text:
                written[name] = format_table(block[[name]], schema)[name]
        header = piece.is_first and number == 0
        yield from write_delimited(written.fillna(""), header=header)


def _typed(blocks: Iterable[pd.DataFrame], schema: TableSchema) -> Iterator[pd.DataFrame]:
    from gcvae.tables import parse_table

    for block in blocks:
        names = [name for name in block.columns if name in schema]
        typed = parse_table(block[names], schema)
        types = block.attrs.get("parquet_types", {})
        passed_on = (c.name for c in schema if c.kind is ColumnKind.IDENTIFIER)
        typed.attrs["parquet_types"] = {name: types[name] for name in passed_on if name in types}
        if DRAW_COLUMN not in schema and DRAW_COLUMN in block:
            typed.insert(0, DRAW_COLUMN, block[DRAW_COLUMN])
        yield typed
