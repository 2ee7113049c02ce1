"""The first schema. Empty: a new database begins with the schema of its day, see `migrate` of store/database.py.

A change of schema.py needs a revision after this one, for the databases that are there.
"""

from __future__ import annotations

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
