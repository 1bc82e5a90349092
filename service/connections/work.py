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
from service.connections.destinations import (
    BucketDestination,
    DatabaseDestination,
    DecryptedConnection,
    Destination,
    WebDestination,
    parse_destination,
)
from service.connections.files import Files
from service.errors import OutsideError, TooLargeError
from service.ingestion import check_size, table_format
from service.outside import Address, AllowedHosts
from service.settings import ServiceSettings

if TYPE_CHECKING:
    import pyarrow as pa

_LEAST_CONNECT_SECONDS = 2  # the minimum of PostgreSQL's driver
_UNENCRYPTED = ("disable", "allow", "prefer")


@dataclass(frozen=True)
class TableLocation:
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


def fetch(
    file: BinaryIO,
    connection: DecryptedConnection,
    location: TableLocation,
    settings: ServiceSettings,
) -> list[str]:
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
    with _confined_to_host(connection, settings, SourceError) as (destination, address, hosts):
        if isinstance(destination, DatabaseDestination):
            url, arguments = _driver_arguments(destination, connection, address, hosts, settings)
            rows = selected_rows(
                url,
                location.table,
                location.query,
                BATCH_ROWS,
                notes.append,
                arguments,
                connection.name,
            )
            path = joined(folder, _within_limits(rows, settings))
        else:
            key = str(location.key)
            path = folder / Path(key).name
            _files(destination, connection, settings).read(key, path, settings.max_upload_bytes)
    path = readable_file(path, None if location.key is None else location.table, folder)
    if path.stat().st_size > settings.max_upload_bytes:
        limit = settings.max_upload_bytes
        raise TooLargeError(f"the table has more than {limit} bytes", limit, "max_upload_bytes")
    with path.open("rb") as source:
        shutil.copyfileobj(source, file)
    file.flush()
    return notes


def store(
    file: BinaryIO,
    connection: DecryptedConnection,
    location: TableLocation,
    if_exists: str,
    settings: ServiceSettings,
) -> None:
    """Writes a Parquet file, or a ZIP file of Parquet files, into tables of a database; or any file
    into a bucket. Everything is written, or nothing.

    Args:
        location: Where to write. For a database, `location.table` is the name of the table; if
            `file` is a ZIP file, the names of its tables are appended to `location.table`. For a
            bucket, `location.key` is the path of the file.
        if_exists: `fail`, `append` or `replace`, for tables and files that exist.

    Raises:
        TargetError: The connection cannot be used, or refuses the rows.
    """
    from gcvae_sources.databases import insert_rows

    with _confined_to_host(connection, settings, TargetError) as (destination, address, hosts):
        if isinstance(destination, DatabaseDestination):
            url, arguments = _driver_arguments(destination, connection, address, hosts, settings)
            files = _parquet_files(file, location.table or "")
            insert_rows(url, files, if_exists, arguments, connection.name)
        elif isinstance(destination, BucketDestination):
            n_bytes = file.seek(0, 2)
            file.seek(0)
            may_replace = if_exists == "replace"
            target = _files(destination, connection, settings)
            target.write(str(location.key), file, n_bytes, may_replace=may_replace)


def examine(
    file: BinaryIO, connection: DecryptedConnection, settings: ServiceSettings
) -> list[str] | None:
    """Tests a connection. Returns the names of a database's tables; None for other connections.

    `file` is not used. It is a parameter because `read_isolated`, which calls this function, passes
    a file to every function.

    Raises:
        SourceError: The connection cannot be used.
    """
    from gcvae_sources.databases import table_names

    with _confined_to_host(connection, settings, SourceError) as (destination, address, hosts):
        if isinstance(destination, DatabaseDestination):
            return table_names(
                *_driver_arguments(destination, connection, address, hosts, settings),
                connection.name,
            )
        _files(destination, connection, settings).examine()
        return None


@contextmanager
def _confined_to_host(
    connection: DecryptedConnection, settings: ServiceSettings, refusal: type[InputError]
) -> Iterator[tuple[Destination, Address | None, AllowedHosts]]:
    """Context manager that lets this process connect only to the host of a connection.

    Yields (destination, IP address of the host or None for a local file, allowed hosts). An error
    of class `refusal` is raised if the host is not allowed or, also in the block, does not answer.
    """
    forget_environment()
    hosts = AllowedHosts.of(settings)
    try:
        destination = parse_destination(connection.url, hosts, settings)
        address = None
        if destination.host is not None:
            address = hosts.address_of(destination.host, destination.port)
            hosts.require_encrypted(destination.scheme, address)
            confine(destination.host, address)
        yield destination, address, hosts
    except OutsideError as error:
        raise refusal(Problem(str(error), "/connection", expected=error.expected)) from error
    except httpx.TimeoutException as error:
        raise refusal(f"{connection.name}: the host did not answer in time") from error
    except httpx.HTTPError as error:
        raise refusal(f"{connection.name}: no connection: {type(error).__name__}") from error


def _driver_arguments(
    destination: DatabaseDestination,
    connection: DecryptedConnection,
    address: Address | None,
    hosts: AllowedHosts,
    settings: ServiceSettings,
) -> tuple[sa.URL, dict[str, Any]]:
    """Returns (URL with the password, keyword arguments of the driver) to connect to a database.

    Unless `address` is within a network that the operator has allowed, the arguments enforce
    encryption; OutsideError is raised if the URL permits an unencrypted connection. `address` is
    None for an SQLite file.
    """
    url = destination.url
    if connection.password is not None:
        url = url.set(password=connection.password)
    if address is None:
        return url, {}
    seconds = max(_LEAST_CONNECT_SECONDS, ceil(settings.outside_timeout_seconds))
    arguments: dict[str, Any] = {"connect_timeout": seconds}
    is_public = not hosts.is_within_networks(address)
    if destination.scheme == "postgresql":
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


def _files(
    destination: Destination, connection: DecryptedConnection, settings: ServiceSettings
) -> Files:
    assert isinstance(destination, WebDestination | BucketDestination)
    return Files(destination, connection, settings.outside_timeout_seconds)


def _within_limits(tables: Iterable[pa.Table], settings: ServiceSettings) -> Iterator[pa.Table]:
    """Yields the parts of a table; raises TableLimitError or TooLargeError if they are together too
    large."""
    n_rows = n_bytes = 0
    for table in tables:
        n_rows, n_bytes = n_rows + len(table), n_bytes + table.nbytes
        check_size(n_rows, table.num_columns, settings, at_least="at least ")
        if n_bytes > settings.max_table_bytes:
            limit = settings.max_table_bytes
            raise TooLargeError(f"the table has more than {limit} bytes", limit, "max_table_bytes")
        yield table


def _parquet_files(file: BinaryIO, name: str) -> dict[str, Path]:
    """Copies a Parquet file, or those in a ZIP file, to a new temporary folder.

    Returns the paths of the copies by the database table to write: `name` or, for a table in a ZIP
    file, `name` followed by the name of that table.
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
