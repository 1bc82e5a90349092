"""What the catalog hands out: frozen copies of its records, and the outcomes of jobs."""

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
    """What a dataset is, and what a model was trained on: one table, or linked ones."""

    TABLE = "table"
    DATABASE = "database"


class ModelStatus(StrEnum):
    """Where a model stands."""

    TRAINING = "training"
    READY = "ready"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Scoring(StrEnum):
    """What a model says of rows, from the loosest to the strictest."""

    FULL = "full"
    FLAG = "flag"
    OFF = "off"

    def is_looser_than(self, other: Scoring) -> bool:
        """True where the other says less."""
        words = list(Scoring)
        return words.index(self) < words.index(other)


class JobStatus(StrEnum):
    """Where a job stands: queued → running → succeeded, failed or cancelled."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """True where the job is over."""
        return self not in (JobStatus.QUEUED, JobStatus.RUNNING)


class Scope(StrEnum):
    """What a key lets its holder do in its workspace."""

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
    """A worker group, as it last gave a sign of life.

    Attributes:
        name: host and process.
        slots: what each of them serves, and on which device: it has room for one job.
    """

    name: str
    version: str
    slots: list[str]
    started_at: datetime
    seen_at: datetime


@dataclass(frozen=True)
class AuditEntry:
    """A line of the audit log; `at` in UTC, ISO 8601, `digest` as `catalog.access.audit` says."""

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
    """An uploaded table, or a database of them; its bytes lie in the store under `object_key`.

    Attributes:
        format: of a database `zip`: its tables are files in one.
        rows, columns: of a database those of all tables.
        tables: of a database each with its `name`, `format`, `rows`, `columns` and `schema`.
        encoding: of a text file, Python's name of it; None for UTF-8, and for Parquet.
        schema: complete; of a database that of its tables and keys.
        given_schema: what users said; the rest of the schema is inferred.
        privacy_cap: what its private models may spend together: `epsilon`, `delta`; None for any.
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
    """What a private training spends at most: `nano_rho` of zero-concentrated differential privacy,
    in billionths, and the `threshold_delta` of levels that it discovers."""

    epsilon: float
    delta: float
    nano_rho: int
    threshold_delta: float


@dataclass(frozen=True)
class Spending(Promise):
    """What a training has spent of a table, or set aside for it while `begun_at` is None."""

    id: str
    sha256: str
    model_id: str
    job_id: str
    begun_at: datetime | None
    created_at: datetime


@dataclass(frozen=True)
class Model:
    """A published synthesizer, or one in the making; `scoring` is what it says of rows."""

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
    """What a user asked for.

    Attributes:
        queue: that it waits in.
        priority: among the waiting jobs of its workspace and queue; higher is sooner.
        estimate: what it is likely to take, as `gcvae.training.costs.Cost`; None where nobody can
            say.
        parent_id: of a shard: the job that it is a part of (`catalog.jobs.shards`).
        n_shards: that the job was cut into; 0 where one attempt does it all.
        open_shards: those that are not done; the job itself waits for them.
        part: of a shard that is done: what it made, as `Produced`.
        smaller_batch: it ran out of GPU memory once and goes on with half its batch.
        version: grows with every visible change (ETag, event id).
        queued_at: since when it waits, or waited last.
        request_id: of the request that queued it last.
        traceparent: that request's span, where it was traced.
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
    """The table that a sample, score or imputation job made; its bytes lie under `object_key`.

    Attributes:
        manifest_sha256: where `object_key` holds a manifest of parts: its checksum. Joined, the
            parts have the size and the checksum of the result.
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
    """The right of one attempt to write a job's outcome (its fencing token)."""

    job: Job
    owner: str
    attempt: int
    lease_seconds: float

    @property
    def job_id(self) -> str:
        """The id of the claimed job."""
        return self.job.id


@dataclass(frozen=True)
class Trained:
    """Outcome: the artifact is published and its model is ready.

    `next_job` is a job on the model that is queued as it gets ready: its `kind`, its `spec` and its
    `estimate`. `scoring` is what the artifact lets the model say.
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
    """Outcome: the table of a sample or score job is published, or a shard's part of it.

    `manifest_sha256` is given where `object_key` holds a manifest of parts.
    """

    object_key: str
    sha256: str
    size_bytes: int
    media_type: str
    rows: int
    summary: Document = field(default_factory=dict)
    manifest_sha256: str | None = None

    def to_json(self) -> Document:
        """A shard's `part`."""
        return asdict(self)


@dataclass(frozen=True)
class Failed:
    """Outcome: the job can not be done. `code` is stable, `message` is for people."""

    code: str
    message: str
    problems: tuple[Document, ...] = ()

    def to_json(self) -> Document:
        """The job's `error` document."""
        return {"code": self.code, "message": self.message, "problems": list(self.problems)}


@dataclass(frozen=True)
class Cancelled:
    """Outcome: stopped because the user asked for it."""


Outcome = Trained | Produced | Failed | Cancelled
