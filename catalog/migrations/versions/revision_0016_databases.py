"""Datasets that are databases, and the models of these."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("datasets", "models"):
        kind = sa.Column("kind", sa.String(20), nullable=False, server_default="table")
        op.add_column(table, kind)
    op.add_column("datasets", sa.Column("tables", sa.JSON(), nullable=True))


def downgrade() -> None:
    # An earlier version takes databases for tables: delete them before.
    op.drop_column("datasets", "tables")
    for table in ("datasets", "models"):
        op.drop_column(table, "kind")
