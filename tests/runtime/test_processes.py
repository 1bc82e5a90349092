"""Laws of the processes that work is isolated in: each answers, or says how it ended."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

import psutil
import pytest

from runtime.folders import remove_left_folders
from runtime.processes import ForkServer, Process, answer_all
from tests.runtime import slow_imports

SECONDS = 60.0


def double(pipe: Connection, added: int) -> None:
    """Twice the number, and something more."""
    answer_all(pipe, lambda number: 2 * number + added)


def break_off(pipe: Connection) -> None:
    """Half an answer, and no more: as by the kernel when memory runs out."""
    pipe.recv()
    os.write(pipe.fileno(), struct.pack("!i", 1_000) + b"the first of a thousand bytes")
    os.kill(os.getpid(), signal.SIGKILL)


def sleep(pipe: Connection) -> None:
    answer_all(pipe, lambda _: time.sleep(100))


def fail(pipe: Connection) -> None:
    raise ValueError("told on standard error")


def write(pipe: Connection) -> None:
    """A file in the folder of temporary files, which it names."""

    def answer(_: object) -> str:
        descriptor, path = tempfile.mkstemp()
        os.write(descriptor, b"half-made")
        return path

    answer_all(pipe, answer)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def server(folder: Path) -> Iterator[ForkServer]:
    with closing(ForkServer("math")) as found:
        yield found


@pytest.fixture
def start(server: ForkServer) -> Iterator[Callable[..., Process]]:
    """Starts processes, and ends them."""
    processes: list[Process] = []

    def begin(live: Callable[..., None], *arguments: object) -> Process:
        processes.append(server.fork(live, *arguments))
        return processes[-1]

    yield begin
    for process in processes:
        process.close()


def _server_process() -> psutil.Process:
    [found] = [
        child
        for child in psutil.Process().children()
        if child.status() != psutil.STATUS_ZOMBIE and child.cmdline()[3:4] == ["math"]
    ]
    return found


def test_processes_answer_side_by_side(start: Callable[..., Process]) -> None:
    processes = [start(double, added) for added in range(3)]
    for number in range(3):
        assert [one.ask(number) for one in processes] == [2 * number + added for added in range(3)]
    assert all(process.is_alive for process in processes)


def test_its_end_is_seen_in_the_middle_of_an_answer(start: Callable[..., Process]) -> None:
    process = start(break_off)
    for _ in range(2):
        with pytest.raises(EOFError):
            process.ask(1)
    assert process.wait(SECONDS)
    assert process.exit_code == -signal.SIGKILL


def test_one_that_is_killed_at_work_answers_with_its_end(start: Callable[..., Process]) -> None:
    process = start(sleep)
    killer = threading.Timer(0.5, process.kill)
    killer.start()
    with pytest.raises(EOFError):
        process.ask(1)
    killer.join()
    assert not process.is_alive


def test_each_says_how_it_ended(start: Callable[..., Process]) -> None:
    done, failed, stopped = start(double, 0), start(fail), start(sleep)
    done.pipe.close()
    stopped.terminate()
    for process, exit_code in ((done, 0), (failed, 1), (stopped, -signal.SIGTERM)):
        assert process.wait(SECONDS)
        assert process.exit_code == exit_code
        process.kill()  # a signal to one that has ended is for nobody


def test_a_server_that_was_killed_takes_its_processes_along_and_has_an_heir(
    start: Callable[..., Process],
) -> None:
    process = start(double, 0)
    assert process.ask(1) == 2
    _server_process().kill()
    assert process.wait(SECONDS)
    assert process.exit_code == -signal.SIGKILL
    with pytest.raises(EOFError):
        process.ask(1)
    assert start(double, 1).ask(1) == 3


def test_one_is_ended_before_it_has_begun(folder: Path) -> None:
    """The first one waits for what the server imports."""
    with closing(ForkServer(slow_imports.__name__)) as server:
        began = time.monotonic()
        process = server.fork(sleep)
        process.close()
        assert process.exit_code == -signal.SIGKILL
        assert time.monotonic() - began < slow_imports.SECONDS / 2
        assert list(folder.iterdir()) == []


def test_its_folder_goes_with_it(start: Callable[..., Process], folder: Path) -> None:
    process = start(write)
    path = Path(process.ask(None))
    assert path.parent.parent == folder
    assert path.read_bytes() == b"half-made"
    assert remove_left_folders(folder) == [], "it is in use"
    process.kill()
    assert list(folder.iterdir()) == []


def test_what_was_killed_with_its_server_left_goes_with_the_next(
    start: Callable[..., Process], folder: Path
) -> None:
    left = Path(start(write).ask(None)).parent
    server = _server_process()
    children = server.children()
    for process in (server, *children):
        process.kill()
    psutil.wait_procs(children, SECONDS)
    assert left.exists()
    Path(start(write).ask(None))
    assert not left.exists()


def test_a_full_disk_is_no_reason_to_work_elsewhere(
    make_disk: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk(1 << 20)
    (disk / "ballast").write_bytes(bytes(1 << 20))
    monkeypatch.setenv("TMPDIR", str(disk))
    with closing(ForkServer("math")) as server, closing(server.fork(where)) as process:
        assert Path(process.ask(None)).parent == disk


def where(pipe: Connection) -> None:
    answer_all(pipe, lambda _: tempfile.gettempdir())


_LEFT = """
from runtime.processes import ForkServer
from tests.runtime.test_processes import double
process = ForkServer("math").fork(double, 0)
print(process.ask(1), flush=True)
"""


def test_one_that_nobody_closed_ends_with_its_owner(folder: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _LEFT], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout == "2\n"
    ends_at = time.monotonic() + SECONDS
    while list(folder.iterdir()):
        assert time.monotonic() < ends_at
        time.sleep(0.01)
