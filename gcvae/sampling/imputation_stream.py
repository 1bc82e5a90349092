"""Streams imputed tables as the bytes of one file.

Loads without pandas, because the API process lists the formats.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from gcvae.files.shards import WHOLE, FileShard
from gcvae.schema.columns import DRAW_COLUMN, Column, TableSchema, with_draws
from gcvae.schema.kinds import ColumnKind, Outcomes

if TYPE_CHECKING:
    import pandas as pd


def stream_completed(
    blocks: Iterable[pd.DataFrame], schema: TableSchema, format: str, shard: FileShard = WHOLE
) -> Iterator[bytes]:
    """Yields the bytes of one file with imputed rows, block by block.

    In CSV files, cells that were read as strings stay the same, and the delimiter is the table's;
    other formats contain values of the columns' types.

    Args:
        blocks: Blocks of `Synthesizer.impute_blocks`, at least one.
        format: Format of the file, such as `csv` or `parquet`.
        shard: Part of the file that the blocks form; the default is a complete file.

    Raises:
        TableError: The format is unknown.
    """
    from gcvae.files.table_stream import stream_table

    if format == "csv":
        return _csv(blocks, schema, shard)
    # The completed table may have other types than the training table.
    first = next(rest := iter(blocks))
    types = first.attrs.get("parquet_types", {})
    own = _other_truths(first, types, schema)
    columns = [
        replace(own.get(c.name, c), parquet_type=types.get(c.name, c.parquet_type)) for c in schema
    ]
    whole = with_draws(replace(schema, columns=tuple(columns)))
    return stream_table(_typed(chain([first], rest), schema, [*own]), whole, format, shard)


def _other_truths(
    block: pd.DataFrame, types: Mapping[str, str], schema: TableSchema
) -> dict[str, Column]:
    """Returns columns of the schema to replace, by name: columns of truth values that the imputed
    table contains as numbers or strings, and that are to be written as such. `types` are the column
    types of the Parquet file that was read."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    found = {}
    for column in schema:
        name = column.name
        is_truth = column.kind.outcomes is Outcomes.TRUTH_VALUES and not column.drop
        if is_truth and name in types and not is_bool_dtype(block[name].dtype):
            is_number = is_numeric_dtype(block[name].dtype)
            kind = ColumnKind.CONTINUOUS if is_number else ColumnKind.IDENTIFIER
            found[name] = Column(name, kind)
    return found


def _csv(blocks: Iterable[pd.DataFrame], schema: TableSchema, shard: FileShard) -> Iterator[bytes]:
    from pandas.api.types import infer_dtype

    from gcvae.cells.data_frames import with_columns
    from gcvae.cells.values import format_table
    from gcvae.files.delimited import write_delimited

    for number, block in enumerate(blocks):
        written = block.copy()
        for name in block.columns:
            is_text = infer_dtype(block[name], skipna=True) in ("string", "empty")
            if not is_text:
                values = with_columns(block[[name]], _dropped_cells(block[[name]], schema))
                written[name] = format_table(values, schema)[name]
        header = shard.is_first and number == 0
        separator = block.attrs.get("separator", schema.separator)
        yield from write_delimited(written.fillna(""), separator=separator, header=header)


def _typed(
    blocks: Iterable[pd.DataFrame], schema: TableSchema, unchanged: Sequence[str]
) -> Iterator[pd.DataFrame]:
    """Yields the blocks with cells of the columns' dtypes, except those of `unchanged` columns."""
    from gcvae.cells.data_frames import with_columns
    from gcvae.cells.values import parse_table

    for block in blocks:
        names = [name for name in block.columns if name in schema]
        kept = _dropped_cells(block, schema) | {name: block[name] for name in unchanged}
        typed = with_columns(parse_table(block[names], schema), kept)
        typed = typed[[name for name in schema.names if name in typed]]
        types = block.attrs.get("parquet_types", {})
        passed_on = (c.name for c in schema if c.kind.outcomes is Outcomes.KEYS)
        typed.attrs["parquet_types"] = {name: types[name] for name in passed_on if name in types}
        if DRAW_COLUMN not in schema and DRAW_COLUMN in block:
            typed.insert(0, DRAW_COLUMN, block[DRAW_COLUMN])
        yield typed


def _dropped_cells(block: pd.DataFrame, schema: TableSchema) -> dict[str, pd.Series[Any]]:
    """Returns the cells of dropped columns, whose format the schema does not describe: numbers and
    booleans unchanged, all other cells as text."""
    from pandas.api.types import is_numeric_dtype

    from gcvae.cells.values import parse_table

    dropped = {c.name: block[c.name] for c in schema if c.drop and c.name in block}
    texts = [name for name, series in dropped.items() if not is_numeric_dtype(series)]
    identifiers = TableSchema(tuple(replace(schema[name], drop=False) for name in texts))
    read = parse_table(block[texts], identifiers)
    return dropped | {name: read[name] for name in texts}
