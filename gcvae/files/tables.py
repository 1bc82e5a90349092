"""Reads and writes complete tables.

    read_table: file -> cells as written        write_table: values -> file

`write(parse(read(file))) = file`, byte for byte, for a CSV file with commas and LF line ends that
quotes cells only where necessary and whose columns each have a consistent format.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO

import pandas as pd

from gcvae.cells.data_frames import data_frame
from gcvae.errors import EmptyTableError, TableError
from gcvae.files.table_reader import TableReader
from gcvae.files.table_stream import stream_table
from gcvae.schema.columns import TableSchema

FORMATS = ("csv", "csv.gz", "parquet")

Source = str | Path | bytes | BinaryIO
Destination = str | Path | BinaryIO


def read_table(
    source: Source,
    *,
    dropped: Collection[str] = (),
    encoding: str | None = None,
    may_be_empty: bool = False,
) -> pd.DataFrame:
    """Returns the table in a file: the unchanged cells of a text file, which may be compressed by
    gzip, as strings, or the typed values of a Parquet file.

    Args:
        source: A path, the bytes, or an open binary file.
        dropped: Columns of a Parquet file that are left out if their type is not supported.
        encoding: Python's name of a text file's encoding; None for UTF-8.
        may_be_empty: Whether to accept a table without rows.

    Raises:
        TableError: The file is not a table, or the encoding does not exist; errors name the lines.
    """
    reader = TableReader(io.BytesIO(_bytes_of(source)), encoding=encoding)
    try:
        return reader.read(dropped)
    except EmptyTableError as error:
        if not may_be_empty:
            raise
        return pd.DataFrame(columns=list(error.names), dtype=object)


def write_table(
    frame: pd.DataFrame, destination: Destination, schema: TableSchema, format: str | None = None
) -> None:
    """Writes a table of typed values to a file, as CSV in the schema's formats or as Parquet.

    Args:
        frame: Values, as `parse_table` returns them; a frame of pandas, polars or Arrow.
        destination: A path or an open binary file.
        format: "csv", "csv.gz" or "parquet"; None to choose by the path's extension.

    Raises:
        TableError: The format does not exist, or a value does not fit the type of its Parquet
            column.
    """
    chosen = format if format is not None else _format_of(destination)
    if chosen not in FORMATS:
        raise TableError(f"there is no table format {chosen!r}, but {', '.join(FORMATS)}")
    if isinstance(destination, str | Path):
        with open(destination, "wb") as file:
            write_table(frame, file, schema, chosen)
        return
    chunks = stream_table([data_frame(frame)], schema, chosen.removesuffix(".gz"))
    if chosen == "csv.gz":
        # Without file name and time in the header, so that equal tables give equal files.
        with gzip.GzipFile("", "wb", fileobj=destination, mtime=0) as packed:
            packed.writelines(chunks)
    else:
        destination.writelines(chunks)


def _bytes_of(source: Source) -> bytes:
    if isinstance(source, bytes):
        return source
    if not isinstance(source, str | Path):
        return source.read()
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise TableError(f"{source} cannot be read: {error.strerror}") from None


def _format_of(destination: Destination) -> str:
    if not isinstance(destination, str | Path):
        return "csv"
    name = str(destination).lower()
    return "csv.gz" if name.endswith(".gz") else "parquet" if name.endswith(".parquet") else "csv"
