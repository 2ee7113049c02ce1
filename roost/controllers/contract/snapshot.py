"""Hold all that plans may know of the cluster, at one moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost_core.scheduler.objects import NodeState, PodState


class Moment(NamedTuple):
    """Now, twice: plans compare the first with what the cluster wrote, and measure spans by the second."""

    # Seconds since the epoch; may jump.
    wall: float
    # Seconds of a clock that never jumps; its zero means nothing.
    steady: float


@dataclass(frozen=True, slots=True)
class StatefulSetState:
    """One of our StatefulSets of placeholders."""

    name: str
    uid: str
    # Wanted now.
    replicas: int
    ready_replicas: int
    # Its template changed, and not all of its pods follow yet.
    is_rolling: bool = False
    # What the first container of its template asks for, as written: resource -> quantity.
    requests: Mapping[str, object] = field(default_factory=dict)
    # Of that container.
    container: str = ""


class PullEvent(NamedTuple):
    """What the kubelet said of one image of one of our puller pods."""

    pod: str
    pod_uid: str
    node: str
    # As written in the pod; "" when the event doesn't name it.
    image: str
    # Pulled (the image is there), Failed or BackOff.
    reason: str
    message: str
    # Seconds since the epoch, of the kubelet's clock.
    at: float


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The cluster as the watches last had it. The mappings are not edited while a plan reads them."""

    release: str
    namespace: str
    # By name.
    nodes: Mapping[str, NodeState] = field(default_factory=dict)
    # By `namespace/name`; of every namespace that may be read, finished ones left out.
    pods: Mapping[str, PodState] = field(default_factory=dict)
    # By name.
    stateful_sets: Mapping[str, StatefulSetState] = field(default_factory=dict)
    # By name of the event.
    pull_events: Mapping[str, PullEvent] = field(default_factory=dict)
