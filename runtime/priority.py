"""Lowers the scheduling priority of processes that do not answer requests."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_NICENESS = 5
_AUTOGROUP = Path("/proc/self/autogroup")


def lower_priority() -> None:
    """Lowers the scheduling priority of this process and its future children.

    Linux may divide processor time between sessions first (autogroups), then between the processes
    of a session. So the niceness is raised for this process and for a new session that it starts.
    """
    os.nice(_NICENESS)
    lower_session_priority()


def lower_session_priority() -> None:
    """Lowers the scheduling priority of this process, whose parent has called `lower_priority`.

    It starts a new session with the same niceness, because Linux may schedule by session first.
    """
    with contextlib.suppress(PermissionError):  # already the leader of its session
        os.setsid()
    with contextlib.suppress(OSError):  # not supported or not permitted: the niceness is unchanged
        _AUTOGROUP.write_text(str(_NICENESS))
