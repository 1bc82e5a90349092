"""Finds the work of each kind of job by the kind's name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from catalog import JobKind, Outcome
from worker.work.attempt import Attempt
from worker.work.joining import join_shards


def work_of(kind: JobKind, *, joins: bool) -> Callable[[Attempt], Outcome]:
    """Returns the function for jobs of this kind: `<kind>` in `worker/work/<kind>.py`.

    Args:
        kind: Kind of the job.
        joins: Whether the shards are done; then it is the function `join` of the module, or the
            common one.
    """
    module = import_module(f"worker.work.{kind}")
    work: Callable[[Attempt], Outcome]
    work = getattr(module, "join", join_shards) if joins else getattr(module, kind)
    return work
