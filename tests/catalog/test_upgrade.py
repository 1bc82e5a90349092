"""An upgrade of tables that hold records keeps them, and so does the way back."""

from __future__ import annotations

from alembic import command
from sqlalchemy import text

from catalog import Catalog, Job, JobStatus
from catalog.database import Database
from catalog.migrate import _config


def migrate(database_url: str, revision: str) -> None:
    """Bring the tables to a revision, upward or downward."""
    database = Database(database_url)
    with database.writing() as session:
        connection = session.connection()
        go = command.downgrade if revision == "0001" else command.upgrade
        go(_config(connection), revision)
    database.close()


def test_jobs_of_the_first_tables_wait_since_they_were_asked_for(
    catalog: Catalog, training: Job, database_url: str
) -> None:
    before = catalog.jobs.get(training.id)
    migrate(database_url, "0001")
    with catalog.database.engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM jobs")).scalar() == 1
    migrate(database_url, "head")
    after = catalog.jobs.get(training.id)
    assert (after.id, after.status, after.spec) == (before.id, JobStatus.QUEUED, before.spec)
    assert after.queued_at == after.created_at == before.created_at
    assert after.request_id is None
    assert catalog.statistics.counts() == []
