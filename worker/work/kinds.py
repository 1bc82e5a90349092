"""The work of each kind of job, found by the kind's name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from catalog import JobKind, Outcome
from worker.work.attempt import Attempt
from worker.work.joining import join_shards


def work_of(kind: JobKind, *, joins: bool) -> Callable[[Attempt], Outcome]:
    """What does a job of this kind: in `worker/work/<kind>.py` the function `<kind>`.

    Args:
        joins: the shards are done; then it is the function `join` there, or else that of all kinds.
    """
    module = import_module(f"worker.work.{kind}")
    work: Callable[[Attempt], Outcome]
    work = getattr(module, "join", join_shards) if joins else getattr(module, kind)
    return work
