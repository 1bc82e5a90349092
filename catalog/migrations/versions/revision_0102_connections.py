"""Connections, and the tables of connections that datasets were made of."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0102"
down_revision = "0101"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "connections",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("workspace", sa.String(300), nullable=False),
        sa.Column("name", sa.String(300), nullable=False),
        sa.Column("url", sa.String(2000), nullable=False),
        sa.Column("sealed_password", sa.Text()),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_connections"),
        sa.UniqueConstraint("workspace", "name", name="uq_connections_workspace_name"),
    )
    op.create_index("ix_connections_workspace_id", "connections", ["workspace", "id"])
    op.add_column("datasets", sa.Column("source", sa.JSON()))


def downgrade() -> None:
    op.drop_column("datasets", "source")
    op.drop_table("connections")
