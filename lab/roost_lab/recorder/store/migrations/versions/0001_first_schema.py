"""The tables of a new database, as records.py and schema.py have them today.

A change of them needs a revision after this one, for the databases that are there: see `migrate` of
store/database.py.
"""

from alembic import op

from roost_lab.recorder.store.schema import metadata

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    metadata.create_all(op.get_bind(), checkfirst=False)
