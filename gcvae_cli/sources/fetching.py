"""Copies a table from a database, bucket or web server into a file that commands can read."""

from __future__ import annotations

import shutil
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from gcvae.errors import MissingPackageError
from gcvae_cli.errors import CommandError, WrongUsageError
from gcvae_cli.inputs import existing_file
from gcvae_sources.files import BATCH_ROWS, joined, readable_file
from gcvae_sources.urls import hidden_password, is_url

_SECONDS = 60.0


def fetched(source: str, name: str | None, query: str | None, folder: Path) -> Path:
    """Returns the path of a file with the table: the source itself if commands can read it, else a
    copy in the folder.

    Args:
        source: A path, or a URL of a database (SQLAlchemy), a bucket (`s3://`) or a web server.
        name: Name of the table of a database, or of the sheet of a workbook; None if not given.
        query: SELECT statement for a database; None if not given.

    Raises:
        WrongUsageError: The source does not exist, or `query` is given for a source that is not a
            database.
        SourceError, CommandError: The source cannot be read.
        MissingPackageError: Reading it needs a package that is not installed.
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
    return readable_file(path, name, folder)


@contextmanager
def _reported(source: str) -> Iterator[None]:
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


def _note(text: str) -> None:
    print(f"gcvae: {text}", file=sys.stderr)


def _selected(url: str, name: str | None, query: str | None, folder: Path) -> Path:
    if (name is None) == (query is None):
        raise WrongUsageError("a database needs one of --table NAME and --query 'SELECT …'")
    try:
        from gcvae_sources.databases import selected_rows
    except ModuleNotFoundError as error:
        raise MissingPackageError("databases", "sqlalchemy", "databases") from error
    return joined(folder, selected_rows(url, name, query, BATCH_ROWS, _note))
