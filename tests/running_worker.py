"""A running system without the service: records, store, queue and real worker processes."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from catalog import Catalog, Job, Model, upgrade
from catalog.dispatch.celery import CeleryDispatcher, make_celery
from models_store import Store, open_store
from tests.servers.servers import PostgresServer, RedisServer, S3Server
from worker.upkeep import find_orphans

_ROOT = Path(__file__).parents[1]
_STAND_IN = _ROOT / "tests" / "faults" / "stand_in"
LEASE_SECONDS = 2.5


@dataclass
class System:
    """Everything that a worker needs, in one folder or on servers; and the workers."""

    folder: Path
    urls: dict[str, str]
    catalog: Catalog
    store: Store
    dispatcher: CeleryDispatcher
    with_stand_in: bool
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """The variables of every process of this system."""
        library = [_STAND_IN] if self.with_stand_in else []
        here = {"PYTHONPATH": os.pathsep.join(map(str, [*library, _ROOT]))}
        return (
            os.environ
            | here
            | self.urls
            | {
                "GCVAE_ATTEMPTS_LIMIT": "3",
                "GCVAE_RESEND_SECONDS": "0.2",
                "GCVAE_RESEND_LIMIT_SECONDS": "2",
                "GCVAE_LEASE_SECONDS": str(LEASE_SECONDS),
                "GCVAE_HEARTBEAT_SECONDS": "0.2",
                "GCVAE_CANCEL_GRACE_SECONDS": "5",
                "GCVAE_FIRST_CHECKPOINT_SECONDS": "0.2",
                "GCVAE_CHECKPOINT_SECONDS": "0.3",
                "GCVAE_RECONCILE_SECONDS": "0.2",
                "GCVAE_JOB_THREADS": "1",
                "OMP_NUM_THREADS": "1",
            }
        )

    def start_worker(self) -> subprocess.Popen[bytes]:
        """A worker group that ends with this process."""
        command = [sys.executable, "-m", "worker", f"--die-with-parent={os.getpid()}"]
        with (self.folder / "worker.log").open("ab") as log:
            worker = subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdout=log, stderr=log
            )
        self.workers.append(worker)
        return worker

    def stop_workers(self) -> None:
        """Kill every worker group with all its processes."""
        for worker in self.workers:
            for process in family(worker.pid):
                _kill(process)
            worker.wait()
        self.workers.clear()

    def train(self, *, send: bool = True, table: bytes = b"a\n1\n2\n", **training: Any) -> Job:
        """A queued training job on a new dataset."""
        dataset_id = self.catalog.workspace("default").datasets.new_id()
        key = f"datasets/{dataset_id}/table"
        self.catalog.orphans.reserve(f"datasets/{dataset_id}/", 60)
        published = self.store.publish(key, table)
        self.catalog.workspace("default").datasets.add(
            dataset_id=dataset_id,
            name="table",
            format="csv",
            rows=2,
            columns=1,
            schema=training.pop("schema", {"columns": []}),
            sha256=published.sha256,
            size_bytes=published.size_bytes,
            object_key=key,
            warnings=[],
        )
        defaults = {"preset": "default", "seed": 0, "device": "cpu"}
        _, job = self.catalog.workspace("default").jobs.enqueue_training(
            dataset_id=dataset_id, name="model", training=defaults | training
        )
        if send:
            self.dispatcher.send(job)
        return job

    def job(self, job: Job) -> Job:
        """The job as it is now."""
        return self.catalog.workspace("default").jobs.get(job.id)

    def model(self, job: Job) -> Model:
        """The job's model as it is now."""
        return self.catalog.workspace("default").models.get(str(job.model_id))

    def finished(self, job: Job, seconds: float = 300) -> Job:
        """The job once it is over."""
        return self.wait(lambda: j if (j := self.job(job)).status.is_final else None, seconds)

    def with_checkpoint(self, job: Job) -> Job:
        """The job once it has a checkpoint."""
        return self.wait(lambda: j if (j := self.job(job)).checkpoint_key else None)

    def child(self, job: Job) -> psutil.Process:
        """The process that does the job, once it is there."""
        return self.wait(lambda: _find_child(job.id))

    def artifact(self, job: Job) -> bytes:
        """The bytes of the job's model."""
        model = self.model(job)
        assert model.artifact_key is not None
        assert model.artifact_sha256 is not None
        return self.store.read(model.artifact_key, model.artifact_sha256)

    def orphans(self) -> list[str]:
        """Keys in the store that no record stands for, once garbage collection had its time."""
        try:
            self.wait(lambda: not self._orphans())
        except TimeoutError:
            return self._orphans()
        return []

    def _orphans(self) -> list[str]:
        due = tuple(self.catalog.inventory.prefixes_in_work())
        left = [entry.key for entry in self.store.list() if entry.key.startswith(due)]
        return left + [entry.key for entry in find_orphans(self.catalog, self.store, 0)]

    def is_writable(self) -> bool:
        """Whether nobody holds the database's write lock."""
        path = self.folder / "catalog.db"
        with closing(sqlite3.connect(path, timeout=0.2, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return False
            connection.execute("ROLLBACK")
            return True

    def wipe_queue(self) -> None:
        """Lose every message."""
        for file in (self.folder / "queue").glob("*/*"):
            file.unlink(missing_ok=True)

    def wait(self, condition: Callable[[], Any], seconds: float = 120) -> Any:
        """The first true answer of `condition`."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            answer = condition()
            if answer:
                return answer
            time.sleep(0.1)  # the processes that are waited for need the cores
        log = (self.folder / "worker.log").read_text()[-3000:]
        raise TimeoutError(f"it did not happen; the worker says:\n{log}")


def family(pid: int) -> list[psutil.Process]:
    """A process with all its descendants, itself first; none where it is gone."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _find_child(job_id: str) -> psutil.Process | None:
    for process in psutil.process_iter(["cmdline", "status"]):
        command = process.info["cmdline"] or []
        if "gcvae-job" in command and job_id in command:
            return process
    return None


def _kill(process: psutil.Process) -> None:
    try:
        process.send_signal(signal.SIGKILL)
    except psutil.NoSuchProcess:
        return


def embedded(folder: Path) -> dict[str, str]:
    """The three URLs of a system in a folder."""
    return {
        "GCVAE_DATABASE_URL": f"sqlite:///{folder}/catalog.db",
        "GCVAE_BROKER_URL": f"filesystem://{folder}/queue",
        "GCVAE_STORE_URL": f"file://{folder}/store",
    }


@contextmanager
def production() -> Iterator[dict[str, str]]:
    """The URLs of a system on PostgreSQL, Redis and S3, which run as long as the block."""
    with PostgresServer() as postgres, RedisServer() as redis, S3Server() as s3:
        yield s3.environment() | {
            "GCVAE_DATABASE_URL": postgres.create_database("gcvae"),
            "GCVAE_BROKER_URL": redis.url,
            "GCVAE_STORE_URL": "s3://bucket/gcvae",
        }


@contextmanager
def running_system(
    folder: Path, *, with_stand_in: bool, urls: dict[str, str] | None = None
) -> Iterator[System]:
    """A system, in a folder unless it has other URLs; its workers end with it."""
    urls = embedded(folder) if urls is None else urls
    database_url = urls["GCVAE_DATABASE_URL"]
    upgrade(database_url)
    (folder / "worker.log").touch()
    with pytest.MonkeyPatch.context() as environment:
        for name, value in urls.items():
            environment.setenv(name, value)
        store = open_store(urls["GCVAE_STORE_URL"])
    system = System(
        folder,
        urls,
        Catalog(database_url, attempts_limit=3, resend_seconds=0.2, resend_limit_seconds=2),
        store,
        CeleryDispatcher(make_celery(urls["GCVAE_BROKER_URL"])),
        with_stand_in,
    )
    try:
        yield system
    finally:
        system.stop_workers()
        system.catalog.close()


@pytest.fixture(scope="session")
def start_system() -> Callable[..., AbstractContextManager[System]]:
    """Starts a system on the stand-in, by the kind of its servers."""

    @contextmanager
    def start(kind: str, folder: Path) -> Iterator[System]:
        with ExitStack() as stack:
            urls = stack.enter_context(production()) if kind == "production" else None
            yield stack.enter_context(running_system(folder, with_stand_in=True, urls=urls))

    return start


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    """A system of the test's own, on the stand-in; no worker runs yet."""
    with running_system(tmp_path, with_stand_in=True) as system:
        yield system


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A system on the stand-in with one running worker, for tests that leave it alive."""
    with running_system(tmp_path_factory.mktemp("shared"), with_stand_in=True) as system:
        system.start_worker()
        yield system


@pytest.fixture
def own_real_system(tmp_path: Path) -> Iterator[System]:
    """A system of the test's own, on the real library; no worker runs yet."""
    with running_system(tmp_path, with_stand_in=False) as system:
        yield system


@pytest.fixture(scope="module")
def real_system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A system on the real library with one running worker."""
    with running_system(tmp_path_factory.mktemp("real"), with_stand_in=False) as system:
        system.start_worker()
        yield system
