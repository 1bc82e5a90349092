"""The process that jobs' processes are forked from: what they import is imported once for all.

    pool process ── fork server ── gcvae-job, one at a time

The pool's process and the server speak over a pair of sockets that the server inherits, in lines
of JSON. That of `multiprocessing` has an address in the temporary folder, which stays there when it
is killed, and which may be too long for the system.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from typing import Any, NoReturn

from setproctitle import setproctitle

from catalog import JobKind
from runtime.errors import ParentGoneError
from runtime.parentage import die_with_parent
from runtime.priority import step_back
from worker.processes.child import do_job
from worker.processes.scratch import fork_server_folder, remove_fork_server_folder
from worker.work.messages import JobOrder

_LINE_BYTES = 65_536
_LIBRARY = ("gcvae.synthesizer", "gcvae.files.table_reader", "gcvae.cells.values")
_IMPORTED_LATE = ("torch._dynamo", "gcvae.training.reporting.model_report", "sklearn.ensemble")
"""What the library imports in the middle of work, imported while no order waits: torch's compiler,
which its optimisers ask for, and statistics."""


class ForkServer:
    """The server as the pool's process sees it; it is started when it is first needed."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def start(self) -> None:
        """Start the server where none is alive; it imports meanwhile."""
        if self._server is not None and self._server.poll() is None:
            return
        self.close()
        self._socket, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", "worker.processes.fork_server"]
            command += ["--parent", str(os.getpid()), "--socket", str(theirs.fileno())]
            self._server = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
            )

    def fork(self, order: JobOrder, messages: int) -> JobProcess:
        """A job's process; the last one has ended.

        Args:
            messages: descriptor of the pipe that it reports through; the caller closes it here.
        """
        self.start()
        assert self._server is not None
        assert self._socket is not None
        with suppress(OSError):  # the server has just ended, and so has the process, as it shows
            socket.send_fds(self._socket, [_line(asdict(order))], [messages])
        return JobProcess(self._server, self._socket)

    def close(self) -> None:
        """Kill the server, and free what it holds here."""
        if self._server is not None and self._socket is not None:
            self._server.kill()
            self._server.wait()
            self._socket.close()
            self._server = self._socket = None
            remove_fork_server_folder(os.getpid())


class JobProcess:
    """A job's process as its supervisor sees it.

    Attributes:
        exit_code: how it ended, or minus the signal; None as long as that is not known.
    """

    def __init__(self, server: subprocess.Popen[bytes], connection: socket.socket) -> None:
        self._server = server
        self._socket = connection
        self._has_begun = False
        self._read = b""
        self.exit_code: int | None = None

    def terminate(self) -> None:
        """Ask it to stop."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it. A server that has not forked yet is ended in its place."""
        self._take(0.0)
        if not self._has_begun:
            self._server.kill()
        self._signal(signal.SIGKILL)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has ended, so long at most; tells whether it has."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while self.exit_code is None:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return False
            self._take(left)
        return True

    def _signal(self, number: signal.Signals) -> None:
        if self.exit_code is None:
            with suppress(OSError):  # the server has ended, and it with it
                self._socket.sendall(_line({"signal": number}))

    def _take(self, seconds: float | None) -> None:
        """Take in what the server says within so many seconds."""
        if self.exit_code is not None or not select.select([self._socket], [], [], seconds)[0]:
            return
        try:
            data = self._socket.recv(_LINE_BYTES)
        except ConnectionError:
            data = b""
        if not data:  # the server was killed, and the kernel kills what it forked
            self._server.wait()  # so that the next one to look finds none
            self.exit_code = -signal.SIGKILL
            return
        *lines, self._read = (self._read + data).split(b"\n")
        for line in lines:
            said = json.loads(line)
            self._has_begun = True
            self.exit_code = said.get("exit_code")


def _line(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode() + b"\n"


def main() -> int:
    """Serve until the pool's process has ended."""
    parser = argparse.ArgumentParser(prog="python -m worker.processes.fork_server")
    parser.add_argument("--parent", type=int, required=True, help="pid; end when it does")
    parser.add_argument("--socket", type=int, required=True, help="descriptor of the socket")
    arguments = parser.parse_args()
    die_with_parent(arguments.parent, watched=False)
    step_back()
    for name in (*_LIBRARY, *(f"worker.work.{kind}" for kind in JobKind)):
        import_module(name)
    with socket.socket(fileno=arguments.socket) as connection:
        serve(connection, do_job, arguments.parent)
    return 0


def serve(connection: socket.socket, work: Callable[[JobOrder, int], int], owner_pid: int) -> None:
    """Fork a process for each order, one after the other, until nobody gives any."""
    late = list(_IMPORTED_LATE if "torch" in sys.modules else ())
    while True:
        with fork_server_folder(owner_pid):
            while late and not select.select([connection], [], [], 0)[0]:
                import_module(late.pop(0))
        gc.freeze()  # what is there already stays in the pages that are shared
        lines, descriptors, _, _ = socket.recv_fds(connection, _LINE_BYTES, 1)
        if not lines:
            return
        if descriptors:  # what stands before the order are signals for one that has ended
            order = JobOrder(**json.loads(lines.splitlines()[-1]))
            _fork(connection, work, order, descriptors[0])


def _fork(
    connection: socket.socket, work: Callable[[JobOrder, int], int], order: JobOrder, messages: int
) -> None:
    """Fork one process, hand signals on to it, and say how it ended."""
    ended, alive = os.pipe()
    server_pid = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(ended)
        connection.close()
        _live(work, order, messages, server_pid)
    os.close(alive)
    os.close(messages)
    _tell(connection, {"pid": pid})
    while ended not in select.select([ended, connection.fileno()], [], [])[0]:
        data = connection.recv(_LINE_BYTES)
        if not data:  # nobody waits for it any more
            os.kill(pid, signal.SIGKILL)
            break
        for line in data.splitlines():
            os.kill(pid, json.loads(line)["signal"])
    _, status = os.waitpid(pid, 0)
    os.close(ended)
    _tell(connection, {"exit_code": os.waitstatus_to_exitcode(status)})


def _tell(connection: socket.socket, document: dict[str, Any]) -> None:
    with suppress(OSError):  # nobody listens any more, as the next look shows
        connection.sendall(_line(document))


def _live(
    work: Callable[[JobOrder, int], int], order: JobOrder, messages: int, server_pid: int
) -> NoReturn:
    """The life of a job's process."""
    exit_code = 1
    try:
        die_with_parent(server_pid)
        _show(f"gcvae-job {order.job_id} --attempt {order.attempt}")
        exit_code = work(order, messages)
    except ParentGoneError:
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code)


def _show(command: str) -> None:
    """Have `ps` show a command. Blanks cover what was there: programs read its words by them."""
    setproctitle(command.ljust(sum(len(os.fsencode(word)) + 1 for word in sys.orig_argv)))


if __name__ == "__main__":
    sys.exit(main())
