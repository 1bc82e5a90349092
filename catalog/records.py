"""Frozen copies of the database's records, and the possible outcomes of jobs."""

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
    """Kind of a dataset, or of a model's training data: a single table, or a database of linked
    tables."""

    TABLE = "table"
    DATABASE = "database"


class ModelStatus(StrEnum):
    """Status of a model: in training, ready for use, or without an artifact because training failed
    or was cancelled."""

    TRAINING = "training"
    READY = "ready"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Scoring(StrEnum):
    """Limit on the scores that a model may return, from the loosest to the strictest.

    `full` allows log-likelihoods, `flag` only whether a row is rare, and `off` no scores.
    """

    FULL = "full"
    FLAG = "flag"
    OFF = "off"

    def is_looser_than(self, other: Scoring) -> bool:
        """Returns whether this limit allows more scores than `other`."""
        words = list(Scoring)
        return words.index(self) < words.index(other)


class JobStatus(StrEnum):
    """Status of a job: first queued, then running, at the end succeeded, failed or cancelled."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether the job has succeeded, failed or been cancelled."""
        return self not in ACTIVE


ACTIVE = (JobStatus.QUEUED, JobStatus.RUNNING)
"""Statuses of jobs that have not ended."""


class Scope(StrEnum):
    """Permission of an API key: to read, to change, or to use administrative calls."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


class EventType(StrEnum):
    """Type of an event of which webhooks are notified.

    `ping` is sent on request, to test a webhook; the others are sent automatically.
    """

    JOB_ENDED = "job.ended"
    REPORT_READY = "report.ready"
    KEY_EXPIRING = "key.expiring"
    RUN_ENDED = "run.ended"
    PING = "ping"


class RunStatus(StrEnum):
    """Status of a run of a schedule: first running, at the end succeeded or failed; or skipped,
    because an earlier run was still running when this one was due."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Connection:
    """Record of a named connection to a database, bucket or web server.

    Attributes:
        url: URL without the password.
        sealed_password: Password, encrypted by the service; None if there is none.
    """

    id: str
    workspace: str
    name: str
    url: str
    sealed_password: str | None = field(repr=False)
    created_at: datetime


@dataclass(frozen=True)
class Webhook:
    """Record of a webhook (a URL to which events are sent), without the secret that signs them.

    Attributes:
        events: Types of the events: values of `EventType`.
    """

    id: str
    workspace: str
    url: str
    events: list[str]
    created_at: datetime


@dataclass(frozen=True)
class Delivery:
    """Record of the delivery of one event to one webhook.

    Attributes:
        subject: Id of the job, key, schedule or webhook that the event is about.
        about: Content of the event, as a JSON object.
        attempts: Number of attempts that have begun.
        next_attempt_at: Time of the next attempt, or end of the current one; None if the delivery
            succeeded or was given up.
        status_code: Status of the last response; None if there was none.
        error: Error of the last attempt; None if there was none.
        delivered_at: Time at which the receiver accepted the event; None if it has not.
    """

    id: str
    webhook_id: str
    type: EventType
    subject: str
    about: Document
    attempts: int
    next_attempt_at: datetime | None
    status_code: int | None
    error: str | None
    delivered_at: datetime | None
    created_at: datetime


@dataclass(frozen=True)
class Schedule:
    """Record of a schedule, by which the service repeats a training at certain times.

    Attributes:
        cron, time_zone: Times of the runs: a cron expression, and the name of its time zone.
        work: Work of each run, as a JSON object that contains the bodies of the equivalent REST
            calls (`source` or `dataset_id`, `training`, `scoring`, `sample`, `export`).
        columns: Type of each column of the table that the runs import, by name; None until the
            first run has read the table, or if the runs use a dataset of the service.
        next_at: Time of the next run; None if the schedule is paused.
    """

    id: str
    workspace: str
    name: str
    cron: str
    time_zone: str
    work: Document
    columns: Document | None
    paused: bool
    next_at: datetime | None
    created_at: datetime


@dataclass(frozen=True)
class Run:
    """Record of one run of a schedule.

    Attributes:
        due_at: Time at which the run was due, or at which it was requested.
        missed: Number of earlier due times without a run, because no service was running.
        attempt: Number of steps that were begun; a repeated step counts again. Only the process
            that began the newest step may change the run.
        dataset_id, training_job_id, sample_job_id: Ids of the run's dataset and jobs; None until
            they are created.
        model_id, sample_id: Ids of the model and the sample that the two jobs make.
        export_begun: Whether writing the sample to a connection has begun.
        error: Error because of which the run failed or a step is repeated; None without an error.
    """

    id: str
    schedule_id: str
    due_at: datetime
    status: RunStatus
    missed: int
    attempt: int
    dataset_id: str | None
    training_job_id: str | None
    model_id: str | None
    sample_job_id: str | None
    sample_id: str | None
    export_begun: bool
    error: Document | None
    created_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True)
class Caller:
    """Sender of requests (an API key or a person) with its permissions.

    Attributes:
        id: Id of the key or person; the audit log names the caller by it.
        scopes: Permissions: values of `Scope`.
    """

    id: str
    workspace: str
    name: str
    scopes: list[str]


@dataclass(frozen=True)
class Person(Caller):
    """A person who has signed in at an OpenID Connect provider.

    Attributes:
        sign_out_url: URL at which the browser signs out of the provider; None if it has none.
    """

    sign_out_url: str | None


@dataclass(frozen=True)
class Key(Caller):
    """Record of an API key, without its secret.

    Attributes:
        expires_at: Time of expiry; None if the key does not expire.
        revoked_at: Time at which the key was revoked; None if it is not revoked.
        last_used_at: Time at which the key was last used; None if it was never used.
    """

    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


@dataclass(frozen=True)
class Worker:
    """State of a worker group (the processes started by one worker command) at its last heartbeat.

    Attributes:
        name: Host and process id.
        slots: Device and queues of each slot; a slot runs one job at a time.
        seen_at: Time of the last heartbeat.
    """

    name: str
    version: str
    slots: list[str]
    started_at: datetime
    seen_at: datetime


@dataclass(frozen=True)
class AuditedAction:
    """An action, or an attempt at one, to be written to the audit log.

    Attributes:
        actor: Who acted: the id of an API key, of a person or of a schedule. `operator` stands for
            somebody who ran a command. `anyone` stands for somebody unknown: the service requires
            no keys, or a sign-in failed.
        action: HTTP method and route, or the command.
        subject: On what: the path of the request, or the id of the key that a command changed. If
            the request names a connection, the connection follows the path. For a sign-in, the
            person's name or the error follows the path.
        made: Path of the created resource; None if nothing was created.
        address: IP address of the client; None if unknown.
        status: HTTP status code of the response; 0 for a command.
        request_id: Id of the request; None for a command.
    """

    workspace: str
    actor: str
    action: str
    subject: str
    made: str | None = None
    address: str | None = None
    status: int = 0
    request_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class AuditEntry(AuditedAction):
    """An entry of the audit log: an action, and its position in the log.

    Attributes:
        at: Time in UTC, ISO 8601.
        number: Number of the entry in the log of all workspaces, from 1.
        digest: SHA-256 over this entry and the previous digest; it reveals later changes of the
            log.
    """

    id: str
    at: str
    number: int
    digest: str


@dataclass(frozen=True)
class Dataset:
    """An uploaded table, or an uploaded database of several tables.

    Attributes:
        format: File format of the table; `zip` for a database.
        rows, columns: Number of rows and columns; for a database, summed over its tables.
        tables: For a database, `name`, `format`, `rows`, `columns` and `schema` of each table; None
            for a single table.
        schema: Complete schema of the table; for a database, the schemas of its tables with their
            keys.
        given_schema: The part of the schema that the user specified; the rest was inferred.
        sha256, size_bytes, object_key: Checksum, size and store key of the uploaded bytes.
        warnings: Data-quality warnings.
        encoding: Python's name of a text file's encoding; None for UTF-8 and for Parquet.
        source: Connection and table, query or key from which the dataset was imported; None for an
            upload.
        privacy_cap: Limit on the joint privacy cost of all models of the table, with members
            `epsilon` and `delta`; None for no limit.
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
    source: Document | None
    privacy_cap: Document | None
    created_at: datetime


@dataclass(frozen=True)
class PrivacyCost:
    """Maximum privacy cost of a training with differential privacy.

    Attributes:
        epsilon, delta: Parameters of (epsilon, delta)-differential privacy.
        nano_rho: The cost as rho, the parameter of zero-concentrated differential privacy, in
            billionths. It is a whole number, so that sums of costs are exact.
        threshold_delta: Part of delta that is used to discover levels privately.
    """

    epsilon: float
    delta: float
    nano_rho: int
    threshold_delta: float


@dataclass(frozen=True)
class Spending(PrivacyCost):
    """Privacy cost that a training has spent on a table or has reserved.

    Attributes:
        sha256: Checksum of the table's bytes.
        begun_at: Time at which the reserved cost was spent; None while it is only reserved.
    """

    id: str
    sha256: str
    model_id: str
    job_id: str
    begun_at: datetime | None
    created_at: datetime


@dataclass(frozen=True)
class Model:
    """Record of a model, from the start of its training.

    Attributes:
        dataset_id: Training dataset; None if it was deleted or the model was imported.
        job_id: Training job; None for an imported model.
        training: Preset, seed, device and settings of the training.
        schema: Schema of the training table; None until the model is ready.
        record: The training record, such as bounds and duration; None until the model is ready.
        artifact_key, artifact_sha256, artifact_bytes: Store key, checksum and size of the model's
            file; None until the model is ready.
        scoring: Limit on the scores that the model may return.
    """

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
    """Record of a job, or of a shard: a part of a job that one worker processes.

    Attributes:
        spec: Specification of the work, as JSON (`catalog.job_kinds`).
        result_id: Id of the result, which is recorded when the job succeeds; None for training.
        parent_id: For a shard, the job that it is a part of (`catalog.jobs.shards`); None for a
            job.
        n_shards: Number of shards; 0 if one attempt does all the work.
        open_shards: Number of shards that have not ended; the job waits for them.
        part: For a shard that has succeeded, its result (a `Produced` as JSON); otherwise None.
        queue: Queue in which the job waits.
        priority: Priority among the waiting jobs of its workspace and queue; higher runs sooner.
        estimate: Estimated time and memory (`gcvae.training.costs.Cost`); None if unknown.
        smaller_batch: Whether training ran out of GPU memory and continues with half the batch
            size.
        attempt: Number of attempts that were started.
        attempts_since_checkpoint: Number of attempts since the last new checkpoint, except those
            that a shutdown or an unavailable server ended.
        lease_owner, lease_expires_at: Worker that owns the job, and the end of its lease; None if
            no worker owns it.
        cancel_requested: Whether a user has asked to cancel the running job.
        progress: Last reported progress, with `phase` and `fraction`.
        error: Error of the last failed attempt; None if there is none.
        checkpoint_key, checkpoint_sha256: Store key and checksum of the newest checkpoint; None
            if there is none.
        version: Number that grows with every visible change; used as ETag and event id.
        next_dispatch_at: Time at which the job's message is next sent to the workers; None if it
            has ended.
        queued_at: Time at which the job was last queued.
        request_id: Id of the HTTP request that last queued the job.
        traceparent: Trace span of that request (W3C Trace Context); None if it was not traced.
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
class Produced:
    """Outcome of a job or shard that has succeeded: its table or report is stored.

    Attributes:
        object_key: Store key of the bytes, or of a manifest that lists the objects with the bytes.
        sha256, size_bytes: Checksum and size of the (concatenated) bytes.
        rows: Number of rows of the table.
        summary: Statistics of the result, as JSON.
        manifest_sha256: Checksum of the manifest; None if there is no manifest.
    """

    object_key: str
    sha256: str
    size_bytes: int
    media_type: str
    rows: int
    summary: Document = field(default_factory=dict)
    manifest_sha256: str | None = None

    def to_json(self) -> Document:
        """Returns the outcome as the JSON object that is stored in a shard's `part`."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Result(Produced):
    """Record of a table or report that a job has made; its bytes are in the store."""

    id: str
    workspace: str
    kind: JobKind
    model_id: str
    job_id: str
    created_at: datetime


@dataclass(frozen=True)
class Claim:
    """Right of one attempt at a job to write the job's outcome (fencing token).

    Attributes:
        job: The job when it was claimed.
        owner: Name of the worker that owns the lease.
        lease_seconds: Time from a heartbeat until the lease expires.
    """

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
    """Outcome of a training job that has succeeded: the model's file is stored.

    Attributes:
        next_job: Job to queue on the new model, with `kind`, `spec` and `estimate`; None for none.
        scoring: Which scores the model may return: a value of `Scoring`, stored in its file.
    """

    artifact_key: str
    artifact_sha256: str
    artifact_bytes: int
    schema: Document
    record: Document
    next_job: Document | None = None
    scoring: str = Scoring.FULL.value


@dataclass(frozen=True)
class Failed:
    """Outcome of a job that has failed.

    Attributes:
        code: Error code for programs; it does not change between versions.
        message: Description for people.
        problems: The problems found in the input, as JSON objects with a location; empty for other
            errors.
    """

    code: str
    message: str
    problems: tuple[Document, ...] = ()

    def to_json(self) -> Document:
        """Returns the failure as the JSON object that is stored in a job's `error`."""
        return {"code": self.code, "message": self.message, "problems": list(self.problems)}


@dataclass(frozen=True)
class Cancelled:
    """Outcome of a job that was stopped at the user's request."""


Outcome = Trained | Produced | Failed | Cancelled
