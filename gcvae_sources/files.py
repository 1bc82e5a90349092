"""Converts workbooks, JSON Lines and Avro files to Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcvae.errors import MissingPackageError, Problem
from gcvae_sources.errors import SourceError

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 10_000
"""Number of rows that are read at once."""


def readable_file(path: Path, name: str | None, folder: Path) -> Path:
    """Returns the path of a CSV or Parquet file with the table of the file `path`. It is `path`
    itself or, if that file has another format, a new Parquet file in the folder.

    Args:
        name: Name of the sheet of a workbook; None for the first one and for other files.

    Raises:
        SourceError: The file cannot be read, has no sheet `name`, or is not a workbook although
            `name` is given.
        MissingPackageError: Reading it needs a package that is not installed.
    """
    ending = path.suffix.lower()
    if name is not None and ending not in _WORKBOOKS:
        message = f"{path.name} is a file with one table"
        raise SourceError(Problem(message, "/table", expected="a database or a workbook"))
    if ending in _WORKBOOKS:
        return joined(folder, [_sheet(path, name)])
    convert = _CONVERTERS.get(ending)
    return path if convert is None else joined(folder, convert(path))


def joined(folder: Path, tables: Iterable[pa.Table]) -> Path:
    """Writes consecutive parts of a table into one Parquet file in the folder; returns its path.

    If the type of a column differs between parts, for example because all its cells are missing in
    the first part, the column gets a type that represents the cells of all parts.

    Raises:
        SourceError: There are no parts, so the table has no rows.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts: list[Path] = []
    for table in tables:
        parts.append(folder / f"part-{len(parts)}.parquet")
        pq.write_table(table, parts[-1])
    if not parts:
        raise SourceError("the table has no rows")
    schemas = [pq.read_schema(part).remove_metadata() for part in parts]
    schema = pa.unify_schemas(schemas, promote_options="permissive")
    path = folder / "table.parquet"
    with pq.ParquetWriter(path, schema) as writer:
        for part in parts:
            table = pq.read_table(part)
            writer.write_table(
                pa.table([table[field.name].cast(field.type) for field in schema], schema=schema)
            )
            part.unlink()
    return path


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    """Context manager that converts errors while a file is read to SourceError."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise SourceError(f"{path.name}: {str(error).splitlines()[0]}") from error


def _sheet(path: Path, name: str | None) -> pa.Table:
    import pandas as pd
    import pyarrow as pa

    try:
        from python_calamine import CalamineError
    except ModuleNotFoundError as error:
        raise MissingPackageError("workbooks", "python-calamine", "files") from error
    try:
        with _reported(path), pd.ExcelFile(path, engine="calamine") as book:
            if name is not None and name not in book.sheet_names:
                listed = ", ".join(map(str, book.sheet_names))
                message = f"{path.name} has no sheet {name!r}"
                raise SourceError(Problem(message, "/table", expected=f"one of: {listed}"))
            frame = book.parse(0 if name is None else name)
    except CalamineError as error:
        message = f"{path.name} cannot be read as an Excel workbook: {error}"
        raise SourceError(Problem(message, expected='save the sheet as "CSV UTF-8"')) from error
    for column in frame.select_dtypes("object"):
        kinds = {type(cell) for cell in frame[column].dropna()}
        if len(kinds) > 1:  # numbers and strings become strings, as in CSV
            frame[column] = frame[column].map(str, na_action="ignore")
    return pa.Table.from_pandas(frame.convert_dtypes(), preserve_index=False)


def _json_lines(path: Path) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.json

    with _reported(path), pa.json.open_json(path) as reader:
        for batch in reader:
            yield pa.Table.from_batches([batch])


def _avro(path: Path) -> Iterator[pa.Table]:
    import pyarrow as pa

    try:
        import fastavro
    except ModuleNotFoundError as error:
        raise MissingPackageError("Avro files", "fastavro", "files") from error
    with _reported(path), path.open("rb") as file:
        rows: list[Any] = []
        for row in fastavro.reader(file):
            rows.append(row)
            if len(rows) == BATCH_ROWS:
                yield pa.Table.from_pylist(rows)
                rows = []
        if rows:
            yield pa.Table.from_pylist(rows)


_WORKBOOKS = (".xlsx", ".xls", ".xlsb", ".ods")
_CONVERTERS: dict[str, Callable[[Path], Iterator[pa.Table]]] = {
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".avro": _avro,
}
ENDINGS = (*_WORKBOOKS, *_CONVERTERS)
"""Extensions of the files that `readable_file` converts."""
