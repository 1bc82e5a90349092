"""Laws of a process that answers over a pipe: whenever it ends, whoever asks it hears of it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any

import psutil
import pytest

from service.inline.pipe import PipedProcess, answer_all

_CONTEXT = multiprocessing.get_context("spawn")


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


@pytest.fixture
def started() -> Iterator[Callable[..., PipedProcess]]:
    """Starts processes, and ends them."""
    processes = []

    def start(serve: Callable[..., None], *arguments: Any) -> PipedProcess:
        processes.append(PipedProcess(_CONTEXT, serve, *arguments))
        return processes[-1]

    yield start
    for process in processes:
        process.close()


def test_it_answers_again_and_again(started: Callable[..., PipedProcess]) -> None:
    process = started(double, 1)
    assert [process.ask(number) for number in range(4)] == [1, 3, 5, 7]
    assert process.is_alive


def test_its_end_is_seen_in_the_middle_of_an_answer(started: Callable[..., PipedProcess]) -> None:
    process = started(break_off)
    with pytest.raises(EOFError):
        process.ask(1)
    with pytest.raises(EOFError):
        process.ask(2)


def test_one_that_is_killed_at_work_answers_with_its_end(
    started: Callable[..., PipedProcess],
) -> None:
    process = started(sleep)
    killer = threading.Timer(0.5, process.kill)
    killer.start()
    with pytest.raises(EOFError):
        process.ask(1)
    killer.join()
    assert not process.is_alive


_LEFT = """
from multiprocessing import get_context
from service.inline.pipe import PipedProcess
from tests.service.inline.test_pipe import double
if __name__ == "__main__":
    process = PipedProcess(get_context("spawn"), double, 0)
    print(process.pid, process.ask(1), flush=True)
"""


def test_one_that_nobody_closed_ends_with_python() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _LEFT], capture_output=True, text=True, timeout=60, check=True
    )
    pid, answer = map(int, ended.stdout.split())
    assert answer == 2
    assert not psutil.pid_exists(pid)
