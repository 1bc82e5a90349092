"""Dropped columns: records that kept their levels, limits and warnings keep their names alone."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_DOCUMENT = sa.JSON(none_as_null=True)
_DATASETS = sa.table(
    "datasets",
    sa.column("id", sa.String),
    sa.column("schema", _DOCUMENT),
    sa.column("warnings", sa.JSON),
)
_MODELS = sa.table("models", sa.column("id", sa.String), sa.column("schema", _DOCUMENT))
_KEYS = sa.table(
    "idempotency_keys",
    sa.column("workspace", sa.String),
    sa.column("key", sa.String),
    sa.column("response", _DOCUMENT),
)


def upgrade() -> None:
    connection = op.get_bind()
    for row in connection.execute(sa.select(_DATASETS)).all():
        names = _dropped(row.schema)
        if names:
            values = {
                "schema": _bare(row.schema, names),
                "warnings": [text for text in row.warnings if not _is_of(text, names)],
            }
            connection.execute(_DATASETS.update().where(_DATASETS.c.id == row.id), values)
    for row in connection.execute(sa.select(_MODELS).where(_MODELS.c.schema.is_not(None))).all():
        names = _dropped(row.schema)
        if names:
            values = {"schema": _bare(row.schema, names)}
            connection.execute(_MODELS.update().where(_MODELS.c.id == row.id), values)
    _forget_answers(connection)


def downgrade() -> None:
    """What is gone stays gone."""


def _dropped(schema: dict[str, Any]) -> list[str]:
    return [column["name"] for column in schema["columns"] if column.get("drop")]


def _bare(schema: dict[str, Any], names: list[str]) -> dict[str, Any]:
    columns = [
        {"name": column["name"], "drop": True} if column["name"] in names else column
        for column in schema["columns"]
    ]
    return schema | {"columns": columns}


def _is_of(warning: str, names: list[str]) -> bool:
    return any(warning.startswith(f"column {name!r}: ") for name in names)


def _forget_answers(connection: sa.Connection) -> None:
    """Leaves of an upload's answer what was made; a repeated request is answered by its record."""
    for row in connection.execute(sa.select(_KEYS).where(_KEYS.c.response.is_not(None))).all():
        made = str(row.response.get("body", {}).get("id", ""))
        if made.startswith("ds_"):
            is_it = (_KEYS.c.workspace == row.workspace) & (_KEYS.c.key == row.key)
            connection.execute(_KEYS.update().where(is_it), {"response": {"made": made}})
