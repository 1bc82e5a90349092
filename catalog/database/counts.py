"""Persistent counters and histograms, written in the transaction that they count.

A count is therefore neither lost with a killed process nor counted twice by a lost attempt, and
every process reports the same values.
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
"""Upper bounds of the duration histograms; the last bucket is unbounded. Histograms are stored in
the database because worker processes end with their jobs, and every API process reports all jobs.
"""


class Counted(StrEnum):
    """Names of counters. Labels are few and fixed, never ids."""

    CREATED = "jobs_created"
    ATTEMPTS = "job_attempts"
    RETRIES = "job_retries"
    LEASE_LOSSES = "lease_losses"
    FINISHED = "jobs_finished"
    ROWS = "job_rows"
    DURATION = "job_duration_seconds"
    WAIT = "job_wait_seconds"


def count(session: Session, what: Counted, by: float = 1.0, **labels: str) -> None:
    """Adds `by` to a counter when the session's transaction is committed."""
    unwritten: Counter[tuple[str, str]] = session.info.setdefault(_UNWRITTEN, Counter())
    unwritten[what.value, json.dumps(labels, sort_keys=True)] += by  # type: ignore[assignment]


def observe(session: Session, what: Counted, seconds: float, **labels: str) -> None:
    """Adds a duration to a histogram: to its bucket and to the sum."""
    bound = next((str(bound) for bound in BUCKETS_SECONDS if seconds <= bound), "+Inf")
    count(session, what, 1.0, le=bound, **labels)
    count(session, what, max(seconds, 0.0), le="sum", **labels)


def write_counts(session: Session) -> None:
    """Writes the counts; must be the last statement of a transaction.

    Rows are sorted, so that transactions with the same counters lock them in the same order.
    Nothing is locked afterwards, so deadlocks are impossible.
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
