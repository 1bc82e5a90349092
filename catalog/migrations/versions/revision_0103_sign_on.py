"""Sessions of persons, and sessions that end when they are not used. Open sessions are closed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0103"
down_revision = "0102"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_table("sessions")
    op.create_table(
        "sessions",
        sa.Column("token_sha256", sa.String(64), nullable=False),
        sa.Column("previous_sha256", sa.String(64)),
        sa.Column("key_id", sa.String(40)),
        sa.Column("person", sa.JSON()),
        sa.Column("idle_seconds", sa.Integer(), nullable=False),
        sa.Column("used_at", sa.Double(), nullable=False),
        sa.Column("renewed_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["key_id"], ["keys.id"], name="fk_sessions_key_id_keys"),
        sa.PrimaryKeyConstraint("token_sha256", name="pk_sessions"),
    )
    op.create_index("ix_sessions_previous_sha256", "sessions", ["previous_sha256"])


def downgrade() -> None:
    op.drop_table("sessions")
    op.create_table(
        "sessions",
        sa.Column("token_sha256", sa.String(64), nullable=False),
        sa.Column("key_id", sa.String(40), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["key_id"], ["keys.id"], name="fk_sessions_key_id_keys"),
        sa.PrimaryKeyConstraint("token_sha256", name="pk_sessions"),
    )
