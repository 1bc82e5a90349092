"""The catalog: database records of datasets, models and jobs, in SQLite or PostgreSQL. It also
controls which worker runs which job."""

from __future__ import annotations

from catalog.catalog import Catalog
from catalog.database.migrate import upgrade
from catalog.job_kinds import JobKind, Queue
from catalog.pages import Page
from catalog.records import (
    DEFAULT_WORKSPACE,
    Cancelled,
    Claim,
    Dataset,
    Document,
    Failed,
    Job,
    JobStatus,
    Model,
    ModelStatus,
    Outcome,
    Produced,
    Result,
    Trained,
)
from catalog.workspace import Workspace

__all__ = [
    "DEFAULT_WORKSPACE",
    "Cancelled",
    "Catalog",
    "Claim",
    "Dataset",
    "Document",
    "Failed",
    "Job",
    "JobKind",
    "JobStatus",
    "Model",
    "ModelStatus",
    "Outcome",
    "Page",
    "Produced",
    "Queue",
    "Result",
    "Trained",
    "Workspace",
    "upgrade",
]
