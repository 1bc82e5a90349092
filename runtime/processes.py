"""Runs work of the service and the worker in separate processes.

    service, or Celery process of a slot ── fork server ── a process for each piece of work

The fork server has imported torch, so a process starts in milliseconds, and all processes share
the memory of the imported modules. Each process has a pipe to its owner (the service or Celery
process) and a temporary folder that is deleted with it. It ends with the fork server, which ends
with its owner. The owner handles deadlines and cancellation (`terminate`, `kill`); the work itself
limits its memory and processor time.

Libraries are not suitable. pebble, loky and `ProcessPoolExecutor` return one result per task, but
the service streams responses and jobs report progress. The fork server of `multiprocessing` cannot
be ended while it imports, and does not end its children. Its socket is a file in the temporary
folder: the file remains when the server is killed, and its path may be too long for a socket.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import Pipe, reduction
from multiprocessing.connection import Connection
from typing import Any, BinaryIO, Literal

from runtime.folders import remove_left_folders
from runtime.settings import temporary_folder

EXIT_CODE = struct.Struct("!i")
READY = b"r"
_CLOSING_SECONDS = 2.0


class ForkServer:
    """Controls a fork server: a process that imports a module once and then forks quickly.

    The server starts on first use, and restarts if it ends.

    Args:
        imports: Module that the server imports before it forks.
    """

    def __init__(self, imports: str) -> None:
        self._imports = imports
        self._lock = threading.RLock()
        self._server: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def start(self) -> None:
        """Starts the fork server if it is not running; it imports in the background."""
        with self._lock:
            if self._server is not None and self._server.poll() is None:
                return
            self.close()
            atexit.register(self.close)
            self._socket, theirs = socket.socketpair()
            with theirs:
                command = [sys.executable, "-m", "runtime.fork_server", self._imports]
                command += ["--parent", str(os.getpid()), "--socket", str(theirs.fileno())]
                self._server = subprocess.Popen(
                    command,
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C in a terminal reaches the owner only
                )

    def fork(self, live: Callable[..., object], *arguments: Any) -> Process:
        """Starts a process that calls `live(pipe, *arguments)`, and returns a handle of it.

        `pipe` connects the new process to this one.

        Args:
            live: Function defined at the top level of a module.
            *arguments: Picklable arguments.
        """
        ours, theirs = Pipe()
        control, controlled = socket.socketpair()
        with theirs, controlled, self._lock, suppress(OSError):  # a server that has just ended
            self.start()
            assert self._socket is not None
            socket.send_fds(self._socket, [b"f"], [theirs.fileno(), controlled.fileno()])
        with suppress(OSError):
            ours.send((live, arguments))
        return Process(ours, control, self._end_unless_ready)

    def close(self) -> None:
        """Ends the fork server and all its child processes."""
        with self._lock:
            atexit.unregister(self.close)
            if self._server is not None and self._socket is not None:
                is_ready = self._is_ready()
                self._socket.close()
                if is_ready:  # it ends its children and deletes their folders
                    with suppress(subprocess.TimeoutExpired):
                        self._server.wait(_CLOSING_SECONDS)
                self._server.kill()
                self._server.wait()
                self._server = self._socket = None
                remove_left_folders(temporary_folder())  # it may have been killed during imports

    def _end_unless_ready(self) -> None:
        """While the server is importing, it has no children."""
        with self._lock:
            if not self._is_ready():
                self.close()

    def _is_ready(self) -> bool:
        """Returns whether the server has finished importing, or has ended.

        Its message READY stays in the socket, so that later calls see it too.
        """
        return self._socket is None or bool(select.select([self._socket], [], [], 0)[0])


class Process:
    """Handle of a forked process. Only one thread may call `ask`, any may call `kill`.

    Attributes:
        pipe: Connection to the forked process, to send and receive picklable objects.
        exit_code: Exit code, or the negative number of the signal that killed the process; None
            until `wait` or `kill` has seen its end.
    """

    def __init__(
        self, pipe: Connection, control: socket.socket, end_server: Callable[[], None]
    ) -> None:
        self.pipe = pipe
        self.exit_code: int | None = None
        self._control = control
        self._end_server = end_server
        self._lock = threading.Lock()

    @property
    def is_alive(self) -> bool:
        """Whether the forked process is running, according to the pipe to it.

        The pipe closes when the process ends; the exit code is known only later. An answer that was
        not read yet would look like a closed pipe, so do not use this while `ask` is running.
        """
        return not self.pipe.poll()

    def ask(self, question: Any, seconds: float | None = None) -> Any:
        """Sends a picklable question to the forked process, waits for its answer and returns it.

        Args:
            seconds: Time limit; None for none.

        Raises:
            EOFError: The process ended before it answered.
            TimeoutError: There was no answer within the time limit.
        """
        try:
            self.pipe.send(question)
            if self.pipe.poll(seconds):
                return self.pipe.recv()
        except OSError:  # the process ended during a question or an answer
            raise EOFError from None
        raise TimeoutError

    def hand_over(self, file: BinaryIO) -> None:
        """Passes an open file to the forked process, which receives it with `received_file`.

        Raises:
            EOFError: The process has ended.
        """
        file.flush()
        try:
            reduction.send_handle(self.pipe, file.fileno(), None)
        except OSError:
            raise EOFError from None

    def terminate(self) -> None:
        """Asks the forked process to stop, by SIGTERM."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kills the process and waits for its end; a waiting `ask` gets an EOFError."""
        if not self.wait(0):
            self._end_server()
            self._signal(signal.SIGKILL)
            self.wait()

    def wait(self, seconds: float | None = None) -> bool:
        """Waits at most `seconds` (None for no limit) and returns whether the process has ended."""
        deadline = None if seconds is None else time.monotonic() + seconds
        with self._lock:
            while self.exit_code is None:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                if not select.select([self._control], [], [], left)[0]:
                    return False
                self._take_exit_code()
        return True

    def close(self) -> None:
        """Kills the forked process and closes the pipe and the control socket to it."""
        self.kill()
        self._control.close()
        self.pipe.close()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(OSError):  # it has ended; the server signals no other process
            self._control.sendall(bytes([number]))

    def _take_exit_code(self) -> None:
        try:
            data = self._control.recv(EXIT_CODE.size)
        except ConnectionError:
            data = b""
        if data:
            self.exit_code = EXIT_CODE.unpack(data)[0]
            return
        # There is no message if the server was killed: the kernel then kills its children
        # a little later, which closes the other end of the pipe.
        hung_up = select.poll()
        hung_up.register(self.pipe, 0)
        hung_up.poll(1000.0 * _CLOSING_SECONDS)
        self.exit_code = -signal.SIGKILL


@contextmanager
def received_file(pipe: Connection, mode: Literal["rb", "r+b"] = "rb") -> Iterator[BinaryIO]:
    """Context manager that yields the file passed by `Process.hand_over`, from its start.

    Args:
        mode: Mode in which the file is opened.

    Raises:
        EOFError: The other side has closed the pipe.
    """
    handed = reduction.recv_handle(pipe)
    try:
        # Opened again for an independent file position: the other process reads the file, too.
        file = open(f"/dev/fd/{handed}", mode)  # noqa: SIM115
    finally:
        os.close(handed)
    with file:
        yield file


def answer_all(pipe: Connection, answer: Callable[[Any], Any]) -> None:
    """Answers each question of `Process.ask` by `answer(question)` until the pipe is closed."""
    while True:
        try:
            question = pipe.recv()
        except (EOFError, OSError):
            return
        pipe.send(answer(question))
