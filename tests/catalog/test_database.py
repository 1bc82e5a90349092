"""Tables and their migrations, addresses, and concurrent use."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from catalog import Catalog, upgrade
from catalog.database import Database
from catalog.errors import DatabaseUrlError, SchemaVersionError
from catalog.migrate import check
from catalog.tables import Base


def test_the_migrations_make_the_tables_that_the_models_describe(database_url: str) -> None:
    upgrade(database_url)
    database = Database(database_url)
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, Base.metadata) == []
    database.close()


def test_several_processes_may_upgrade_at_once(database_url: str) -> None:
    failures: list[Exception] = []

    def run() -> None:
        try:
            upgrade(database_url)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    check(database_url)


def test_a_database_without_tables_is_named(database_url: str) -> None:
    with pytest.raises(SchemaVersionError, match="gcvae db upgrade"):
        check(database_url)


@pytest.mark.parametrize("url", ["", "mysql://x/y", "sqlite://", "no url"])
def test_an_address_of_another_kind_is_refused(url: str) -> None:
    with pytest.raises(DatabaseUrlError):
        Catalog(url)


def test_many_threads_write_at_once_and_lose_nothing(catalog: Catalog) -> None:
    failures: list[Exception] = []

    def write(number: int) -> None:
        try:
            for turn in range(10):
                catalog.leftovers.reserve(f"datasets/{number}-{turn}/", -1)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(catalog.leftovers.take_due()) == 40


def test_sqlite_is_in_wal_mode_and_minds_foreign_keys(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/made/on/the/way.db")
    with database.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
    database.close()
