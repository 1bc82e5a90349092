"""Tables and their migrations, addresses, and concurrent use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import inspect, text
from sqlalchemy.exc import OperationalError

from catalog import Catalog, JobStatus, ModelStatus, upgrade
from catalog.database.engine import Database
from catalog.database.migrate import check, downgrade
from catalog.database.tables import Base
from catalog.errors import DatabaseUrlError, SchemaVersionError
from tests.claims import claim_job
from tests.servers.servers import PostgresServer
from tests.wordings import refuses


def test_the_migrations_make_the_tables_that_the_models_describe(database_url: str) -> None:
    upgrade(database_url)
    database = Database(database_url)
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, Base.metadata) == []
    database.close()


_FIRST_RELEASE = """
INSERT INTO datasets VALUES ('ds_1', 'default', 'table', 'csv', 3, 2, '{"columns": []}', 'a', 9,
    'datasets/ds_1/table', '[]', 1.5);
INSERT INTO models VALUES ('mdl_1', 'default', 'model', 'ds_1', 'ready', 'job_1', '{"seed": 0}',
    '{"columns": []}', '{}', 'models/mdl_1/attempts/1/model.gcvae', 'b', 9, 2.5);
INSERT INTO jobs VALUES ('job_1', 'default', 'train', '{"training": {"seed": 0}}', 'mdl_1', 'ds_1',
    NULL, 'succeeded', 1, 0, 1, NULL, NULL, FALSE, '{}', NULL, NULL, NULL, 3, NULL, 2.5, 2.6, 2.7);
INSERT INTO jobs VALUES ('job_2', 'default', 'sample', '{"rows": 5}', 'mdl_1', NULL,
    'smp_1', 'queued', 0, 0, 0, NULL, NULL, FALSE, '{}', NULL, NULL, NULL, 1, 3.0, 3.0, NULL, NULL);
INSERT INTO results VALUES ('smp_0', 'default', 'sample', 'mdl_1', 'job_0',
    'results/smp_0/rows.csv', 'c', 9, 'text/csv', 5, '{}', 2.9);
INSERT INTO leftovers VALUES ('datasets/ds_0/', 1.0, FALSE);
INSERT INTO idempotency_keys VALUES ('default', 'key', 'd', '{"status": 201}', 1.0)
"""


def test_the_tables_of_the_first_release_are_brought_here_with_what_they_hold(
    database_url: str,
) -> None:
    upgrade(database_url, "0001")
    database = Database(database_url)
    with database.writing() as session:
        for statement in _FIRST_RELEASE.split(";"):
            session.execute(text(statement))
    database.close()
    upgrade(database_url)
    check(database_url)
    catalog = Catalog(database_url)
    assert catalog.workspace("default").datasets.get("ds_1").rows == 3
    assert catalog.workspace("default").models.get("mdl_1").status is ModelStatus.READY
    assert catalog.workspace("default").jobs.get("job_1").status is JobStatus.SUCCEEDED
    assert catalog.workspace("default").results.get("smp_0").object_key == "results/smp_0/rows.csv"
    assert catalog.orphans.take_due() == ["datasets/ds_0/"]
    assert catalog.workspace("default").idempotency.begin("key", "d") == {"status": 201}
    claim = claim_job(catalog, "job_2", "worker", 10)
    assert claim is not None
    assert claim.attempt == 1
    catalog.close()


def test_migrations_go_down_and_up_again(database_url: str) -> None:
    upgrade(database_url)
    downgrade(database_url, "base")
    database = Database(database_url)
    assert inspect(database.engine).get_table_names() == ["alembic_version"]
    database.close()
    upgrade(database_url)
    check(database_url)


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
