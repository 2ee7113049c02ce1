"""The first schema. Views and comments follow each migration: store/database.py."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "autoscaler",
        sa.Column("event_uid", sa.String(length=64), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("last_us", sa.BigInteger(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(length=128), nullable=False),
        sa.Column("about", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("event_uid"),
    )
    op.create_index("autoscaler_by_time", "autoscaler", ["at_us"], unique=False)
    op.create_table(
        "candidates",
        sa.Column("decision_id", sa.String(length=160), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("nodes", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("decision_id"),
    )
    op.create_table(
        "checkpoint",
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("resource_version", sa.String(length=64), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("kind"),
    )
    op.create_table(
        "decision",
        sa.Column("id", sa.String(length=160), nullable=False),
        sa.Column("pod_uid", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("node_name", sa.String(length=253), nullable=False),
        sa.Column("node_uid", sa.String(length=64), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("resolution_us", sa.BigInteger(), nullable=False),
        sa.Column("last_us", sa.BigInteger(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("scheduler", sa.String(length=63), nullable=False),
        sa.Column("source", sa.String(length=8), nullable=False),
        sa.Column("nodes_total", sa.Integer(), nullable=True),
        sa.Column("nodes_feasible", sa.Integer(), nullable=True),
        sa.Column("reasons", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("model", sa.String(length=16), nullable=True),
        sa.Column("model_node", sa.String(length=253), nullable=True),
        sa.Column("model_note", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("decision_by_kind", "decision", ["kind", "at_us", "scheduler", "model"], unique=False)
    op.create_index("decision_by_pod", "decision", ["pod_uid"], unique=False)
    op.create_table(
        "gap",
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("from_us", sa.BigInteger(), nullable=False),
        sa.Column("to_us", sa.BigInteger(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "from_us"),
    )
    op.create_table(
        "image_on_node",
        sa.Column("node_uid", sa.String(length=64), nullable=False),
        sa.Column("image", sa.String(length=512), nullable=False),
        sa.Column("first_us", sa.BigInteger(), nullable=False),
        sa.Column("image_bytes", sa.BigInteger(), nullable=False),
        sa.Column("gone_us", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("node_uid", "image", "first_us"),
    )
    op.create_table(
        "node",
        sa.Column("uid", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=253), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("ready_us", sa.BigInteger(), nullable=True),
        sa.Column("images_ready_us", sa.BigInteger(), nullable=True),
        sa.Column("gone_us", sa.BigInteger(), nullable=True),
        sa.Column("allocatable", sa.Text(), nullable=True),
        sa.Column("labels", sa.Text(), nullable=True),
        sa.Column("taints", sa.Text(), nullable=True),
        sa.Column("is_ready", sa.Boolean(), nullable=True),
        sa.Column("is_unschedulable", sa.Boolean(), nullable=True),
        sa.PrimaryKeyConstraint("uid"),
    )
    op.create_index("node_by_name", "node", ["name", "created_us"], unique=False)
    op.create_table(
        "node_change",
        sa.Column("node_uid", sa.String(length=64), nullable=False),
        sa.Column("resource_version", sa.String(length=64), nullable=False),
        sa.Column("field", sa.String(length=320), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("resolution_us", sa.BigInteger(), nullable=False),
        sa.Column("old", sa.Text(), nullable=False),
        sa.Column("new", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("node_uid", "resource_version", "field"),
    )
    op.create_index("node_change_by_time", "node_change", ["at_us"], unique=False)
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
    op.create_table(
        "pod",
        sa.Column("uid", sa.String(length=64), nullable=False),
        sa.Column("namespace", sa.String(length=63), nullable=False),
        sa.Column("name", sa.String(length=253), nullable=False),
        sa.Column("pod_class", sa.String(length=63), nullable=False),
        sa.Column("hub", sa.Text(), nullable=False),
        sa.Column("repo", sa.Text(), nullable=False),
        sa.Column("ref", sa.Text(), nullable=False),
        sa.Column("image", sa.Text(), nullable=False),
        sa.Column("image_digest", sa.Text(), nullable=True),
        sa.Column("scheduler", sa.String(length=63), nullable=False),
        sa.Column("priority", sa.BigInteger(), nullable=False),
        sa.Column("cpu_millicores", sa.BigInteger(), nullable=False),
        sa.Column("memory_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("deleted_us", sa.BigInteger(), nullable=True),
        sa.Column("end_reason", sa.String(length=32), nullable=True),
        sa.Column("source", sa.String(length=8), server_default="watch", nullable=False),
        sa.Column("warm_target", sa.String(length=253), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("uid"),
    )
    op.create_index("pod_by_end", "pod", ["deleted_us"], unique=False)
    op.create_index("pod_by_name", "pod", ["name", "namespace", "created_us"], unique=False)
    op.create_index("pod_by_time", "pod", ["created_us"], unique=False)
    op.create_index(
        "pod_imported",
        "pod",
        ["created_us", "uid", "source"],
        unique=False,
        sqlite_where=sa.text("source <> 'watch'"),
        postgresql_where=sa.text("source <> 'watch'"),
    )
    op.create_table(
        "preemption",
        sa.Column("victim_uid", sa.String(length=64), nullable=False),
        sa.Column("by_uid", sa.String(length=64), nullable=True),
        sa.Column("node_name", sa.String(length=253), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.PrimaryKeyConstraint("victim_uid"),
    )
    op.create_index("preemption_by_time", "preemption", ["at_us"], unique=False)
    op.create_table(
        "pull",
        sa.Column("pod_uid", sa.String(length=64), nullable=False),
        sa.Column("image", sa.String(length=512), nullable=False),
        sa.Column("node_name", sa.String(length=253), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("warm", sa.Boolean(), nullable=False),
        sa.Column("pull_us", sa.BigInteger(), nullable=True),
        sa.Column("pull_and_wait_us", sa.BigInteger(), nullable=True),
        sa.Column("image_bytes", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("pod_uid", "image"),
    )
    op.create_index(
        "pull_by_time",
        "pull",
        ["at_us", "warm", "node_name", "image", "pull_us", "pull_and_wait_us", "image_bytes"],
        unique=False,
    )
    op.create_table(
        "run",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("version", sa.String(length=64), nullable=False),
        sa.Column("settings_hash", sa.String(length=64), nullable=False),
        sa.Column("started_us", sa.BigInteger(), nullable=False),
        sa.Column("stopped_us", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "start",
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("pod_uid", sa.String(length=64), nullable=False),
        sa.Column("kind_id", sa.Integer(), nullable=False),
        sa.Column("place_id", sa.Integer(), nullable=True),
        sa.Column("node_created_us", sa.BigInteger(), nullable=True),
        sa.Column("bound_us", sa.BigInteger(), nullable=True),
        sa.Column("started_us", sa.BigInteger(), nullable=True),
        sa.Column("ready_us", sa.BigInteger(), nullable=True),
        sa.Column("deleted_us", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("created_us", "pod_uid"),
        sqlite_with_rowid=False,
    )
    op.create_index("start_by_end", "start", ["deleted_us", "created_us"], unique=False)
    op.create_table(
        "start_kind",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("pod_class", sa.String(length=63), nullable=False),
        sa.Column("scheduler", sa.String(length=63), nullable=False),
        sa.Column("image", sa.String(length=512), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("pod_class", "scheduler", "image"),
    )
    op.create_table(
        "start_place",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("pod_class", sa.String(length=63), nullable=False),
        sa.Column("node_name", sa.String(length=253), nullable=False),
        sa.Column("node_uid", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("pod_class", "node_name", "node_uid"),
    )
    op.create_table(
        "waiting",
        sa.Column("pod_uid", sa.String(length=64), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("nodes", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("pod_uid"),
    )
