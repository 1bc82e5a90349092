"""How the parts of long work report what share of it is done."""

from __future__ import annotations

from collections.abc import Callable

Report = Callable[[float], None]
"""Takes the share of the work that is done, 0 to 1."""


def report_to_nobody(share: float) -> None:
    """Leaves the share unreported."""
