"""What each pod's row was made from: watched by the recorder, or imported."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_IMPORTED = sa.text("source <> 'watch'")


def upgrade() -> None:
    """Apply."""
    op.add_column("pod", sa.Column("source", sa.String(length=8), server_default="watch", nullable=False))
    # Their uids are made from names, and begin like this.
    op.execute("UPDATE pod SET source = 'sniffer' WHERE uid LIKE 'sniffer:%'")
    op.create_index(
        "pod_imported",
        "pod",
        ["created_us", "uid", "source"],
        unique=False,
        sqlite_where=_IMPORTED,
        postgresql_where=_IMPORTED,
    )
