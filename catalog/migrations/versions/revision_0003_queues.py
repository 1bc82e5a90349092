"""Queues: by need, with priority, turns of the workspaces, estimates, smaller batches."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_COLUMNS = ("queue", "priority", "estimate", "smaller_batch", "rests_until")


def upgrade() -> None:
    # Rows there are get the defaults; the program writes every value itself.
    op.add_column(
        "jobs", sa.Column("queue", sa.String(20), nullable=False, server_default="compute")
    )
    op.add_column("jobs", sa.Column("priority", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("jobs", sa.Column("estimate", sa.JSON()))
    op.add_column(
        "jobs", sa.Column("smaller_batch", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.add_column("jobs", sa.Column("rests_until", sa.Double()))
    op.execute("UPDATE jobs SET queue = 'train' WHERE kind = 'train'")
    op.create_index("ix_jobs_status_queue_workspace", "jobs", ["status", "queue", "workspace"])
    op.create_table(
        "turns",
        sa.Column("workspace", sa.String(300), nullable=False),
        sa.Column("queue", sa.String(20), nullable=False),
        sa.Column("taken_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("workspace", "queue", name="pk_turns"),
    )


def downgrade() -> None:
    op.drop_table("turns")
    op.drop_index("ix_jobs_status_queue_workspace", "jobs")
    for column in _COLUMNS:
        op.drop_column("jobs", column)
