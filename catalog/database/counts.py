"""Counters and histograms in the database, written in the same transaction as the counted event.

A count is therefore neither lost when a process is killed nor counted twice by an attempt that lost
its lease, and every process reports the same values.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from enum import StrEnum

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from catalog.database.tables import CountRow

_UNWRITTEN = "unwritten counts"

BUCKETS_SECONDS = (0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 12 * 3600)
"""Upper bounds in seconds of the buckets of duration histograms; the last bucket is unbounded.
Histograms are stored in the database because worker processes end with their jobs, and every API
process reports all jobs."""


class Counted(StrEnum):
    """Names of the counters and histograms of jobs that the database keeps for monitoring.

    The labels with which they are counted have a limited set of values, never ids.
    """

    CREATED = "jobs_created"
    ATTEMPTS = "job_attempts"
    RETRIES = "job_retries"
    LEASE_LOSSES = "lease_losses"
    FINISHED = "jobs_finished"
    ROWS = "job_rows"
    DURATION = "job_duration_seconds"
    WAIT = "job_wait_seconds"


def count(session: Session, what: Counted, by: float = 1.0, **labels: str) -> None:
    """Adds `by` to the counter `what` with these labels, such as the kind of job, in the session's
    transaction."""
    unwritten: Counter[tuple[str, str]] = session.info.setdefault(_UNWRITTEN, Counter())
    unwritten[what.value, json.dumps(labels, sort_keys=True)] += by  # type: ignore[assignment]


def observe(session: Session, what: Counted, seconds: float, **labels: str) -> None:
    """Adds a duration to the histogram `what` with these labels, in the session's transaction.

    It adds 1 to the bucket of the duration (label `le`, its upper bound) and the duration to the
    sum.
    """
    bound = next((str(bound) for bound in BUCKETS_SECONDS if seconds <= bound), "+Inf")
    count(session, what, 1.0, le=bound, **labels)
    count(session, what, max(seconds, 0.0), le="sum", **labels)


def write_counts(session: Session) -> None:
    """Writes what `count` and `observe` have collected, as the last statement of a transaction.

    Counters are updated in sorted order, so concurrent transactions lock them in the same order.
    Nothing is locked afterwards, so counters cause no deadlocks.
    """
    unwritten: Counter[tuple[str, str]] = session.info.pop(_UNWRITTEN, Counter())
    if not unwritten:
        return
    dialects: dict[str, Callable[..., postgresql.Insert | sqlite.Insert]] = {
        "postgresql": postgresql.insert,
        "sqlite": sqlite.insert,
    }
    insert = dialects[session.get_bind().dialect.name](CountRow).values(
        [
            {"name": name, "labels": labels, "value": by}
            for (name, labels), by in sorted(unwritten.items())
        ]
    )
    added = CountRow.value + insert.excluded.value
    session.execute(
        insert.on_conflict_do_update(index_elements=["name", "labels"], set_={"value": added})
    )
