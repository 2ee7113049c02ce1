"""Nodes' capacities; unknown (NULL) in the rows that are there, until the recorder lists the
nodes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Apply."""
    comment = "as allocatable; NULL: not recorded"
    op.add_column("node", sa.Column("capacity", sa.Text(), nullable=True, comment=comment))
