"""Callback type for the progress of long work."""

from __future__ import annotations

from collections.abc import Callable

Report = Callable[[float], None]
"""Function that is called with the fraction of the work that is done, 0 to 1."""


def report_to_nobody(share: float) -> None:
    """Does nothing; the default progress callback."""
