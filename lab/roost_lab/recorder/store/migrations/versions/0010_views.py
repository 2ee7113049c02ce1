"""Views for analysts, and comments on tables and columns: made by the newest revision that changes them, 0012."""

from __future__ import annotations

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
