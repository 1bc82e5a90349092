"""The catalog of one database: records by workspace, and gateways to those of all workspaces."""

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

    Requests access the records of one workspace (`workspace`). The other gateways serve all
    workspaces, for workers, operators and authentication.

    Every gateway method is one transaction and returns frozen copies. Tables are created by
    `catalog.database.migrate.upgrade`.

    Args:
        database_url: `sqlite:///FILE` or `postgresql://USER@HOST/NAME`.
        attempts_limit: Maximum number of attempts of a job since its last new checkpoint.
        resend_seconds: Pause before a job's message is sent again; it doubles each time.
        resend_limit_seconds: Maximum pause.
        answer_seconds: Time limit of a statement in PostgreSQL.
        running_jobs_limit: Maximum number of running jobs of one workspace, in each queue.
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
        """Returns the records of one workspace; a new workspace is empty."""
        return Workspace(self.database, name, self._resend_seconds)

    def ping(self) -> None:
        """Checks that the database responds.

        Raises:
            sqlalchemy.exc.OperationalError: It does not.
        """
        self.database.ping()

    def close(self) -> None:
        """Closes all connections."""
        self.database.close()
