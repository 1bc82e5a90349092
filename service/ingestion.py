"""From bytes to a table with a schema, within the limits.

The functions that take a file run in a process of their own (`service/table_process.py`). A table
need not fit into memory there: it is read column by column, or block by block.

pandas and pyarrow are imported where they are used: the API has none of them.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

from catalog.records import Dataset
from gcvae.errors import Problem, TableError
from gcvae.files.row_documents import numbered, pointing
from gcvae.files.table_archives import is_archive
from gcvae.schema.columns import TableSchema
from gcvae.schema.inferred_schema import InferredSchema
from models_store import Store
from service.errors import TableLimitError, TooLargeError
from service.settings import ServiceSettings

if TYPE_CHECKING:
    import pandas as pd

    from gcvae.files.source_columns import SourceColumns
    from gcvae.files.text_tables import ReadSoFar


_GZIP, _PARQUET = b"\x1f\x8b", b"PAR1"


@dataclass(frozen=True)
class CheckedTable:
    """What an upload turned out to be."""

    format: str
    rows: int
    columns: int
    inferred: InferredSchema


@dataclass(frozen=True)
class CheckedRows:
    """Rows that a model's schema fits.

    Attributes:
        frame: the pickled frame of few rows, for inline work; None where a job is to read them.
    """

    rows: int
    columns: int
    frame: bytes | None


def check_table(
    file: BinaryIO, schema: dict[str, Any] | None, encoding: str | None, settings: ServiceSettings
) -> CheckedTable:
    """The format, size and completed schema of a table.

    Args:
        schema: what is said of it.
        encoding: of its text, None for UTF-8.

    Raises:
        TableError: it is no table, or not one that can be modelled.
        SchemaError: the schema is malformed or contradicts the table.
        TableLimitError: rows, columns, cells, levels or a cell are over their limits.
        TooLargeError: it holds too many bytes.
    """
    with checked_columns(file, settings, encoding) as source:
        inferred = _infer_within_limits(source, schema, settings)
        return CheckedTable(table_format(file), len(source), len(source.names), inferred)


def profile_of(
    file: BinaryIO, schema: TableSchema, encoding: str | None, settings: ServiceSettings
) -> dict[str, Any]:
    """The profile of a table under its schema."""
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
    """The names of the columns, and the first rows as texts, of a table that has been checked."""
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
    """The size of rows that are to be scored, completed or encoded, and few of them themselves.

    Args:
        is_json: whether they were made of the `rows` of a JSON body.

    Raises:
        TableError: the rows are no table, have no modelled column, or a cell can not be read
            under the schema.
        UnknownColumnError: a column that the schema does not have.
        TableLimitError, TooLargeError: as `check_table`.
    """
    from gcvae.files.table_reader import TableReader, parsed_chunks

    with checked_columns(file, settings, encoding) as source:
        rows, columns = len(source), len(source.names)
    if rows > settings.max_inline_score_rows and not is_json:
        for _ in parsed_chunks(TableReader(file, encoding=encoding), schema):
            pass  # as the job will read them
        return CheckedRows(rows, columns, None)
    dropped = {column.name for column in schema if column.drop}
    frame = _parsed(file, schema, encoding, dropped, is_json=is_json)
    content = pickle.dumps(frame)
    is_small = rows <= settings.max_inline_score_rows and len(content) <= settings.max_json_bytes
    return CheckedRows(rows, columns, content if is_small else None)


def _parsed(
    file: BinaryIO,
    schema: TableSchema,
    encoding: str | None,
    dropped: Collection[str],
    *,
    is_json: bool,
) -> pd.DataFrame:
    """The rows as they were read; the schema fits them."""
    from gcvae.cells.values import parse_table, with_absent_columns
    from gcvae.files.tables import read_table

    file.seek(0)
    frame = read_table(file, dropped=dropped, encoding=encoding)
    if is_json:
        with pointing("/rows"):
            parse_table(numbered(frame), schema)
    else:
        parse_table(with_absent_columns(frame, schema), schema)
    return frame


@contextmanager
def checked_columns(
    file: BinaryIO, settings: ServiceSettings, encoding: str | None = None
) -> Iterator[SourceColumns]:
    """The columns of a table, one at a time.

    Raises:
        TableError: the file is no table.
        TableLimitError: rows, columns, cells or a cell are over their limits.
        TooLargeError: it holds too many bytes.
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
    """An uploaded table on this disk, as it was when it came.

    Raises:
        CorruptedError: the stored bytes are not those that came.
    """
    with tempfile.TemporaryFile(prefix="gcvae-dataset-") as file:
        for chunk in store.stream(dataset.object_key, dataset.sha256):
            file.write(chunk)
        yield file


def _infer_within_limits(
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


def table_format(file: BinaryIO) -> str:
    """`csv`, `csv.gz`, `parquet`, or `zip` of a database, by the first bytes."""
    file.seek(0)
    start = file.read(len(_PARQUET))
    file.seek(0)
    if start.startswith(_GZIP):
        return "csv.gz"
    if is_archive(start):
        return "zip"
    return "parquet" if start == _PARQUET else "csv"


def check_size(rows: int, columns: int, settings: ServiceSettings, at_least: str = "") -> None:
    """Let tables within the limits pass.

    Args:
        at_least: said of the counts where there may be more.

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
            found = f"{at_least}{count} {what}"
            problem = Problem(found, expected=f"at most {limit}")
            raise TableLimitError(f"the table has {found}", limit, field, problem)


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


def _check_read(read: ReadSoFar, settings: ServiceSettings) -> None:
    """Let a text file pass that is within the limits so far.

    Raises:
        TableLimitError: there are too many rows, columns or cells, or a cell is too long.
        TooLargeError: there are too many bytes.
    """
    if read.n_bytes > settings.max_table_bytes:
        what = f"the table has more than {settings.max_table_bytes} bytes after decompression"
        raise TooLargeError(what, settings.max_table_bytes, "max_table_bytes")
    check_size(read.rows, read.columns, settings, at_least="at least ")
    check_cell(read.cell_characters, settings, line=read.line)


def check_cell(characters: int, settings: ServiceSettings, **place: Any) -> None:
    """Let a table pass whose longest cell has so many characters.

    Args:
        place: of that cell, as of a Problem.

    Raises:
        TableLimitError: they are too many.
    """
    limit = settings.max_cell_characters
    if characters > limit:
        expected = f"at most {limit} in a cell"
        problem = Problem(
            f"a cell has at least {characters} characters", **place, expected=expected
        )
        raise TableLimitError(str(problem), limit, "max_cell_characters", problem)


def check_parquet(file: BinaryIO, settings: ServiceSettings) -> None:
    """Let a Parquet file within the limits pass. Looks at the footer before the columns, and at
    cells before all of a column are read: a small file can unfold to an enormous table.

    Raises:
        TableError: it is none.
        TableLimitError: rows, columns, cells or a cell are over their limits.
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
