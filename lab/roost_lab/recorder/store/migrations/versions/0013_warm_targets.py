"""A pod's row names the node that the webhook chose first in its warm set."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from roost_lab.recorder.store import schema
from roost_lab.recorder.store.comments import write_comments

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.add_column("pod", sa.Column("warm_target", sa.String(length=253), server_default="", nullable=False))
    write_comments(op.get_bind(), schema.metadata)
