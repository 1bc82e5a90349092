"""A table that comes in blocks as the bytes of one file: `concat(stream(blocks)) = file(table)`.

How the rows are cut into blocks does not show in CSV, JSON and JSON lines; in Parquet each block is
a row group.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pyarrow import parquet

from gcvae.arrow_tables import arrow_table
from gcvae.delimited import write_delimited
from gcvae.errors import TableError
from gcvae.pieces import WHOLE, Piece
from gcvae.schema import Column, TableSchema
from gcvae.tables import format_table

Blocks = Iterable[pd.DataFrame]

MEDIA_TYPES = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
}
"""The formats, and what HTTP calls them."""


def stream_table(
    blocks: Blocks, schema: TableSchema, format: str, piece: Piece = WHOLE
) -> Iterator[bytes]:
    """The bytes of one file, piece by piece, in the memory of one block.

    Args:
        blocks: Values, as `parse_table` and `Synthesizer.sample_blocks` give them; at least one.
        schema: Of the table.
        format: `csv`, spelled like the schema's table; `parquet`; `json`, a list of objects, one a
            row; `jsonl`, one such object a line. In JSON dates are text as in the CSV, and
            missing is null.
        piece: Of the file that the blocks are. Joined, the pieces are the file; those of Parquet
            are files of their own, which `join_parquet` makes one.

    Raises:
        TableError: There is no such format.
    """
    if format not in _WRITERS:
        raise TableError(f"there is no table format {format!r}, but {', '.join(_WRITERS)}")
    return _WRITERS[format](blocks, schema, piece)


def join_parquet(files: Iterable[Path]) -> Iterator[bytes]:
    """The bytes of one Parquet file with the row groups of all files, in order.

    They are those that `stream_table` gives for all blocks together. In the memory of a row group.
    """
    sink = _Sink()
    writer: parquet.ParquetWriter | None = None
    for path in files:
        with parquet.ParquetFile(path) as file:
            for number in range(file.num_row_groups):
                group = file.read_row_group(number)
                if writer is None:
                    writer = parquet.ParquetWriter(sink, group.schema)
                writer.write_table(group)
                yield sink.take()
    if writer is not None:
        writer.close()
    yield sink.take()


def _csv(blocks: Blocks, schema: TableSchema, piece: Piece) -> Iterator[bytes]:
    for number, block in enumerate(blocks):
        header = piece.is_first and number == 0
        yield from write_delimited(format_table(block, schema), header=header)


def _json(blocks: Blocks, schema: TableSchema, piece: Piece) -> Iterator[bytes]:
    start = b"[" if piece.is_first else b",\n"
    for block in blocks:
        rows = [*_row_documents(block, schema)]
        if rows:
            yield start + b",\n".join(rows)
            start = b",\n"
    if piece.is_last:
        yield b"]\n" if start != b"[" else b"[]\n"


def _jsonl(blocks: Blocks, schema: TableSchema, piece: Piece) -> Iterator[bytes]:
    for block in blocks:
        yield b"".join(row + b"\n" for row in _row_documents(block, schema))


def _row_documents(block: pd.DataFrame, schema: TableSchema) -> Iterator[bytes]:
    columns = [_json_cells(block[name], schema[name]) for name in block.columns]
    for cells in zip(*columns, strict=True):
        row = dict(zip(block.columns, cells, strict=True))
        yield json.dumps(row, ensure_ascii=False, allow_nan=False).encode()


def _json_cells(series: pd.Series[Any], column: Column) -> list[Any]:
    """Plain values; a date is text as the schema's table writes it; missing is None."""
    cells = series.tolist()
    if column.datetime_format is not None:
        cells = format_table(series.to_frame(), TableSchema((column,)))[column.name].tolist()
    return [None if gone else cell for cell, gone in zip(cells, series.isna(), strict=True)]


def _parquet(blocks: Blocks, schema: TableSchema, piece: Piece) -> Iterator[bytes]:
    sink = _Sink()
    writer: parquet.ParquetWriter | None = None
    for block in blocks:
        table = arrow_table(block, schema, like=writer.schema if writer else None)
        if writer is None:
            writer = parquet.ParquetWriter(sink, table.schema)
        writer.write_table(table)
        yield sink.take()
    if writer is not None:
        writer.close()
    yield sink.take()


class _Sink(io.RawIOBase):
    """A file that can only grow, and forgets what was taken from it."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._n_bytes = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._n_bytes  # Parquet's footer holds positions in the whole file

    def write(self, data: Any) -> int:
        self._pieces.append(bytes(data))
        self._n_bytes += len(data)
        return len(data)

    def take(self) -> bytes:
        """What was written since the last time."""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


_WRITERS: dict[str, Callable[[Blocks, TableSchema, Piece], Iterator[bytes]]] = {
    "csv": _csv,
    "parquet": _parquet,
    "json": _json,
    "jsonl": _jsonl,
}
