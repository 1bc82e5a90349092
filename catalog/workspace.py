"""The records of one workspace (tenant)."""

from __future__ import annotations

from catalog.access.audit import WorkspaceAudit
from catalog.connections import Connections
from catalog.database.engine import Database
from catalog.datasets import Datasets
from catalog.idempotency import Idempotency
from catalog.jobs.jobs import Jobs
from catalog.jobs.privacy_ledger import PrivacyLedgers
from catalog.models import Models
from catalog.results import Results
from catalog.schedules.registry import Schedules
from catalog.statistics import Usage
from catalog.webhooks.registry import Webhooks


class Workspace:
    """Gives access to the records of one workspace (tenant) and to no others.

    The methods of its attributes, such as `datasets` and `jobs`, take no workspace argument, so no
    call can forget to restrict a query. `Catalog.workspace` creates instances.
    """

    def __init__(self, database: Database, name: str, resend_seconds: float) -> None:
        self.name = name
        self.datasets = Datasets(database, name)
        self.models = Models(database, name)
        self.jobs = Jobs(database, name, resend_seconds)
        self.results = Results(database, name)
        self.idempotency = Idempotency(database, name)
        self.audit = WorkspaceAudit(database, name)
        self.usage = Usage(database, name)
        self.privacy = PrivacyLedgers(database, name)
        self.connections = Connections(database, name)
        self.webhooks = Webhooks(database, name)
        self.schedules = Schedules(database, name)
