"""How long before a binding stood the state that the model agrees with."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.add_column("decision", sa.Column("model_back_us", sa.BigInteger(), nullable=True))
