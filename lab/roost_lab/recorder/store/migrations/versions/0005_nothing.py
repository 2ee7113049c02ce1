"""Nothing: databases of this revision may hold servers that the hub's culler ended, which the next
revision takes out.
"""

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Apply."""
