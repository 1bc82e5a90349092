"""Migrates a database's tables to this version, with Alembic.

Alembic is imported only when it is used, because worker processes never migrate.
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
    """Creates or upgrades the tables. Several processes may call it at once.

    Raises:
        DatabaseUrlError: The URL's scheme is neither SQLite nor PostgreSQL.
        SchemaVersionError: The tables have a revision that this program does not know.
    """
    from alembic import command
    from alembic.util import CommandError

    with _alone(database_url) as connection:
        try:
            command.upgrade(_config(connection), revision)
        except CommandError as error:
            raise SchemaVersionError(
                f"the database can not be brought to revision {newest_revision()}: {error}; use "
                "the gcvae that made it, or an empty database"
            ) from None


def downgrade(database_url: str, revision: str) -> None:
    """Reverts the tables to an earlier revision, or with `base` removes them.

    Data that only later revisions can represent is lost. No other process may use the database.

    Raises:
        DatabaseUrlError: The URL's scheme is neither SQLite nor PostgreSQL.
    """
    from alembic import command

    with _alone(database_url) as connection:
        command.downgrade(_config(connection), revision)


def check(database_url: str) -> None:
    """Checks that the tables have this version.

    Raises:
        SchemaVersionError: They are older or newer.
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
    """Returns the revision of this version's tables."""
    from alembic.script import ScriptDirectory

    return ScriptDirectory(str(_MIGRATIONS)).get_current_head()


@contextmanager
def _alone(database_url: str) -> Iterator[Connection]:
    """Yields a connection in a transaction without time limits, while no other process migrates."""
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
