"""The tables by name, for queries: a record's own, and what is kept beside the records."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

from roost_lab.recorder.store import records
from roost_lab.recorder.store.records import (
    IMAGE,
    LABEL,
    LARGE,
    NAME,
    NUMBER,
    TEXT,
    UID,
    Merge,
    table_column,
)

# What SQLAlchemy calls the two databases.
SQLITE: Final = "sqlite"
POSTGRESQL: Final = "postgresql"
IMPORTED: Final = records.IMPORTED
metadata: Final = records.metadata
pod = records.PodRecord.table
node = records.NodeRecord.table
node_change = records.NodeChangeRecord.table
phase = records.PhaseRecord.table
decision = records.DecisionRecord.table
candidates = records.CandidatesRecord.table
waiting = records.WaitingRecord.table
pull = records.PullRecord.table
pod_event = records.PodEventRecord.table
image_on_node = records.ImageRecord.table
preemption = records.PreemptionRecord.table
autoscaler = records.AutoscalerRecord.table
gap = records.GapRecord.table


def _number() -> sa.Column[Any]:
    return sa.Column("id", NUMBER, primary_key=True, autoincrement=True)


run = sa.Table(
    "run",
    metadata,
    _number(),
    table_column("cluster", TEXT),
    table_column("version", UID),
    table_column("settings_hash", UID),
    table_column("started_us", LARGE),
    table_column("stopped_us", LARGE, optional=True),
    comment="A start of the recorder",
)
checkpoint = sa.Table(
    "checkpoint",
    metadata,
    table_column("kind", sa.String(32), "what it is about", key=True),
    table_column("resource_version", UID, merge=Merge.LAST),
    table_column("at_us", LARGE, merge=Merge.LAST),
    comment="The position of a watch, stored with the rows up to it",
)
# In these words, so that SQLite uses the index.
_SEATED: Final = sa.text("seated_us IS NOT NULL")
# What reports count, kept by start_rows.py; it all follows from the records' tables.
start_kind = sa.Table(
    "start_kind",
    metadata,
    _number(),
    table_column("pod_class", LABEL),
    table_column("scheduler", LABEL),
    table_column("image", IMAGE),
    sa.UniqueConstraint("pod_class", "scheduler", "image"),
    comment="What starts are grouped by in reports; derived from pod",
)
start_place = sa.Table(
    "start_place",
    metadata,
    _number(),
    table_column("pod_class", LABEL),
    table_column("node_name", NAME),
    table_column("node_uid", UID),
    sa.UniqueConstraint("pod_class", "node_name", "node_uid"),
    comment="Where pods were bound, by class; derived from decision",
)
start = sa.Table(
    "start",
    metadata,
    table_column("created_us", LARGE, key=True),
    table_column("pod_uid", UID, key=True),
    table_column("kind_id", NUMBER),
    table_column("place_id", NUMBER, "where it was bound; NULL: not yet", optional=True),
    table_column("node_created_us", LARGE, optional=True),
    table_column("bound_us", LARGE, optional=True),
    table_column(
        "started_us",
        LARGE,
        "when its last container started, microseconds since 1970, UTC",
        optional=True,
    ),
    table_column("ready_us", LARGE, optional=True),
    table_column("deleted_us", LARGE, optional=True),
    # When the watch told of its creation, if within its second and the binding is as exact; what
    # its hub said; and what of the starts that seating asked for.
    *(
        table_column(f"{name}_us", LARGE, optional=True)
        for name in ("told", "asked", "answered", "failed", "seated", "opened", "unused")
    ),
    sa.Index("start_by_end", "deleted_us", "created_us"),
    # Few are: reports leave them out.
    sa.Index("start_seated", "created_us", sqlite_where=_SEATED, postgresql_where=_SEATED),
    # Read in order of time.
    sqlite_with_rowid=False,
    comment="A pod's times, which reports count; derived from pod, node, decision and phase",
)
