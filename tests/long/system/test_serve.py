"""`gcvae serve`: one command, every process of it watched, none of them left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

SERVE = [sys.executable, "-m", "gcvae_cli", "serve"]


@contextmanager
def serving(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A running `gcvae serve` and its URL; every process of it is gone afterwards."""
    command = [*SERVE, "--port", "0", "--data-dir", str(folder / "data")]
    with (folder / "output.log").open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    family: list[psutil.Process] = []
    try:
        url = read_url(folder / "output.log")
        family = descendants(process)
        yield process, url
    finally:
        family += descendants(process)
        process.kill()
        process.wait()
        for member in family:
            if member.is_running():
                member.kill()


def read_url(output: Path) -> str:
    """The URL that the ready line names."""
    assert eventually(lambda: "ready at http" in output.read_text(), 60), output.read_text()
    found = re.search(r"ready at (http://\S+)", output.read_text())
    assert found is not None
    return found[1]


def descendants(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Every living process below this one."""
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def eventually(holds: Callable[[], bool], seconds: float = 20.0) -> bool:
    """True as soon as it holds, False if it does not within the time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.1)
    return False


def are_gone(family: list[psutil.Process]) -> bool:
    """True once none of them lives."""
    return not [member for member in family if lives(member)]


def lives(process: psutil.Process) -> bool:
    """True while it runs; a zombie has ended and only waits for its parent to notice."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def named(family: list[psutil.Process], words: str) -> list[psutil.Process]:
    """Those whose command line holds the words."""
    return [member for member in family if words in command_line(member)]


def command_line(process: psutil.Process) -> str:
    """Its command line; empty where it is ending."""
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return ""


def whole_family(process: subprocess.Popen[bytes]) -> bool:
    """True once API, worker, Celery and the fork servers of both run."""
    family = descendants(process)
    servers = ("runtime.fork_server service", "runtime.fork_server worker")
    return all(named(family, words) for words in ("celeryd: ", *servers))


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_every_process_when_it_is_asked_to(tmp_path: Path, ending: signal.Signals) -> None:
    with serving(tmp_path) as (process, url):
        assert httpx.get(f"{url}/readyz").json()["status"] == "ready"
        assert eventually(lambda: whole_family(process))
        family = descendants(process)
        process.send_signal(ending)
        assert process.wait(40) == 0
        assert are_gone(family)


def test_a_frozen_worker_keeps_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GCVAE_SHUTDOWN_SECONDS", "2")
    with serving(tmp_path) as (process, _):
        assert eventually(lambda: whole_family(process))
        family = descendants(process)
        [worker] = named(family, "worker --die-with-parent")
        worker.suspend()
        process.terminate()
        assert process.wait(40) == 0
        assert eventually(lambda: are_gone(family), seconds=5.0)
        assert "the worker did not end in time and is killed" in read(tmp_path)


def read(folder: Path) -> str:
    """What the processes have said."""
    return (folder / "output.log").read_text()


def test_every_process_ends_when_it_is_killed(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, _):
        assert eventually(lambda: whole_family(process))
        family = descendants(process)
        process.kill()
        process.wait()
        assert eventually(lambda: are_gone(family), seconds=5.0)


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """One that stays, without torch."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("GCVAE_PRELOAD_TORCH", "false")
        with serving(tmp_path_factory.mktemp("served")) as running:
            yield running


@pytest.mark.parametrize("victim", ["gcvae_cli api", "worker --die-with-parent"])
def test_a_killed_process_is_started_again(
    served: tuple[subprocess.Popen[bytes], str], victim: str
) -> None:
    process, url = served
    [first] = named(descendants(process), victim)
    os.kill(first.pid, signal.SIGKILL)
    assert eventually(
        lambda: [p.pid for p in named(descendants(process), victim)] not in ([], [first.pid])
    )
    assert eventually(lambda: answers(url))


def answers(url: str) -> bool:
    """True where the service is ready."""
    try:
        return httpx.get(f"{url}/readyz").status_code == 200
    except httpx.TransportError:
        return False


def test_it_listens_to_its_own_machine_only(tmp_path: Path) -> None:
    command = [*SERVE, "--host", "0.0.0.0", "--data-dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "127.0.0.1" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_port_that_is_taken_is_named(
    served: tuple[subprocess.Popen[bytes], str], tmp_path: Path
) -> None:
    port = served[1].rpartition(":")[2]
    command = [*SERVE, "--port", port, "--data-dir", str(tmp_path / "other")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert port in done.stderr
    assert "--port" in done.stderr
