"""Copies a table from where it is into a file that commands can read."""

from __future__ import annotations

import shutil
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gcvae_cli.errors import CommandError, NotInstalledError, WrongUsageError
from gcvae_cli.inputs import existing_file, hidden_password, is_url

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ROWS = 10_000
_SECONDS = 60.0


def fetched(source: str, name: str | None, query: str | None, folder: Path) -> Path:
    """Returns the path of a file with the table: the source itself if commands can read it, else a
    copy in the folder.

    Args:
        source: A path, or a URL of a database (SQLAlchemy), a bucket (`s3://`) or a web server.
        name: Name of the table of a database, or of the sheet of a workbook; None for neither.
        query: SELECT statement for a database; None for none.

    Raises:
        WrongUsageError: The source does not exist, or `name` or `query` does not fit it.
        CommandError: The source cannot be read.
        NotInstalledError: Reading it needs a package that is not installed.
    """
    scheme = urlsplit(source).scheme.lower() if is_url(source) else ""
    if scheme in ("http", "https", "s3"):
        path = (_downloaded if scheme.startswith("http") else _copied)(source, folder)
    elif scheme:
        return _selected(source, name, query, folder)
    else:
        path = Path(source)
        existing_file(path)
    if query is not None:
        raise WrongUsageError("--query is for databases; the table is a file")
    if not scheme and not path.is_file():  # a pipe
        return path
    convert = next((make for end, make in _CONVERTERS.items() if _ends(path, end)), None)
    if convert is None:
        if name is not None:
            raise WrongUsageError("--table is for databases and workbooks; the table is a file")
        return path
    return _written(folder, path.name.split(".")[0], convert(path, name))


def _ends(path: Path, ending: str) -> bool:
    return path.name.lower().endswith(ending)


@contextmanager
def _reported(source: str) -> Iterator[None]:
    """Context manager that converts errors of reading a source."""
    try:
        yield
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise CommandError(f"{hidden_password(source)}: {str(reason).splitlines()[0]}") from error


def _local(source: str, folder: Path) -> Path:
    return folder / (Path(urlsplit(source).path).name or "table.csv")


def _downloaded(url: str, folder: Path) -> Path:
    path = _local(url, folder)
    with (
        _reported(url),
        urllib.request.urlopen(url, timeout=_SECONDS) as response,
        path.open("wb") as file,
    ):
        shutil.copyfileobj(response, file)
    return path


def _copied(url: str, folder: Path) -> Path:
    from pyarrow.fs import FileSystem

    path = _local(url, folder)
    with _reported(url):
        system, key = FileSystem.from_uri(url)
        with system.open_input_stream(key, compression=None) as stream, path.open("wb") as file:
            shutil.copyfileobj(stream, file)
    return path


def _selected(url: str, name: str | None, query: str | None, folder: Path) -> Path:
    if (name is None) == (query is None):
        raise WrongUsageError("a database needs one of --table NAME and --query 'SELECT …'")
    try:
        from gcvae_cli.databases.sql import selected_rows
    except ModuleNotFoundError as error:
        raise _not_installed("sqlalchemy", "databases") from error
    batches = selected_rows(url, name, query, _BATCH_ROWS)
    return _written(folder, name or "query", batches)


def _sheet(path: Path, name: str | None) -> Iterator[pa.Table]:
    import pandas as pd
    import pyarrow as pa

    try:
        from python_calamine import CalamineError
    except ModuleNotFoundError as error:
        raise _not_installed("python-calamine", "files") from error
    try:
        with _reported(str(path)), pd.ExcelFile(path, engine="calamine") as book:
            if name is not None and name not in book.sheet_names:
                listed = ", ".join(map(str, book.sheet_names))
                raise WrongUsageError(f"--table {name}: {path} has the sheets {listed}")
            frame = book.parse(0 if name is None else name)
    except CalamineError as error:
        raise CommandError(f"{path}: {error}") from error
    for column in frame.select_dtypes("object"):
        kinds = {type(cell) for cell in frame[column].dropna()}
        if len(kinds) > 1:  # numbers and texts, as in CSV
            frame[column] = frame[column].map(str, na_action="ignore")
    yield pa.Table.from_pandas(frame.convert_dtypes(), preserve_index=False)


def _json_lines(path: Path, name: str | None) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.json

    _refuse_name(path, name)
    with _reported(str(path)), pa.json.open_json(path) as reader:
        for batch in reader:
            yield pa.Table.from_batches([batch])


def _avro(path: Path, name: str | None) -> Iterator[pa.Table]:
    import pyarrow as pa

    _refuse_name(path, name)
    try:
        import fastavro
    except ModuleNotFoundError as error:
        raise _not_installed("fastavro", "files") from error
    with _reported(str(path)), path.open("rb") as file:
        rows: list[Any] = []
        for row in fastavro.reader(file):
            rows.append(row)
            if len(rows) == _BATCH_ROWS:
                yield pa.Table.from_pylist(rows)
                rows = []
        if rows:
            yield pa.Table.from_pylist(rows)


_CONVERTERS: dict[str, Callable[[Path, str | None], Iterator[pa.Table]]] = {
    ".xlsx": _sheet,
    ".xls": _sheet,
    ".xlsb": _sheet,
    ".ods": _sheet,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".avro": _avro,
}


def _refuse_name(path: Path, name: str | None) -> None:
    if name is not None:
        raise WrongUsageError(f"--table is for databases and workbooks; {path.name} is neither")


def _not_installed(package: str, extra: str) -> NotInstalledError:
    return NotInstalledError(
        f"this table needs the package {package}, which is not installed; "
        f"in the clone of gcvae, `pip install '.[{extra}]'` brings it"
    )


def _written(folder: Path, stem: str, tables: Iterable[pa.Table]) -> Path:
    """Writes tables with the rows of one table into one Parquet file and returns its path.

    Types that differ between the parts, such as of a column that is missing at first, become one
    type that holds both.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts: list[Path] = []
    for table in tables:
        parts.append(folder / f"part-{len(parts)}.parquet")
        pq.write_table(table, parts[-1])
    if not parts:
        raise WrongUsageError("the table has no rows")
    schemas = [pq.read_schema(part).remove_metadata() for part in parts]
    schema = pa.unify_schemas(schemas, promote_options="permissive")
    path = folder / f"{stem}.parquet"
    with pq.ParquetWriter(path, schema) as writer:
        for part in parts:
            table = pq.read_table(part)
            writer.write_table(
                pa.table([table[field.name].cast(field.type) for field in schema], schema=schema)
            )
            part.unlink()
    return path
