"""Pods are looked up by name, with or without their namespace."""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.drop_index("pod_by_name", "pod")
    op.create_index("pod_by_name", "pod", ["name", "namespace", "created_us"], unique=False)
