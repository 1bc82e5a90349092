"""An upgrade of tables that hold records keeps them, and so does the way back."""

from __future__ import annotations

from sqlalchemy import text

from catalog import Catalog, Job, JobStatus, upgrade
from catalog.database.migrate import downgrade


def test_jobs_of_the_first_tables_wait_since_they_were_asked_for(
    catalog: Catalog, training: Job, database_url: str
) -> None:
    before = catalog.workspace("default").jobs.get(training.id)
    downgrade(database_url, "0001")
    with catalog.database.engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM jobs")).scalar() == 1
    upgrade(database_url)
    after = catalog.workspace("default").jobs.get(training.id)
    assert (after.id, after.status, after.spec) == (before.id, JobStatus.QUEUED, before.spec)
    assert after.queued_at == after.created_at == before.created_at
    assert after.request_id is None
    assert catalog.statistics.counts() == []
