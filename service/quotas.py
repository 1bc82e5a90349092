"""What a workspace may take in all: bytes in the store, and time of training. Off unless set."""

from __future__ import annotations

from catalog.workspace import Workspace
from service.errors import QuotaError
from service.resources import Resources

TRAINING_DAYS = 30
"""Trainings that began before count no more."""
_DAY_SECONDS = 86_400


def require_storage(resources: Resources, workspace: Workspace, n_bytes: int) -> None:
    """Let so many more bytes pass; 0 where nobody knows yet how many there will be.

    Raises:
        QuotaError: the workspace would store more than it may, or does already.
    """
    limit = resources.settings.max_stored_bytes
    if limit is None:
        return
    stored = workspace.usage.stored_bytes()
    if stored + n_bytes > limit or stored == limit:
        what = f"this workspace stores {stored} bytes"
        more = f", and this request would add {n_bytes}" if n_bytes else ""
        raise QuotaError(
            f"{what}{more}; delete datasets, models or results that are not needed",
            limit,
            "max_stored_bytes",
        )


def require_training_time(resources: Resources, workspace: Workspace) -> None:
    """Let one more training pass. What runs is not stopped, so it may end beyond the limit.

    Raises:
        QuotaError: the workspace's trainings took as long as they may.
    """
    limit = resources.settings.max_training_seconds
    if limit is None:
        return
    taken = workspace.usage.training_seconds(TRAINING_DAYS * _DAY_SECONDS)
    if taken >= limit:
        what = f"the trainings of this workspace took {taken:.0f} s in {TRAINING_DAYS} days"
        raise QuotaError(what, limit, "max_training_seconds")
