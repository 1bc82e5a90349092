"""Models of a table that promise no privacy, those that there are among them."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_TRAINED = """
SELECT models.id, models.workspace, datasets.sha256, models.training, models.created_at
FROM models JOIN datasets ON datasets.id = models.dataset_id WHERE models.status = 'ready'
"""


def upgrade() -> None:
    table = op.create_table(
        "unbounded_models",
        sa.Column("model_id", sa.String(40), nullable=False),
        sa.Column("workspace", sa.String(300), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("model_id", name="pk_unbounded_models"),
    )
    op.create_index(
        "ix_unbounded_models_workspace_sha256", "unbounded_models", ["workspace", "sha256"]
    )
    for model_id, workspace, sha256, training, created_at in op.get_bind().execute(
        sa.text(_TRAINED)
    ):
        # Text of SQLite; PostgreSQL has read it.
        settings = json.loads(training) if isinstance(training, str) else training
        if not settings.get("differential_privacy"):
            row = {"model_id": model_id, "workspace": workspace, "sha256": sha256}
            op.execute(table.insert().values(row | {"created_at": created_at}))


def downgrade() -> None:
    op.drop_table("unbounded_models")
