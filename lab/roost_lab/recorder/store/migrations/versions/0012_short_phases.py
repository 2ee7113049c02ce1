"""Phases in half the space: numbers in place of uids and words. And all views and comments, made anew."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from roost_lab.recorder.store import schema
from roost_lab.recorder.store.comments import write_comments
from roost_lab.recorder.store.phase_codes import PHASE_CODES, SOURCE_CODES, codes_of
from roost_lab.recorder.store.views import make_views

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_POSTGRESQL = "postgresql"
# In order of time, as pods will come: neighbours in time are neighbours on disk.
_NUMBER = """
INSERT INTO pod_number (uid) SELECT pod_uid FROM old_phase GROUP BY pod_uid ORDER BY min(at_us), pod_uid
"""
_COPY = f"""
INSERT INTO phase (at_us, resolution_us, pod_number, phase, source, detail)
SELECT at_us, resolution_us, pod_number.number, {codes_of("phase", PHASE_CODES)}, {codes_of("source", SOURCE_CODES)},
    detail
FROM old_phase JOIN pod_number ON pod_number.uid = old_phase.pod_uid ORDER BY 3, 4, 6
"""  # noqa: S608 - our own names
# Accounts that only read may still do so.
_READERS = """
SELECT DISTINCT grantee FROM information_schema.role_table_grants
WHERE table_schema = current_schema() AND table_name = 'phase' AND privilege_type = 'SELECT'
    AND grantee <> current_user
"""
# Views and foreign keys of others that need the table: `n` is a dependency that isn't the table's own.
_USES = "SELECT count(*) FROM pg_depend WHERE refobjid = 'old_phase'::regclass AND deptype = 'n'"


def upgrade() -> None:
    """Apply. The database moves the rows itself, so memory is bounded however many there are."""
    connection = op.get_bind()
    is_postgresql = connection.dialect.name == _POSTGRESQL
    readers = connection.execute(sa.text(_READERS)).scalars().all() if is_postgresql else []
    op.rename_table("phase", "old_phase")
    if is_postgresql:
        op.execute("ALTER INDEX phase_pkey RENAME TO old_phase_pkey")
    op.create_table(
        "pod_number",
        sa.Column("number", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("uid", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("uid"),
    )
    op.create_table(
        "phase",
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("resolution_us", sa.BigInteger(), nullable=False),
        sa.Column("pod_number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("phase", sa.SmallInteger(), nullable=False),
        sa.Column("source", sa.SmallInteger(), nullable=False),
        sa.Column("detail", sa.String(length=512), nullable=False),
        sa.PrimaryKeyConstraint("pod_number", "phase", "detail"),
        sqlite_with_rowid=False,
    )
    op.execute(_NUMBER)
    op.execute(_COPY)
    quoted = connection.dialect.identifier_preparer.quote
    for reader in readers:
        # PUBLIC is a keyword, not a role's name.
        name = reader if reader == "PUBLIC" else quoted(reader)
        op.execute(f"GRANT SELECT ON phase, pod_number TO {name}")
    make_views(connection)
    # A view of somebody's own keeps the table, under its new name: a recorder that doesn't start would be worse.
    if not (is_postgresql and connection.execute(sa.text(_USES)).scalar()):
        op.drop_table("old_phase")
    write_comments(connection, schema.metadata)
