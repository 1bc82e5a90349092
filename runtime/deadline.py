"""Time limit for the shutdown of a process."""

from __future__ import annotations

import logging
import os
import threading

_log = logging.getLogger(__name__)


def end_within(seconds: float) -> None:
    """Ends this process with exit code 1 if it is still running after `seconds`.

    As with SIGKILL, no clean-up code runs. This is safe: records and files are written atomically,
    leases expire, and child processes end with their parent.
    """
    limit = threading.Timer(seconds, _end_now, [seconds])
    limit.daemon = True
    limit.start()


def _end_now(seconds: float) -> None:
    _log.warning("still running %g s after it was asked to stop; the process ends now", seconds)
    os._exit(1)
