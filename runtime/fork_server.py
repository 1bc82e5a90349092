"""The fork server process: `python -m runtime.fork_server MODULE --parent PID --socket FD`.

It imports the module, then forks a process for each pair of file descriptors that it receives from
the socket: the process's pipe, and a control socket that carries signals and the exit code. The
server has no threads when it forks. It kills a child when the owner (the parent process) closes the
child's control socket, and all children when the owner ends.

The server and its children have low priority, because forking (which copies page tables) and
reading tables would slow down responses of the API.
"""

from __future__ import annotations

import argparse
import gc
import os
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NoReturn

from runtime.errors import ParentGoneError
from runtime.folders import make_folder
from runtime.parentage import die_with_parent, watch_parent
from runtime.priority import lower_priority
from runtime.processes import EXIT_CODE, READY


@dataclass(frozen=True)
class _Child:
    pid: int
    control: socket.socket
    ended: int
    """Descriptor of a pipe that reaches its end when the process has ended."""
    folder: Path
    lock: int
    """Descriptor that keeps the folder locked."""


def main() -> int:
    """Forks processes on request until the parent has ended; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m runtime.fork_server")
    parser.add_argument("imports", help="the module that is imported once for all")
    parser.add_argument("--parent", type=int, required=True, help="pid; end when it does")
    parser.add_argument("--socket", type=int, required=True, help="descriptor of the socket")
    arguments = parser.parse_args()
    lower_priority()
    if sys.platform == "linux":  # on other systems torch's dependencies cannot be forked
        with _watching(arguments.parent), _folder_of_imports():
            import_module(arguments.imports)
    gc.freeze()  # existing objects stay in shared pages
    with socket.socket(fileno=arguments.socket) as owner:
        _serve(owner)
    return 0


@contextmanager
def _watching(parent_pid: int) -> Iterator[None]:
    """Context manager that kills this process if its parent ends while the block imports modules.

    It does not use the kernel's parent-death signal. That signal is sent as soon as the thread that
    started this process ends, even if the parent's other threads continue. After the block,
    `_serve` notices the end of the parent, because the socket closes.
    """
    imported = threading.Event()
    watch = watch_parent(parent_pid, imported)
    try:
        yield
    finally:
        imported.set()
        watch.join()


def _serve(owner: socket.socket) -> None:
    with selectors.DefaultSelector() as selector:

        def take_order() -> None:
            _, descriptors, _, _ = socket.recv_fds(owner, 1, 2)
            if not descriptors:
                raise EOFError
            child = _fork(selector, *descriptors)
            selector.register(child.control, selectors.EVENT_READ, partial(take_signal, child))
            selector.register(child.ended, selectors.EVENT_READ, partial(reap, child))
            children.add(child.pid)

        def take_signal(child: _Child) -> None:
            with suppress(ConnectionError):
                if numbers := child.control.recv(16):
                    for number in numbers:
                        os.kill(child.pid, number)
                    return
            os.kill(child.pid, signal.SIGKILL)  # the owner has closed the control socket
            selector.unregister(child.control)

        def reap(child: _Child) -> None:
            _, status = os.waitpid(child.pid, 0)
            children.discard(child.pid)
            selector.unregister(child.ended)
            with suppress(KeyError):
                selector.unregister(child.control)
            shutil.rmtree(child.folder, ignore_errors=True)
            for descriptor in (child.ended, child.lock):
                os.close(descriptor)
            with child.control, suppress(OSError):
                child.control.sendall(EXIT_CODE.pack(os.waitstatus_to_exitcode(status)))

        children: set[int] = set()
        is_owned = True
        selector.register(owner, selectors.EVENT_READ, take_order)
        with suppress(ConnectionError):
            owner.sendall(READY)
        while is_owned or children:
            for key, _ in selector.select():
                act: Callable[[], None] = key.data
                try:
                    # The first of two events of a process may have unregistered the second.
                    if selector.get_map().get(key.fd) is key:
                        act()
                except (EOFError, ConnectionError):
                    is_owned = False
                    selector.unregister(owner)
                    for pid in children:
                        os.kill(pid, signal.SIGKILL)


def _fork(selector: selectors.BaseSelector, pipe: int, control: int) -> _Child:
    folder, lock = make_folder()
    ended, alive = os.pipe()
    server_pid = os.getpid()
    pid = os.fork()
    if pid == 0:
        others = [key.fd for key in selector.get_map().values()]  # must not stay open here
        for descriptor in (*others, ended, control):
            os.close(descriptor)
        _live(Connection(pipe), folder, server_pid)
    for descriptor in (pipe, alive):
        os.close(descriptor)
    return _Child(pid, socket.socket(fileno=control), ended, folder, lock)


def _live(pipe: Connection, folder: Path, server_pid: int) -> NoReturn:
    """Runs the requested function in a forked process, then ends the process."""
    exit_code = 1
    try:
        die_with_parent(server_pid)
        tempfile.tempdir = str(folder)
        live, arguments = pipe.recv()
        live(pipe, *arguments)
        exit_code = 0
    except (EOFError, ParentGoneError):
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code)


@contextmanager
def _folder_of_imports() -> Iterator[None]:
    """Context manager that directs temporary files to a new folder and deletes it at the end.

    Some modules create temporary files when they are imported, and do not delete them.
    """
    folder, lock = make_folder()
    tempfile.tempdir = str(folder)
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


if __name__ == "__main__":
    sys.exit(main())
