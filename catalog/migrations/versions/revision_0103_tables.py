"""Creates all tables; this is the first revision."""

from __future__ import annotations

from functools import partial

import sqlalchemy as sa
from alembic import op
from sqlalchemy import JSON, BigInteger, Boolean, Double, Integer, String, Text

revision = "0103"
down_revision = None
branch_labels = None
depends_on = None


_key = partial(sa.Column, primary_key=True)
_column = partial(sa.Column, nullable=False)
_optional = partial(sa.Column, nullable=True)
_INDEXES = (
    ("audit", "workspace id"),
    ("connections", "workspace id"),
    ("datasets", "workspace id"),
    ("deliveries", "next_attempt_at"),
    ("deliveries", "webhook_id subject number"),
    ("idempotency_keys", "created_at"),
    ("jobs", "dataset_id"),
    ("jobs", "model_id"),
    ("jobs", "parent_id"),
    ("jobs", "status next_dispatch_at"),
    ("jobs", "status queue workspace"),
    ("jobs", "workspace id"),
    ("leftovers", "sweep_at"),
    ("models", "dataset_id"),
    ("models", "workspace id"),
    ("results", "model_id"),
    ("results", "workspace kind id"),
    ("sessions", "previous_sha256"),
    ("spendings", "job_id"),
    ("spendings", "workspace sha256"),
    ("unbounded_models", "workspace sha256"),
    ("webhooks", "workspace id"),
)


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("number", BigInteger, primary_key=True, autoincrement=False),
        _column("id", String(40)),
        _column("at", String(40)),
        _column("workspace", String(300)),
        _column("actor", String(40)),
        _column("action", String(300)),
        _column("subject", String(2000)),
        _optional("made", String(300)),
        _optional("address", String(100)),
        _column("status", Integer),
        _optional("request_id", String(128)),
        _column("digest", String(64)),
    )
    op.create_table(
        "connections",
        _key("id", String(40)),
        _column("workspace", String(300)),
        _column("name", String(300)),
        _column("url", String(2000)),
        _optional("sealed_password", Text),
        _column("created_at", Double),
        sa.UniqueConstraint("workspace", "name"),
    )
    op.create_table(
        "counts",
        _key("name", String(100)),
        _key("labels", String(300)),
        _column("value", Double),
    )
    op.create_table(
        "datasets",
        _key("id", String(40)),
        _column("workspace", String(300)),
        _column("name", String(300)),
        _column("kind", String(20)),
        _column("format", String(20)),
        _column("rows", BigInteger),
        _column("columns", Integer),
        _optional("tables", JSON),
        _column("schema", JSON),
        _column("given_schema", JSON),
        _column("sha256", String(64)),
        _column("size_bytes", BigInteger),
        _column("object_key", String(300)),
        _column("warnings", JSON),
        _optional("encoding", String(40)),
        _optional("source", JSON),
        _optional("privacy_cap", JSON),
        _column("created_at", Double),
    )
    op.create_table(
        "idempotency_keys",
        _key("workspace", String(300)),
        _key("key", String(300)),
        _column("request_sha256", String(64)),
        _optional("response", JSON),
        _column("created_at", Double),
    )
    op.create_table(
        "keys",
        _key("id", String(40)),
        _column("workspace", String(300)),
        _column("name", String(300)),
        _column("scopes", JSON),
        _column("secret_hash", String(300)),
        _column("created_at", Double),
        _optional("expires_at", Double),
        _optional("revoked_at", Double),
        _optional("last_used_at", Double),
    )
    op.create_table(
        "leftovers",
        _key("prefix", String(300)),
        _column("sweep_at", Double),
        _column("being_swept", Boolean),
    )
    op.create_table(
        "spendings",
        _key("id", String(40)),
        _column("workspace", String(300)),
        _column("sha256", String(64)),
        _column("model_id", String(40)),
        _column("job_id", String(40)),
        _column("epsilon", Double),
        _column("delta", Double),
        _column("nano_rho", BigInteger),
        _column("threshold_delta", Double),
        _column("caps", JSON),
        _optional("begun_at", Double),
        _column("created_at", Double),
    )
    op.create_table(
        "turns",
        _key("workspace", String(300)),
        _key("queue", String(20)),
        _column("taken_at", Double),
    )
    op.create_table(
        "unbounded_models",
        _key("model_id", String(40)),
        _column("workspace", String(300)),
        _column("sha256", String(64)),
        _column("created_at", Double),
    )
    op.create_table(
        "webhooks",
        _key("id", String(40)),
        _column("workspace", String(300)),
        _column("url", String(2000)),
        _column("secret", String(100)),
        _column("events", JSON),
        _column("created_at", Double),
    )
    op.create_table(
        "workers",
        _key("name", String(300)),
        _column("version", String(40)),
        _column("slots", JSON),
        _column("started_at", Double),
        _column("seen_at", Double),
    )
    op.create_table(
        "deliveries",
        sa.Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
        _column("id", String(40)),
        _column("webhook_id", String(40), sa.ForeignKey("webhooks.id", ondelete="CASCADE")),
        _column("type", String(20)),
        _column("subject", String(40)),
        _column("about", JSON),
        _column("attempts", Integer),
        _optional("next_attempt_at", Double),
        _optional("status_code", Integer),
        _optional("error", String(300)),
        _optional("delivered_at", Double),
        _column("created_at", Double),
        sa.UniqueConstraint("id"),
    )
    op.create_table(
        "models",
        _key("id", String(40)),
        _column("workspace", String(300)),
        _column("name", String(300)),
        _column("kind", String(20)),
        _optional("dataset_id", String(40), sa.ForeignKey("datasets.id", ondelete="SET NULL")),
        _column("status", String(20)),
        _optional("job_id", String(40)),
        _column("training", JSON),
        _optional("schema", JSON),
        _optional("record", JSON),
        _optional("artifact_key", String(300)),
        _optional("artifact_sha256", String(64)),
        _optional("artifact_bytes", BigInteger),
        _column("scoring", String(20)),
        _column("created_at", Double),
    )
    op.create_table(
        "sessions",
        _key("token_sha256", String(64)),
        _optional("previous_sha256", String(64)),
        _optional("key_id", String(40), sa.ForeignKey("keys.id")),
        _optional("person", JSON),
        _column("idle_seconds", Integer),
        _column("used_at", Double),
        _column("renewed_at", Double),
        _column("expires_at", Double),
    )
    op.create_table(
        "jobs",
        _key("id", String(40)),
        _column("workspace", String(300)),
        _column("kind", String(20)),
        _column("spec", JSON),
        _optional("model_id", String(40), sa.ForeignKey("models.id", ondelete="SET NULL")),
        _optional("dataset_id", String(40), sa.ForeignKey("datasets.id", ondelete="SET NULL")),
        _optional("result_id", String(40)),
        _optional("parent_id", String(40)),
        _column("n_shards", Integer),
        _column("open_shards", Integer),
        _optional("part", JSON),
        _column("queue", String(20)),
        _column("priority", Integer),
        _optional("estimate", JSON),
        _column("smaller_batch", Boolean),
        _column("status", String(20)),
        _column("attempt", Integer),
        _column("attempts_since_checkpoint", Integer),
        _column("sends", Integer),
        _optional("lease_owner", String(300)),
        _optional("lease_expires_at", Double),
        _column("cancel_requested", Boolean),
        _column("progress", JSON),
        _optional("error", JSON),
        _optional("checkpoint_key", String(300)),
        _optional("checkpoint_sha256", String(64)),
        _column("version", Integer),
        _optional("next_dispatch_at", Double),
        _column("queued_at", Double),
        _optional("request_id", String(128)),
        _optional("traceparent", String(55)),
        _optional("rests_until", Double),
        _column("created_at", Double),
        _optional("started_at", Double),
        _optional("finished_at", Double),
    )
    op.create_table(
        "results",
        _key("id", String(40)),
        _column("workspace", String(300)),
        _column("kind", String(20)),
        _column("model_id", String(40), sa.ForeignKey("models.id", ondelete="CASCADE")),
        _column("job_id", String(40)),
        _column("object_key", String(300)),
        _column("sha256", String(64)),
        _column("size_bytes", BigInteger),
        _column("media_type", String(100)),
        _column("rows", BigInteger),
        _column("summary", JSON),
        _optional("manifest_sha256", String(64)),
        _column("created_at", Double),
    )
    for table, columns in _INDEXES:
        op.create_index(f"ix_{table}_{columns.replace(' ', '_')}", table, columns.split())
