"""Pods by their end: retention asks for them each hour, a start for those that have none."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.create_index("pod_by_end", "pod", ["deleted_us"], unique=False)
