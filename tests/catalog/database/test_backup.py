"""The commands of docs/operations.md: what is backed up comes back whole, on PostgreSQL."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog import Catalog, JobKind, JobStatus, upgrade
from models_store import open_store
from tests.catalog.conftest import add_dataset, trained
from tests.claims import claim_job
from tests.servers.servers import PostgresServer

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "operations.md").read_text()
needs_tools = pytest.mark.skipif(
    not (shutil.which("pg_dump") and shutil.which("pg_restore")),
    reason="needs PostgreSQL's client programs on the machine",
)


def commands(name: str) -> str:
    """The page's block of this name."""
    [found] = re.findall(rf"(?ms)^```sh {name}\n(.*?)^```$", PAGE)
    return str(found)


@pytest.fixture
def new_database(postgres_server: PostgresServer) -> Iterator[str]:
    """Address of a second database on the same server, empty."""
    name = f"restored_{uuid.uuid4().hex}"
    yield postgres_server.create_database(name)
    postgres_server.drop_database(name)


@pytest.mark.slow
@needs_tools
def test_what_is_backed_up_comes_back_whole(
    postgres_url: str, new_database: str, tmp_path: Path
) -> None:
    upgrade(postgres_url)
    catalog, store = Catalog(postgres_url), open_store(f"file://{tmp_path}/store")
    dataset = add_dataset(catalog)
    published = store.publish("models/a/attempts/1/model.gcvae", b"weights")
    model, job = catalog.workspace("default").jobs.enqueue_training(
        dataset_id=dataset.id, name="m", training={}
    )
    claim = claim_job(catalog, job.id, "trainer", 10)
    assert claim is not None
    catalog.leases.finish(claim, trained(job))
    waiting = catalog.workspace("default").jobs.enqueue(
        JobKind.SAMPLE, model_id=model.id, spec={"rows": 5}
    )
    before = (
        catalog.workspace("default").jobs.list().items,
        catalog.workspace("default").models.list().items,
        catalog.statistics.counts(),
    )
    catalog.close()

    run("backup", tmp_path, postgres_url, "store")
    run("restore", tmp_path, new_database, "restored")

    restored = Catalog(new_database)
    ours = restored.workspace("default")
    after = ours.jobs.list().items, ours.models.list().items, restored.statistics.counts()
    assert before == after
    claim = claim_job(restored, waiting.id, "sampler", 10)
    assert claim is not None
    assert claim.job.status is JobStatus.RUNNING
    restored.close()
    copy = open_store(f"file://{tmp_path}/restored")
    assert copy.read(published.key, published.sha256) == b"weights"


def run(name: str, folder: Path, database_url: str, store: str) -> None:
    """The page's commands, as they stand there."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "BACKUP": str(folder / "backup"),
        "GCVAE_DATABASE_URL": database_url,
        "GCVAE_STORE_URL": f"file://{folder}/{store}",
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail"],
        input=commands(name), env=environment, cwd=folder, text=True, capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
