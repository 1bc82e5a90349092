"""Creates the tables of schedules and their runs."""

from __future__ import annotations

from functools import partial

import sqlalchemy as sa
from alembic import op
from sqlalchemy import JSON, Boolean, Double, Integer, String

revision = "0104"
down_revision = "0103"
branch_labels = None
depends_on = None

_column = partial(sa.Column, nullable=False)
_optional = partial(sa.Column, nullable=True)


def upgrade() -> None:
    op.create_table(
        "schedules",
        sa.Column("id", String(40), primary_key=True),
        _column("workspace", String(300)),
        _column("name", String(300)),
        _column("cron", String(300)),
        _column("time_zone", String(100)),
        _column("work", JSON),
        _optional("columns", JSON),
        _column("paused", Boolean),
        _optional("next_at", Double),
        _column("created_at", Double),
        sa.UniqueConstraint("workspace", "name"),
    )
    op.create_table(
        "runs",
        sa.Column("id", String(40), primary_key=True),
        _column("schedule_id", String(40), sa.ForeignKey("schedules.id", ondelete="CASCADE")),
        _column("due_at", Double),
        _column("status", String(20)),
        _column("missed", Integer),
        _column("attempt", Integer),
        _optional("dataset_id", String(40)),
        _optional("training_job_id", String(40)),
        _optional("sample_job_id", String(40)),
        _column("export_begun", Boolean),
        _optional("error", JSON),
        _optional("next_step_at", Double),
        _column("created_at", Double),
        _optional("finished_at", Double),
        sa.UniqueConstraint("schedule_id", "due_at"),
    )
    op.create_index("ix_schedules_workspace_id", "schedules", ["workspace", "id"])
    op.create_index("ix_schedules_next_at", "schedules", ["next_at"])
    op.create_index("ix_runs_schedule_id_id", "runs", ["schedule_id", "id"])
    op.create_index("ix_runs_next_step_at", "runs", ["next_step_at"])
