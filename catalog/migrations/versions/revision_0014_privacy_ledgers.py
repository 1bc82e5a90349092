"""Ledgers: what the private models of a table have spent together."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("datasets", sa.Column("privacy_cap", sa.JSON(), nullable=True))
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
        sa.Column("begun_at", sa.Double(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_spendings"),
    )
    op.create_index("ix_spendings_workspace_sha256", "spendings", ["workspace", "sha256"])
    op.create_index("ix_spendings_job_id", "spendings", ["job_id"])


def downgrade() -> None:
    # An earlier version counts no budget: whoever goes back keeps count of it.
    op.drop_table("spendings")
    op.drop_column("datasets", "privacy_cap")
