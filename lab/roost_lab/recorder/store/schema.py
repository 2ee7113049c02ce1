"""The tables, the same in SQLite and PostgreSQL; records.py says what the columns mean."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from roost_lab.recorder.store.comments import explain_tables

metadata = sa.MetaData()

_UID: Final = sa.String(64)
_NAME: Final = sa.String(253)
_TIME: Final = sa.BigInteger
# In these words, so that SQLite uses the index.
IMPORTED: Final = sa.text("source <> 'watch'")


def _time(name: str, *, optional: bool = False) -> sa.Column[int]:
    return sa.Column(name, _TIME, nullable=optional)


def _text(name: str, kind: sa.types.TypeEngine[str] | None = None, *, optional: bool = False) -> sa.Column[str]:
    return sa.Column(name, kind or sa.Text, nullable=optional)


# A row for each start of `roost record`.
run = sa.Table(
    "run",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    _text("cluster"),
    _text("version", sa.String(64)),
    _text("settings_hash", sa.String(64)),
    _time("started_us"),
    _time("stopped_us", optional=True),
)
# The position of each watch, written in the same transaction as the records up to it.
checkpoint = sa.Table(
    "checkpoint",
    metadata,
    sa.Column("kind", sa.String(32), primary_key=True),
    _text("resource_version", sa.String(64)),
    _time("at_us"),
)
pod = sa.Table(
    "pod",
    metadata,
    sa.Column("uid", _UID, primary_key=True),
    _text("namespace", sa.String(63)),
    _text("name", _NAME),
    _text("pod_class", sa.String(63)),
    _text("hub"),
    _text("repo"),
    _text("ref"),
    _text("image"),
    _text("image_digest", optional=True),
    _text("scheduler", sa.String(63)),
    sa.Column("priority", sa.BigInteger, nullable=False),
    sa.Column("cpu_millicores", sa.BigInteger, nullable=False),
    sa.Column("memory_bytes", sa.BigInteger, nullable=False),
    _time("created_us"),
    _time("deleted_us", optional=True),
    _text("end_reason", sa.String(32), optional=True),
    sa.Column("source", sa.String(8), nullable=False, server_default="watch"),
    sa.Column("warm_target", sa.String(253), nullable=False, server_default=""),
    # `roost why` is often given the name alone.
    sa.Index("pod_by_name", "name", "namespace", "created_us"),
    sa.Index("pod_by_time", "created_us"),
    sa.Index("pod_by_end", "deleted_us"),
    # Empty in a recorder's own database.
    sa.Index("pod_imported", "created_us", "uid", "source", sqlite_where=IMPORTED, postgresql_where=IMPORTED),
)
node = sa.Table(
    "node",
    metadata,
    sa.Column("uid", _UID, primary_key=True),
    _text("name", _NAME),
    _time("created_us"),
    _time("ready_us", optional=True),
    _time("images_ready_us", optional=True),
    _time("gone_us", optional=True),
    _text("allocatable", optional=True),
    _text("labels", optional=True),
    _text("taints", optional=True),
    sa.Column("is_ready", sa.Boolean, nullable=True),
    sa.Column("is_unschedulable", sa.Boolean, nullable=True),
    sa.Index("node_by_name", "name", "created_us"),
)
node_change = sa.Table(
    "node_change",
    metadata,
    sa.Column("node_uid", _UID, primary_key=True),
    sa.Column("resource_version", sa.String(64), primary_key=True),
    sa.Column("field", sa.String(320), primary_key=True),
    _time("at_us"),
    sa.Column("resolution_us", sa.BigInteger, nullable=False),
    _text("old"),
    _text("new"),
    sa.Index("node_change_by_time", "at_us"),
)
phase = sa.Table(
    "phase",
    metadata,
    sa.Column("pod_uid", _UID, primary_key=True),
    sa.Column("phase", sa.String(16), primary_key=True),
    sa.Column("detail", sa.String(512), primary_key=True),
    _time("at_us"),
    sa.Column("resolution_us", sa.BigInteger, nullable=False),
    _text("source", sa.String(8)),
    # The largest table, and always read by its key.
    sqlite_with_rowid=False,
)
decision = sa.Table(
    "decision",
    metadata,
    sa.Column("id", sa.String(160), primary_key=True),
    _text("pod_uid", _UID),
    _text("kind", sa.String(8)),
    _text("node_name", _NAME),
    _text("node_uid", _UID),
    _time("at_us"),
    sa.Column("resolution_us", sa.BigInteger, nullable=False),
    _time("last_us"),
    sa.Column("tries", sa.Integer, nullable=False),
    _text("scheduler", sa.String(63)),
    _text("source", sa.String(8)),
    sa.Column("nodes_total", sa.Integer, nullable=True),
    sa.Column("nodes_feasible", sa.Integer, nullable=True),
    _text("reasons"),
    _text("message"),
    _text("model", sa.String(16), optional=True),
    _text("model_node", _NAME, optional=True),
    _text("model_note", optional=True),
    sa.Index("decision_by_pod", "pod_uid"),
    sa.Index("decision_by_kind", "kind", "at_us", "scheduler", "model"),
)
# What reports count, kept by start_rows.py; it all follows from the tables above.
start_kind = sa.Table(
    "start_kind",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    _text("pod_class", sa.String(63)),
    _text("scheduler", sa.String(63)),
    _text("image", sa.String(512)),
    sa.UniqueConstraint("pod_class", "scheduler", "image"),
)
start_place = sa.Table(
    "start_place",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    _text("pod_class", sa.String(63)),
    _text("node_name", _NAME),
    _text("node_uid", _UID),
    sa.UniqueConstraint("pod_class", "node_name", "node_uid"),
)
start = sa.Table(
    "start",
    metadata,
    sa.Column("created_us", _TIME, primary_key=True),
    sa.Column("pod_uid", _UID, primary_key=True),
    sa.Column("kind_id", sa.Integer, nullable=False),
    # Where it was bound; None: not yet.
    sa.Column("place_id", sa.Integer, nullable=True),
    # None: not known.
    _time("node_created_us", optional=True),
    _time("bound_us", optional=True),
    # When its last container started.
    _time("started_us", optional=True),
    _time("ready_us", optional=True),
    _time("deleted_us", optional=True),
    sa.Index("start_by_end", "deleted_us", "created_us"),
    # Read in order of time.
    sqlite_with_rowid=False,
)
candidates = sa.Table(
    "candidates",
    metadata,
    sa.Column("decision_id", sa.String(160), primary_key=True),
    sa.Column("number", sa.Integer, nullable=False),
    _text("nodes"),
)
waiting = sa.Table(
    "waiting",
    metadata,
    sa.Column("pod_uid", _UID, primary_key=True),
    _time("at_us"),
    sa.Column("number", sa.Integer, nullable=False),
    _text("nodes"),
)
pull = sa.Table(
    "pull",
    metadata,
    sa.Column("pod_uid", _UID, primary_key=True),
    sa.Column("image", sa.String(512), primary_key=True),
    _text("node_name", _NAME),
    _time("at_us"),
    sa.Column("warm", sa.Boolean, nullable=False),
    sa.Column("pull_us", sa.BigInteger, nullable=True),
    sa.Column("pull_and_wait_us", sa.BigInteger, nullable=True),
    sa.Column("image_bytes", sa.BigInteger, nullable=True),
    # Covers all that reports count, so that no row is read.
    sa.Index("pull_by_time", "at_us", "warm", "node_name", "image", "pull_us", "pull_and_wait_us", "image_bytes"),
)
image_on_node = sa.Table(
    "image_on_node",
    metadata,
    sa.Column("node_uid", _UID, primary_key=True),
    sa.Column("image", sa.String(512), primary_key=True),
    sa.Column("first_us", _TIME, primary_key=True),
    sa.Column("image_bytes", sa.BigInteger, nullable=False),
    _time("gone_us", optional=True),
)
preemption = sa.Table(
    "preemption",
    metadata,
    sa.Column("victim_uid", _UID, primary_key=True),
    _text("by_uid", _UID, optional=True),
    _text("node_name", _NAME),
    _time("at_us"),
    _text("kind", sa.String(16)),
    sa.Index("preemption_by_time", "at_us"),
)
autoscaler = sa.Table(
    "autoscaler",
    metadata,
    sa.Column("event_uid", _UID, primary_key=True),
    _time("at_us"),
    _time("last_us"),
    sa.Column("count", sa.Integer, nullable=False),
    _text("reason", sa.String(128)),
    _text("about"),
    _text("message"),
    sa.Index("autoscaler_by_time", "at_us"),
)
gap = sa.Table(
    "gap",
    metadata,
    sa.Column("kind", sa.String(32), primary_key=True),
    sa.Column("from_us", _TIME, primary_key=True),
    _time("to_us"),
    _text("why"),
)
explain_tables(metadata)
