"""Reads uploaded tables within the limits of the settings, and infers their schemas.

The functions that take a file are called in a separate process (`service/table_process.py`). A
table is read column by column or in blocks of rows, so that it need not fit into memory. pandas and
pyarrow are imported inside functions, because the API process does not need them.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

from catalog.records import Dataset
from gcvae.errors import Problem, TableError
from gcvae.files.row_documents import numbered, pointing
from gcvae.files.table_archives import is_archive
from gcvae.schema.columns import TableSchema
from models_store import Store
from service.errors import TableLimitError, TooLargeError
from service.settings import ServiceSettings

if TYPE_CHECKING:
    from gcvae.files.source_columns import SourceColumns
    from gcvae.files.text_tables import ReadSoFar


_GZIP, _PARQUET = b"\x1f\x8b", b"PAR1"


@dataclass(frozen=True)
class CheckedRows:
    """Size of an uploaded table whose rows fit a model's schema, and the rows if they are few.

    Attributes:
        frame: Pickled data frame of the rows; None if they are so many that a job is needed.
    """

    rows: int
    columns: int
    frame: bytes | None


def check_table(
    file: BinaryIO, schema: dict[str, Any] | None, encoding: str | None, settings: ServiceSettings
) -> dict[str, Any]:
    """Reads a table, and infers what the schema does not specify.

    Returns:
        `format`, `rows`, `columns`, `schema` and `warnings` of the dataset's record.

    Args:
        schema: Schema members that the user has specified; None for none.
        encoding: Encoding of the text; None for UTF-8.

    Raises:
        TableError: The file is not a table, or not one that can be modelled.
        SchemaError: The schema is malformed or contradicts the table.
        TableLimitError: The number of rows, columns, cells or levels (categories), or the length of
            a cell, exceeds its limit.
        TooLargeError: The table has too many bytes.
    """
    from gcvae.profiling.infer import complete_schema

    with checked_columns(file, settings, encoding) as source:
        inferred = complete_schema(source, schema)
        check_levels(inferred.schema, settings)
        return {
            "format": table_format(file),
            "rows": len(source),
            "columns": len(source.names),
            "schema": inferred.schema.to_json(),
            "warnings": [*inferred.warnings],
        }


def profile_of(
    file: BinaryIO, schema: TableSchema, encoding: str | None, settings: ServiceSettings
) -> dict[str, Any]:
    """Returns the JSON profile of a table: a summary of each column, and the schema's rules."""
    from gcvae.files.typed_columns import typed_columns
    from gcvae.profiling.profile import profile_table

    with (
        checked_columns(file, settings, encoding) as source,
        typed_columns(source, schema) as table,
    ):
        return profile_table(table, schema, source.line_of)


def first_rows_of(
    file: BinaryIO, n_rows: int, encoding: str | None
) -> tuple[list[str], list[list[str | None]]]:
    """Returns (column names, first `n_rows` rows as strings) of a table; None is a missing cell."""
    import pandas as pd

    from gcvae.files.table_reader import TableReader

    frame = next(TableReader(file, encoding=encoding).chunks(n_rows)).head(n_rows)
    rows = frame.itertuples(index=False, name=None)
    texts = [[None if pd.isna(cell) else str(cell) for cell in row] for row in rows]
    return [str(name) for name in frame], texts


def check_rows(
    file: BinaryIO,
    schema: TableSchema,
    encoding: str | None,
    settings: ServiceSettings,
    *,
    is_json: bool,
) -> CheckedRows:
    """Checks rows to score, impute or encode against a model's schema. Returns their size, and also
    the rows if they are few enough to be answered without a job.

    Args:
        is_json: Whether the file was created from the `rows` of a JSON body.

    Raises:
        TableError: The file is not a table, has no modelled column, or has a cell that cannot be
            converted to its column's kind.
        UnknownColumnError: A column is not in the schema.
        TableLimitError, TooLargeError: There are too many rows or bytes, or a cell is too long.
    """
    from gcvae.cells.values import parse_table, with_absent_columns
    from gcvae.files.table_reader import TableReader, parsed_chunks
    from gcvae.files.tables import read_table

    with checked_columns(file, settings, encoding) as source:
        rows, columns = len(source), len(source.names)
    if rows > settings.max_inline_score_rows and not is_json:
        for _ in parsed_chunks(TableReader(file, encoding=encoding), schema):
            pass  # reading raises errors, as it would in the job
        return CheckedRows(rows, columns, None)
    dropped = {column.name for column in schema if column.drop}
    file.seek(0)
    frame = read_table(file, dropped=dropped, encoding=encoding)
    if is_json:
        with pointing("/rows"):
            parse_table(numbered(frame), schema)
    else:
        parse_table(with_absent_columns(frame, schema), schema)
    content = pickle.dumps(frame)
    is_small = rows <= settings.max_inline_score_rows and len(content) <= settings.max_json_bytes
    return CheckedRows(rows, columns, content if is_small else None)


@contextmanager
def checked_columns(
    file: BinaryIO, settings: ServiceSettings, encoding: str | None = None
) -> Iterator[SourceColumns]:
    """Context manager that checks a table's size and opens it for reading one column at a time.

    Raises:
        TableError: The file is not a table.
        TableLimitError: The number of rows, columns or cells, or the length of a cell, exceeds its
            limit.
        TooLargeError: The table has too many bytes.
    """
    from gcvae.files.source_columns import source_columns
    from gcvae.files.table_reader import TableReader

    if table_format(file) == "parquet":
        check_parquet(file, settings)
    check = partial(_check_read, settings=settings)
    with source_columns(TableReader(file, encoding=encoding, check=check)) as source:
        check_size(len(source), len(source.names), settings)
        yield source


@contextmanager
def stored_table(store: Store, dataset: Dataset) -> Iterator[BinaryIO]:
    """Context manager that copies an uploaded table from the store to a temporary file.

    Raises:
        CorruptedError: The stored bytes differ from those that were uploaded.
    """
    with tempfile.TemporaryFile(prefix="gcvae-dataset-") as file:
        for chunk in store.stream(dataset.object_key, dataset.sha256):
            file.write(chunk)
        yield file


def table_format(file: BinaryIO) -> str:
    """Returns the format of a file by its first bytes: csv, csv.gz, parquet or zip."""
    file.seek(0)
    start = file.read(len(_PARQUET))
    file.seek(0)
    if start.startswith(_GZIP):
        return "csv.gz"
    if is_archive(start):
        return "zip"
    return "parquet" if start == _PARQUET else "csv"


def check_size(rows: int, columns: int, settings: ServiceSettings, at_least: str = "") -> None:
    """Checks that a table does not have too many rows, columns or cells.

    Args:
        at_least: Words before the count in an error: "at least " while a file is being read, as
            the table may have more rows than were read so far; else "".

    Raises:
        TableLimitError: A count exceeds its limit.
    """
    for what, count, field in (
        ("columns", columns, "max_columns"),
        ("rows", rows, "max_rows"),
        ("cells", rows * columns, "max_cells"),
    ):
        limit = getattr(settings, field)
        if count > limit:
            found = f"{at_least}{count} {what}"
            problem = Problem(found, expected=f"at most {limit}")
            raise TableLimitError(f"the table has {found}", limit, field, problem)


def check_levels(schema: TableSchema, settings: ServiceSettings) -> None:
    """Checks that no modelled column of a schema has too many levels (categories).

    Raises:
        TableLimitError: A column has too many levels.
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


def _check_read(read: ReadSoFar, settings: ServiceSettings) -> None:
    if read.n_bytes > settings.max_table_bytes:
        what = f"the table has more than {settings.max_table_bytes} bytes after decompression"
        raise TooLargeError(what, settings.max_table_bytes, "max_table_bytes")
    check_size(read.rows, read.columns, settings, at_least="at least ")
    check_cell(read.cell_characters, settings, line=read.line)


def check_cell(characters: int, settings: ServiceSettings, **location: Any) -> None:
    """Checks that the longest cell of a table is not too long.

    Args:
        characters: Length of the longest cell.
        **location: Location of the cell for errors: `line=` and a number, or `column=` and a name.

    Raises:
        TableLimitError: The cell is too long.
    """
    limit = settings.max_cell_characters
    if characters > limit:
        expected = f"at most {limit} in a cell"
        problem = Problem(
            f"a cell has at least {characters} characters", **location, expected=expected
        )
        raise TableLimitError(str(problem), limit, "max_cell_characters", problem)


def check_parquet(file: BinaryIO, settings: ServiceSettings) -> None:
    """Checks a Parquet file before it is decoded, because a small file can expand to a huge table.

    Raises:
        TableError: The file is not a valid Parquet file.
        TableLimitError: The number of rows, columns or cells, or the length of a cell, exceeds its
            limit.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from gcvae.files.parquet_files import longest_cells, opened_parquet

    try:
        metadata = pq.read_metadata(file)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise TableError(
            Problem(f"the Parquet file cannot be read: {error}", expected="a whole Parquet file")
        ) from error
    check_size(metadata.num_rows, metadata.num_columns, settings)
    file.seek(0)
    for name, characters in longest_cells(opened_parquet(file)):
        check_cell(characters, settings, column=name)
