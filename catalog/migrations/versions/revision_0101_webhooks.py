"""Webhooks and the outbox of their deliveries."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0101"
down_revision = "0100"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "webhooks",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("workspace", sa.String(300), nullable=False),
        sa.Column("url", sa.String(2000), nullable=False),
        sa.Column("secret", sa.String(100), nullable=False),
        sa.Column("events", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_webhooks"),
    )
    op.create_index("ix_webhooks_workspace_id", "webhooks", ["workspace", "id"])
    op.create_table(
        "deliveries",
        sa.Column(
            "number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True
        ),
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("webhook_id", sa.String(40), nullable=False),
        sa.Column("type", sa.String(20), nullable=False),
        sa.Column("subject", sa.String(40), nullable=False),
        sa.Column("about", sa.JSON(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at", sa.Double()),
        sa.Column("status_code", sa.Integer()),
        sa.Column("error", sa.String(300)),
        sa.Column("delivered_at", sa.Double()),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["webhook_id"],
            ["webhooks.id"],
            name="fk_deliveries_webhook_id_webhooks",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("number", name="pk_deliveries"),
        sa.UniqueConstraint("id", name="uq_deliveries_id"),
    )
    op.create_index(
        "ix_deliveries_webhook_id_subject_number", "deliveries", ["webhook_id", "subject", "number"]
    )
    op.create_index("ix_deliveries_next_attempt_at", "deliveries", ["next_attempt_at"])


def downgrade() -> None:
    op.drop_table("deliveries")
    op.drop_table("webhooks")
