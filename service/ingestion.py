"""From bytes to a table with a schema, within the limits. Runs in the pool.

A table that is checked need not fit into memory: it is read column by column. Rows that a request
brings to be scored or completed are read whole.

pandas and pyarrow are imported where they are used: they cost a second that the port need not wait.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from catalog.records import Dataset
from gcvae.errors import Problem, TableError
from gcvae.files.row_documents import numbered, pointing
from gcvae.schema.columns import InferredSchema, TableSchema
from models_store import Store
from service.errors import TableLimitError
from service.http.uploads import Upload, table_format, unzip
from service.settings import ServiceSettings

if TYPE_CHECKING:
    import pandas as pd

    from gcvae.files.source_columns import SourceColumns


@dataclass(frozen=True)
class CheckedTable:
    """What an upload turned out to be."""

    format: str
    rows: int
    columns: int
    inferred: InferredSchema


def check_table(upload: Upload, settings: ServiceSettings) -> CheckedTable:
    """The format, size and completed schema of a table.

    Raises:
        TableError: it is no table, or not one that can be modelled.
        SchemaError: the schema is malformed or contradicts the table.
        TableLimitError: rows, columns, cells or levels are over their limits.
    """
    file_format = table_format(upload.file)
    with checked_columns(upload.file, file_format, settings, upload.encoding) as source:
        inferred = infer_within_limits(source, upload.schema, settings)
        return CheckedTable(file_format, len(source), len(source.names), inferred)


@contextmanager
def checked_columns(
    file: BinaryIO, file_format: str, settings: ServiceSettings, encoding: str | None = None
) -> Iterator[SourceColumns]:
    """The columns of a table, one at a time.

    Raises:
        TableError: the file is no table.
        TableLimitError: rows, columns or cells are over their limits.
    """
    from gcvae.files.source_columns import source_columns
    from gcvae.files.table_reader import TableReader

    with _plain(file, file_format, settings) as plain:
        if file_format == "parquet":
            _check_parquet_size(plain, settings)
        with source_columns(TableReader(plain, encoding=encoding)) as source:
            check_size(len(source), len(source.names), settings)
            yield source


def read_frame(
    file: BinaryIO,
    file_format: str,
    settings: ServiceSettings,
    dropped: Collection[str] = (),
    encoding: str | None = None,
) -> pd.DataFrame:
    """The table's cells, as text (CSV) or typed (Parquet).

    Args:
        dropped: Columns of Parquet that may hold lists; they are left out if they do.

    Raises:
        TableError: the file is no table.
        TableLimitError: rows, columns or cells are over their limits.
    """
    from gcvae.files.tables import read_table

    with _plain(file, file_format, settings) as plain:
        if file_format == "parquet":
            _check_parquet_size(plain, settings)
        name = "parquet" if file_format == "parquet" else "csv"
        frame = read_table(plain, format=name, dropped=dropped, encoding=encoding)
    check_size(len(frame), len(frame.columns), settings)
    return frame


def read_rows(upload: Upload, schema: TableSchema, settings: ServiceSettings) -> pd.DataFrame:
    """The rows of an upload, or of a JSON body, as they were read; the schema fits them.

    Raises:
        TableError: the rows are no table, have no modelled column, or a cell can not be read
            under the schema.
        UnknownColumnError: a column that the schema does not have.
        TableLimitError: rows, columns or cells are over their limits.
    """
    from gcvae.cells.values import parse_table, with_absent_columns

    dropped = {column.name for column in schema if column.drop}
    frame = read_frame(upload.file, table_format(upload.file), settings, dropped, upload.encoding)
    if upload.is_json:
        with pointing("/rows"):
            parse_table(numbered(frame), schema)
    else:
        parse_table(with_absent_columns(frame, schema), schema)
    return frame


@contextmanager
def stored_columns(
    store: Store, dataset: Dataset, settings: ServiceSettings
) -> Iterator[SourceColumns]:
    """The columns of an uploaded table, as they were when it came.

    Raises:
        CorruptedError: the stored bytes are not those that came.
    """
    with tempfile.TemporaryFile(prefix="gcvae-dataset-") as file:
        for chunk in store.stream(dataset.object_key, dataset.sha256):
            file.write(chunk)
        file.seek(0)
        with checked_columns(file, dataset.format, settings, dataset.encoding) as source:
            yield source


def infer_within_limits(
    source: SourceColumns, schema: dict[str, Any] | None, settings: ServiceSettings
) -> InferredSchema:
    """The completed schema.

    Raises:
        TableError: nothing in the table can be modelled.
        SchemaError: the schema is malformed or contradicts the table.
        TableLimitError: a column has too many levels.
    """
    from gcvae.profiling.infer import complete_schema

    inferred = complete_schema(source, schema)
    check_levels(inferred.schema, settings)
    return inferred


def check_size(rows: int, columns: int, settings: ServiceSettings) -> None:
    """Let tables within the limits pass.

    Raises:
        TableLimitError: there are too many rows, columns or cells.
    """
    for what, count, field in (
        ("columns", columns, "max_columns"),
        ("rows", rows, "max_rows"),
        ("cells", rows * columns, "max_cells"),
    ):
        limit = getattr(settings, field)
        if count > limit:
            problem = Problem(f"{count} {what}", expected=f"at most {limit}")
            raise TableLimitError(f"the table has {count} {what}", limit, field, problem)


def check_levels(schema: TableSchema, settings: ServiceSettings) -> None:
    """Let columns within the limit pass.

    Raises:
        TableLimitError: a column has too many levels.
    """
    limit = settings.max_levels
    problems = [
        Problem(
            f"{len(column.levels)} levels",
            column=column.name,
            expected=f"at most {limit}, or kind identifier, or drop",
        )
        for column in schema
        if column.is_modelled and column.levels is not None and len(column.levels) > limit
    ]
    if problems:
        raise TableLimitError(str(problems[0]), limit, "max_levels", *problems)


@contextmanager
def _plain(file: BinaryIO, file_format: str, settings: ServiceSettings) -> Iterator[BinaryIO]:
    file.seek(0)
    if file_format != "csv.gz":
        yield file
        return
    with tempfile.TemporaryFile(prefix="gcvae-unzipped-") as plain:
        unzip(file, plain, settings.max_table_bytes)
        yield plain


def _check_parquet_size(file: BinaryIO, settings: ServiceSettings) -> None:
    """Look at the footer before the columns: a small file can unfold to an enormous table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_metadata(file)
    except (pa.ArrowException, OSError) as error:
        raise TableError(
            Problem(f"the Parquet file can not be read: {error}", expected="a whole Parquet file")
        ) from error
    check_size(metadata.num_rows, metadata.num_columns, settings)
    file.seek(0)
