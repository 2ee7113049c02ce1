"""Starts that seating asked for: whether anybody opened the server, and when it was stopped unused.
Of pods that are in the database already, this isn't known.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_PHASES = (
    "seated, asked, created, gated, ungated, unschedulable, nominated, scheduled, accepted,"
    " pulling, pulled, initialized, init-started, init-ended, started, ready, answered,"
    " start-failed, gave-up, opened, unused, terminating, gone"
)


def upgrade() -> None:
    """Apply."""
    time = "microseconds; times are since 1970, UTC"
    for name in ("seated_us", "opened_us", "unused_us"):
        column = sa.Column(name, sa.BigInteger(), nullable=True, comment=time)
        op.add_column("start", column)
    is_seated = sa.text("seated_us IS NOT NULL")
    op.create_index(
        "start_seated", "start", ["created_us"], sqlite_where=is_seated, postgresql_where=is_seated
    )
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("phase", "phase", comment=_PHASES)
