"""Runs the migrations on the connection from `catalog.database.migrate`."""

from __future__ import annotations

from alembic import context

from catalog.database.tables import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,
)
context.run_migrations()
