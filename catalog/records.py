"""Frozen copies of the catalog's records, and outcomes of jobs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from catalog.job_kinds import JobKind, Queue

Document = dict[str, Any]
"""A JSON object."""

DEFAULT_WORKSPACE = "default"


class DataKind(StrEnum):
    """Kind of a dataset or of a model's training data: one table, or linked ones."""

    TABLE = "table"
    DATABASE = "database"


class ModelStatus(StrEnum):
    """Status of a model."""

    TRAINING = "training"
    READY = "ready"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Scoring(StrEnum):
    """Scores that a model gives, from the loosest to the strictest setting."""

    FULL = "full"
    FLAG = "flag"
    OFF = "off"

    def is_looser_than(self, other: Scoring) -> bool:
        """Returns whether this setting allows more than the other."""
        words = list(Scoring)
        return words.index(self) < words.index(other)


class JobStatus(StrEnum):
    """Status of a job: queued → running → succeeded, failed or cancelled."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether the job is over."""
        return self not in (JobStatus.QUEUED, JobStatus.RUNNING)


class Scope(StrEnum):
    """Permission of a key in its workspace."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@dataclass(frozen=True)
class Key:
    """An API key, without its secret."""

    id: str
    workspace: str
    name: str
    scopes: list[str]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


@dataclass(frozen=True)
class Worker:
    """A worker group, at its last heartbeat.

    Attributes:
        name: Host and process.
        slots: Queue and device of each slot, which runs one job at a time.
    """

    name: str
    version: str
    slots: list[str]
    started_at: datetime
    seen_at: datetime


@dataclass(frozen=True)
class AuditEntry:
    """An entry of the audit log; `at` in UTC, ISO 8601, `digest` as in `catalog.access.audit`."""

    id: str
    at: str
    workspace: str
    actor: str
    action: str
    subject: str
    made: str | None
    address: str | None
    status: int
    request_id: str | None
    number: int
    digest: str


@dataclass(frozen=True)
class Dataset:
    """An uploaded table, or a database; its bytes are stored under `object_key`.

    Attributes:
        format: `zip` for a database, with its tables as files.
        rows, columns: For a database, those of all tables.
        tables: For a database, `name`, `format`, `rows`, `columns` and `schema` of each table.
        encoding: Encoding of a text file, a name in Python; None for UTF-8 and for Parquet.
        schema: Complete schema; for a database that of its tables and keys.
        given_schema: The user's declarations; the rest is inferred.
        privacy_cap: Cap on the joint cost of its private models: `epsilon`, `delta`; None for none.
    """

    id: str
    workspace: str
    name: str
    kind: DataKind
    format: str
    rows: int
    columns: int
    tables: list[Document] | None
    schema: Document
    given_schema: Document
    sha256: str
    size_bytes: int
    object_key: str
    warnings: list[str]
    encoding: str | None
    privacy_cap: Document | None
    created_at: datetime


@dataclass(frozen=True)
class Promise:
    """Maximum privacy cost of a training.

    `nano_rho` is in billionths of zero-concentrated differential privacy; `threshold_delta` is for
    discovered levels.
    """

    epsilon: float
    delta: float
    nano_rho: int
    threshold_delta: float


@dataclass(frozen=True)
class Spending(Promise):
    """Privacy cost that a training has spent on a table, or reserved while `begun_at` is None."""

    id: str
    sha256: str
    model_id: str
    job_id: str
    begun_at: datetime | None
    created_at: datetime


@dataclass(frozen=True)
class Model:
    """Record of a model in training or ready; `scoring` states which scores it may give."""

    id: str
    workspace: str
    name: str
    kind: DataKind
    dataset_id: str | None
    status: ModelStatus
    job_id: str | None
    training: Document
    schema: Document | None
    record: Document | None
    artifact_key: str | None
    artifact_sha256: str | None
    artifact_bytes: int | None
    scoring: Scoring
    created_at: datetime


@dataclass(frozen=True)
class Job:
    """A job.

    Attributes:
        queue: Queue that it waits in.
        priority: Order among the waiting jobs of its workspace and queue; higher is sooner.
        estimate: Estimated cost, as `gcvae.training.costs.Cost`; None if unknown.
        parent_id: For a shard, the job that it is a part of (`catalog.jobs.shards`).
        n_shards: Number of shards; 0 if one attempt does all.
        open_shards: Number of shards that are not done; the job waits for them.
        part: For a shard that is done, its result, as `Produced`.
        smaller_batch: Whether it ran out of GPU memory and continues with half its batch size.
        version: Grows with every visible change (ETag, event id).
        queued_at: When it was last queued.
        request_id: Request that queued it last.
        traceparent: Span of that request, if it was traced.
    """

    id: str
    workspace: str
    kind: JobKind
    spec: Document
    model_id: str | None
    model_name: str | None
    dataset_id: str | None
    dataset_name: str | None
    result_id: str | None
    parent_id: str | None
    n_shards: int
    open_shards: int
    part: Document | None
    queue: Queue
    priority: int
    estimate: Document | None
    smaller_batch: bool
    status: JobStatus
    attempt: int
    attempts_since_checkpoint: int
    lease_owner: str | None
    lease_expires_at: datetime | None
    cancel_requested: bool
    progress: Document
    error: Document | None
    checkpoint_key: str | None
    checkpoint_sha256: str | None
    version: int
    next_dispatch_at: datetime | None
    queued_at: datetime
    request_id: str | None
    traceparent: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True)
class Result:
    """Table that a sample, score or imputation job made; its bytes are stored under `object_key`.

    Attributes:
        manifest_sha256: Checksum of the manifest if `object_key` holds one. Size and checksum of
            the result are those of the joined shards.
    """

    id: str
    workspace: str
    kind: JobKind
    model_id: str
    job_id: str
    object_key: str
    sha256: str
    size_bytes: int
    media_type: str
    rows: int
    summary: Document
    manifest_sha256: str | None
    created_at: datetime


@dataclass(frozen=True)
class Claim:
    """Right of one attempt to write a job's outcome (fencing token)."""

    job: Job
    owner: str
    attempt: int
    lease_seconds: float

    @property
    def job_id(self) -> str:
        """Id of the claimed job."""
        return self.job.id


@dataclass(frozen=True)
class Trained:
    """Outcome: the artifact is published and its model is ready.

    `next_job` is a follow-up job on the model: its `kind`, `spec` and `estimate`. `scoring` is the
    setting of the artifact.
    """

    artifact_key: str
    artifact_sha256: str
    artifact_bytes: int
    schema: Document
    record: Document
    next_job: Document | None = None
    scoring: str = Scoring.FULL.value


@dataclass(frozen=True)
class Produced:
    """Outcome: the table of a job, or of a shard, is published.

    `manifest_sha256` is given if `object_key` holds a manifest of shards.
    """

    object_key: str
    sha256: str
    size_bytes: int
    media_type: str
    rows: int
    summary: Document = field(default_factory=dict)
    manifest_sha256: str | None = None

    def to_json(self) -> Document:
        """Returns a shard's `part`."""
        return asdict(self)


@dataclass(frozen=True)
class Failed:
    """Outcome: the job has failed. `code` is stable, `message` is for people."""

    code: str
    message: str
    problems: tuple[Document, ...] = ()

    def to_json(self) -> Document:
        """Returns the job's `error` document."""
        return {"code": self.code, "message": self.message, "problems": list(self.problems)}


@dataclass(frozen=True)
class Cancelled:
    """Outcome: the job was stopped at the user's request."""


Outcome = Trained | Produced | Failed | Cancelled
