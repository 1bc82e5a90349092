"""Processes that end with their parent: no orphan goes on training."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

from worker.errors import ParentGoneError

_PR_SET_PDEATHSIG = 1
_POLL_SECONDS = 1.0


def die_with_parent(parent_pid: int) -> None:
    """From now on this process is killed when its parent ends, in whatever way.

    On Linux the kernel does it at once. A thread looks too: the kernel's promise is bound to the
    thread that started this process, and other systems have none.

    Raises:
        ParentGoneError: the parent has ended already.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # The parent may have ended between this process' start and the call above.
    if os.getppid() != parent_pid:
        raise ParentGoneError(f"process {parent_pid} has ended")
    threading.Thread(target=_watch, args=(parent_pid,), name="parentage", daemon=True).start()


def _watch(parent_pid: int) -> None:
    while os.getppid() == parent_pid:
        time.sleep(_POLL_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)
