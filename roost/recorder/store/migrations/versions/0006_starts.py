"""Starts, a short row each, and indexes that answer what a report asks without a look at the rows."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_PULLS = ["at_us", "warm", "node_name", "image", "pull_us", "pull_and_wait_us", "image_bytes"]
_FILL = (
    """
    INSERT INTO start_kind (pod_class, scheduler, image)
    SELECT DISTINCT pod_class, scheduler, substr(image, 1, 512) FROM pod ORDER BY 1, 2, 3
    """,
    """
    INSERT INTO start_place (pod_class, node_name, node_uid)
    SELECT DISTINCT pod.pod_class, bind.node_name, bind.node_uid
    FROM decision AS bind JOIN pod ON pod.uid = bind.pod_uid
    WHERE bind.kind = 'bind' ORDER BY 1, 2, 3
    """,
    """
    INSERT INTO start
        (created_us, pod_uid, kind_id, place_id, node_created_us, bound_us, started_us, ready_us, deleted_us)
    SELECT pod.created_us, pod.uid, kind.id, place.id, nullif(node.created_us, 0), bind.at_us,
        (SELECT max(at_us) FROM phase WHERE phase.pod_uid = pod.uid AND phase.phase = 'started'),
        ready.at_us, pod.deleted_us
    FROM pod
    JOIN start_kind AS kind ON kind.pod_class = pod.pod_class AND kind.scheduler = pod.scheduler
        AND kind.image = substr(pod.image, 1, 512)
    LEFT JOIN decision AS bind ON bind.id = pod.uid || '/bind'
    LEFT JOIN start_place AS place ON place.pod_class = pod.pod_class
        AND place.node_name = bind.node_name AND place.node_uid = bind.node_uid
    LEFT JOIN node ON node.uid = bind.node_uid
    LEFT JOIN phase AS ready ON ready.pod_uid = pod.uid AND ready.phase = 'ready' AND ready.detail = ''
    ORDER BY 1, 2
    """,
)


def upgrade() -> None:
    """Apply."""
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
    for statement in _FILL:
        op.execute(statement)
    op.create_index("start_by_end", "start", ["deleted_us", "created_us"], unique=False)
    op.drop_index("decision_by_time", "decision")
    op.create_index("decision_by_kind", "decision", ["kind", "at_us", "scheduler", "model"], unique=False)
    op.drop_index("pull_by_time", "pull")
    op.create_index("pull_by_time", "pull", _PULLS, unique=False)
