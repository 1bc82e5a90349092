"""A real service on a real socket, with SQLite, a folder store and the folder broker."""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import uvicorn
from sqlalchemy import inspect, text

from catalog import Catalog, Claim, Queue, upgrade
from gcvae import Synthesizer
from models_store import Store
from runtime.processes import ForkServer
from runtime.traces import Traces
from service.app import create_app
from service.http.head_limits import head_protocol
from service.resources import Resources
from service.server import Server, bind
from service.settings import ServiceSettings
from tests.claims import claim_job
from worker.processes.child import do_work
from worker.processes.supervisor import JOB_IMPORTS, new_owner, run_attempt
from worker.settings import JobSettings
from worker.upkeep import collect_garbage
from worker.work.attempt import Attempt
from worker.work.messages import Message, TryAgain

START_SECONDS = 20.0
_TLS = httpx.create_ssl_context()  # reading the certificates takes a client 20 ms


@dataclass(frozen=True)
class Running:
    """A service that runs in a thread of this process, and the things it stands on."""

    url: str
    settings: ServiceSettings
    resources: Resources
    http: httpx.Client
    loop: asyncio.AbstractEventLoop

    @property
    def catalog(self) -> Catalog:
        return self.resources.catalog

    @property
    def store(self) -> Store:
        return self.resources.store

    def traces(self) -> dict[str, object]:
        """Everything kept: rows of each table, keys of the store. Equal before and after."""
        with self.catalog.database.engine.connect() as connection:
            # The audit log keeps what was tried, too.
            tables = set(inspect(connection).get_table_names()) - {"audit"}
            counts: dict[str, object] = {
                table: connection.execute(text(f'SELECT count(*) FROM "{table}"')).scalar()
                for table in tables
            }
        return counts | {"store": sorted(entry.key for entry in self.store.list())}


@contextmanager
def running(settings: ServiceSettings) -> Iterator[Running]:
    """A service with these settings, until the block ends."""
    upgrade(settings.database())
    app = create_app(settings)
    listening = bind(settings)
    urls: list[str] = []
    loops: list[asyncio.AbstractEventLoop] = []

    def note(url: str) -> None:
        loops.append(asyncio.get_running_loop())
        urls.append(url)

    config = uvicorn.Config(
        app, http=head_protocol(settings), log_level="warning", timeout_graceful_shutdown=5
    )
    server = Server(config, app.state.resources, note)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        _wait_until(lambda: bool(urls))
        # The first table waits for imports, on a busy machine for half a minute.
        with httpx.Client(base_url=urls[0], timeout=120, verify=_TLS) as http:
            yield Running(urls[0], settings, app.state.resources, http, loops[0])
    finally:
        server.should_exit = True
        thread.join(START_SECONDS)
        listening.close()
    assert not thread.is_alive()


OUTSIDE = {"outside_hosts": ("127.0.0.1",), "outside_networks": ("127.0.0.0/8",)}
"""Settings with which a service may reach servers of the test."""


def settings_in(folder: Path, **given: object) -> ServiceSettings:
    """Settings of a service whose data lie in a folder, on a free port."""
    plain: dict[str, object] = {
        "home_dir": folder,
        "port": 0,
        "preload_torch": False,
        "event_interval_seconds": 0.05,
    }
    return ServiceSettings(**(plain | given))  # type: ignore[arg-type]


def work(service: Running, job_id: str) -> None:
    """Do a job, its shards first, as a worker does."""
    for shard in service.catalog.all_jobs.shards(job_id):
        attempt(service, shard.id)
    attempt(service, job_id)


def attempt(service: Running, job_id: str) -> None:
    """Make one attempt at a job, or at a shard."""
    claim = claim_job(service.catalog, job_id, new_owner(), JobSettings().lease_seconds)
    assert claim is not None
    _attempt(service, claim)


@contextmanager
def working(service: Running) -> Iterator[None]:
    """Jobs are done as they come, until the block ends."""
    over, queues, seconds = threading.Event(), tuple(Queue), JobSettings().lease_seconds

    def work_on() -> None:
        while not over.is_set():
            claim = service.catalog.leases.claim_next(queues, new_owner(), seconds)
            if claim is None:
                over.wait(0.02)
            else:
                _attempt(service, claim)

    worker = threading.Thread(target=work_on)
    worker.start()
    try:
        yield
    finally:
        over.set()
        worker.join()


def _attempt(service: Running, claim: Claim) -> None:
    """What a worker's child process does, done here, where torch is imported already.

    The processes have tests of their own, in `tests/worker`.
    """
    catalog = service.catalog
    told: list[Message] = []
    with tempfile.TemporaryDirectory() as folder:
        settings = JobSettings(job_threads=1)
        last = do_work(Attempt(catalog, service.store, claim, settings, told.append, Path(folder)))
    if isinstance(last, TryAgain):
        catalog.leases.release(claim, last.failed)
    elif last is not None:  # else the attempt has lost its job
        progress = told[-1] if told else None
        assert progress is None or isinstance(progress, dict)
        catalog.leases.finish(claim, last, progress)
    collect_garbage(catalog, service.store)


def attempt_by_child(service: Running, job_id: str, traces: Traces | None = None) -> None:
    """Make one attempt at a job by a child process, set up as this service."""
    settings = service.settings
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("GCVAE_DATABASE_URL", settings.database())
        environment.setenv("GCVAE_BROKER_URL", settings.broker())
        environment.setenv("GCVAE_STORE_URL", settings.store())
        environment.setenv("GCVAE_JOB_THREADS", "1")
        jobs = JobSettings(heartbeat_seconds=0.2)
        claim = claim_job(service.catalog, job_id, new_owner(), jobs.lease_seconds)
        assert claim is not None
        parts = (service.catalog, service.store, jobs, threading.Event())
        with closing(ForkServer(JOB_IMPORTS)) as server:
            run_attempt(claim, *parts, server, traces or Traces())


def train(service: Running, table: bytes, **training: object) -> dict[str, Any]:
    """A ready model of a table, trained by a few steps of the real thing."""
    headers = {"Content-Type": "text/csv"}
    dataset = service.http.post("/v1/datasets?name=cars", content=table, headers=headers).json()
    quick = {"preset": "paper-vae", "device": "cpu", "max_steps": 20, "evaluate_every_steps": 10}
    asked = {"dataset_id": dataset["id"], "training": quick | training}
    model = service.http.post("/v1/models", json=asked).json()
    work(service, model["job_id"])
    trained = service.http.get(f"/v1/models/{model['id']}").json()
    assert trained["status"] == "ready", service.http.get(f"/v1/jobs/{model['job_id']}").json()
    return dict(trained)


def library(service: Running, model: dict[str, Any]) -> Synthesizer:
    """The model as the library loads it from its artifact."""
    artifact = service.http.get(f"/v1/models/{model['id']}/artifact").content
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gcvae"
        path.write_bytes(artifact)
        return Synthesizer.load(path)


def inline_pids() -> set[int]:
    """The processes of inline work below this one, as the system lists them."""
    children = [child for child in psutil.Process().children() if _is_alive(child)]
    servers = [child for child in children if "fork_server" in " ".join(child.cmdline())]
    return {child.pid for server in servers for child in server.children() if _is_alive(child)}


def _is_alive(process: psutil.Process) -> bool:
    return process.status() != psutil.STATUS_ZOMBIE


def assert_problem(response: httpx.Response, status: int, name: str) -> dict[str, Any]:
    """The problem document of a refusal, whose form is that of RFC 9457."""
    assert response.status_code == status, response.text
    assert response.headers["Content-Type"] == "application/problem+json"
    problem = response.json()
    assert problem["type"] == f"urn:gcvae:problem:{name}"
    assert problem["status"] == status
    assert problem["request_id"] == response.headers["X-Request-ID"]
    assert problem["title"]
    assert problem["detail"]
    return dict(problem)


def _wait_until(is_done: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + START_SECONDS
    while not is_done():
        assert time.monotonic() < ends_at, "the service did not start"
        time.sleep(0.01)
