"""Functions that read from, write to or test a connection.

Each call runs in a separate process (`service/table_process.py`). Modules that need pandas are
imported inside functions, because the API process does not need them.
"""

from __future__ import annotations

import shutil
import ssl
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import httpx
import sqlalchemy as sa

from gcvae.errors import InputError, Problem
from gcvae_sources.errors import SourceError, TargetError
from gcvae_sources.files import BATCH_ROWS, joined, readable_file
from runtime.settings import forget_environment
from service.connections.confinement import confine
from service.connections.files import Files
from service.connections.places import BucketPlace, DatabasePlace, Opened, Place, WebPlace, place_of
from service.errors import OutsideError, TooLargeError
from service.ingestion import check_size, table_format
from service.outside import Address, Outside
from service.settings import ServiceSettings

if TYPE_CHECKING:
    import pyarrow as pa

_LEAST_CONNECT_SECONDS = 2  # the minimum of PostgreSQL's driver
_UNENCRYPTED = ("disable", "allow", "prefer")


@dataclass(frozen=True)
class Wanted:
    """The table of a connection to read or write.

    A database needs `table` or `query`; files need `key`, and a workbook may also have `table`.

    Attributes:
        table: Name of a database's table, or of a workbook's sheet.
        query: SELECT statement for a database.
        key: Path of a file below the connection's URL.
    """

    table: str | None = None
    query: str | None = None
    key: str | None = None


def fetch(file: BinaryIO, opened: Opened, wanted: Wanted, settings: ServiceSettings) -> list[str]:
    """Copies a table of a connection into `file`, in a format that uploads may have.

    Returns:
        Notes on columns that were left out.

    Raises:
        SourceError: The connection cannot be used, or has no such table.
        TableLimitError, TooLargeError: The table is too large.
    """
    from gcvae_sources.databases import selected_rows

    notes: list[str] = []
    folder = Path(tempfile.mkdtemp())
    with _reached(opened, settings, SourceError) as (place, address, outside):
        if isinstance(place, DatabasePlace):
            url, arguments = _driven(place, opened, address, outside, settings)
            rows = selected_rows(
                url, wanted.table, wanted.query, BATCH_ROWS, notes.append, arguments, opened.name
            )
            path = joined(folder, _within_limits(rows, settings))
        else:
            key = str(wanted.key)
            path = folder / Path(key).name
            _files(place, opened, settings).read(key, path, settings.max_upload_bytes)
    path = readable_file(path, None if wanted.key is None else wanted.table, folder)
    if path.stat().st_size > settings.max_upload_bytes:
        limit = settings.max_upload_bytes
        raise TooLargeError(f"the table has more than {limit} bytes", limit, "max_upload_bytes")
    with path.open("rb") as source:
        shutil.copyfileobj(source, file)
    file.flush()
    return notes


def store(
    file: BinaryIO, opened: Opened, wanted: Wanted, if_exists: str, settings: ServiceSettings
) -> None:
    """Writes a Parquet file, or a ZIP file of Parquet files, into tables of a database; or any file
    into a bucket. Everything is written, or nothing.

    Args:
        wanted: Where to write: the name of the table, the start of the names of a ZIP file's
            tables, or the key of a file in the bucket.
        if_exists: `fail`, `append` or `replace`, for tables and files that exist.

    Raises:
        TargetError: The connection cannot be used, or refuses the rows.
    """
    from gcvae_sources.databases import insert_rows

    with _reached(opened, settings, TargetError) as (place, address, outside):
        if isinstance(place, DatabasePlace):
            url, arguments = _driven(place, opened, address, outside, settings)
            files = _parquet_files(file, wanted.table or "")
            insert_rows(url, files, if_exists, arguments, opened.name)
        elif isinstance(place, BucketPlace):
            n_bytes = file.seek(0, 2)
            file.seek(0)
            may_replace = if_exists == "replace"
            target = _files(place, opened, settings)
            target.write(str(wanted.key), file, n_bytes, may_replace=may_replace)


def examine(file: BinaryIO, opened: Opened, settings: ServiceSettings) -> list[str] | None:
    """Tests a connection. Returns the names of a database's tables; None for other connections.

    `file` is not used.

    Raises:
        SourceError: The connection cannot be used.
    """
    from gcvae_sources.databases import table_names

    with _reached(opened, settings, SourceError) as (place, address, outside):
        if isinstance(place, DatabasePlace):
            return table_names(*_driven(place, opened, address, outside, settings), opened.name)
        _files(place, opened, settings).examine()
        return None


@contextmanager
def _reached(
    opened: Opened, settings: ServiceSettings, refusal: type[InputError]
) -> Iterator[tuple[Place, Address | None, Outside]]:
    """Context manager that confines this process to the host of a connection.

    Errors in its block about the host are raised as the class `refusal`.

    Yields:
        (destination, IP address of its host or None for a local file, checks of outside requests).
    """
    forget_environment()
    outside = Outside.of(settings)
    try:
        place = place_of(opened.url, outside, settings)
        address = None
        if place.host is not None:
            address = outside.address_of(place.host, place.port)
            outside.require_encrypted(place.scheme, address)
            confine(place.host, address)
        yield place, address, outside
    except OutsideError as error:
        raise refusal(Problem(str(error), "/connection", expected=error.expected)) from error
    except httpx.TimeoutException as error:
        raise refusal(f"{opened.name}: the host did not answer in time") from error
    except httpx.HTTPError as error:
        raise refusal(f"{opened.name}: no connection: {type(error).__name__}") from error


def _driven(
    place: DatabasePlace,
    opened: Opened,
    address: Address | None,
    outside: Outside,
    settings: ServiceSettings,
) -> tuple[sa.URL, dict[str, Any]]:
    """Returns (URL with the password, keyword arguments of the driver) for a database. The
    arguments enforce encryption for public addresses."""
    url = place.url if opened.password is None else place.url.set(password=opened.password)
    if address is None:
        return url, {}
    seconds = max(_LEAST_CONNECT_SECONDS, ceil(settings.outside_timeout_seconds))
    arguments: dict[str, Any] = {"connect_timeout": seconds}
    is_public = not outside.is_within_networks(address)
    if place.scheme == "postgresql":
        arguments["hostaddr"] = str(address)
        if is_public and url.query.get("sslmode", "require") in _UNENCRYPTED:
            expected = "sslmode=require, verify-ca or verify-full for a public address"
            raise OutsideError("the connection may be without encryption", expected)
        if is_public and "sslmode" not in url.query:
            arguments["sslmode"] = "require"
    else:
        arguments["local_infile"] = False  # a server could ask for files of this machine
        if is_public:
            arguments["ssl"] = ssl.create_default_context()
    return url, arguments


def _files(place: Place, opened: Opened, settings: ServiceSettings) -> Files:
    assert isinstance(place, WebPlace | BucketPlace)
    return Files(place, opened, settings.outside_timeout_seconds)


def _within_limits(tables: Iterable[pa.Table], settings: ServiceSettings) -> Iterator[pa.Table]:
    """Yields the parts of a table, and checks their total size.

    Raises:
        TableLimitError, TooLargeError: The table is too large.
    """
    n_rows = n_bytes = 0
    for table in tables:
        n_rows, n_bytes = n_rows + len(table), n_bytes + table.nbytes
        check_size(n_rows, table.num_columns, settings, at_least="at least ")
        if n_bytes > settings.max_table_bytes:
            limit = settings.max_table_bytes
            raise TooLargeError(f"the table has more than {limit} bytes", limit, "max_table_bytes")
        yield table


def _parquet_files(file: BinaryIO, name: str) -> dict[str, Path]:
    """Extracts the Parquet files in `file`. Returns their paths by name of the table to write.

    Args:
        name: Name of the table; for a ZIP file, the text before the names of its tables.
    """
    folder = Path(tempfile.mkdtemp())
    if table_format(file) != "zip":
        path = folder / "table.parquet"
        with path.open("wb") as target:
            shutil.copyfileobj(file, target)
        return {name: path}
    with zipfile.ZipFile(file) as archive:
        paths = {member: Path(archive.extract(member, folder)) for member in archive.namelist()}
    return {f"{name}{member.removesuffix('.parquet')}": path for member, path in paths.items()}
