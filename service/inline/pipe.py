"""A process that answers over a pipe, whose other end nobody but it holds.

So its end is seen in the middle of an answer, too. `ProcessPoolExecutor` keeps the writing end open
in the process that reads: it waits for ever for the rest of an answer whose writer was killed.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from multiprocessing import forkserver, reduction
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from typing import Any, BinaryIO

from service.errors import StartError

Context = ForkServerContext | SpawnContext

_IMPORTED_ONCE = ["service.inline.fork_server"]
_SOCKET_BYTES = 107
"""Of the path of a socket, on Linux."""
_IN_FOLDER = len("/pymp-12345678/listener-12345678")
"""What multiprocessing puts behind the folder of temporary files to name a socket."""


@cache
def processes_context() -> Context:
    """How processes are started: never by forking this one, which has threads."""
    if not are_forked():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED_ONCE)
    return context


def are_forked() -> bool:
    """Whether processes are forked from a server, and not spawned."""
    return sys.platform == "linux"


def refuse_long_folder() -> None:
    """Stop a service whose processes could not be started: each would fail, not only the first.

    Raises:
        StartError: the folder of temporary files has too long a path for a socket in it.
    """
    folder, most = tempfile.gettempdir(), _SOCKET_BYTES - _IN_FOLDER
    if sys.platform == "linux" and len(os.fsencode(folder)) > most:
        raise StartError(
            f"the folder of temporary files, {folder}, has a path of over {most} bytes, and a "
            "socket in it would have too long a name; set TMPDIR to another"
        )


def end_fork_server() -> None:
    """Kill the server that processes are forked from, where there is one: it holds nothing.

    Left alone, it would first end its import of torch, and Ctrl-C in the service's first seconds
    would wait for it: 8 s instead of 1 on a busy machine. Nothing public ends it.
    """
    server: Any = forkserver._forkserver
    if server._forkserver_pid is not None:
        os.kill(server._forkserver_pid, signal.SIGKILL)
    server._stop()


class PipedProcess:
    """A process that runs `serve(its end of the pipe, *arguments)`.

    Attributes:
        pid: of the process.
    """

    def __init__(self, context: Context, serve: Callable[..., None], *arguments: Any) -> None:
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, *arguments))
        with theirs:
            self._process.start()
        assert self._process.pid is not None, "it is started"
        self.pid: int = self._process.pid
        atexit.register(self.kill)  # Python waits at its end for those that live

    @property
    def is_alive(self) -> bool:
        """Whether the process, of which nothing is asked just now, has not ended.

        Its end of the pipe shows it first: there is nothing to be read but that it is closed.
        """
        return not self._pipe.poll()

    def ask(self, question: Any) -> Any:
        """The process's answer. It waits for it, and one thread may ask at a time.

        Raises:
            EOFError: the process ended before it had answered.
        """
        try:
            self._pipe.send(question)
            return self._pipe.recv()
        except OSError:  # in the middle of a question or an answer
            raise EOFError from None

    def hand_over(self, file: BinaryIO) -> None:
        """Give the process a file of its own on what this file holds; see `received_file`.

        Raises:
            EOFError: the process ended before.
        """
        file.flush()
        try:
            reduction.send_handle(self._pipe, file.fileno(), self.pid)
        except OSError:
            raise EOFError from None

    def ended(self) -> int | None:
        """How the process ended: its exit code, or minus the signal; it is killed if it lives."""
        self.kill()
        return self._process.exitcode

    def kill(self) -> None:
        """End the process, and wait until it has; whoever asks it gets an EOFError."""
        self._process.kill()
        self._process.join()

    def close(self) -> None:
        """Kill it and free what it held here. Nobody asks it any more."""
        atexit.unregister(self.kill)
        self.kill()
        self._process.close()
        self._pipe.close()


@contextmanager
def received_file(pipe: Connection) -> Iterator[BinaryIO]:
    """Within such a process: the file that was handed over, at its beginning."""
    handed = reduction.recv_handle(pipe)
    try:
        # Opened anew, so that it has a place of its own: the other process reads the file, too.
        file = open(f"/dev/fd/{handed}", "rb")  # noqa: SIM115
    finally:
        os.close(handed)
    with file:
        yield file


def answer_all(pipe: Connection, answer: Callable[[Any], Any]) -> None:
    """Within such a process: answer one question after the other, until nobody is left to ask."""
    while True:
        try:
            question = pipe.recv()
        except (EOFError, OSError):
            return
        pipe.send(answer(question))
