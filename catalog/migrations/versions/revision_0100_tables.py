"""The tables of version 0.1, which `catalog.database.tables` describes.

No release came before it. The first release that changes them writes them out here, because a
published revision must not change.
"""

from __future__ import annotations

from alembic import op

from catalog.database.tables import Base

revision = "0100"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    Base.metadata.create_all(op.get_bind(), checkfirst=False)


def downgrade() -> None:
    Base.metadata.drop_all(op.get_bind(), checkfirst=False)
