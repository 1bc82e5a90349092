"""The catalog of one database: the records of a workspace, and what is done for all of them."""

from __future__ import annotations

from catalog.access.audit import Audit
from catalog.access.keys import Keys
from catalog.access.sessions import Sessions
from catalog.database.engine import ANSWER_SECONDS, Database
from catalog.inventory import Inventory
from catalog.jobs.all_jobs import AllJobs
from catalog.jobs.leases import Leases
from catalog.orphans import Orphans
from catalog.retention import Retention
from catalog.statistics import Statistics
from catalog.workers import Workers
from catalog.workspace import Workspace


class Catalog:
    """The records of one database.

    A request sees those of its workspace (`workspace`). The gateways here are for workers and
    operators, who serve all workspaces, and for who lets people in.

    Every gateway method is one transaction and hands out frozen copies. The tables are made by
    `catalog.database.migrate.upgrade`.

    Args:
        database_url: `sqlite:///FILE` or `postgresql://USER@HOST/NAME`.
        attempts_limit: attempts of a job since its last new checkpoint.
        resend_seconds: pause before a job's message is sent again; it doubles each time.
        resend_limit_seconds: the longest such pause.
        answer_seconds: how long PostgreSQL may take over a statement.
        running_jobs_limit: jobs of one workspace that may run at once, in each queue.
    """

    def __init__(
        self,
        database_url: str,
        *,
        attempts_limit: int = 10,
        resend_seconds: float = 2.0,
        resend_limit_seconds: float = 60.0,
        answer_seconds: float = ANSWER_SECONDS,
        running_jobs_limit: int | None = None,
    ) -> None:
        self.database = Database(database_url, answer_seconds)
        self._resend_seconds = resend_seconds
        self.all_jobs = AllJobs(self.database)
        self.leases = Leases(
            self.database, attempts_limit, resend_seconds, resend_limit_seconds, running_jobs_limit
        )
        self.retention = Retention(self.database)
        self.orphans = Orphans(self.database)
        self.inventory = Inventory(self.database)
        self.statistics = Statistics(self.database)
        self.workers = Workers(self.database)
        self.keys = Keys(self.database)
        self.sessions = Sessions(self.database)
        self.audit = Audit(self.database)

    def workspace(self, name: str) -> Workspace:
        """The records of one workspace; one that nobody has used is empty."""
        return Workspace(self.database, name, self._resend_seconds)

    def ping(self) -> None:
        """Ask the database for an answer.

        Raises:
            sqlalchemy.exc.OperationalError: it gives none.
        """
        self.database.ping()

    def close(self) -> None:
        """Close every connection."""
        self.database.close()
