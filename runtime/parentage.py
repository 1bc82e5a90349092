"""Ends a process when its parent process ends."""

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
    """Makes this process end by SIGKILL when its parent ends.

    On Linux the kernel sends the signal. It does so even when only the parent's thread that started
    this process ends, so that thread must live as long as the parent. Other systems have no such
    signal; on all systems, a thread also checks every 0.5 s whether the parent has ended.

    Raises:
        ParentGoneError: The parent has already ended.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # The parent may have ended between this process' start and the call above.
    if os.getppid() != parent_pid:
        raise ParentGoneError(f"process {parent_pid} has ended")
    watch_parent(parent_pid, threading.Event())


def watch_parent(parent_pid: int, until: threading.Event) -> threading.Thread:
    """Starts and returns a thread that kills this process when its parent ends, and that stops
    when the event `until` is set."""

    def watch() -> None:
        while not until.wait(_POLL_SECONDS):
            if os.getppid() != parent_pid:
                os.kill(os.getpid(), signal.SIGKILL)

    thread = threading.Thread(target=watch, name="parentage", daemon=True)
    thread.start()
    return thread
