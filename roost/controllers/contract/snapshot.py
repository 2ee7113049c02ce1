"""All that plans may know about the cluster at one time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple

if TYPE_CHECKING:
    from roost.controllers.contract.bookings import BookingSource
    from roost_core.objects.node import Node
    from roost_core.objects.pod import Pod
    from roost_core.placement.kubelet_pulls import PullEvent


class Moment(NamedTuple):
    """The present time on two clocks: one to compare with the cluster's timestamps, one to measure durations."""

    # Unix time; may jump.
    wall: float
    # Seconds of a monotonic clock; its zero is arbitrary.
    steady: float


@dataclass(frozen=True, slots=True)
class StatefulSetState:
    """One of our StatefulSets of placeholders."""

    kind: ClassVar[str] = "StatefulSet"
    name: str
    uid: str
    # spec.replicas.
    replicas: int
    # Its template changed, and not all of its pods have been replaced yet.
    is_rolling: bool = False
    # Requests of its template's first container, as written: resource -> quantity.
    requests: Mapping[str, object] = field(default_factory=dict)
    # Name of that container.
    container: str = ""


@dataclass(frozen=True, slots=True)
class CapacityBufferState:
    """One of our CapacityBuffers: an autoscaler keeps room for as many placeholders, without any pod."""

    kind: ClassVar[str] = "CapacityBuffer"
    name: str
    uid: str
    # spec.replicas; None: nobody has set it.
    replicas: int | None
    # spec.podTemplateRef.name; "": none, so that autoscalers pass over it.
    template: str = ""
    # Why no autoscaler keeps its room, by its condition ReadyForProvisioning; "": one does.
    unready: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The cluster as last watched. The mappings are not changed while a plan reads them."""

    release: str
    namespace: str
    # By name.
    nodes: Mapping[str, Node] = field(default_factory=dict)
    # By `namespace/name`, in every namespace that may be read; without others' finished pods.
    pods: Mapping[str, Pod] = field(default_factory=dict)
    # By name.
    stateful_sets: Mapping[str, StatefulSetState] = field(default_factory=dict)
    # By name of the event.
    pull_events: Mapping[str, PullEvent] = field(default_factory=dict)
    # ConfigMaps and the calendar that book events, by kind, namespace and name; empty while events are switched off.
    bookings: Mapping[str, BookingSource] = field(default_factory=dict)
    # What headroom learned, as stored: a history by the set's name; None: not read yet, or not readable.
    histories: Mapping[str, str] | None = None
    # By name; empty while placeholders are pods, and while the API server doesn't serve CapacityBuffers.
    capacity_buffers: Mapping[str, CapacityBufferState] = field(default_factory=dict)
    # Extended resources that nodes may have without listing them.
    claimable: frozenset[str] = frozenset()
    # Labels of namespaces, by name; None: no class asks for them.
    namespaces: Mapping[str, Mapping[str, str]] | None = None
