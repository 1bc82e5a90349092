"""Entry point to the records in the database, of one workspace (tenant) or of all workspaces."""

from __future__ import annotations

from catalog.access.audit import Audit
from catalog.access.keys import Keys
from catalog.access.sessions import Sessions
from catalog.database.engine import ANSWER_SECONDS, Database
from catalog.inventory import Inventory
from catalog.jobs.all_jobs import AllJobs
from catalog.jobs.leases import Leases
from catalog.orphans import Orphans
from catalog.results import Retention
from catalog.schedules.runs import Runs
from catalog.statistics import Statistics
from catalog.webhooks.outbox import Outbox
from catalog.workers import Workers
from catalog.workspace import Workspace


class Catalog:
    """Gives access to the records of one database.

    Requests access the records of one workspace (tenant) through `workspace`. The attributes, such
    as `keys` and `leases`, serve all workspaces, for workers, operators and authentication.

    Every method that reads or writes records is one transaction. Records are returned as immutable
    copies of database rows. `catalog.database.migrate.upgrade` creates the tables.

    Args:
        database_url: `sqlite:///FILE` or `postgresql://USER@HOST/NAME`.
        attempts_limit, resend_seconds, resend_limit_seconds, running_jobs_limit: Limits on jobs and
            pauses between messages to workers, explained in `catalog.settings.CatalogSettings`.
        answer_seconds: Time limit in seconds of a PostgreSQL statement; SQLite has none.
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
        self.outbox = Outbox(self.database)
        self.runs = Runs(self.database)

    def workspace(self, name: str) -> Workspace:
        """Returns access to the records of one workspace, which need not have any records yet."""
        return Workspace(self.database, name, self._resend_seconds)

    def ping(self) -> None:
        """Checks that the database responds.

        Raises:
            sqlalchemy.exc.OperationalError: The database does not respond.
        """
        self.database.ping()

    def close(self) -> None:
        """Closes all database connections."""
        self.database.close()
