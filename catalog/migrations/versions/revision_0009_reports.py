"""Reports: a kind of job that earlier versions do not know."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The word of a kind is text: there is nothing to change."""


def downgrade() -> None:
    # An earlier version can not read a record of a kind that it does not know, and would stop at
    # the first list of jobs. Reports can be asked for again.
    op.execute("DELETE FROM results WHERE kind = 'report'")
    op.execute("DELETE FROM jobs WHERE kind = 'report'")
