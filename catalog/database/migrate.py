"""Migrates a database's tables to the revision that this program uses, with Alembic.

Alembic is imported only when it is used, because worker processes never migrate.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from catalog.database.engine import Database, serialize
from catalog.errors import SchemaVersionError

if TYPE_CHECKING:
    from alembic.config import Config

_MIGRATIONS = Path(__file__).parents[1] / "migrations"
_UPGRADE_LOCK = 7_203_118  # any number, the same in every process


def upgrade(database_url: str) -> None:
    """Creates the tables, or upgrades them to the newest revision; several processes may do so at
    once.

    Raises:
        DatabaseUrlError: The URL is invalid, or its scheme is neither SQLite nor PostgreSQL.
        SchemaVersionError: The tables have a revision that this program does not know.
    """
    from alembic import command
    from alembic.util import CommandError

    with _alone(database_url) as connection:
        try:
            command.upgrade(_config(connection), "head")
        except CommandError as error:
            raise SchemaVersionError(
                f"the database cannot be brought to revision {newest_revision()}: {error}; use "
                "the gcvae that made it, or an empty database"
            ) from None


def check(database_url: str) -> None:
    """Checks that the database's tables have the revision that this program uses.

    Raises:
        SchemaVersionError: The tables have an older or newer revision.
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
    """Returns the Alembic revision of the tables that this program uses."""
    from alembic.script import ScriptDirectory

    return ScriptDirectory(str(_MIGRATIONS)).get_current_head()


@contextmanager
def _alone(database_url: str) -> Iterator[Connection]:
    """Context manager that yields a connection for a migration. Its block is one transaction; other
    migrations wait until this transaction ends."""
    database = Database(database_url, answer_seconds=None)
    try:
        with database.writing() as session:
            serialize(session, _UPGRADE_LOCK)
            yield session.connection()
    finally:
        database.close()


def _config(connection: Connection) -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
