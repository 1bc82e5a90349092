"""Writes chunks of a table as the bytes of one file: `concat(stream(chunks)) = file(table)`.

In CSV, JSON and JSON lines the bytes do not depend on how rows are divided into chunks; in Parquet
each chunk is a row group.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from gcvae.cells.values import format_table, values_of, written_columns
from gcvae.errors import TableError
from gcvae.files.delimited import (
    ROWS_PER_CHUNK,
    delimited_header,
    delimited_rows,
    has_texts,
    without_formulas,
)
from gcvae.files.parquet_files import parquet_bytes
from gcvae.files.shards import WHOLE, FileShard
from gcvae.files.to_arrow import arrow_table
from gcvae.schema.columns import Column, TableSchema

Chunks = Iterable[pd.DataFrame]

MEDIA_TYPES = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
}
"""Media type of each file format."""


def stream_table(
    chunks: Chunks,
    schema: TableSchema,
    format: str,
    shard: FileShard = WHOLE,
    *,
    escape_formulas: bool = False,
) -> Iterator[bytes]:
    """Yields the bytes of one file, chunk by chunk, so that memory holds one chunk.

    Args:
        chunks: Typed values, as `parse_table` returns them; at least one chunk.
        format: `csv`, with numbers and dates in the schema's formats; `parquet`; `json`, a list
            with an object for each row; `jsonl`, one such object per line. In JSON, dates are
            written as in CSV, and missing cells are null.
        shard: Whether the chunks are the first and the last part of the file. In CSV and JSON the
            concatenated shards are the file; in Parquet each shard is a separate file, and
            `join_parquet` combines them.
        escape_formulas: Whether to write ' before those cells of a CSV file that a spreadsheet
            would evaluate as formulas. Column names and other formats are not changed.

    Raises:
        TableError: The format does not exist.
    """
    if format not in _WRITERS:
        raise TableError(f"there is no table format {format!r}, but {', '.join(_WRITERS)}")
    is_escaped = escape_formulas and format == "csv"
    write = partial(_csv, escape_formulas=True) if is_escaped else _WRITERS[format]
    return write((values_of(chunk, schema) for chunk in chunks), schema, shard)


def join_parquet(files: Iterable[Path]) -> Iterator[bytes]:
    """Yields the bytes of one Parquet file that contains the row groups of several files, in order.

    The bytes equal those that `stream_table` yields for all chunks together. Memory holds one row
    group.
    """

    def groups() -> Iterator[pa.Table]:
        for path in files:
            with parquet.ParquetFile(path) as file:
                for number in range(file.num_row_groups):
                    yield file.read_row_group(number)

    return parquet_bytes(groups())


def _csv(
    chunks: Chunks, schema: TableSchema, shard: FileShard, escape_formulas: bool = False
) -> Iterator[bytes]:
    texts = {column.name for column in schema if escape_formulas and has_texts(column)}
    for number, chunk in enumerate(chunks):
        if shard.is_first and number == 0:
            yield delimited_header(chunk.columns, schema.separator)
        for start in range(0, len(chunk), ROWS_PER_CHUNK):
            cells = written_columns(chunk.iloc[start : start + ROWS_PER_CHUNK], schema)
            for name in texts & cells.keys():
                cells[name] = without_formulas(cells[name])
            yield delimited_rows([*cells.values()], schema.separator)


def _json(chunks: Chunks, schema: TableSchema, shard: FileShard) -> Iterator[bytes]:
    start = b"[" if shard.is_first else b",\n"
    for chunk in chunks:
        rows = [*_row_documents(chunk, schema)]
        if rows:
            yield start + b",\n".join(rows)
            start = b",\n"
    if shard.is_last:
        yield b"]\n" if start != b"[" else b"[]\n"


def _jsonl(chunks: Chunks, schema: TableSchema, shard: FileShard) -> Iterator[bytes]:
    for chunk in chunks:
        yield b"".join(row + b"\n" for row in _row_documents(chunk, schema))


def _row_documents(chunk: pd.DataFrame, schema: TableSchema) -> Iterator[bytes]:
    columns = [_json_cells(chunk[name], schema[name]) for name in chunk.columns]
    for cells in zip(*columns, strict=True):
        row = dict(zip(chunk.columns, cells, strict=True))
        yield json.dumps(row, ensure_ascii=False, allow_nan=False).encode()


def _json_cells(series: pd.Series[Any], column: Column) -> list[Any]:
    cells = series.tolist()
    if column.datetime_format is not None:
        cells = format_table(series.to_frame(), TableSchema((column,)))[column.name].tolist()
    return [None if gone else cell for cell, gone in zip(cells, series.isna(), strict=True)]


def _parquet(chunks: Chunks, schema: TableSchema, shard: FileShard) -> Iterator[bytes]:
    def tables() -> Iterator[pa.Table]:
        like = None
        for chunk in chunks:
            table = arrow_table(chunk, schema, like=like)
            like = table.schema
            yield table

    return parquet_bytes(tables())


_WRITERS: dict[str, Callable[[Chunks, TableSchema, FileShard], Iterator[bytes]]] = {
    "csv": _csv,
    "parquet": _parquet,
    "json": _json,
    "jsonl": _jsonl,
}
