"""Where a job comes from, since when it waits, and counts of what happened to jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("jobs") as jobs:
        jobs.add_column(sa.Column("queued_at", sa.Double()))
        jobs.add_column(sa.Column("request_id", sa.String(128)))
        jobs.add_column(sa.Column("traceparent", sa.String(55)))
    op.execute("UPDATE jobs SET queued_at = created_at")
    with op.batch_alter_table("jobs") as jobs:
        jobs.alter_column("queued_at", existing_type=sa.Double(), nullable=False)
    op.create_table(
        "counts",
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("labels", sa.String(300), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", "labels", name="pk_counts"),
    )


def downgrade() -> None:
    op.drop_table("counts")
    with op.batch_alter_table("jobs") as jobs:
        jobs.drop_column("traceparent")
        jobs.drop_column("request_id")
        jobs.drop_column("queued_at")
