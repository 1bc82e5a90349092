"""Given schemas: what a user said of a dataset's columns, beside the schema that it became."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Not by a batch: SQLite would make the table anew, and models would lose their dataset with it.
    column = sa.Column("given_schema", sa.JSON(), nullable=False, server_default="{}")
    op.add_column("datasets", column)
    # What was said was not kept: a change of one column must not lose what the others became.
    op.execute("UPDATE datasets SET given_schema = schema")


def downgrade() -> None:
    op.drop_column("datasets", "given_schema")
