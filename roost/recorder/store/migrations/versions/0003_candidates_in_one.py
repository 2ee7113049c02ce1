"""Candidates of a decision in one row, and phases without a second tree in SQLite. No release had the table before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.drop_table("candidate")
    op.create_table(
        "candidates",
        sa.Column("decision_id", sa.String(length=160), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("nodes", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("decision_id"),
    )
    if op.get_context().dialect.name != "sqlite":
        return
    op.rename_table("phase", "old_phase")
    op.create_table(
        "phase",
        sa.Column("pod_uid", sa.String(length=64), nullable=False),
        sa.Column("phase", sa.String(length=16), nullable=False),
        sa.Column("detail", sa.String(length=512), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("resolution_us", sa.BigInteger(), nullable=False),
        sa.Column("source", sa.String(length=8), nullable=False),
        sa.PrimaryKeyConstraint("pod_uid", "phase", "detail"),
        sqlite_with_rowid=False,
    )
    op.execute("INSERT INTO phase SELECT * FROM old_phase ORDER BY pod_uid, phase, detail")
    op.drop_table("old_phase")
