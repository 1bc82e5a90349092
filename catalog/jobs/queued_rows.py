"""Creates the database row of a queued job or shard."""

from __future__ import annotations

from typing import Any

from catalog.database.clock import database_clock
from catalog.database.tables import JobRow
from catalog.records import JobStatus


def queued_row(**fields: Any) -> JobRow:
    """Returns a new database row of a job that no worker has taken yet.

    Args:
        **fields: Values of the columns of `JobRow` that differ between jobs.
    """
    now = database_clock()
    return JobRow(
        status=JobStatus.QUEUED,
        smaller_batch=False,
        attempt=0,
        attempts_since_checkpoint=0,
        sends=0,
        cancel_requested=False,
        progress={},
        n_shards=0,
        open_shards=0,
        version=1,
        queued_at=now,
        created_at=now,
        **fields,
    )
