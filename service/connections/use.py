"""Tests connections, reads tables from them and writes samples to them.

The functions are called by API requests and by the runs of schedules (repeated trainings).
"""

from __future__ import annotations

import tempfile
from functools import partial
from typing import BinaryIO, Literal

from pydantic import Field

from catalog.records import Connection
from catalog.workspace import Workspace
from gcvae.errors import Problem
from gcvae.files.text_encodings import checked_encoding
from gcvae_sources.files import ENDINGS
from service.bodies import RequestBody
from service.connections.destinations import (
    BucketDestination,
    DatabaseDestination,
    DecryptedConnection,
    Destination,
    parse_destination,
)
from service.connections.work import TableLocation, examine, fetch, store
from service.errors import OutsideError, RequestError
from service.http.uploads import Upload, plain_name
from service.ingestion import table_format
from service.resources import Resources
from service.table_process import read_isolated

_TEXT = r"^[^\x00-\x1f\x7f]+$"
_QUERY = r"^[^\x00]+$"


class SourceBody(RequestBody):
    """Request for a new dataset from a table of a connection."""

    needed = "the name of a connection; to send a table, a form or a body of type text/csv"

    connection: str = Field(pattern=_TEXT, max_length=200, description="its name or id")
    table: str | None = Field(
        None, pattern=_TEXT, max_length=300, description="of a database; or sheet of a workbook"
    )
    query: str | None = Field(
        None, pattern=_QUERY, max_length=100_000, description="SELECT statement for a database"
    )
    key: str | None = Field(
        None, pattern=_TEXT, max_length=1000, description="path of a file below the URL"
    )
    name: str | None = Field(None, description="name of the dataset")
    table_schema: dict[str, object] | None = Field(
        None, alias="schema", description="known properties of the columns"
    )
    encoding: str | None = Field(None, description="of a text file; UTF-8 by default")


class TargetBody(RequestBody):
    """A table of a database, or a file of a bucket, to write a sample to."""

    connection: str = Field(pattern=_TEXT, max_length=200, description="its name or id")
    table: str | None = Field(
        None,
        pattern=_TEXT,
        max_length=200,
        description="of a database; for several tables: text before their names, such as "
        "`synthetic.` for a schema",
    )
    key: str | None = Field(
        None, pattern=_TEXT, max_length=1000, description="path of a file below the URL"
    )
    if_exists: Literal["fail", "append", "replace"] = Field(
        "fail", description="for tables and files that exist; files cannot be appended to"
    )


def decrypted(resources: Resources, connection: Connection) -> DecryptedConnection:
    """Returns a connection with its decrypted password.

    Raises:
        RequestError: The password cannot be decrypted.
    """
    sealed = connection.sealed_password
    password = None
    if sealed is not None:
        password = resources.password_encryption.decrypt(sealed, connection.id, connection.url)
    return DecryptedConnection(connection.name, connection.url, password)


def checked_destination(resources: Resources, url: str, pointer: str) -> Destination:
    """Parses and checks a connection's URL, without a DNS lookup. Returns the destination.

    Args:
        pointer: JSON pointer to the URL or connection in the request, for errors.

    Raises:
        RequestError: The URL is invalid, or its host or file is not allowed.
    """
    try:
        return parse_destination(url, resources.allowed_hosts, resources.settings)
    except OutsideError as error:
        raise RequestError(Problem(str(error), pointer, expected=error.expected)) from None


def tables_of(resources: Resources, connection: Connection) -> list[str] | None:
    """Tests a connection. Returns the names of a database's tables; None for other connections.

    Raises:
        RequestError, SourceError: The connection cannot be used.
        TableLimitError: The host does not answer in time.
    """
    checked_destination(resources, connection.url, "/connection")
    work = partial(
        examine, connection=decrypted(resources, connection), settings=resources.settings
    )
    with tempfile.TemporaryFile(prefix="gcvae-connection-") as file:
        return read_isolated(work, file, resources.settings, time_limit="outside_timeout_seconds")


def checked_source(resources: Resources, workspace: Workspace, body: SourceBody) -> Connection:
    """Checks a request to create a dataset from a connection. Returns the connection.

    Nothing is read from the connection.

    Raises:
        NotFoundError: The workspace has no such connection.
        RequestError: The connection's URL is not allowed, or a member of the request does not fit
            the connection, such as `query` for a bucket.
    """
    connection = workspace.connections.get(body.connection)
    _require_members(body, checked_destination(resources, connection.url, "/connection"))
    return connection


def check_target(
    resources: Resources, connection: Connection, body: TargetBody, format: str, *, is_archive: bool
) -> None:
    """Checks that a sample can be written to a connection; nothing is written.

    Args:
        format: Format of the sample's tables.
        is_archive: Whether the sample is a ZIP file of tables.

    Raises:
        RequestError: The connection's URL is not allowed, or `body` or `format` does not fit the
            connection.
    """
    destination = checked_destination(resources, connection.url, "/connection")
    _require_target(body, destination, format, is_archive=is_archive)


def read_table(
    resources: Resources, workspace: Workspace, body: SourceBody, file: BinaryIO
) -> Upload:
    """Copies a table of a connection into `file`.

    Returns the copy as an `Upload`, as if a client had uploaded the table.

    Raises:
        NotFoundError: The workspace has no such connection.
        RequestError, SourceError: The connection cannot be used, or has no such table.
        TableLimitError, TooLargeError: The table is too large, or reading it takes too long.
    """
    connection = checked_source(resources, workspace, body)
    location = TableLocation(body.table, body.query, body.key)
    work = partial(
        fetch,
        connection=decrypted(resources, connection),
        location=location,
        settings=resources.settings,
    )
    limit = "connection_seconds"
    notes = read_isolated(work, file, resources.settings, mode="r+b", time_limit=limit)
    source = {name: value for name, value in vars(location).items() if value is not None}
    key = None if body.key is None else plain_name(body.key, ENDINGS)
    return Upload(
        file,
        body.name or key or body.table or "query",
        body.table_schema,
        encoding=checked_encoding(body.encoding, "/encoding"),
        source={"connection": connection.name, **source},
        notes=tuple(notes),
    )


def write_sample(
    resources: Resources, connection: Connection, body: TargetBody, file: BinaryIO, format: str
) -> None:
    """Writes a sample to a connection, completely or not at all.

    Args:
        file: The sample: a table, or a ZIP file of tables.
        format: Format of the tables.

    Raises:
        RequestError, TargetError: The connection cannot be used, or refuses the rows.
        TableLimitError: Writing takes too long.
    """
    is_archive = table_format(file) == "zip"
    check_target(resources, connection, body, format, is_archive=is_archive)
    work = partial(
        store,
        connection=decrypted(resources, connection),
        location=TableLocation(table=body.table, key=body.key),
        if_exists=body.if_exists,
        settings=resources.settings,
    )
    read_isolated(work, file, resources.settings, time_limit="connection_seconds")


def _require_members(body: SourceBody, destination: Destination) -> None:
    """Raises RequestError if a member of the request does not fit the connection's destination."""
    if isinstance(destination, DatabaseDestination):
        if body.key is not None:
            raise _misfit("key is for files", "/key", "table or query, for a database")
        if (body.table is None) == (body.query is None):
            raise _misfit("a database needs one table or query", "/table", "one of table and query")
        return
    if body.query is not None:
        raise _misfit("query is for databases", "/query", "key, for files")
    _require_key(body.key)


def _require_target(
    body: TargetBody, destination: Destination, format: str, *, is_archive: bool
) -> None:
    """Raises RequestError unless a sample can be written to a connection."""
    if isinstance(destination, DatabaseDestination):
        if body.key is not None:
            raise _misfit("key is for files", "/key", "table, for a database")
        if body.table is None and not is_archive:
            raise _misfit("table is missing", "/table", "the name of the table to write")
        if format != "parquet":
            raise _misfit(f"the sample has the format {format}", "/connection", "parquet")
        return
    if not isinstance(destination, BucketDestination):
        raise _misfit("a web server cannot be written to", "/connection", "a database or a bucket")
    if body.table is not None:
        raise _misfit("table is for databases", "/table", "key, for files")
    if body.if_exists == "append":
        raise _misfit("files cannot be appended to", "/if_exists", "fail or replace")
    _require_key(body.key)


def _require_key(key: str | None) -> None:
    if key is None:
        raise _misfit("key is missing", "/key", "the path of a file below the connection's URL")
    if any(step in ("", ".", "..") for step in key.split("/")) or "\\" in key:
        raise _misfit(
            f"{key!r} is not the path of a file", "/key", "a path such as 2026/orders.csv"
        )


def _misfit(message: str, pointer: str, expected: str) -> RequestError:
    return RequestError(Problem(message, pointer, expected=expected))
