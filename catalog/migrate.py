"""Bring a database's tables to this version (Alembic).

Alembic is imported where it is used: the processes of jobs read records and never migrate.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, text

from catalog.database import Database
from catalog.errors import SchemaVersionError

if TYPE_CHECKING:
    from alembic.config import Config

_MIGRATIONS = Path(__file__).parent / "migrations"
_UPGRADE_LOCK = 7_203_118  # any number, the same in every process


def upgrade(database_url: str, revision: str = "head") -> None:
    """Make or upgrade the tables; several processes may call it at once.

    Raises:
        DatabaseUrlError: neither SQLite nor PostgreSQL.
    """
    from alembic import command

    _migrate(database_url, partial(command.upgrade, revision=revision))


def downgrade(database_url: str, revision: str) -> None:
    """Take the tables back to an earlier revision, for an earlier version of this program.

    What only the later revisions can hold is lost. Nothing may work on the database meanwhile.

    Raises:
        DatabaseUrlError: neither SQLite nor PostgreSQL.
    """
    from alembic import command

    _migrate(database_url, partial(command.downgrade, revision=revision))


def _migrate(database_url: str, command: Callable[[Config], None]) -> None:
    database = Database(database_url)
    try:
        with database.writing() as session:
            connection = session.connection()
            _wait_for_others(connection)
            command(_config(connection))
    finally:
        database.close()


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
            f"the database is at revision {found}, this program needs {newest_revision()}; "
            "run `gcvae db upgrade`"
        )


def newest_revision() -> str | None:
    """The revision that this version's tables have."""
    from alembic.script import ScriptDirectory

    return ScriptDirectory(str(_MIGRATIONS)).get_current_head()


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
