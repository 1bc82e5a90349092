"""Finds the function that does the work of a kind of job, by the kind's name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from catalog import JobKind, Outcome
from worker.work.attempt import Attempt
from worker.work.joining import join_shards


def work_of(kind: JobKind, *, joins: bool) -> Callable[[Attempt], Outcome]:
    """Returns the function that does the work of an attempt at a job.

    Args:
        kind: Kind of the job; the function is `<kind>` in `worker/work/<kind>.py`.
        joins: Whether all shards have succeeded and are to be joined; the function is then `join`
            of that module if it exists, otherwise `join_shards`.
    """
    module = import_module(f"worker.work.{kind}")
    work: Callable[[Attempt], Outcome]
    work = getattr(module, "join", join_shards) if joins else getattr(module, kind)
    return work
