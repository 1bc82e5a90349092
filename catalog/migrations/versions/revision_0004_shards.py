"""Shards: jobs in parts, and results of which a manifest lists the parts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_JOB_COLUMNS = ("parent_id", "n_shards", "open_shards", "part")


def upgrade() -> None:
    op.add_column("jobs", sa.Column("parent_id", sa.String(40)))
    for name in ("n_shards", "open_shards"):
        op.add_column("jobs", sa.Column(name, sa.Integer(), nullable=False, server_default="0"))
    op.add_column("jobs", sa.Column("part", sa.JSON()))
    op.create_index("ix_jobs_parent_id", "jobs", ["parent_id"])
    op.add_column("results", sa.Column("manifest_sha256", sa.String(64)))


def downgrade() -> None:
    # An earlier version knows neither shards nor manifests: it would take a shard for a job of its
    # own and a manifest for the table. Their jobs and results go; the jobs can be asked again.
    op.execute("DELETE FROM results WHERE manifest_sha256 IS NOT NULL")
    op.execute("DELETE FROM jobs WHERE parent_id IS NOT NULL OR n_shards > 0")
    op.drop_column("results", "manifest_sha256")
    op.drop_index("ix_jobs_parent_id", "jobs")
    for column in _JOB_COLUMNS:
        op.drop_column("jobs", column)
