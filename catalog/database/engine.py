"""Connects to the database: SQLite or PostgreSQL, depending on its URL."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError
from sqlalchemy.orm import Session

from catalog.database.counts import write_counts
from catalog.errors import DatabaseUrlError
from runtime.settings import require_extra

ANSWER_SECONDS = 10.0
"""Time limit in seconds of a PostgreSQL statement, and of waiting for a pooled connection."""

_BUSY_TIMEOUT_SECONDS = 30.0
_LOG_PAUSE_SECONDS = 0.01
_WRITES = "catalog_writes"


class Database:
    """Opens sessions on a database. Each writing session is one transaction.

    Args:
        database_url: `sqlite:///FILE` or `postgresql://USER@HOST/NAME`.
        answer_seconds: Time limit of a statement in PostgreSQL; None for no limit.
    """

    def __init__(self, database_url: str, answer_seconds: float | None = ANSWER_SECONDS) -> None:
        self.engine = _make_engine(parse_database_url(database_url), answer_seconds)
        self._writing_engine = self.engine.execution_options(**{_WRITES: True})

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Context manager that yields a database session for queries."""
        with Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Context manager that yields a session, and commits all its changes or none."""
        with Session(self._writing_engine, expire_on_commit=False) as session, session.begin():
            yield session
            write_counts(session)

    def ping(self) -> None:
        """Checks that the database responds.

        Raises:
            sqlalchemy.exc.OperationalError: The database does not respond.
        """
        with self.engine.connect() as connection:
            connection.execute(text("SELECT 1"))

    def close(self) -> None:
        """Closes all pooled database connections."""
        self.engine.dispose()


def serialize(session: Session, number: int) -> None:
    """Makes other transactions that call this with the same number wait until this one ends.

    PostgreSQL needs an advisory lock; in SQLite, writing transactions always wait for each other.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": number})


def parse_database_url(database_url: str) -> URL:
    """Parses a database URL and adds the driver for PostgreSQL.

    Raises:
        DatabaseUrlError: The URL is invalid, or its scheme is neither SQLite nor PostgreSQL.
    """
    try:
        url = make_url(database_url)
    except ArgumentError as error:
        raise DatabaseUrlError(f"{database_url!r} is not a database URL") from error
    if url.drivername in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername in ("sqlite", "postgresql+psycopg"):
        return url
    raise DatabaseUrlError(
        f"database URL begins with {url.drivername!r}; "
        "it must be sqlite:///FILE or postgresql://USER@HOST/NAME"
    )


def _make_engine(url: URL, answer_seconds: float | None) -> Engine:
    # allow_nan=False: PostgreSQL refuses NaN in JSON, so SQLite must not take it either.
    serializer = partial(json.dumps, allow_nan=False)
    if url.drivername != "sqlite":
        require_extra("database_url", "postgres", "psycopg", "psycopg")
        from catalog.database.postgres import make_postgres_engine

        return make_postgres_engine(url, answer_seconds, json_serializer=serializer)
    if url.database in (None, "", ":memory:"):
        raise DatabaseUrlError(
            "the SQLite database must be a file, because several processes use it"
        )
    Path(str(url.database)).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url, json_serializer=serializer)
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(dbapi_connection: Any, _record: Any) -> None:
    dbapi_connection.isolation_level = None  # _begin_sqlite begins transactions
    cursor = dbapi_connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {int(_BUSY_TIMEOUT_SECONDS * 1000)}")
    _keep_a_log(cursor)
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _keep_a_log(cursor: Any) -> None:
    """Switches a SQLite file to write-ahead logging.

    It retries, because the switch fails while another connection makes it in the same new file.
    """
    tries_until = time.monotonic() + _BUSY_TIMEOUT_SECONDS
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > tries_until:
                raise
            time.sleep(_LOG_PAUSE_SECONDS)


def _begin_sqlite(connection: Connection) -> None:
    # In SQLite, a transaction that reads first and writes later fails if there is another writer;
    # one that takes the write lock at its beginning waits.
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
