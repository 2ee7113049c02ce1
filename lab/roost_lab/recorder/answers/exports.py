"""Export what was recorded: as scheduler-sniffer's lines, or as a launch trace for the simulator."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from roost_core.objects.images import normalise_reference
from roost_core.placement.labels import USER_CLASS
from roost_lab.pages.dates import US, as_date
from roost_lab.recorder.answers.sniffer_log import node_lines, pod_lines
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.records import PodSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roost_lab.recorder.answers.pod_story import Row
    from roost_lab.recorder.store.database import Store

LAUNCH_SCHEMA: Final = "roost.hub.jupyter.org/launch"
LAUNCH_VERSION: Final = 3
# Pods whose rows are fetched together.
CHUNK: Final = 500


def sniffer_lines(store: Store, since_us: int = 0) -> Iterator[str]:
    """scheduler-sniffer's JSON lines of all nodes, and of the pods created since."""
    with store.reading() as connection:
        nodes = [dict(row) for row in connection.execute(sa.select(schema.node)).mappings()]
    for node in nodes:
        yield from node_lines(node)
    for pods in pods_since(store, since_us):
        uids = [pod["uid"] for pod in pods]
        phases = rows_by_pod(store, schema.phase, uids)
        binds = rows_by_pod(store, schema.decision, uids)
        for pod in pods:
            bind = next((row for row in binds.get(pod["uid"], ()) if row["kind"] == "bind"), None)
            yield from pod_lines(pod, phases.get(pod["uid"], ()), bind)


def launch_lines(store: Store, since_us: int = 0, classes: frozenset[str] = frozenset({USER_CLASS})) -> Iterator[str]:
    """A JSON object for each launch, by creation, as the simulator reads it.

    timestamp (of the creation; UTC, µs), class, hub (the namespace), repository, image, image_bytes (null: unknown),
    cpu_millicores, memory_bytes, ready_seconds and seconds (from creation until ready and until gone; null: not yet,
    or not seen), status.
    """
    sizes = _image_sizes(store)
    for pods in pods_since(store, since_us, classes):
        starts = start_times(store, [pod["uid"] for pod in pods])
        begun = _begun(store, [pod["uid"] for pod in pods if pod["source"] == PodSource.EVENT])
        for pod in pods:
            if pod["source"] == PodSource.EVENT and pod["uid"] not in begun:
                # Its Events begin after its start: nobody knows when it was launched.
                continue
            created_us, ended_us = pod["created_us"], pod["deleted_us"]
            yield _json(
                timestamp=as_date(created_us).isoformat(timespec="microseconds"),
                schema=LAUNCH_SCHEMA,
                version=LAUNCH_VERSION,
                **{"class": pod["pod_class"]},
                name=f"{pod['namespace']}/{pod['name']}",
                hub=pod["namespace"],
                repository=pod["repo"],
                ref=pod["ref"],
                image=pod["image"],
                image_bytes=sizes.get(pod["image"]),
                cpu_millicores=pod["cpu_millicores"],
                memory_bytes=pod["memory_bytes"],
                ready_seconds=_after(created_us, starts.get(pod["uid"], {}).get("ready_us")),
                seconds=_after(created_us, ended_us),
                status=pod["end_reason"] or "running",
            )


def pods_since(store: Store, since_us: int, classes: frozenset[str] | None = None) -> Iterator[list[Row]]:
    """Pods by creation, CHUNK at a time. Each query begins after the last key, so rows may be added meanwhile."""
    pod = schema.pod.c
    last = (since_us - 1, "~")
    while True:
        query = (
            sa.select(schema.pod)
            .where(sa.or_(pod.created_us > last[0], sa.and_(pod.created_us == last[0], pod.uid > last[1])))
            .order_by(pod.created_us, pod.uid)
            .limit(CHUNK)
        )
        if classes is not None:
            query = query.where(pod.pod_class.in_(sorted(classes)))
        with store.reading() as connection:
            rows: list[Row] = [dict(row) for row in connection.execute(query).mappings()]
        if not rows:
            return
        yield rows
        last = (rows[-1]["created_us"], rows[-1]["uid"])


def rows_by_pod(store: Store, table: sa.FromClause, uids: list[str]) -> dict[str, list[Row]]:
    """A table's rows about these pods, by pod and in order of time."""
    query = sa.select(table).where(table.c.pod_uid.in_(uids)).order_by(table.c.at_us)
    by_pod: dict[str, list[Row]] = {}
    with store.reading() as connection:
        for row in connection.execute(query).mappings():
            by_pod.setdefault(row["pod_uid"], []).append(dict(row))
    return by_pod


def start_times(store: Store, uids: list[str]) -> dict[str, Row]:
    """Rows of the table start by pod; for pods known from Events alone, with the estimates of start_rows.py."""
    start, pod = schema.start, schema.pod.c
    keys = sa.select(pod.created_us, pod.uid).where(pod.uid.in_(uids))
    query = sa.select(start).where(sa.tuple_(start.c.created_us, start.c.pod_uid).in_(keys))
    with store.reading() as connection:
        return {row["pod_uid"]: dict(row) for row in connection.execute(query).mappings()}


def _begun(store: Store, uids: list[str]) -> set[str]:
    """Those of which a scheduler's decision is known."""
    query = sa.select(schema.decision.c.pod_uid).where(schema.decision.c.pod_uid.in_(uids))
    with store.reading() as connection:
        return set(connection.execute(query).scalars())


def _after(created_us: int, at_us: int | None) -> float | None:
    return None if at_us is None else (at_us - created_us) / US


def _image_sizes(store: Store) -> dict[str, int]:
    """Bytes of each image, from the nodes' lists; where there are none, from what kubelets pulled."""
    image, pull = schema.image_on_node.c, schema.pull.c
    listed = sa.select(image.image, sa.func.max(image.image_bytes).label("size")).group_by(image.image)
    pulled = sa.select(pull.image, sa.func.max(pull.image_bytes).label("size")).group_by(pull.image)
    with store.reading() as connection:
        sizes = {normalise_reference(row.image): row.size for row in connection.execute(pulled) if row.size}
        return sizes | {row.image: row.size for row in connection.execute(listed) if row.size}


def _json(**entry: Any) -> str:  # noqa: ANN401 - JSON values
    return json.dumps(entry, separators=(",", ":"))
