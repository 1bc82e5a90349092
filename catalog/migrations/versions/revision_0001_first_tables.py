"""The first tables: datasets, models, jobs, results, leftovers, idempotency keys."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "datasets",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("workspace", sa.String(300), nullable=False),
        sa.Column("name", sa.String(300), nullable=False),
        sa.Column("format", sa.String(20), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("columns", sa.Integer(), nullable=False),
        sa.Column("schema", sa.JSON(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("object_key", sa.String(300), nullable=False),
        sa.Column("warnings", sa.JSON(), nullable=False),
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
        "leftovers",
        sa.Column("prefix", sa.String(300), nullable=False),
        sa.Column("sweep_at", sa.Double(), nullable=False),
        sa.Column("being_swept", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("prefix", name="pk_leftovers"),
    )
    op.create_index("ix_leftovers_sweep_at", "leftovers", ["sweep_at"])
    op.create_table(
        "models",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("workspace", sa.String(300), nullable=False),
        sa.Column("name", sa.String(300), nullable=False),
        sa.Column("dataset_id", sa.String(40)),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("job_id", sa.String(40)),
        sa.Column("training", sa.JSON(), nullable=False),
        sa.Column("schema", sa.JSON()),
        sa.Column("record", sa.JSON()),
        sa.Column("artifact_key", sa.String(300)),
        sa.Column("artifact_sha256", sa.String(64)),
        sa.Column("artifact_bytes", sa.BigInteger()),
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
        "jobs",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("workspace", sa.String(300), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("model_id", sa.String(40)),
        sa.Column("dataset_id", sa.String(40)),
        sa.Column("result_id", sa.String(40)),
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
    op.create_index("ix_jobs_status_next_dispatch_at", "jobs", ["status", "next_dispatch_at"])
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
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["model_id"], ["models.id"], name="fk_results_model_id_models", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_results"),
    )
    op.create_index("ix_results_model_id", "results", ["model_id"])
    op.create_index("ix_results_workspace_kind_id", "results", ["workspace", "kind", "id"])


def downgrade() -> None:
    for table in ("results", "jobs", "models", "leftovers", "idempotency_keys", "datasets"):
        op.drop_table(table)
