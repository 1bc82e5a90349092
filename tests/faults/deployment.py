"""The service as it runs in production: API and workers as processes, started again when they end.

What an orchestrator does – starting what ended – is done here by a thread.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import httpx
import psutil

from catalog import Catalog
from catalog.database.migrate import upgrade
from catalog.records import Scope
from tests.servers.servers import PostgresServer, RedisServer, S3Server, free_port, s3_environment
from tests.servers.store_proxy import StoreProxy

LEASE_SECONDS = 5.0
WORKSPACES = ("north", "south")
SHARD_ROWS = 4096

_ROOT = Path(__file__).parents[2]
_STAND_IN = _ROOT / "tests" / "faults" / "stand_in"
_WATCH_SECONDS = 0.1
_READY_SECONDS = 120.0
_STOP_SECONDS = 60.0


@dataclass(frozen=True)
class Servers:
    """What the processes stand on."""

    postgres: PostgresServer
    redis: RedisServer
    s3: S3Server
    proxy: StoreProxy


@dataclass
class Member:
    """A process of the deployment, with all its descendants.

    Attributes:
        is_held: while True it is not started again.
        clock_seconds: how far its clock is off, from its next start on.
    """

    name: str
    command: list[str]
    environment: dict[str, str]
    log: Path
    is_held: bool = False
    clock_seconds: int = 0
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self) -> None:
        """Start it."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                env=self.environment | _clock(self.clock_seconds),
                cwd=self.log.parent,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def has_ended(self) -> bool:
        """Whether it runs no more."""
        return self.process is None or self.process.poll() is not None

    def family(self) -> list[psutil.Process]:
        """Its living processes, itself first."""
        if self.process is None:
            return []
        try:
            parent = psutil.Process(self.process.pid)
            return [parent, *parent.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def stop(self) -> int:
        """Ask it to end as a deployment does; returns its exit code."""
        assert self.process is not None, "stopped after it was started"
        self.process.terminate()
        return self.process.wait(_STOP_SECONDS)


class Deployment:
    """An API and workers on the servers; a context that starts them and leaves no process.

    Attributes:
        keys: an API key for each of `WORKSPACES`, from the start on.

    Args:
        folder: of logs and of what the processes write beside the store.
        with_stand_in: whether the workers have the stand-in for the library.
        grace_seconds: when bytes go that a dead request left.
    """

    def __init__(
        self,
        servers: Servers,
        folder: Path,
        name: str,
        *,
        n_workers: int,
        with_stand_in: bool,
        grace_seconds: float,
    ) -> None:
        self.servers, self.folder = servers, folder
        # A path that is short enough for a socket in it, wherever the folder lies.
        self.scratch = Path(tempfile.mkdtemp(prefix="gcvae-faults-"))
        self.database_url = servers.postgres.create_database(name)
        self.store_url = f"s3://bucket/{name}"
        self.url = f"http://127.0.0.1:{free_port()}"
        self.keys: dict[str, str] = {}
        self.environment = self._environment(grace_seconds)
        library = {"PYTHONPATH": _path(with_stand_in=with_stand_in)}
        self.api = self._member("api", self._api_command(), {"PYTHONPATH": _path()})
        worker = [sys.executable, "-m", "worker", f"--die-with-parent={os.getpid()}"]
        self.workers = [
            self._member(f"worker-{number}", worker, library) for number in range(n_workers)
        ]
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="orchestrator", daemon=True)

    def __enter__(self) -> Self:
        upgrade(self.database_url)
        self.keys = self._make_keys()
        self._watcher.start()
        deadline = time.monotonic() + _READY_SECONDS
        while not self.is_ready():
            assert time.monotonic() < deadline, self.api.log.read_text()[-3000:]
            time.sleep(0.1)
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._watcher.join()
        for member in self.members():
            for process in member.family():
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            if member.process is not None:
                member.process.wait()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def members(self) -> list[Member]:
        """Every process of the deployment."""
        return [self.api, *self.workers]

    def is_ready(self) -> bool:
        """Whether the API says that it and its servers are ready."""
        try:
            return httpx.get(f"{self.url}/readyz", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    def _make_keys(self) -> dict[str, str]:
        catalog = Catalog(self.database_url)
        scopes = (Scope.READ, Scope.WRITE)
        keys = {name: catalog.keys.create(name, "", scopes)[1] for name in WORKSPACES}
        catalog.close()
        return keys

    def _watch(self) -> None:
        # The members are started by this thread: some kernels tie a child to its parent's thread.
        while not self._ended.wait(_WATCH_SECONDS):
            for member in self.members():
                if member.has_ended() and not member.is_held:
                    member.start()

    def _member(self, name: str, command: list[str], environment: Mapping[str, str]) -> Member:
        log = self.folder / f"{name}.log"
        return Member(name, command, self.environment | environment, log)

    def _api_command(self) -> list[str]:
        port = self.url.rpartition(":")[2]
        command = [sys.executable, "-m", "gcvae_cli", "api", "--port", port]
        return [*command, "--parent", str(os.getpid())]

    def _environment(self, grace_seconds: float) -> dict[str, str]:
        return (
            os.environ
            | s3_environment(self.servers.proxy.url)
            | {
                "GCVAE_DATABASE_URL": self.database_url,
                "GCVAE_BROKER_URL": self.servers.redis.url,
                "GCVAE_STORE_URL": self.store_url,
                "GCVAE_LEASE_SECONDS": str(LEASE_SECONDS),
                "GCVAE_HEARTBEAT_SECONDS": "1",
                "GCVAE_RECONCILE_SECONDS": "0.5",
                "GCVAE_RESEND_SECONDS": "0.5",
                "GCVAE_RESEND_LIMIT_SECONDS": "4",
                "GCVAE_FIRST_CHECKPOINT_SECONDS": "0.5",
                "GCVAE_CHECKPOINT_SECONDS": "1",
                "GCVAE_RESERVATION_SECONDS": str(grace_seconds),
                "GCVAE_MAX_INLINE_SAMPLE_ROWS": "0",
                "GCVAE_SAMPLE_SHARD_ROWS": str(SHARD_ROWS),
                "GCVAE_MAX_INLINE_SCORE_ROWS": "0",
                "GCVAE_PRELOAD_TORCH": "false",
                "GCVAE_JOB_THREADS": "1",
                "OMP_NUM_THREADS": "1",
                "TMPDIR": str(self.scratch),
            }
        )


def job_of(process: psutil.Process) -> tuple[str, int] | None:
    """The job and the attempt that a process does, if it is a job's."""
    try:
        command = process.cmdline()
    except psutil.Error:
        return None
    if "gcvae-job" not in command:
        return None
    job_id = command[command.index("gcvae-job") + 1]
    return job_id, int(command[command.index("--attempt") + 1])


def jobs_of(member: Member) -> dict[str, int]:
    """The jobs that a worker does, each with its attempt."""
    return dict(found for process in member.family() if (found := job_of(process)))


def signal_all(processes: Iterator[psutil.Process] | list[psutil.Process], number: int) -> None:
    """Send a signal to every process that is still there."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.Signals(number))


def _path(*, with_stand_in: bool = False) -> str:
    return os.pathsep.join(map(str, [_STAND_IN, _ROOT] if with_stand_in else [_ROOT]))


def _clock(seconds: int) -> dict[str, str]:
    if not seconds:
        return {}
    import libfaketime

    library = Path(libfaketime.__file__).parent / "vendor/libfaketime/src/libfaketime.so.1"
    return {
        "LD_PRELOAD": str(library),
        "FAKETIME": f"{seconds:+d}s",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_DISABLE_SHM": "1",
    }
