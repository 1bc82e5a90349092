"""Processes that end with their parent: no orphan goes on working."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading

from runtime.errors import ParentGoneError

_PR_SET_PDEATHSIG = 1
_POLL_SECONDS = 0.5


def die_with_parent(parent_pid: int) -> None:
    """From now on this process is killed when its parent ends, in whatever way.

    On Linux the kernel does it at once. A thread watches too: the kernel's promise is bound to the
    thread that started this process, and other systems have none.

    Raises:
        ParentGoneError: the parent has ended already.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # The parent may have ended between this process' start and the call above.
    if os.getppid() != parent_pid:
        raise ParentGoneError(f"process {parent_pid} has ended")
    watch_parent(parent_pid, threading.Event())


def watch_parent(parent_pid: int, until: threading.Event) -> threading.Thread:
    """A thread that kills this process when its parent ends; it watches until `until` is set."""

    def watch() -> None:
        while not until.wait(_POLL_SECONDS):
            if os.getppid() != parent_pid:
                os.kill(os.getpid(), signal.SIGKILL)

    thread = threading.Thread(target=watch, name="parentage", daemon=True)
    thread.start()
    return thread
