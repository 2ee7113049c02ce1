"""Nodes as they stand, how exact the moment of a change is; and away with what nobody wrote, or only one word in."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    with op.batch_alter_table("node") as node:
        node.add_column(sa.Column("taints", sa.Text(), nullable=True))
        node.add_column(sa.Column("is_ready", sa.Boolean(), nullable=True))
        node.add_column(sa.Column("is_unschedulable", sa.Boolean(), nullable=True))
        node.alter_column("allocatable", existing_type=sa.Text(), nullable=True)
        node.alter_column("labels", existing_type=sa.Text(), nullable=True)
    # How exact earlier rows are, nobody wrote down: as the watch told them.
    with op.batch_alter_table("node_change") as node_change:
        node_change.add_column(sa.Column("resolution_us", sa.BigInteger(), nullable=False, server_default="1"))
    with op.batch_alter_table("node_change") as node_change:
        node_change.alter_column("resolution_us", existing_type=sa.BigInteger(), server_default=None)
    with op.batch_alter_table("image_on_node") as image_on_node:
        image_on_node.drop_column("source")
    op.drop_table("launch")
