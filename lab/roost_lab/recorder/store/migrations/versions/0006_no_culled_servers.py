"""Which servers the hub's culler ended is no longer recorded."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_PHASES = (
    "seated, asked, created, gated, ungated, unschedulable, nominated, scheduled, accepted,"
    " pulling, pulled, initialized, init-started, init-ended, started, ready, answered,"
    " start-failed, gave-up, opened, unused, terminating, gone"
)
_DETAIL = "the image, container or gate; empty: the whole pod"


def upgrade() -> None:
    """Apply."""
    op.execute(sa.text("DELETE FROM phase WHERE phase = 'culled'"))
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("phase", "phase", comment=_PHASES)
        op.alter_column("phase", "detail", comment=_DETAIL)
