"""A made-up record of a large hub for the page of `roost view`: nodes of many ages, pods, images,
and a busy minute.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from roost_core.placement.labels import attract_label
from roost_lab.recorder.store.records import (
    DecisionKind,
    DecisionRecord,
    ImageRecord,
    NodeRecord,
    Phase,
    PhaseRecord,
    PodRecord,
    PreemptionRecord,
    PullRecord,
)
from roost_lab.units import MINUTE_US, US

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roost_lab.recorder.store.records import Record

IMAGES: Final = tuple(
    f"quay.io/jupyter/{name}-notebook:2026-11-{day:02}"
    for day in (2, 9)
    for name in ("scipy", "datascience", "tensorflow", "r", "pyspark")
)


def records(end_us: int, nodes: int = 200, pods: int = 5000) -> Iterator[Record]:
    """As many nodes with pods on them at `end_us`, and ten pods that wait."""
    for number in range(nodes):
        yield from _node(end_us, number, nodes)
    for number in range(pods):
        yield from _pod(end_us, number, number % nodes)
    for number in range(10):
        uid = f"waiting-{number}"
        created_us = end_us - (number + 1) * 7 * US
        message = f"0/{nodes} nodes are available: {nodes} Insufficient memory."
        yield _pod_record(uid, "user", number, created_us)
        yield _decision(uid, DecisionKind.FAIL, "", created_us + US, message=message)


def _node(end_us: int, number: int, nodes: int) -> Iterator[Record]:
    created_us = end_us - (nodes - number) * 10 * MINUTE_US
    attracts = {attract_label("hub", "jhub", "default"): "true"} if number == nodes - 1 else {}
    uid = f"uid-{number}"
    yield NodeRecord(
        uid=uid,
        name=_name(number),
        created_us=created_us,
        allocatable=json.dumps({"cpu": 16_000, "memory": 64 << 30, "pods": 110}),
        labels=json.dumps(attracts),
        taints="",
        is_ready=number % 50 != 7,
        is_unschedulable=number % 40 == 3,
    )
    for index, image in enumerate(IMAGES):
        if (number + index) % 3:
            yield ImageRecord(node_uid=uid, image=image, first_us=created_us, image_bytes=1 << 30)


def _pod(end_us: int, number: int, node: int) -> Iterator[Record]:
    kind = "placeholder" if number % 5 == 0 else "build" if number % 23 == 0 else "user"
    uid = f"{kind}-{number}"
    is_new = number % 250 == 1
    bound_us = (
        end_us - (number % 50 + 1) * US if is_new else end_us - (number % 600 + 2) * MINUTE_US
    )
    yield _pod_record(uid, kind, number, bound_us - US)
    yield _decision(uid, DecisionKind.BIND, _name(node), bound_us, node_uid=f"uid-{node}")
    if is_new and number % 500 == 1:
        yield PullRecord(
            pod_uid=uid,
            image=_image(number),
            node_name=_name(node),
            at_us=end_us + MINUTE_US,
            warm=False,
            pull_us=2 * MINUTE_US,
            pull_and_wait_us=2 * MINUTE_US,
        )
    else:
        yield PhaseRecord(
            pod_uid=uid,
            phase=Phase.STARTED,
            detail="c",
            at_us=bound_us + US,
            resolution_us=1,
            source="event",
        )
    if is_new and number % 1000 == 1:
        yield PreemptionRecord(
            victim_uid=f"placeholder-{number - 1}",
            by_uid=uid,
            node_name=_name(node),
            at_us=bound_us,
            kind="preempted",
        )


def _image(number: int) -> str:
    # The first ones are those of most users.
    return IMAGES[min(number % 17, number % 13, len(IMAGES) - 1)]


def _name(number: int) -> str:
    return f"gke-hub-cluster-user-pool-{number:08x}-node"


def _pod_record(uid: str, kind: str, number: int, created_us: int) -> PodRecord:
    return PodRecord(
        uid=uid,
        namespace="jhub",
        name=f"jupyter-{uid}" if kind == "user" else uid,
        pod_class=kind,
        hub="hub",
        image=_image(number) if kind == "user" else "registry.k8s.io/pause:3.10",
        scheduler="roost.jhub.user",
        cpu_millicores=500,
        memory_bytes=2 << 30,
        created_us=created_us,
    )


def _decision(
    uid: str, kind: DecisionKind, node: str, at_us: int, *, message: str = "", node_uid: str = ""
) -> DecisionRecord:
    return DecisionRecord(
        id=f"{uid}/{kind}" + ("" if kind == DecisionKind.BIND else "/1"),
        pod_uid=uid,
        kind=kind,
        node_name=node,
        node_uid=node_uid,
        at_us=at_us,
        resolution_us=1,
        last_us=at_us,
        scheduler="roost.jhub.user",
        source="event",
        message=message,
    )
