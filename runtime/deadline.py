"""Time limit for the shutdown of a process."""

from __future__ import annotations

import logging
import os
import threading

_log = logging.getLogger(__name__)


def end_within(seconds: float) -> None:
    """Ends this process after `seconds` with exit code 1, if it is still running.

    It ends as by SIGKILL, which is safe: records and bytes are written atomically, leases expire,
    and child processes end with their parent.
    """
    limit = threading.Timer(seconds, _end_now, [seconds])
    limit.daemon = True
    limit.start()


def _end_now(seconds: float) -> None:
    _log.warning("not at its end %g s after it was asked to; it is cut short", seconds)
    os._exit(1)
