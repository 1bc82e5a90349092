"""Databases of our own: a SQLite file, and a PostgreSQL server in a temporary folder."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from catalog import Catalog, Dataset, Job, Model, Trained, upgrade
from catalog.database.tables import Base
from tests.claims import claim_job
from tests.lengths import first_of
from tests.servers.servers import PostgresServer, RedisServer

_SHA256 = "0" * 64


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """Address of a SQLite database that has no tables yet."""
    return f"sqlite:///{tmp_path}/catalog.db"


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """Address of a PostgreSQL database that has no tables yet."""
    name = f"test_{uuid.uuid4().hex}"
    yield postgres_server.create_database(name)
    postgres_server.drop_database(name)


@pytest.fixture(params=first_of("postgres", "sqlite"))
def database_url(request: pytest.FixtureRequest) -> str:
    """Either database, without tables; PostgreSQL alone in a brief run."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture(scope="session")
def postgres_tables(postgres_server: PostgresServer) -> str:
    """Address of a PostgreSQL database with the tables, which each test leaves empty."""
    url = postgres_server.create_database("tables")
    upgrade(url)
    return url


@pytest.fixture(params=first_of("postgres", "sqlite"))
def catalog_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Address of a database with empty tables; PostgreSQL alone in a brief run."""
    if request.param == "sqlite":
        url = str(request.getfixturevalue("sqlite_url"))
        upgrade(url)
        yield url
        return
    url = str(request.getfixturevalue("postgres_tables"))
    yield url
    names = ", ".join(table.name for table in Base.metadata.sorted_tables)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"TRUNCATE {names} RESTART IDENTITY".encode())


@pytest.fixture
def catalog(catalog_url: str) -> Iterator[Catalog]:
    """A catalog with its tables, impatient: three attempts, resends after 50 ms."""
    catalog = Catalog(catalog_url, attempts_limit=3, resend_seconds=0.05, resend_limit_seconds=0.1)
    yield catalog
    catalog.close()


@pytest.fixture
def dataset(catalog: Catalog) -> Dataset:
    """A dataset."""
    return add_dataset(catalog)


@pytest.fixture
def training(catalog: Catalog, dataset: Dataset) -> Job:
    """A queued training job."""
    return catalog.workspace("default").jobs.enqueue_training(
        dataset_id=dataset.id, name="m", training={"seed": 0}
    )[1]


@pytest.fixture
def ready_model(catalog: Catalog, training: Job) -> Model:
    """A model that is ready."""
    claim = claim_job(catalog, training.id, "trainer", 10)
    assert claim is not None
    catalog.leases.finish(claim, trained(training))
    return catalog.workspace("default").models.get(str(training.model_id))


def add_dataset(catalog: Catalog, name: str = "table", workspace: str = "default") -> Dataset:
    """A new dataset."""
    datasets = catalog.workspace(workspace).datasets
    dataset_id = datasets.new_id()
    catalog.orphans.reserve(f"datasets/{dataset_id}/", 60)
    return datasets.add(
        dataset_id=dataset_id,
        name=name,
        format="csv",
        rows=3,
        columns=2,
        schema={"columns": []},
        sha256=_SHA256,
        size_bytes=10,
        object_key=f"datasets/{dataset_id}/table",
        warnings=["column 'a' is text"],
    )


def trained(job: Job, attempt: int = 1) -> Trained:
    """An outcome of training."""
    key = f"models/{job.model_id}/attempts/{attempt}/model.gcvae"
    return Trained(key, _SHA256, 100, schema={"columns": []}, record={"epochs": 3})


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A Redis server."""
    with RedisServer() as server:
        yield server


@pytest.fixture(params=["folder", "redis"])
def broker_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Address of either broker, empty."""
    if request.param == "folder":
        return f"filesystem://{tmp_path}/queue"
    server: RedisServer = request.getfixturevalue("redis_server")
    server.flush()
    return server.url
