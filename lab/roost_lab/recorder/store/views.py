"""Views for people who query the database themselves, with comments on each column; lab/docs/record.md promises them.

Times are `timestamptz` in PostgreSQL, and ISO 8601 text in UTC with microseconds (`2026-11-02T08:00:00.000000Z`, which
sorts by time) in SQLite. Durations are in seconds. NULL: not known, or not yet.

They are made anew after each migration, so a change here needs a migration, if an empty one.
Add columns at the end: PostgreSQL can then replace a view, and keeps who may read it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import sqlalchemy as sa

from roost_lab.recorder.store.records import Phase

SQLITE: Final = "sqlite"
HOUR_US: Final = 3_600_000_000


class SqlView(NamedTuple):
    """One view."""

    comment: str
    # Column -> (expression, comment), in order.
    columns: Mapping[str, tuple[str, str]]
    # What follows the columns, from FROM on; `head` comes before SELECT.
    rest: str
    head: str = ""


# In expressions: {time:x} and {seconds:x} of microseconds, {label:key} of a node's labels, and more: see `_FUNCTIONS`.
_POD: Final = {
    "pod_uid": ("pod.uid", "The pod, as Kubernetes names it for ever"),
    "namespace": ("pod.namespace", "Its namespace"),
    "pod_name": ("pod.name", "Its name; several pods may have had it, one after the other"),
    "pod_class": ("pod.pod_class", "Its class: user, build, placeholder, one of podClasses, or empty"),
    "hub": ("pod.hub", "The hub that it belongs to, `<release>.<namespace>`; or empty"),
}
VIEWS: Final[Mapping[str, SqlView]] = {
    "v_start": SqlView(
        "One row a pod: when it reached each step of its start, and how long the steps took",
        {
            **_POD,
            "image": ("pod.image", "The image of its first main container, in full"),
            "repository": ("pod.repo", "For BinderHub: the repository; or empty"),
            "ref": ("pod.ref", "For BinderHub: the resolved reference, such as a commit; or empty"),
            "scheduler": ("pod.scheduler", "The scheduler profile that it names"),
            "node": ("place.node_name", "Where it was bound; NULL: nowhere yet"),
            "cpu": ("{real:pod.cpu_millicores} / 1000", "CPUs that it requests"),
            "memory_bytes": ("pod.memory_bytes", "Memory that it requests"),
            "created": ("{time:pod.created_us}", "When it was created"),
            "bound": ("{time:start.bound_us}", "When a scheduler bound it to its node"),
            "started": ("{time:start.started_us}", "When its last container started"),
            "ready": ("{time:start.ready_us}", "When it was ready first"),
            "gone": ("{time:pod.deleted_us}", "When it was seen to be gone; NULL while it exists"),
            "end_reason": (
                "pod.end_reason",
                "Why it went: deleted, preempted, evicted, finished, failed, node-gone, unseen",
            ),
            "wait_seconds": ("{seconds:start.bound_us - pod.created_us}", "From its creation until it was bound"),
            "start_seconds": ("{seconds:start.started_us - start.bound_us}", "From then until its containers ran"),
            "ready_seconds": ("{seconds:start.ready_us - pod.created_us}", "The whole start: from creation to ready"),
            "is_cold": (
                "(SELECT {yes:NOT pull.warm} FROM pull WHERE pull.pod_uid = pod.uid)",
                "Whether an image was pulled for it; NULL: no Event told",
            ),
            "pull_seconds": (
                "(SELECT {seconds:max(pull.pull_and_wait_us)} FROM pull WHERE pull.pod_uid = pod.uid)",
                "Its longest pull, with the wait behind other pulls; NULL: none",
            ),
            "node_age_seconds": (
                "{seconds:start.bound_us - start.node_created_us}",
                "The node's age when it was bound",
            ),
            "source": (
                "pod.source",
                "What the row was made from: watch, pod, sniffer, or event (Events alone: times are estimates)",
            ),
        },
        "FROM start JOIN pod ON pod.uid = start.pod_uid LEFT JOIN start_place AS place ON place.id = start.place_id",
    ),
    "v_phase": SqlView(
        "One row a step of a pod's start or end, the first time that it was reached",
        {
            **_POD,
            "pod_uid": ("phase.pod_uid", _POD["pod_uid"][1]),
            "phase": ("phase.phase", ", ".join(Phase)),
            "detail": ("phase.detail", "The image, container or gate; empty: the whole pod"),
            "at": ("{time:phase.at_us}", "When it was reached"),
            "resolution_seconds": (
                "{seconds:phase.resolution_us}",
                "How exact that is: it may have happened so much earlier",
            ),
            "source": (
                "phase.source",
                "What told it: pod (its object), event, watch (the recorder saw it), sniffer or audit (imported logs)",
            ),
        },
        "FROM phase LEFT JOIN pod ON pod.uid = phase.pod_uid",
    ),
    "v_pull": SqlView(
        "One row an image of a pod: whether its node had it, and how long the pull took",
        {
            **_POD,
            "image": ("pull.image", "The image, as the pod names it"),
            "node": ("pull.node_name", "The node"),
            "finished": ("{time:pull.at_us}", "When the image was ready to use"),
            "is_warm": ("pull.warm", "The node already had it"),
            "pull_seconds": ("{seconds:pull.pull_us}", "The pull itself; NULL: warm, or not told"),
            "queue_seconds": (
                "{seconds:pull.pull_and_wait_us - pull.pull_us}",
                "The wait behind the kubelet's other pulls before it",
            ),
            "bytes": ("pull.image_bytes", "The image's size in the registry, layers that the node had included"),
        },
        "FROM pull LEFT JOIN pod ON pod.uid = pull.pod_uid",
    ),
    "v_node_hours": SqlView(
        "One row a node and hour (UTC): which part of the hour the node existed; sum hours for node-hours",
        {
            "node": ("node.name", "The node's name"),
            "node_uid": ("node.uid", "The node; a later one may have the same name"),
            "hour": ("{time:span.hour_us}", "The beginning of the hour"),
            "hours": (
                "{real:{least:span.to_us, span.hour_us + HOUR_US} - {greatest:span.from_us, span.hour_us}} / HOUR_US",
                "The part of the hour for which it existed, 0 to 1",
            ),
            "instance_type": ("{label:node.kubernetes.io/instance-type}", "The machine, by its label; NULL: none"),
            "zone": ("{label:topology.kubernetes.io/zone}", "The zone, by its label; NULL: none"),
        },
        "FROM span JOIN node ON node.uid = span.uid",
        # From its creation, or the record's first day if that was later, until it went, or the record's last news.
        """
        WITH RECURSIVE seen(first_us, last_us) AS (
            SELECT coalesce((SELECT min(started_us) FROM run), (SELECT min(created_us) FROM start), 0),
                coalesce((SELECT max(at_us) FROM checkpoint), (SELECT max(created_us) FROM start), 0)
        ), life(uid, from_us, to_us) AS (
            SELECT node.uid, {greatest:node.created_us, seen.first_us}, coalesce(node.gone_us, seen.last_us)
            FROM node CROSS JOIN seen WHERE node.created_us > 0
        ), span(uid, from_us, to_us, hour_us) AS (
            SELECT uid, from_us, to_us, from_us - from_us % HOUR_US FROM life WHERE to_us > from_us
            UNION ALL
            SELECT uid, from_us, to_us, hour_us + HOUR_US FROM span WHERE hour_us + HOUR_US < to_us
        )
        """,
    ),
    "v_failure": SqlView(
        "One row a failed scheduling attempt and reason: how many nodes could not take the pod for it",
        {
            **_POD,
            "first": ("{time:decision.at_us}", "When the attempt first failed so"),
            "last": ("{time:decision.last_us}", "When it last failed so"),
            "tries": ("decision.tries", "How often, at least"),
            "scheduler": ("decision.scheduler", "The scheduler profile"),
            "nodes_total": ("decision.nodes_total", "Nodes in all; NULL: the message didn't say"),
            "reason": ("reason.key", "In kube-scheduler's words; NULL: the message has none"),
            "nodes": ("{whole:reason.value}", "How many nodes were rejected for it"),
            "message": ("decision.message", "The whole message"),
        },
        "FROM decision LEFT JOIN pod ON pod.uid = decision.pod_uid LEFT JOIN {items:decision.reasons} AS reason "
        "ON true WHERE decision.kind = 'fail'",
    ),
}


# How each database writes what they write differently; @ stands for the argument.
_FUNCTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    SQLITE: {
        "time": "strftime('%Y-%m-%dT%H:%M:%S', (@) / 1000000, 'unixepoch') || printf('.%06dZ', (@) % 1000000)",
        "seconds": "CAST(@ AS REAL) / 1000000",
        "yes": "max(@)",
        "real": "CAST(@ AS REAL)",
        "least": "min(@)",
        "greatest": "max(@)",
        "label": "json_extract(node.labels, '$.\"@\"')",
        "whole": "@",
        "items": "json_each(@)",
    },
    "postgresql": {
        # Exact: a float of seconds would round microseconds.
        "time": "timestamptz 'epoch' + (@) * interval '1 microsecond'",
        "seconds": "CAST(@ AS double precision) / 1000000",
        "yes": "bool_or(@)",
        "real": "CAST(@ AS double precision)",
        "least": "least(@)",
        "greatest": "greatest(@)",
        "label": "CAST(node.labels AS json) ->> '@'",
        "whole": "CAST(@ AS integer)",
        "items": "LATERAL json_each_text(CAST(@ AS json))",
    },
}
_CALL: Final = re.compile(r"\{(\w+):([^{}]*)\}")


def make_views(connection: sa.Connection) -> None:
    """Make all views anew, with their comments where the database has them."""
    dialect = connection.dialect.name
    for name, view in VIEWS.items():
        if dialect == SQLITE:
            connection.exec_driver_sql(f"DROP VIEW IF EXISTS {name}")
        create = "CREATE VIEW" if dialect == SQLITE else "CREATE OR REPLACE VIEW"
        connection.execute(_text(f"{create} {name} AS {_select(view, dialect)}"))
        if connection.dialect.supports_comments:
            connection.execute(_text(f"COMMENT ON VIEW {name} IS {_quoted(view.comment)}"))
            for column, (_, comment) in view.columns.items():
                connection.execute(_text(f"COMMENT ON COLUMN {name}.{column} IS {_quoted(comment)}"))


def _select(view: SqlView, dialect: str) -> str:
    columns = ", ".join(f'{expression} AS "{name}"' for name, (expression, _) in view.columns.items())
    text = f"{view.head} SELECT {columns} {view.rest}".replace("HOUR_US", str(HOUR_US))
    # The innermost first.
    while found := _CALL.search(text):
        text = text[: found.start()] + _FUNCTIONS[dialect][found[1]].replace("@", found[2]) + text[found.end() :]
    return " ".join(text.split())


def _text(statement: str) -> sa.TextClause:
    # Without parameters: colons are colons.
    return sa.text(statement.replace(":", "\\:"))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
