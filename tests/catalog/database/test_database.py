"""Tables and their migrations, addresses, and concurrent use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from catalog import Catalog, upgrade
from catalog.database.engine import Database
from catalog.database.migrate import check
from catalog.database.tables import Base
from catalog.errors import DatabaseUrlError, SchemaVersionError
from tests.servers.servers import PostgresServer
from tests.wordings import refuses


def test_the_migrations_make_the_tables_that_the_models_describe(database_url: str) -> None:
    upgrade(database_url)
    database = Database(database_url)
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, Base.metadata) == []
    database.close()


def test_tables_of_a_build_that_was_never_released_are_refused_by_name(database_url: str) -> None:
    upgrade(database_url)
    database = Database(database_url)
    with database.writing() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '0016'"))
    database.close()
    for use in (check, upgrade):
        with refuses(SchemaVersionError):
            use(database_url)


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
    with refuses(SchemaVersionError):
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
                catalog.orphans.reserve(f"datasets/{number}-{turn}/", -1)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(catalog.orphans.take_due()) == 40


def test_sqlite_is_in_wal_mode_and_minds_foreign_keys(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/made/on/the/way.db")
    with database.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
    database.close()


@pytest.mark.slow
class TestPostgresIsAway:
    @pytest.fixture
    def server(self) -> Iterator[PostgresServer]:
        with PostgresServer() as server:
            yield server

    def test_whoever_asks_is_told_so_and_goes_on_when_it_is_back(
        self, server: PostgresServer
    ) -> None:
        catalog = _impatient_catalog(server)
        catalog.ping()
        server.kill()
        with pytest.raises(OperationalError):
            catalog.ping()
        server.start()
        assert catalog.workspace("default").jobs.list().items == []
        server.freeze()
        with pytest.raises(OperationalError):
            catalog.workspace("default").jobs.list()
        server.thaw()
        assert catalog.workspace("default").jobs.list().items == []
        catalog.close()

    def test_an_answer_is_waited_for_with_an_end_in_mid_transaction(
        self, server: PostgresServer
    ) -> None:
        catalog = _impatient_catalog(server)
        with pytest.raises(OperationalError, match=r"did not answer within 0\.5 s"):
            _freeze_in_mid_transaction(catalog, server)
        server.thaw()
        catalog.ping()
        catalog.close()

    def test_the_server_ends_what_nobody_waits_for_and_who_holds_locks_in_his_sleep(
        self, server: PostgresServer
    ) -> None:
        catalog = _impatient_catalog(server)
        with catalog.database.reading() as session:
            limits = [
                session.scalar(text(f"SHOW {name}"))
                for name in ("statement_timeout", "idle_in_transaction_session_timeout")
            ]
        assert limits == ["500ms", "5s"]
        catalog.close()


def _freeze_in_mid_transaction(catalog: Catalog, server: PostgresServer) -> None:
    with catalog.database.writing() as session:
        session.execute(text("SELECT 1"))
        server.freeze()
        session.execute(text("SELECT 2"))


def _impatient_catalog(server: PostgresServer) -> Catalog:
    database_url = server.create_database("impatient")
    upgrade(database_url)
    return Catalog(database_url, answer_seconds=0.5)
