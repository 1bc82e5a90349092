"""Processes of jobs are forked from a server that has imported what they need."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from catalog import upgrade
from tests.running_worker import embedded
from worker.processes.fork_server import ForkServer, JobProcess
from worker.work.messages import JobOrder

ROOT = Path(__file__).parents[3]
STAND_IN = ROOT / "tests" / "faults" / "stand_in"
NOBODY = JobOrder("job_01aaaaaaaaaaaaaaaaaaaaaaaa", 1, "nobody")
"""An attempt that nobody owns: its process ends at once, and well."""
SERVER = "worker.processes.fork_server"
SECONDS = 60.0


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ForkServer]:
    urls = embedded(tmp_path)
    upgrade(urls["GCVAE_DATABASE_URL"])
    quick = {"PYTHONPATH": os.pathsep.join(map(str, [STAND_IN, ROOT]))}  # without torch
    for name, value in (urls | quick).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)  # from here it would find this checkout's library
    with closing(ForkServer()) as found:
        yield found


def forked(server: ForkServer) -> tuple[JobProcess, int]:
    """A process that does nothing, and the end of its pipe that is read here."""
    reading, writing = os.pipe()
    try:
        return server.fork(NOBODY, writing), reading
    finally:
        os.close(writing)


def test_one_process_after_the_other_says_how_it_ended(server: ForkServer) -> None:
    for _ in range(3):
        process, reading = forked(server)
        assert process.wait(SECONDS)
        assert process.exit_code == 0
        assert os.read(reading, 1) == b"", "nobody holds the other end any more"
        os.close(reading)
        process.kill()  # a signal to one that has ended is for nobody, and not for the next


def _command_of(process: psutil.Process) -> list[str]:
    """Nothing of a child of other tests that has ended."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


@pytest.mark.slow
def test_a_server_that_was_killed_has_an_heir(server: ForkServer) -> None:
    process, reading = forked(server)
    assert process.wait(SECONDS)
    os.close(reading)
    [pid] = [p.pid for p in psutil.Process().children() if SERVER in _command_of(p)]
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    process, reading = forked(server)
    assert process.wait(SECONDS)
    assert process.exit_code == 0
    os.close(reading)


def test_a_process_is_ended_before_it_has_begun(server: ForkServer) -> None:
    """The first one waits for what the server imports."""
    process, reading = forked(server)
    process.kill()
    assert process.wait(SECONDS)
    assert process.exit_code == -signal.SIGKILL
    assert os.read(reading, 1) == b""
    os.close(reading)
    process, reading = forked(server)
    assert process.wait(SECONDS)
    assert process.exit_code == 0
    os.close(reading)
