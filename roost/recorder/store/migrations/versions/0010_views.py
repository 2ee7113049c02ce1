"""Views for analysts, and comments on tables and columns."""

from __future__ import annotations

from alembic import op

from roost.recorder.store import schema
from roost.recorder.store.comments import write_comments
from roost.recorder.store.views import make_views

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    make_views(op.get_bind())
    write_comments(op.get_bind(), schema.metadata)
