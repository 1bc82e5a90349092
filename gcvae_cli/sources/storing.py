"""Writes the output table of a command to a database or bucket."""

from __future__ import annotations

import shutil
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from gcvae.errors import MissingPackageError
from gcvae_cli.errors import OutputError, WrongUsageError
from gcvae_sources.urls import hidden_password, is_url


class IfExists(StrEnum):
    """Action if the table to write exists in the database: refuse, add rows, or replace it."""

    FAIL = "fail"
    APPEND = "append"
    REPLACE = "replace"


def local_output(output: str, folder: Path) -> str:
    """Returns the path of the file into which a command writes its table: the output itself or, if
    that is a URL, a file in `folder`."""
    if not is_url(output):
        return output
    parts = urlsplit(output)
    if parts.scheme == "s3":
        return str(folder / Path(parts.path).name)
    return str(folder / "rows.parquet")


def store(path: Path, output: str, name: str | None, if_exists: IfExists) -> None:
    """Uploads a file of rows to a bucket, or inserts its rows into a table of a database.

    Args:
        path: The file, at the path from `local_output`.
        output: URL of the object in the bucket, or of the database.
        name: Name of the table of the database.
        if_exists: Whether an existing table is refused, extended or replaced.

    Raises:
        TargetError, OutputError: The database or bucket refuses the rows; nothing was changed.
    """
    if urlsplit(output).scheme == "s3":
        _upload(path, output)
        return
    from gcvae_sources.databases import insert_rows

    insert_rows(output, {str(name): path}, if_exists.value)


def require_writable(output: str, name: str | None, if_exists: IfExists) -> None:
    """Checks that a command can write its rows to a database, before the command begins its work.

    Files and buckets are not checked.

    Args:
        output: Output of the command: a path or URL.
        name: Name of the table of the database; None if not given.

    Raises:
        WrongUsageError: A database has no table name, a file or bucket has one, or the URL is of a
            web server.
        TargetError: The table exists and must not be changed, or the database does not answer.
        MissingPackageError: SQLAlchemy is not installed.
    """
    scheme = urlsplit(output).scheme if is_url(output) else ""
    if scheme in ("", "s3"):
        if name is not None:
            raise WrongUsageError("--into is for databases; --output is a file")
        return
    if scheme in ("http", "https"):
        raise WrongUsageError(f"{scheme}:// cannot be written to; give a file or a database")
    if name is None:
        raise WrongUsageError("--into NAME is missing: the table of the database to write")
    try:
        from gcvae_sources.databases import require_table
    except ModuleNotFoundError as error:
        raise MissingPackageError("databases", "sqlalchemy", "databases") from error
    require_table(output, name, if_exists.value)


def _upload(path: Path, url: str) -> None:
    from pyarrow.fs import FileSystem

    try:
        system, key = FileSystem.from_uri(url)
        with path.open("rb") as file, system.open_output_stream(key) as stream:
            shutil.copyfileobj(file, stream)
    except (OSError, ValueError) as error:
        raise OutputError(f"{hidden_password(url)}: {str(error).splitlines()[0]}") from error
