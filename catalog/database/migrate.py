"""Bring a database's tables to this version (Alembic).

Alembic is imported where it is used: the processes of jobs read records and never migrate.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, text

from catalog.database.engine import Database
from catalog.errors import SchemaVersionError

if TYPE_CHECKING:
    from alembic.config import Config

_MIGRATIONS = Path(__file__).parents[1] / "migrations"
_UPGRADE_LOCK = 7_203_118  # any number, the same in every process


def upgrade(database_url: str, revision: str = "head") -> None:
    """Make or upgrade the tables; several processes may call it at once.

    Raises:
        DatabaseUrlError: neither SQLite nor PostgreSQL.
    """
    from alembic import command

    with _alone(database_url) as connection:
        command.upgrade(_config(connection), revision)


def downgrade(database_url: str, revision: str) -> None:
    """Take the tables back to an earlier revision, or with `base` away, for an earlier version of
    this program.

    What only the later revisions can hold is lost. Nothing may work on the database meanwhile.

    Raises:
        DatabaseUrlError: neither SQLite nor PostgreSQL.
    """
    from alembic import command

    with _alone(database_url) as connection:
        command.downgrade(_config(connection), revision)


def check(database_url: str) -> None:
    """Do nothing where the tables are of this version.

    Raises:
        SchemaVersionError: they are older or newer.
    """
    from alembic.runtime.migration import MigrationContext

    database = Database(database_url)
    try:
        with database.engine.connect() as connection:
            found = MigrationContext.configure(connection).get_current_revision()
    finally:
        database.close()
    if found != newest_revision():
        raise SchemaVersionError(
            f"the database is at revision {found}, this version needs {newest_revision()}; "
            "run `gcvae db upgrade`"
        )


def newest_revision() -> str | None:
    """The revision that this version's tables have."""
    from alembic.script import ScriptDirectory

    return ScriptDirectory(str(_MIGRATIONS)).get_current_head()


@contextmanager
def _alone(database_url: str) -> Iterator[Connection]:
    """A transaction beside which nobody else migrates, and which may take its time."""
    database = Database(database_url, answer_seconds=None)
    try:
        with database.writing() as session:
            connection = session.connection()
            _wait_for_others(connection)
            yield connection
    finally:
        database.close()


def _config(connection: Connection) -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _wait_for_others(connection: Connection) -> None:
    # SQLite's BEGIN IMMEDIATE has waited already; PostgreSQL needs a lock of its own.
    if connection.dialect.name == "postgresql":
        lock = text("SELECT pg_advisory_xact_lock(:number)")
        connection.execute(lock, {"number": _UPGRADE_LOCK})
