"""Database tables as SQLAlchemy 2 classes; `migrations/` contains the changes between versions."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Double,
    Enum,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Text,
    UniqueConstraint,
    select,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, column_property, mapped_column

from catalog.database.clock import Timestamp, database_clock
from catalog.job_kinds import JobKind, Queue
from catalog.records import (
    DataKind,
    Document,
    EventType,
    JobStatus,
    ModelStatus,
    RunStatus,
    Scoring,
)

_ID = 40
_NAME = 300
_KEY = 300
_SHA256 = 64


def _word(words: type[StrEnum]) -> Enum:
    return Enum(
        words, native_enum=False, length=20, values_callable=lambda words: [w.value for w in words]
    )


class Base(DeclarativeBase):
    """Base class of all tables; it names constraints, because migrations refer to them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        datetime: Timestamp(),
        Document: JSON(none_as_null=True),
        list[str]: JSON(),
        bool: Boolean(),
        DataKind: _word(DataKind),
        EventType: _word(EventType),
        JobKind: _word(JobKind),
        JobStatus: _word(JobStatus),
        ModelStatus: _word(ModelStatus),
        Queue: _word(Queue),
        RunStatus: _word(RunStatus),
        Scoring: _word(Scoring),
    }


class DatasetRow(Base):
    """Database row of an uploaded table or database; see `catalog.records.Dataset`."""

    __tablename__ = "datasets"
    __table_args__ = (Index(None, "workspace", "id"),)

    id: Mapped[str] = mapped_column(String(_ID), primary_key=True)
    workspace: Mapped[str] = mapped_column(String(_NAME))
    name: Mapped[str] = mapped_column(String(_NAME))
    kind: Mapped[DataKind]
    format: Mapped[str] = mapped_column(String(20))
    rows: Mapped[int] = mapped_column(BigInteger)
    columns: Mapped[int] = mapped_column(Integer)
    tables: Mapped[list[Document] | None] = mapped_column(JSON(none_as_null=True))
    schema: Mapped[Document]
    given_schema: Mapped[Document]
    sha256: Mapped[str] = mapped_column(String(_SHA256))
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    object_key: Mapped[str] = mapped_column(String(_KEY))
    warnings: Mapped[list[str]]
    encoding: Mapped[str | None] = mapped_column(String(40))
    source: Mapped[Document | None]
    privacy_cap: Mapped[Document | None]
    created_at: Mapped[datetime] = mapped_column(default=database_clock())


class SpendingRow(Base):
    """Database row of the privacy budget that a training spends on a table. The row is kept when
    the model, job or dataset is deleted.

    Attributes:
        caps: Limits on the joint budget of the table's models, as they were when the training was
            queued and reserved its budget.
    """

    __tablename__ = "spendings"
    __table_args__ = (Index(None, "workspace", "sha256"),)

    id: Mapped[str] = mapped_column(String(_ID), primary_key=True)
    workspace: Mapped[str] = mapped_column(String(_NAME))
    sha256: Mapped[str] = mapped_column(String(_SHA256))
    model_id: Mapped[str] = mapped_column(String(_ID))
    job_id: Mapped[str] = mapped_column(String(_ID), index=True)
    epsilon: Mapped[float] = mapped_column(Double)
    delta: Mapped[float] = mapped_column(Double)
    nano_rho: Mapped[int] = mapped_column(BigInteger)
    threshold_delta: Mapped[float] = mapped_column(Double)
    caps: Mapped[list[Document]] = mapped_column(JSON)
    begun_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(default=database_clock())


class UnboundedRow(Base):
    """Database row of a model that was trained on a table without differential privacy. The row is
    kept when the model, job or dataset is deleted."""

    __tablename__ = "unbounded_models"
    __table_args__ = (Index(None, "workspace", "sha256"),)

    model_id: Mapped[str] = mapped_column(String(_ID), primary_key=True)
    workspace: Mapped[str] = mapped_column(String(_NAME))
    sha256: Mapped[str] = mapped_column(String(_SHA256))
    created_at: Mapped[datetime] = mapped_column(default=database_clock())


class ModelRow(Base):
    """Database row of a model, which outlives its dataset; see `catalog.records.Model`."""

    __tablename__ = "models"
    __table_args__ = (Index(None, "workspace", "id"),)

    id: Mapped[str] = mapped_column(String(_ID), primary_key=True)
    workspace: Mapped[str] = mapped_column(String(_NAME))
    name: Mapped[str] = mapped_column(String(_NAME))
    kind: Mapped[DataKind]
    dataset_id: Mapped[str | None] = mapped_column(
        ForeignKey("datasets.id", ondelete="SET NULL"), index=True
    )
    status: Mapped[ModelStatus]
    job_id: Mapped[str | None] = mapped_column(String(_ID))
    training: Mapped[Document]
    schema: Mapped[Document | None]
    record: Mapped[Document | None]
    artifact_key: Mapped[str | None] = mapped_column(String(_KEY))
    artifact_sha256: Mapped[str | None] = mapped_column(String(_SHA256))
    artifact_bytes: Mapped[int | None] = mapped_column(BigInteger)
    scoring: Mapped[Scoring]
    created_at: Mapped[datetime] = mapped_column(default=database_clock())


class JobRow(Base):
    """Database row of a job with its lease; see `catalog.records.Job`.

    Attributes:
        sends: Number of messages sent to workers since the job was last queued.
        rests_until: End of the pause after a failed attempt; None without a pause.
    """

    __tablename__ = "jobs"
    __table_args__ = (
        Index(None, "workspace", "id"),
        Index(None, "status", "next_dispatch_at"),
        Index(None, "status", "queue", "workspace"),
    )

    id: Mapped[str] = mapped_column(String(_ID), primary_key=True)
    workspace: Mapped[str] = mapped_column(String(_NAME))
    kind: Mapped[JobKind]
    spec: Mapped[Document]
    model_id: Mapped[str | None] = mapped_column(
        ForeignKey("models.id", ondelete="SET NULL"), index=True
    )
    dataset_id: Mapped[str | None] = mapped_column(
        ForeignKey("datasets.id", ondelete="SET NULL"), index=True
    )
    result_id: Mapped[str | None] = mapped_column(String(_ID))
    parent_id: Mapped[str | None] = mapped_column(String(_ID), index=True)
    n_shards: Mapped[int] = mapped_column(Integer, default=0)
    open_shards: Mapped[int] = mapped_column(Integer, default=0)
    part: Mapped[Document | None]
    queue: Mapped[Queue]
    priority: Mapped[int] = mapped_column(Integer, default=0)
    estimate: Mapped[Document | None]
    smaller_batch: Mapped[bool] = mapped_column(default=False)
    status: Mapped[JobStatus] = mapped_column(default=JobStatus.QUEUED)
    attempt: Mapped[int] = mapped_column(Integer, default=0)
    attempts_since_checkpoint: Mapped[int] = mapped_column(Integer, default=0)
    sends: Mapped[int] = mapped_column(Integer, default=0)
    lease_owner: Mapped[str | None] = mapped_column(String(_NAME))
    lease_expires_at: Mapped[datetime | None]
    cancel_requested: Mapped[bool] = mapped_column(default=False)
    progress: Mapped[Document] = mapped_column(default=dict)
    error: Mapped[Document | None]
    checkpoint_key: Mapped[str | None] = mapped_column(String(_KEY))
    checkpoint_sha256: Mapped[str | None] = mapped_column(String(_SHA256))
    version: Mapped[int] = mapped_column(Integer, default=1)
    next_dispatch_at: Mapped[datetime | None]
    queued_at: Mapped[datetime] = mapped_column(default=database_clock())
    request_id: Mapped[str | None] = mapped_column(String(128))
    traceparent: Mapped[str | None] = mapped_column(String(55))
    rests_until: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(default=database_clock())
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]

    model_name: Mapped[str | None] = column_property(
        select(ModelRow.name).where(ModelRow.id == model_id).scalar_subquery()
    )
    dataset_name: Mapped[str | None] = column_property(
        select(DatasetRow.name).where(DatasetRow.id == dataset_id).scalar_subquery()
    )


class FairShareRow(Base):
    """Database row with the time at which a worker last took a workspace's job from a queue.

    If several workspaces have equally few running jobs, the one with the earliest time gets the
    next worker (`catalog.jobs.fair_share`).
    """

    __tablename__ = "turns"

    workspace: Mapped[str] = mapped_column(String(_NAME), primary_key=True)
    queue: Mapped[Queue] = mapped_column(primary_key=True)
    taken_at: Mapped[datetime]


class WorkerRow(Base):
    """Database row of the last heartbeat of a worker group (the processes started by one worker
    command); see `catalog.records.Worker`."""

    __tablename__ = "workers"

    name: Mapped[str] = mapped_column(String(_NAME), primary_key=True)
    version: Mapped[str] = mapped_column(String(40))
    slots: Mapped[list[str]]
    started_at: Mapped[datetime]
    seen_at: Mapped[datetime]


class ResultRow(Base):
    """Database row of a table or report that a job has made; see `catalog.records.Result`."""

    __tablename__ = "results"
    __table_args__ = (Index(None, "workspace", "kind", "id"),)

    id: Mapped[str] = mapped_column(String(_ID), primary_key=True)
    workspace: Mapped[str] = mapped_column(String(_NAME))
    kind: Mapped[JobKind]
    model_id: Mapped[str] = mapped_column(ForeignKey("models.id", ondelete="CASCADE"), index=True)
    job_id: Mapped[str] = mapped_column(String(_ID))
    object_key: Mapped[str] = mapped_column(String(_KEY))
    sha256: Mapped[str] = mapped_column(String(_SHA256))
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    media_type: Mapped[str] = mapped_column(String(100))
    rows: Mapped[int] = mapped_column(BigInteger)
    summary: Mapped[Document]
    manifest_sha256: Mapped[str | None] = mapped_column(String(_SHA256))
    created_at: Mapped[datetime] = mapped_column(default=database_clock())


class OrphanRow(Base):
    """Database row of an orphan: a store prefix under which there may be bytes without a record.

    The record of such bytes is still to be created, could not be created, or was deleted.

    Attributes:
        sweep_at: Time from which the bytes may be deleted.
        being_swept: Whether deletion has begun, so that no record can be created any more.
    """

    __tablename__ = "leftovers"

    prefix: Mapped[str] = mapped_column(String(_KEY), primary_key=True)
    sweep_at: Mapped[datetime] = mapped_column(index=True)
    being_swept: Mapped[bool]


class CountRow(Base):
    """Database row of a counter; `labels` is a JSON object with sorted keys."""

    __tablename__ = "counts"

    name: Mapped[str] = mapped_column(String(100), primary_key=True)
    labels: Mapped[str] = mapped_column(String(_NAME), primary_key=True)
    value: Mapped[float] = mapped_column(Double)


class IdempotencyRow(Base):
    """Database row of an idempotency key, by which a repeated request is recognised.

    `response` is None while the request runs.
    """

    __tablename__ = "idempotency_keys"

    workspace: Mapped[str] = mapped_column(String(_NAME), primary_key=True)
    key: Mapped[str] = mapped_column(String(_NAME), primary_key=True)
    request_sha256: Mapped[str] = mapped_column(String(_SHA256))
    response: Mapped[Document | None]
    created_at: Mapped[datetime] = mapped_column(default=database_clock(), index=True)


class KeyRow(Base):
    """Database row of an API key, with a salted hash of its secret; see `catalog.records.Key`."""

    __tablename__ = "keys"

    id: Mapped[str] = mapped_column(String(_ID), primary_key=True)
    workspace: Mapped[str] = mapped_column(String(_NAME))
    name: Mapped[str] = mapped_column(String(_NAME))
    scopes: Mapped[list[str]]
    secret_hash: Mapped[str] = mapped_column(String(_NAME))
    created_at: Mapped[datetime] = mapped_column(default=database_clock())
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]


class SessionRow(Base):
    """Database row of a web session, which belongs to an API key or to a person.

    Attributes:
        token_sha256: Digest of the token.
        previous_sha256: Digest of the previous token, which stays valid for a minute; None before
            the first replacement.
        person: The person, as JSON with the attributes of `catalog.records.Person`; None if the
            session belongs to a key.
        idle_seconds: Time without requests after which the session ends.
        expires_at: Time at which the session ends even if it is used.
    """

    __tablename__ = "sessions"

    token_sha256: Mapped[str] = mapped_column(String(_SHA256), primary_key=True)
    previous_sha256: Mapped[str | None] = mapped_column(String(_SHA256), index=True)
    key_id: Mapped[str | None] = mapped_column(ForeignKey("keys.id"))
    person: Mapped[Document | None]
    idle_seconds: Mapped[int] = mapped_column(Integer)
    used_at: Mapped[datetime] = mapped_column(default=database_clock())
    renewed_at: Mapped[datetime] = mapped_column(default=database_clock())
    expires_at: Mapped[datetime]


class AuditRow(Base):
    """Database row of an audit log entry, which never changes; see `catalog.records.AuditEntry`."""

    __tablename__ = "audit"
    __table_args__ = (Index(None, "workspace", "id"),)

    number: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    id: Mapped[str] = mapped_column(String(_ID))
    at: Mapped[str] = mapped_column(String(40))
    workspace: Mapped[str] = mapped_column(String(_NAME))
    actor: Mapped[str] = mapped_column(String(_ID))
    action: Mapped[str] = mapped_column(String(_NAME))
    subject: Mapped[str] = mapped_column(String(2000))
    made: Mapped[str | None] = mapped_column(String(_NAME))
    address: Mapped[str | None] = mapped_column(String(100))
    status: Mapped[int] = mapped_column(Integer)
    request_id: Mapped[str | None] = mapped_column(String(128))
    digest: Mapped[str] = mapped_column(String(_SHA256))


class ConnectionRow(Base):
    """Database row of a connection with its encrypted password; see
    `catalog.records.Connection`."""

    __tablename__ = "connections"
    __table_args__ = (Index(None, "workspace", "id"), UniqueConstraint("workspace", "name"))

    id: Mapped[str] = mapped_column(String(_ID), primary_key=True)
    workspace: Mapped[str] = mapped_column(String(_NAME))
    name: Mapped[str] = mapped_column(String(_NAME))
    url: Mapped[str] = mapped_column(String(2000))
    sealed_password: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime]


class WebhookRow(Base):
    """Database row of a webhook with the secret that signs its deliveries; see
    `catalog.records.Webhook`."""

    __tablename__ = "webhooks"
    __table_args__ = (Index(None, "workspace", "id"),)

    id: Mapped[str] = mapped_column(String(_ID), primary_key=True)
    workspace: Mapped[str] = mapped_column(String(_NAME))
    url: Mapped[str] = mapped_column(String(2000))
    secret: Mapped[str] = mapped_column(String(100))
    events: Mapped[list[str]]
    created_at: Mapped[datetime]


class DeliveryRow(Base):
    """Database row of the delivery of one event to one webhook; see `catalog.records.Delivery`.

    Attributes:
        number: Number by which events are ordered. Ids are not used for this, because they depend
            on the clocks of several machines.
    """

    __tablename__ = "deliveries"
    __table_args__ = (
        Index(None, "webhook_id", "subject", "number"),
        Index(None, "next_attempt_at"),
    )

    number: Mapped[int] = mapped_column(
        BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True
    )
    id: Mapped[str] = mapped_column(String(_ID), unique=True)
    webhook_id: Mapped[str] = mapped_column(ForeignKey("webhooks.id", ondelete="CASCADE"))
    type: Mapped[EventType]
    subject: Mapped[str] = mapped_column(String(_ID))
    about: Mapped[Document]
    attempts: Mapped[int] = mapped_column(Integer)
    next_attempt_at: Mapped[datetime | None]
    status_code: Mapped[int | None] = mapped_column(Integer)
    error: Mapped[str | None] = mapped_column(String(_NAME))
    delivered_at: Mapped[datetime | None]
    created_at: Mapped[datetime]


class ScheduleRow(Base):
    """Database row of a schedule of trainings; see `catalog.records.Schedule`."""

    __tablename__ = "schedules"
    __table_args__ = (Index(None, "workspace", "id"), UniqueConstraint("workspace", "name"))

    id: Mapped[str] = mapped_column(String(_ID), primary_key=True)
    workspace: Mapped[str] = mapped_column(String(_NAME))
    name: Mapped[str] = mapped_column(String(_NAME))
    cron: Mapped[str] = mapped_column(String(_NAME))
    time_zone: Mapped[str] = mapped_column(String(100))
    work: Mapped[Document]
    columns: Mapped[Document | None]
    paused: Mapped[bool]
    next_at: Mapped[datetime | None] = mapped_column(index=True)
    created_at: Mapped[datetime]


class RunRow(Base):
    """Database row of one run of a schedule; see `catalog.records.Run`.

    Attributes:
        next_step_at: Time from which a process may begin the next step; None if the run has ended.
    """

    __tablename__ = "runs"
    __table_args__ = (Index(None, "schedule_id", "id"), UniqueConstraint("schedule_id", "due_at"))

    id: Mapped[str] = mapped_column(String(_ID), primary_key=True)
    schedule_id: Mapped[str] = mapped_column(ForeignKey("schedules.id", ondelete="CASCADE"))
    due_at: Mapped[datetime]
    status: Mapped[RunStatus]
    missed: Mapped[int] = mapped_column(Integer)
    attempt: Mapped[int] = mapped_column(Integer, default=0)
    dataset_id: Mapped[str | None] = mapped_column(String(_ID))
    training_job_id: Mapped[str | None] = mapped_column(String(_ID))
    sample_job_id: Mapped[str | None] = mapped_column(String(_ID))
    export_begun: Mapped[bool] = mapped_column(default=False)
    error: Mapped[Document | None]
    next_step_at: Mapped[datetime | None] = mapped_column(index=True)
    created_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]

    model_id: Mapped[str | None] = column_property(
        select(JobRow.model_id).where(JobRow.id == training_job_id).scalar_subquery()
    )
    sample_id: Mapped[str | None] = column_property(
        select(JobRow.result_id).where(JobRow.id == sample_job_id).scalar_subquery()
    )
