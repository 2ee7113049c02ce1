"""Builders of what a recorder has stored, and empty databases to store it in."""

import functools
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lab.tests.moments import BEGIN, HOUR, MINUTE, SECOND
from lab.tests.told import Thing
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import (
    AutoscalerRecord,
    DecisionKind,
    DecisionRecord,
    GapRecord,
    NodeRecord,
    Phase,
    PhaseRecord,
    PodRecord,
    PreemptionRecord,
    PullRecord,
    Record,
)


@functools.cache
def empty_database() -> bytes:
    """An SQLite file of the recorder's schema, without rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "roost.db"
        store = Store.open(str(path))
        store.migrate()
        store.close()
        return path.read_bytes()


def empty_store(folder: Path) -> Store:
    """An SQLite database in `folder`/roost.db, without rows."""
    path = folder / "roost.db"
    path.write_bytes(empty_database())
    return Store.open(str(path))


def pod_record(uid: str, **changes: Any) -> PodRecord:
    base = PodRecord(
        uid=uid,
        namespace="hub",
        name=uid,
        pod_class="user",
        image="registry.example.org/image",
        scheduler="hub-user",
        created_us=BEGIN,
    )
    return replace(base, **changes)


def phase_record(uid: str, phase: Phase, at_us: int, detail: str = "") -> PhaseRecord:
    return PhaseRecord(
        pod_uid=uid, phase=phase, detail=detail, at_us=at_us, resolution_us=1, source="event"
    )


def bind_record(uid: str, at_us: int, node: str, model: str | None = None) -> DecisionRecord:
    return DecisionRecord(
        id=f"{uid}/bind",
        pod_uid=uid,
        kind=DecisionKind.BIND,
        node_name=node,
        node_uid=f"uid-{node}",
        at_us=at_us,
        resolution_us=1,
        last_us=at_us,
        scheduler="hub-user",
        source="event",
        model=model,
    )


def fail_record(uid: str, number: int, reasons: dict[str, int], tries: int = 1) -> DecisionRecord:
    base = bind_record(uid, BEGIN + SECOND, "")
    return replace(
        base,
        id=f"{uid}/fail/{number}",
        kind=DecisionKind.FAIL,
        reasons=json.dumps(reasons),
        tries=tries,
        model=None,
    )


def decision_record(uid: str, kind: str, detail: str, at_us: int) -> DecisionRecord:
    return replace(
        bind_record(uid, at_us, "n"), id=f"{uid}/{kind}/{detail}", kind=DecisionKind(kind)
    )


def autoscaler_record(reason: str, at_us: int, message: str, count: int = 1) -> AutoscalerRecord:
    """About the pod p, once a minute."""
    return AutoscalerRecord(
        event_uid=f"{reason}-{at_us}",
        at_us=at_us,
        last_us=at_us + (count - 1) * MINUTE,
        count=count,
        reason=reason,
        about="Pod/hub/p",
        message=message,
    )


def pull_record(
    uid: str,
    at_us: int = BEGIN,
    image: str = "registry.example.org/image:1",
    seconds: float | None = None,
    **more: Any,
) -> PullRecord:
    """A warm pull on node n; seconds: a cold one that took so long."""
    took_us = None if seconds is None else round(seconds * SECOND)
    warm = PullRecord(pod_uid=uid, image=image, node_name="n", at_us=at_us, warm=took_us is None)
    return replace(warm, **{"pull_us": took_us, "pull_and_wait_us": took_us, **more})


_MADE: dict[str, Callable[..., Record]] = {
    "pod": pod_record,
    "phase": lambda uid, phase, *more: phase_record(uid, Phase(phase), *more),
    "bind": bind_record,
    "fail": fail_record,
    "decision": decision_record,
    "pull": pull_record,
    "autoscaler": autoscaler_record,
    "node": lambda name, created_us=BEGIN: NodeRecord(
        uid=f"uid-{name}", name=name, created_us=created_us
    ),
    "gap": lambda from_us, to_us, why: GapRecord(
        kind="pods", from_us=from_us, to_us=to_us, why=why
    ),
    "preempted": lambda uid, at_us, by_uid=None: PreemptionRecord(
        victim_uid=uid, by_uid=by_uid, node_name="n", at_us=at_us, kind="preempted"
    ),
}


def record_of(
    thing: Thing, more: Mapping[str, Callable[..., Record]] = MappingProxyType({})
) -> Record:
    """What a line of a story stores: made by a function above or of `more`, then with the columns
    that it names.
    """
    named = {
        key: json.dumps(value) if isinstance(value, dict) else value
        for key, value in thing.named.items()
    }
    return replace({**_MADE, **more}[thing.kind](*thing.plain), **named)


def story_records(image: str = "registry.example.org/image:1") -> list[Record]:
    """Every kind of record once, on node n."""
    return [
        NodeRecord(
            uid="uid-n",
            name="n",
            created_us=BEGIN,
            ready_us=BEGIN + SECOND,
            images_ready_us=BEGIN + MINUTE,
        ),
        pod_record("p", image=image, deleted_us=BEGIN + 2 * HOUR),
        bind_record("p", BEGIN + SECOND, "n", "agrees"),
        phase_record("p", Phase.STARTED, BEGIN + 2 * SECOND),
        phase_record("p", Phase.READY, BEGIN + 3 * SECOND),
        pull_record("p", BEGIN + SECOND, image, 1, image_bytes=1 << 30),
        fail_record("p", 1, {"Insufficient cpu": 1}),
        PreemptionRecord(victim_uid="p", node_name="n", at_us=BEGIN + HOUR, kind="evicted"),
        pod_record("last", created_us=BEGIN + 2 * HOUR + MINUTE, pod_class="build"),
    ]
