"""Quotas of a workspace for stored bytes and for training time. By default, neither is limited."""

from __future__ import annotations

from catalog.workspace import Workspace
from service.errors import QuotaError
from service.resources import Resources

TRAINING_DAYS = 30
"""Number of days for which a training counts towards the quota."""
_DAY_SECONDS = 86_400


def require_storage(resources: Resources, workspace: Workspace, n_bytes: int) -> None:
    """Checks that the workspace may store `n_bytes` more bytes (0 if their number is not known).

    Raises:
        QuotaError: The workspace has reached its storage limit, or would exceed it.
    """
    limit = resources.settings.max_stored_bytes
    if limit is None:
        return
    stored = workspace.usage.stored_bytes()
    if stored + n_bytes > limit or stored == limit:
        what = f"this workspace stores {_size(stored)} of {_size(limit)}"
        more = f", and this request would add {_size(n_bytes)}" if n_bytes else ""
        raise QuotaError(
            f"{what}{more}; delete datasets, models or results that are not needed",
            limit,
            "max_stored_bytes",
        )


def require_training_time(resources: Resources, workspace: Workspace) -> None:
    """Checks that the workspace may start a training. At the limit, running trainings continue.

    Raises:
        QuotaError: The workspace has used up its training time of the last `TRAINING_DAYS` days.
    """
    limit = resources.settings.max_training_seconds
    if limit is None:
        return
    taken = workspace.usage.training_seconds(TRAINING_DAYS * _DAY_SECONDS)
    if taken >= limit:
        what = f"the trainings of this workspace took {taken:.0f} s in {TRAINING_DAYS} days"
        raise QuotaError(what, limit, "max_training_seconds")


def _size(n_bytes: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes} bytes"
