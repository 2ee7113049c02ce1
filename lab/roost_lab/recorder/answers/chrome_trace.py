"""Export the record as a trace of Chrome's Trace Event Format, which Perfetto and chrome://tracing open.

A process is a node, and each of its threads holds one pod at a time. A pod is a slice from its creation until it was
gone, on the node that it got; the phases of its start are slices within.
"""

from __future__ import annotations

import heapq
import json
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from roost_lab.recorder.answers.exports import pods_since, rows_by_pod, start_times
from roost_lab.recorder.answers.start_phases import phases_of
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.records import DecisionKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roost_lab.recorder.answers.pod_story import Row
    from roost_lab.recorder.store.database import Store

# Of pods that got no node.
NOWHERE: Final = "no node"
NO_CLASS: Final = "no class"

Event = dict[str, Any]


def trace_lines(store: Store, since_us: int = 0) -> Iterator[str]:
    """One JSON object over many lines, an event a line, of the pods created since. Times and durations are in µs."""
    yield '{"displayTimeUnit": "ms", "traceEvents": ['
    before = ""
    for event in _events(store, since_us):
        yield before + json.dumps(event, separators=(",", ":"))
        before = ","
    yield "]}"


class _Tracks:
    """Numbers of processes (nodes) and of their threads, which hold one pod at a time."""

    def __init__(self) -> None:
        self._processes: dict[str, int] = {}
        # Process -> (when it is free, number, thread), the earliest first.
        self._threads: dict[int, list[tuple[int, int, int]]] = {}
        self._count = 0

    def place(self, node: str, from_us: int, to_us: int) -> tuple[int, int, list[Event]]:
        """A process and a thread that is free from then on, and the events that name those that are new."""
        named: list[Event] = []
        process = self._processes.get(node)
        if process is None:
            process = self._processes[node] = len(self._processes) + 1
            named.append(_name("process_name", process, 0, node))
        threads = self._threads.setdefault(process, [])
        if threads and threads[0][0] <= from_us:
            _, number, thread = heapq.heappop(threads)
        else:
            # Unique among all processes: some viewers tell threads apart by it alone.
            self._count += 1
            number, thread = len(threads) + 1, self._count
            named.append(_name("thread_name", process, thread, f"{number}"))
        heapq.heappush(threads, (to_us, number, thread))
        return process, thread, named


def _events(store: Store, since_us: int) -> Iterator[Event]:
    tracks, last_us = _Tracks(), _last_us(store)
    for pods in pods_since(store, since_us):
        uids = [pod["uid"] for pod in pods]
        starts, pulls = start_times(store, uids), rows_by_pod(store, schema.pull, uids)
        decisions = rows_by_pod(store, schema.decision, uids)
        for pod in pods:
            own = decisions.get(pod["uid"], [])
            bind = next((row for row in own if row["kind"] == DecisionKind.BIND), None)
            node = bind["node_name"] if bind is not None else NOWHERE
            start = starts.get(pod["uid"], {})
            moments = [pod["created_us"], start.get("bound_us"), start.get("started_us"), start.get("ready_us")]
            from_us, to_us = pod["created_us"], pod["deleted_us"] or last_us
            # What is known of it may be later than the end: clocks differ.
            to_us = max(to_us, *(at_us for at_us in moments if at_us is not None))
            process, thread, named = tracks.place(node, from_us, to_us)
            yield from named
            track = {"pid": process, "tid": thread}
            name = f"{pod['namespace']}/{pod['name']}"
            yield {**_slice(name, pod["pod_class"], from_us, to_us), **track, "args": _facts(pod, start)}
            for name, begin_us, end_us, facts in phases_of(moments, pulls.get(pod["uid"], ())):
                yield {**_slice(name, "phase", begin_us, end_us), **track, "args": facts}
            for row in own:
                if row["kind"] == DecisionKind.FAIL and from_us <= row["at_us"] <= to_us:
                    facts = {"message": row["message"], "tries": row["tries"]}
                    instant = {"name": "FailedScheduling", "cat": "phase", "ph": "i", "s": "t", "ts": row["at_us"]}
                    yield {**instant, **track, "args": facts}


def _facts(pod: Row, start: Row) -> dict[str, object]:
    facts = {name: pod[name] for name in ("uid", "hub", "image", "scheduler", "end_reason") if pod[name]}
    if start.get("ready_us") is not None:
        facts["ready_seconds"] = (start["ready_us"] - pod["created_us"]) / 1_000_000
    return facts


def _slice(name: str, category: str, from_us: int, to_us: int) -> Event:
    return {"name": name, "cat": category or NO_CLASS, "ph": "X", "ts": from_us, "dur": to_us - from_us}


def _name(kind: str, process: int, thread: int, name: str) -> Event:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def _last_us(store: Store) -> int:
    """Until when pods that still exist are drawn: the record's last news."""
    pod = schema.pod.c
    with store.reading() as connection:
        times = (
            connection.execute(sa.select(sa.func.max(column))).scalar()
            for column in (schema.checkpoint.c.at_us, pod.created_us, pod.deleted_us)
        )
        return max((at_us for at_us in times if at_us is not None), default=0)
