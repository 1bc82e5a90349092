"""Counts that outlive every process: written in the very transaction that does what they count.

So a count is never lost with a killed process nor counted twice by a lost attempt, and every
process that is asked reports the same.
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
"""Upper bounds of the histograms of durations; what is longer has no bound.

They are kept in the database since a worker's processes end with their jobs: whichever API process
a dashboard asks, it shows how long all jobs have waited and taken."""


class Counted(StrEnum):
    """What is counted. Labels are few and fixed words: never an id."""

    CREATED = "jobs_created"
    ATTEMPTS = "job_attempts"
    RETRIES = "job_retries"
    LEASE_LOSSES = "lease_losses"
    FINISHED = "jobs_finished"
    ROWS = "job_rows"
    DURATION = "job_duration_seconds"
    WAIT = "job_wait_seconds"


def count(session: Session, what: Counted, by: float = 1.0, **labels: str) -> None:
    """Add `by` to a count when the session's transaction is committed."""
    unwritten: Counter[tuple[str, str]] = session.info.setdefault(_UNWRITTEN, Counter())
    unwritten[what.value, json.dumps(labels, sort_keys=True)] += by  # type: ignore[assignment]


def observe(session: Session, what: Counted, seconds: float, **labels: str) -> None:
    """Add a duration to a histogram: to the bucket that it falls into, and to the sum."""
    bound = next((str(bound) for bound in BUCKETS_SECONDS if seconds <= bound), "+Inf")
    count(session, what, 1.0, le=bound, **labels)
    count(session, what, max(seconds, 0.0), le="sum", **labels)


def write_counts(session: Session) -> None:
    """Write what was counted; the last statement of a transaction.

    The rows are sorted: two transactions that count the same wait for each other in one order,
    and nothing is waited for after them, so they never wait in a circle.
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
