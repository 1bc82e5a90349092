"""The end of a process that was asked to end: it has a limit, whatever is still under way."""

from __future__ import annotations

import logging
import os
import threading

_log = logging.getLogger(__name__)


def end_within(seconds: float) -> None:
    """End this process after so many seconds, unless it has ended by then; exit code 1.

    As if by SIGKILL, which leaves nothing half made either: records and bytes are written whole,
    leases run out, and child processes end with their parent.
    """
    limit = threading.Timer(seconds, _end_now, [seconds])
    limit.daemon = True
    limit.start()


def _end_now(seconds: float) -> None:
    _log.warning("not at its end %g s after it was asked to; it is cut short", seconds)
    os._exit(1)
