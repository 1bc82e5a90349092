"""Scoring: what a model says of rows."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    column = sa.Column("scoring", sa.String(20), nullable=False, server_default="full")
    op.add_column("models", column)


def downgrade() -> None:
    # An earlier version gives every score that it is asked for.
    op.drop_column("models", "scoring")
