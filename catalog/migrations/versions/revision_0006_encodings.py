"""Encodings: text files of datasets that are not UTF-8."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("datasets", sa.Column("encoding", sa.String(40)))


def downgrade() -> None:
    # An earlier version reads every text as UTF-8, and refuses those of another encoding by line.
    op.drop_column("datasets", "encoding")
