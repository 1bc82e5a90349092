"""The catalog: every gateway to the records of one database."""

from __future__ import annotations

from catalog.audit import Audit
from catalog.database.engine import ANSWER_SECONDS, Database
from catalog.datasets import Datasets
from catalog.idempotency import Idempotency
from catalog.inventory import Inventory
from catalog.jobs.jobs import Jobs
from catalog.jobs.leases import Leases
from catalog.keys import Keys
from catalog.models import Models
from catalog.orphans import Orphans
from catalog.results import Results
from catalog.sessions import Sessions
from catalog.statistics import Statistics


class Catalog:
    """The records of one database, by gateway.

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
        self.datasets = Datasets(self.database)
        self.models = Models(self.database)
        self.jobs = Jobs(self.database, resend_seconds)
        self.leases = Leases(
            self.database, attempts_limit, resend_seconds, resend_limit_seconds, running_jobs_limit
        )
        self.results = Results(self.database)
        self.orphans = Orphans(self.database)
        self.inventory = Inventory(self.database)
        self.statistics = Statistics(self.database)
        self.idempotency = Idempotency(self.database)
        self.keys = Keys(self.database)
        self.sessions = Sessions(self.database)
        self.audit = Audit(self.database)

    def ping(self) -> None:
        """Ask the database for an answer.

        Raises:
            sqlalchemy.exc.OperationalError: it gives none.
        """
        self.database.ping()

    def close(self) -> None:
        """Close every connection."""
        self.database.close()
