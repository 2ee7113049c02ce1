"""Export what was recorded: as scheduler-sniffer's lines, or as a launch trace for the
simulator.
"""

from __future__ import annotations

import heapq
import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import sqlalchemy as sa

from roost_core.objects.image_references import normalise_reference
from roost_core.placement.labels import USER_CLASS
from roost_lab.pages.dates import as_date
from roost_lab.recorder.answers.pod_story import Row
from roost_lab.recorder.exporting.sniffer_log import node_lines, pod_lines
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import DecisionKind, PodSource
from roost_lab.units import US

LAUNCH_SCHEMA: Final = "roost.hub.jupyter.org/launch"
LAUNCH_VERSION: Final = 3
# Pods whose rows are fetched together.
CHUNK: Final = 500


def sniffer_lines(store: Store, since_us: int = 0) -> Iterator[str]:
    """scheduler-sniffer's JSON lines of all nodes, and of the pods created since."""
    with store.reading() as connection:
        nodes = [dict(row) for row in connection.execute(sa.select(schema.node)).mappings()]
    change = schema.node_change.c
    query = sa.select(schema.node_change).where(
        change.field.in_(("allocatable", "capacity", "ready"))
    )
    changes = _rows_by("node_uid", store, query.order_by(change.at_us, change.resource_version))
    for node in nodes:
        yield from node_lines(node, changes.get(node["uid"], ()))
    for pods in _by_creation(store, sa.select(schema.pod), since_us):
        uids = [pod["uid"] for pod in pods]
        phases, decisions = (
            _rows_by(
                "pod_uid",
                store,
                sa.select(table).where(table.c.pod_uid.in_(uids)).order_by(table.c.at_us),
            )
            for table in (schema.phase, schema.decision)
        )
        for pod in pods:
            bind = next(
                (row for row in decisions.get(pod["uid"], ()) if row["kind"] == DecisionKind.BIND),
                None,
            )
            yield from pod_lines(pod, phases.get(pod["uid"], ()), bind)


def launch_lines(store: Store, since_us: int = 0) -> Iterator[str]:
    """A JSON object for each user's launch, in order of time, as the simulator reads it. A server
    of seating's that nobody opened is no launch.

    Its fields are those of `_launch_line`. timestamp: of the creation, or when its user came to a
    server that seating had asked for; UTC, µs. hub: the namespace. image_bytes: null if unknown.
    ready_seconds, seconds: from then until ready, and until gone; null: not yet, or not seen.
    """
    pod = schema.pod.c
    start = schema.start.c
    decision = schema.decision.c
    # A pod whose Events begin after its start: nobody knows when it was launched.
    is_known = sa.or_(pod.source != PodSource.EVENT, sa.exists().where(decision.pod_uid == pod.uid))
    of_pod = sa.and_(start.created_us == pod.created_us, start.pod_uid == pod.uid)
    query = (
        sa.select(schema.pod, start.ready_us, start.seated_us, start.opened_us)
        .outerjoin(schema.start, of_pod)
        .where(pod.pod_class == USER_CLASS, is_known)
    )
    sizes = _image_sizes(store)
    # Launches that came later than their pods, by time.
    later: list[tuple[int, str, str]] = []
    for row in itertools.chain.from_iterable(_by_creation(store, query, since_us)):
        while later and later[0][0] < row["created_us"]:
            yield heapq.heappop(later)[-1]
        ready_us = row["ready_us"]
        if row["seated_us"] is None:
            yield _launch_line(row, row["created_us"], ready_us, sizes)
            continue
        opened_us = row["opened_us"]
        if opened_us is None:
            # Nobody has come, or it isn't known.
            continue
        if ready_us is not None:
            # Whoever came later found it ready.
            ready_us = max(opened_us, ready_us)
        line = _launch_line(row, opened_us, ready_us, sizes)
        heapq.heappush(later, (opened_us, row["uid"], line))
    while later:
        yield heapq.heappop(later)[-1]


def _launch_line(row: Row, launched_us: int, ready_us: int | None, sizes: Mapping[str, int]) -> str:
    launch = {
        "timestamp": as_date(launched_us).isoformat(timespec="microseconds"),
        "schema": LAUNCH_SCHEMA,
        "version": LAUNCH_VERSION,
        "class": row["pod_class"],
        "name": f"{row['namespace']}/{row['name']}",
        "hub": row["namespace"],
        "repository": row["repo"],
        "ref": row["ref"],
        "image": row["image"],
        "image_bytes": sizes.get(row["image"]),
        "cpu_millicores": row["cpu_millicores"],
        "memory_bytes": row["memory_bytes"],
        "ready_seconds": _after(launched_us, ready_us),
        "seconds": _after(launched_us, row["deleted_us"]),
        "status": row["end_reason"] or "running",
    }
    return json.dumps(launch, separators=(",", ":"))


def _by_creation(store: Store, query: sa.Select[Any], since_us: int) -> Iterator[list[Row]]:
    """Pods by creation, CHUNK at a time.

    Each query begins after the last key, so rows may be added meanwhile.
    """
    pod = schema.pod.c
    last = (since_us - 1, "~")
    while True:
        is_next = sa.or_(
            pod.created_us > last[0], sa.and_(pod.created_us == last[0], pod.uid > last[1])
        )
        with store.reading() as connection:
            found = connection.execute(
                query.where(is_next).order_by(pod.created_us, pod.uid).limit(CHUNK)
            )
            rows: list[Row] = [dict(row) for row in found.mappings()]
        if not rows:
            return
        yield rows
        last = (rows[-1]["created_us"], rows[-1]["uid"])


def _rows_by(key: str, store: Store, query: sa.Select[Any]) -> dict[str, list[Row]]:
    """The rows of a query, in its order, by what they have in that column."""
    found: dict[str, list[Row]] = {}
    with store.reading() as connection:
        for row in connection.execute(query).mappings():
            found.setdefault(row[key], []).append(dict(row))
    return found


def _after(launched_us: int, at_us: int | None) -> float | None:
    return None if at_us is None else (at_us - launched_us) / US


def _image_sizes(store: Store) -> dict[str, int]:
    """Bytes of each image, from the nodes' lists; where there are none, from what kubelets
    pulled.
    """
    image = schema.image_on_node.c
    pull = schema.pull.c
    listed = sa.select(image.image, sa.func.max(image.image_bytes).label("size")).group_by(
        image.image
    )
    pulled = sa.select(pull.image, sa.func.max(pull.image_bytes).label("size")).group_by(pull.image)
    with store.reading() as connection:
        sizes = {
            normalise_reference(row.image): row.size
            for row in connection.execute(pulled)
            if row.size
        }
        return sizes | {row.image: row.size for row in connection.execute(listed) if row.size}
