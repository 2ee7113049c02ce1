"""What hubs say of starts: the new columns of `start`. 0001 gave them to a new database."""

import sqlalchemy as sa
from alembic import op

from roost_lab.recorder.store import schema

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    present = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("start")}
    for column in schema.start.columns:
        if column.name not in present:
            op.add_column("start", sa.Column(column.name, column.type, comment=column.comment))
