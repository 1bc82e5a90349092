"""Type of the callbacks that report the progress of a long computation."""

from __future__ import annotations

from collections.abc import Callable

Report = Callable[[float], None]
"""Function that is called with the finished fraction of the computation, from 0 to 1."""


def report_to_nobody(share: float) -> None:
    """Ignores the finished fraction; this is the default callback."""
