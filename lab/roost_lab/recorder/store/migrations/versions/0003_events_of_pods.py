"""A table for the Events of bound pods, and phases for the begin and end of init containers.

Of pods that are in the database already, neither is known.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_PHASES = (
    "asked, created, gated, ungated, unschedulable, nominated, scheduled, accepted, pulling,"
    " pulled, initialized, init-started, init-ended, started, ready, answered, start-failed,"
    " gave-up, terminating, gone"
)
_ABOUT = "An Event of a bound pod: of volumes, its sandbox, a container, an image, a probe"


def upgrade() -> None:
    """Apply."""
    time = "microseconds; times are since 1970, UTC"
    subject = "the volume, container or image; empty: the whole pod"
    op.create_table(
        "pod_event",
        sa.Column("pod_uid", sa.String(64), primary_key=True),
        sa.Column("reason", sa.String(64), primary_key=True),
        sa.Column("subject", sa.String(512), primary_key=True, comment=subject),
        sa.Column("at_us", sa.BigInteger(), nullable=False, comment=time),
        sa.Column("resolution_us", sa.BigInteger(), nullable=False, comment=time),
        sa.Column("last_us", sa.BigInteger(), nullable=False, comment=time),
        sa.Column("tries", sa.Integer(), nullable=False, comment="how often, at least"),
        sa.Column("message", sa.Text(), nullable=False),
        comment=_ABOUT,
    )
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("phase", "phase", comment=_PHASES)
