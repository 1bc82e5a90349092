"""The order in which processes get a core: those that somebody waits for go first."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_NICENESS = 5
_AUTOGROUP = Path("/proc/self/autogroup")


def step_back() -> None:
    """Have this process, and those it starts, leave the core to whoever answers requests.

    Linux may deal out the cores to sessions first, and only then to the processes of each (its
    autogroups). So the process gets a session of its own, else its work would count against those
    that it shares one with; the niceness is set for both.
    """
    os.nice(_NICENESS)
    step_back_as_before()


def step_back_as_before() -> None:
    """The same in a process whose parent has stepped back: it has the niceness by that."""
    with contextlib.suppress(PermissionError):  # it leads its session already
        os.setsid()
    with contextlib.suppress(OSError):  # no such system, or no such permission: the niceness stays
        _AUTOGROUP.write_text(str(_NICENESS))
