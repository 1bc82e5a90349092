"""Processes apart: the one way in which service and worker isolate work.

    service, or Celery process of a slot ── fork server ── a process for each piece of work

The fork server has imported torch, so a process is there in milliseconds and shares that memory
with the others. A process has a pipe to its owner, a temporary folder of its own that is removed
with it, and ends with the fork server, which ends with its owner. Deadlines and cancelling are its
owner's: `terminate`, `kill`; limits of memory and processor time are set by the work itself.

Why not a library: pebble, loky and `ProcessPoolExecutor` give one result for one task, and here
answers are streamed and jobs report progress. `multiprocessing`'s fork server has an address in the
temporary folder, which stays there when it is killed and may be too long for the system; it can not
be ended while it imports, and it does not end what it has forked.
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
from typing import Any, BinaryIO

from runtime.folders import remove_left_folders
from runtime.settings import temporary_folder

EXIT_CODE = struct.Struct("!i")
READY = b"r"
_CLOSING_SECONDS = 2.0


class ForkServer:
    """The server as its owner sees it; it is started when it is first needed, and again if it ends.

    Args:
        imports: the module that the server imports before it forks.
    """

    def __init__(self, imports: str) -> None:
        self._imports = imports
        self._lock = threading.RLock()
        self._server: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def start(self) -> None:
        """Start the server where none is alive; it imports meanwhile."""
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
                    start_new_session=True,  # a terminal's Ctrl-C comes to the owner alone
                )

    def fork(self, live: Callable[..., object], *arguments: Any) -> Process:
        """A process that runs `live(its end of the pipe, *arguments)`, a function of a module."""
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
        """End the server, and with it all that it forked."""
        with self._lock:
            atexit.unregister(self.close)
            if self._server is not None and self._socket is not None:
                is_ready = self._is_ready()
                self._socket.close()
                if is_ready:  # it ends what it has forked, and their folders, by itself
                    with suppress(subprocess.TimeoutExpired):
                        self._server.wait(_CLOSING_SECONDS)
                self._server.kill()
                self._server.wait()
                self._server = self._socket = None
                remove_left_folders(temporary_folder())  # it may have been killed at its imports

    def _end_unless_ready(self) -> None:
        """Kill the server if it still imports: it has forked nothing."""
        with self._lock:
            if not self._is_ready():
                self.close()

    def _is_ready(self) -> bool:
        """Whether the server has imported, or ended: READY is left unread, and says so for ever."""
        return self._socket is None or bool(select.select([self._socket], [], [], 0)[0])


class Process:
    """A forked process as its owner sees it. One thread may ask at a time; any may kill.

    Attributes:
        pipe: the owner's end.
        exit_code: how it ended, or minus the signal; None as long as that is not known.
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
        """Whether the process, of which nothing is asked just now, has not ended.

        Its end of the pipe shows it first: there is nothing to be read but that it is closed.
        """
        return not self.pipe.poll()

    def ask(self, question: Any) -> Any:
        """The process's answer, for which this waits.

        Raises:
            EOFError: the process ended before it had answered.
        """
        try:
            self.pipe.send(question)
            return self.pipe.recv()
        except OSError:  # in the middle of a question or an answer
            raise EOFError from None

    def hand_over(self, file: BinaryIO) -> None:
        """Give the process a file of its own on what this file holds; see `received_file`.

        Raises:
            EOFError: the process ended before.
        """
        file.flush()
        try:
            reduction.send_handle(self.pipe, file.fileno(), None)
        except OSError:
            raise EOFError from None

    def terminate(self) -> None:
        """Ask it to stop."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it, and wait until it has ended; whoever asks it gets an EOFError."""
        if not self.wait(0):
            self._end_server()
            self._signal(signal.SIGKILL)
            self.wait()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has ended, so long at most; tells whether it has."""
        deadline = None if seconds is None else time.monotonic() + seconds
        with self._lock:
            while self.exit_code is None:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                if not select.select([self._control], [], [], left)[0]:
                    return False
                self._take_exit_code()
        return True

    def close(self) -> None:
        """Kill it and free what it held here. Nobody asks it any more."""
        self.kill()
        self._control.close()
        self.pipe.close()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(OSError):  # it has ended; the server sends signals, and none to another
            self._control.sendall(bytes([number]))

    def _take_exit_code(self) -> None:
        try:
            data = self._control.recv(EXIT_CODE.size)
        except ConnectionError:
            data = b""
        if data:
            self.exit_code = EXIT_CODE.unpack(data)[0]
            return
        # Nothing is said where the server was killed: the kernel kills what it forked, a little
        # later, and then nobody holds the other end of the pipe.
        hung_up = select.poll()
        hung_up.register(self.pipe, 0)
        hung_up.poll(1000.0 * _CLOSING_SECONDS)
        self.exit_code = -signal.SIGKILL


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
