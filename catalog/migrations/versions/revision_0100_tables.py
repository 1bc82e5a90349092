"""The tables of version 0.1, all in one: no release came before it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0100"
down_revision = None
branch_labels = None
depends_on = None

_TABLES = (
    "audit",
    "counts",
    "datasets",
    "idempotency_keys",
    "keys",
    "leftovers",
    "spendings",
    "turns",
    "unbounded_models",
    "workers",
    "models",
    "sessions",
    "jobs",
    "results",
)
"""Each after those to which it refers."""


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("at", sa.String(40), nullable=False),
        sa.Column("workspace", sa.String(300), nullable=False),
        sa.Column("actor", sa.String(40), nullable=False),
        sa.Column("action", sa.String(300), nullable=False),
        sa.Column("subject", sa.String(2000), nullable=False),
        sa.Column("made", sa.String(300)),
        sa.Column("address", sa.String(100)),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("request_id", sa.String(128)),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_audit"),
    )
    op.create_index("ix_audit_workspace_id", "audit", ["workspace", "id"])
    op.create_table(
        "counts",
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("labels", sa.String(300), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", "labels", name="pk_counts"),
    )
    op.create_table(
        "datasets",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("workspace", sa.String(300), nullable=False),
        sa.Column("name", sa.String(300), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("format", sa.String(20), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("columns", sa.Integer(), nullable=False),
        sa.Column("tables", sa.JSON()),
        sa.Column("schema", sa.JSON(), nullable=False),
        sa.Column("given_schema", sa.JSON(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("object_key", sa.String(300), nullable=False),
        sa.Column("warnings", sa.JSON(), nullable=False),
        sa.Column("encoding", sa.String(40)),
        sa.Column("privacy_cap", sa.JSON()),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_datasets"),
    )
    op.create_index("ix_datasets_workspace_id", "datasets", ["workspace", "id"])
    op.create_table(
        "idempotency_keys",
        sa.Column("workspace", sa.String(300), nullable=False),
        sa.Column("key", sa.String(300), nullable=False),
        sa.Column("request_sha256", sa.String(64), nullable=False),
        sa.Column("response", sa.JSON()),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("workspace", "key", name="pk_idempotency_keys"),
    )
    op.create_index("ix_idempotency_keys_created_at", "idempotency_keys", ["created_at"])
    op.create_table(
        "keys",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("workspace", sa.String(300), nullable=False),
        sa.Column("name", sa.String(300), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("secret_hash", sa.String(300), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double()),
        sa.Column("revoked_at", sa.Double()),
        sa.Column("last_used_at", sa.Double()),
        sa.PrimaryKeyConstraint("id", name="pk_keys"),
    )
    op.create_table(
        "leftovers",
        sa.Column("prefix", sa.String(300), nullable=False),
        sa.Column("sweep_at", sa.Double(), nullable=False),
        sa.Column("being_swept", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("prefix", name="pk_leftovers"),
    )
    op.create_index("ix_leftovers_sweep_at", "leftovers", ["sweep_at"])
    op.create_table(
        "spendings",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("workspace", sa.String(300), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("model_id", sa.String(40), nullable=False),
        sa.Column("job_id", sa.String(40), nullable=False),
        sa.Column("epsilon", sa.Double(), nullable=False),
        sa.Column("delta", sa.Double(), nullable=False),
        sa.Column("nano_rho", sa.BigInteger(), nullable=False),
        sa.Column("threshold_delta", sa.Double(), nullable=False),
        sa.Column("caps", sa.JSON(), nullable=False),
        sa.Column("begun_at", sa.Double()),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_spendings"),
    )
    op.create_index("ix_spendings_job_id", "spendings", ["job_id"])
    op.create_index("ix_spendings_workspace_sha256", "spendings", ["workspace", "sha256"])
    op.create_table(
        "turns",
        sa.Column("workspace", sa.String(300), nullable=False),
        sa.Column("queue", sa.String(20), nullable=False),
        sa.Column("taken_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("workspace", "queue", name="pk_turns"),
    )
    op.create_table(
        "unbounded_models",
        sa.Column("model_id", sa.String(40), nullable=False),
        sa.Column("workspace", sa.String(300), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("model_id", name="pk_unbounded_models"),
    )
    op.create_index(
        "ix_unbounded_models_workspace_sha256", "unbounded_models", ["workspace", "sha256"]
    )
    op.create_table(
        "workers",
        sa.Column("name", sa.String(300), nullable=False),
        sa.Column("version", sa.String(40), nullable=False),
        sa.Column("slots", sa.JSON(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("seen_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_workers"),
    )
    op.create_table(
        "models",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("workspace", sa.String(300), nullable=False),
        sa.Column("name", sa.String(300), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("dataset_id", sa.String(40)),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("job_id", sa.String(40)),
        sa.Column("training", sa.JSON(), nullable=False),
        sa.Column("schema", sa.JSON()),
        sa.Column("record", sa.JSON()),
        sa.Column("artifact_key", sa.String(300)),
        sa.Column("artifact_sha256", sa.String(64)),
        sa.Column("artifact_bytes", sa.BigInteger()),
        sa.Column("scoring", sa.String(20), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["datasets.id"],
            name="fk_models_dataset_id_datasets",
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_models"),
    )
    op.create_index("ix_models_dataset_id", "models", ["dataset_id"])
    op.create_index("ix_models_workspace_id", "models", ["workspace", "id"])
    op.create_table(
        "sessions",
        sa.Column("token_sha256", sa.String(64), nullable=False),
        sa.Column("key_id", sa.String(40), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["key_id"], ["keys.id"], name="fk_sessions_key_id_keys"),
        sa.PrimaryKeyConstraint("token_sha256", name="pk_sessions"),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("workspace", sa.String(300), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("model_id", sa.String(40)),
        sa.Column("dataset_id", sa.String(40)),
        sa.Column("result_id", sa.String(40)),
        sa.Column("parent_id", sa.String(40)),
        sa.Column("n_shards", sa.Integer(), nullable=False),
        sa.Column("open_shards", sa.Integer(), nullable=False),
        sa.Column("part", sa.JSON()),
        sa.Column("queue", sa.String(20), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("estimate", sa.JSON()),
        sa.Column("smaller_batch", sa.Boolean(), nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("attempts_since_checkpoint", sa.Integer(), nullable=False),
        sa.Column("sends", sa.Integer(), nullable=False),
        sa.Column("lease_owner", sa.String(300)),
        sa.Column("lease_expires_at", sa.Double()),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("progress", sa.JSON(), nullable=False),
        sa.Column("error", sa.JSON()),
        sa.Column("checkpoint_key", sa.String(300)),
        sa.Column("checkpoint_sha256", sa.String(64)),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("next_dispatch_at", sa.Double()),
        sa.Column("queued_at", sa.Double(), nullable=False),
        sa.Column("request_id", sa.String(128)),
        sa.Column("traceparent", sa.String(55)),
        sa.Column("rests_until", sa.Double()),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double()),
        sa.Column("finished_at", sa.Double()),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name="fk_jobs_dataset_id_datasets", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["model_id"], ["models.id"], name="fk_jobs_model_id_models", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
    )
    op.create_index("ix_jobs_dataset_id", "jobs", ["dataset_id"])
    op.create_index("ix_jobs_model_id", "jobs", ["model_id"])
    op.create_index("ix_jobs_parent_id", "jobs", ["parent_id"])
    op.create_index("ix_jobs_status_next_dispatch_at", "jobs", ["status", "next_dispatch_at"])
    op.create_index("ix_jobs_status_queue_workspace", "jobs", ["status", "queue", "workspace"])
    op.create_index("ix_jobs_workspace_id", "jobs", ["workspace", "id"])
    op.create_table(
        "results",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("workspace", sa.String(300), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("model_id", sa.String(40), nullable=False),
        sa.Column("job_id", sa.String(40), nullable=False),
        sa.Column("object_key", sa.String(300), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("media_type", sa.String(100), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("summary", sa.JSON(), nullable=False),
        sa.Column("manifest_sha256", sa.String(64)),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["model_id"], ["models.id"], name="fk_results_model_id_models", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_results"),
    )
    op.create_index("ix_results_model_id", "results", ["model_id"])
    op.create_index("ix_results_workspace_kind_id", "results", ["workspace", "kind", "id"])


def downgrade() -> None:
    for table in reversed(_TABLES):
        op.drop_table(table)
