"""Jobs of all workspaces, for workers and for who looks at many at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import select

from catalog.database.engine import Database
from catalog.database.tables import JobRow
from catalog.jobs.shards import shard_rows
from catalog.pages import copy_row
from catalog.records import Job


class AllJobs:
    """Gateway to the jobs of every workspace; whoever shows one to somebody looks whose it is."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get_many(self, job_ids: Collection[str]) -> dict[str, Job]:
        """Those of these jobs that there are, by id."""
        query = select(JobRow).where(JobRow.id.in_(job_ids))
        with self._database.reading() as session:
            return {row.id: copy_row(Job, row) for row in session.scalars(query)}

    def shards(self, job_id: str) -> Sequence[Job]:
        """The shards of a job, in order."""
        with self._database.reading() as session:
            return [copy_row(Job, row) for row in shard_rows(session, job_id)]
