"""Servers that the hub's culler ended, in the comments of two columns. Of pods that are in the
database already, this isn't known.
"""

from alembic import op

revision = "0005"
down_revision = "0004"

_PHASES = (
    "seated, asked, created, gated, ungated, unschedulable, nominated, scheduled, accepted,"
    " pulling, pulled, initialized, init-started, init-ended, started, ready, answered,"
    " start-failed, gave-up, opened, unused, culled, terminating, gone"
)
_DETAIL = "the image, container or gate; of `culled` the idle seconds; empty: the whole pod"


def upgrade() -> None:
    """Apply."""
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("phase", "phase", comment=_PHASES)
        op.alter_column("phase", "detail", comment=_DETAIL)
