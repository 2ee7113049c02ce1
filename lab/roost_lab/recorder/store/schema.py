"""The tables, the same in SQLite and PostgreSQL; comments.py says what the columns mean."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

import sqlalchemy as sa

metadata = sa.MetaData()

_UID: Final = sa.String(64)
_NAME: Final = sa.String(253)
_TIME: Final = sa.BigInteger
# In these words, so that SQLite uses the index.
IMPORTED: Final = sa.text("source <> 'watch'")


class Merge(StrEnum):
    """How a column of two records with the same key is merged. NULL never replaces anything."""

    # The first value stays.
    FIRST = "first"
    # The last value stays.
    LAST = "last"
    # The smallest, the largest value.
    MIN = "min"
    MAX = "max"
    # The value of the record with the smaller `resolution_us`; of equal ones, that of the smaller `at_us`.
    FINER = "finer"
    # The value of the record with the smaller `at_us`.
    EARLIER = "earlier"
    # The first value stays, unless it is "".
    FILLED = "filled"
    # The value of the record with the better `source` (PodSource); of equal ones the first that is not "".
    BETTER = "better"
    # Likewise; of equal ones the smaller value.
    BETTER_MIN = "better min"
    # Of a pod's end: that of the better `source`; of two that were imported the earlier, of two that were watched the
    # first.
    END = "end"


def _column(
    name: str,
    kind: Any,  # noqa: ANN401 - one of SQLAlchemy's types
    merge: Merge | None = None,
    *,
    optional: bool = False,
    key: bool = False,
    server_default: str | None = None,
    **default: object,
) -> sa.Column[Any]:
    """A column. merge: None: the first value stays. default: of records that leave it out, beside NULL if optional."""
    info = {**default, **({"merge": merge} if merge else {})}
    return sa.Column(name, kind, nullable=optional, primary_key=key, server_default=server_default, info=info)


# A row for each start of `roost record`.
run = sa.Table(
    "run",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    _column("cluster", sa.Text),
    _column("version", sa.String(64)),
    _column("settings_hash", sa.String(64)),
    _column("started_us", _TIME),
    _column("stopped_us", _TIME, optional=True),
)
# The position of each watch, written in the same transaction as the records up to it.
checkpoint = sa.Table(
    "checkpoint",
    metadata,
    _column("kind", sa.String(32), key=True),
    _column("resource_version", sa.String(64)),
    _column("at_us", _TIME),
)
pod = sa.Table(
    "pod",
    metadata,
    _column("uid", _UID, key=True),
    _column("namespace", sa.String(63), Merge.BETTER, default=""),
    _column("name", _NAME, Merge.BETTER, default=""),
    _column("pod_class", sa.String(63), Merge.BETTER, default=""),
    _column("hub", sa.Text, Merge.BETTER, default=""),
    _column("repo", sa.Text, Merge.BETTER, default=""),
    _column("ref", sa.Text, Merge.BETTER, default=""),
    _column("image", sa.Text, Merge.BETTER, default=""),
    _column("image_digest", sa.Text, Merge.FIRST, optional=True),
    _column("scheduler", sa.String(63), Merge.BETTER, default=""),
    _column("priority", sa.BigInteger, Merge.BETTER, default=0),
    _column("cpu_millicores", sa.BigInteger, Merge.BETTER, default=0),
    _column("memory_bytes", sa.BigInteger, Merge.BETTER, default=0),
    _column("created_us", _TIME, Merge.BETTER_MIN),
    _column("deleted_us", _TIME, Merge.END, optional=True),
    _column("end_reason", sa.String(32), Merge.END, optional=True),
    _column("source", sa.String(8), Merge.MAX, default="watch", server_default="watch"),
    _column("warm_target", sa.String(253), Merge.BETTER, default="", server_default=""),
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
    _column("uid", _UID, key=True),
    _column("name", _NAME),
    _column("created_us", _TIME, default=0),
    _column("ready_us", _TIME, Merge.MIN, optional=True),
    _column("images_ready_us", _TIME, Merge.MIN, optional=True),
    _column("gone_us", _TIME, Merge.FIRST, optional=True),
    _column("allocatable", sa.Text, Merge.LAST, optional=True),
    _column("labels", sa.Text, Merge.LAST, optional=True),
    _column("taints", sa.Text, Merge.LAST, optional=True),
    _column("is_ready", sa.Boolean, Merge.LAST, optional=True),
    _column("is_unschedulable", sa.Boolean, Merge.LAST, optional=True),
    sa.Index("node_by_name", "name", "created_us"),
)
node_change = sa.Table(
    "node_change",
    metadata,
    _column("node_uid", _UID, key=True),
    _column("resource_version", sa.String(64), key=True),
    _column("field", sa.String(320), key=True),
    _column("at_us", _TIME),
    _column("resolution_us", sa.BigInteger),
    _column("old", sa.Text),
    _column("new", sa.Text),
    sa.Index("node_change_by_time", "at_us"),
)
phase = sa.Table(
    "phase",
    metadata,
    _column("pod_uid", _UID, key=True),
    _column("phase", sa.String(16), key=True),
    _column("detail", sa.String(512), key=True, default=""),
    _column("at_us", _TIME, Merge.FINER),
    _column("resolution_us", sa.BigInteger, Merge.FINER),
    _column("source", sa.String(8), Merge.FINER),
    # The largest table, and always read by its key.
    sqlite_with_rowid=False,
)
decision = sa.Table(
    "decision",
    metadata,
    _column("id", sa.String(160), key=True),
    _column("pod_uid", _UID),
    _column("kind", sa.String(8)),
    _column("node_name", _NAME),
    _column("node_uid", _UID, Merge.FILLED),
    _column("at_us", _TIME, Merge.FINER),
    _column("resolution_us", sa.BigInteger, Merge.FINER),
    _column("last_us", _TIME, Merge.MAX),
    _column("tries", sa.Integer, Merge.MAX, default=1),
    _column("scheduler", sa.String(63), Merge.FILLED),
    _column("source", sa.String(8), Merge.FINER),
    _column("nodes_total", sa.Integer, Merge.FIRST, optional=True),
    _column("nodes_feasible", sa.Integer, Merge.FIRST, optional=True),
    _column("reasons", sa.Text, default="{}"),
    _column("message", sa.Text, default=""),
    _column("model", sa.String(16), Merge.FIRST, optional=True),
    _column("model_node", _NAME, Merge.FIRST, optional=True),
    _column("model_note", sa.Text, Merge.FIRST, optional=True),
    sa.Index("decision_by_pod", "pod_uid"),
    sa.Index("decision_by_kind", "kind", "at_us", "scheduler", "model"),
)
# What reports count, kept by start_rows.py; it all follows from the tables above.
start_kind = sa.Table(
    "start_kind",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    _column("pod_class", sa.String(63)),
    _column("scheduler", sa.String(63)),
    _column("image", sa.String(512)),
    sa.UniqueConstraint("pod_class", "scheduler", "image"),
)
start_place = sa.Table(
    "start_place",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    _column("pod_class", sa.String(63)),
    _column("node_name", _NAME),
    _column("node_uid", _UID),
    sa.UniqueConstraint("pod_class", "node_name", "node_uid"),
)
start = sa.Table(
    "start",
    metadata,
    _column("created_us", _TIME, key=True),
    _column("pod_uid", _UID, key=True),
    _column("kind_id", sa.Integer),
    # Where it was bound; None: not yet.
    _column("place_id", sa.Integer, optional=True),
    # None: not known.
    _column("node_created_us", _TIME, optional=True),
    _column("bound_us", _TIME, optional=True),
    # When its last container started.
    _column("started_us", _TIME, optional=True),
    _column("ready_us", _TIME, optional=True),
    _column("deleted_us", _TIME, optional=True),
    sa.Index("start_by_end", "deleted_us", "created_us"),
    # Read in order of time.
    sqlite_with_rowid=False,
)
candidates = sa.Table(
    "candidates",
    metadata,
    _column("decision_id", sa.String(160), key=True),
    _column("number", sa.Integer),
    _column("nodes", sa.Text),
)
waiting = sa.Table(
    "waiting",
    metadata,
    _column("pod_uid", _UID, key=True),
    _column("at_us", _TIME, Merge.LAST),
    _column("number", sa.Integer, Merge.LAST),
    _column("nodes", sa.Text, Merge.LAST),
)
pull = sa.Table(
    "pull",
    metadata,
    _column("pod_uid", _UID, key=True),
    _column("image", sa.String(512), key=True),
    _column("node_name", _NAME, Merge.EARLIER),
    _column("at_us", _TIME, Merge.EARLIER),
    _column("warm", sa.Boolean, Merge.EARLIER),
    _column("pull_us", sa.BigInteger, Merge.EARLIER, optional=True),
    _column("pull_and_wait_us", sa.BigInteger, Merge.EARLIER, optional=True),
    _column("image_bytes", sa.BigInteger, Merge.EARLIER, optional=True),
    # Covers all that reports count, so that no row is read.
    sa.Index("pull_by_time", "at_us", "warm", "node_name", "image", "pull_us", "pull_and_wait_us", "image_bytes"),
)
image_on_node = sa.Table(
    "image_on_node",
    metadata,
    _column("node_uid", _UID, key=True),
    _column("image", sa.String(512), key=True),
    _column("first_us", _TIME, key=True),
    _column("image_bytes", sa.BigInteger),
    _column("gone_us", _TIME, Merge.FIRST, optional=True),
)
preemption = sa.Table(
    "preemption",
    metadata,
    _column("victim_uid", _UID, key=True),
    _column("by_uid", _UID, Merge.LAST, optional=True),
    _column("node_name", _NAME),
    _column("at_us", _TIME, Merge.MIN),
    _column("kind", sa.String(16)),
    sa.Index("preemption_by_time", "at_us"),
)
autoscaler = sa.Table(
    "autoscaler",
    metadata,
    _column("event_uid", _UID, key=True),
    _column("at_us", _TIME),
    _column("last_us", _TIME, Merge.MAX),
    _column("count", sa.Integer, Merge.MAX),
    _column("reason", sa.String(128)),
    _column("about", sa.Text),
    _column("message", sa.Text),
    sa.Index("autoscaler_by_time", "at_us"),
)
gap = sa.Table(
    "gap",
    metadata,
    _column("kind", sa.String(32), key=True),
    _column("from_us", _TIME, key=True),
    _column("to_us", _TIME, Merge.MAX),
    _column("why", sa.Text),
)
