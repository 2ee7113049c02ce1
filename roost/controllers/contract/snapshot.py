"""All that plans may know about the cluster at one time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from roost.controllers.contract.bookings import BookingSource
from roost_core.objects.node import Node
from roost_core.objects.pod import Pod
from roost_core.objects.quotas import ContainerDefaults, Quota
from roost_core.placement.hold_ups import HoldUp
from roost_core.placement.kubelet_pulls import PullEvent


class Moment(NamedTuple):
    """The present time on two clocks: one to compare with the cluster's timestamps, one to measure
    durations.
    """

    # Unix time; may jump.
    wall: float
    # Seconds of a monotonic clock; its zero is arbitrary.
    steady: float

    def began(self, timestamp: float, at_most: float) -> float:
        """When something began, in steady seconds, by another machine's timestamp; so many seconds
        ago at most.

        at_most: 0 for what this program saw begin: clocks differ, and jump.
        """
        return self.steady - min(max(0.0, self.wall - timestamp), at_most)


class Sight(NamedTuple):
    """A node as this program saw it come and get ready: by its own clock, in steady seconds."""

    uid: str
    created: float
    # None: it isn't Ready.
    ready_since: float | None
    # The node's own word for it: with another one, it got ready again.
    timestamp: float | None


def see(node: Node, before: Sight | None, now: Moment, at_most: float) -> Sight:
    """Note when a node came and got ready. at_most: as for `Moment.began`, for what is new."""
    if before is None or before.uid != node.uid:
        before = Sight(node.uid, now.began(node.created, at_most), None, None)
    timestamp = node.ready_since
    ready_since = before.ready_since
    if timestamp != before.timestamp:
        ready_since = None if timestamp is None else now.began(timestamp, at_most)
    return Sight(node.uid, before.created, ready_since, timestamp)


@dataclass(frozen=True, slots=True)
class StatefulSetState:
    """One of our StatefulSets of placeholders."""

    name: str
    uid: str
    # spec.replicas.
    replicas: int
    # Its template changed, and not all of its pods have been replaced yet.
    is_rolling: bool = False
    # Its number is the one that controllers wrote last, not one of the values or of another's hand.
    is_scaled_by_us: bool = False
    # From its template: the container's resources as written, and the PriorityClass's name.
    resources: Mapping[str, Any] = field(default_factory=dict)
    priority_class: str = ""


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
    # What holds bound pods up, by name of the event; empty without start notices.
    hold_ups: Mapping[str, HoldUp] = field(default_factory=dict)
    # ConfigMaps that book events, by namespace and name; empty while events are switched off.
    bookings: Mapping[str, BookingSource] = field(default_factory=dict)
    # What headroom learned, as stored: a history by the set's name; None: not read yet, or not
    # readable.
    histories: Mapping[str, str] | None = None
    # Extended resources that nodes may have without listing them.
    claimable: frozenset[str] = frozenset()
    # Labels of namespaces, by name; None: no class asks for them.
    namespaces: Mapping[str, Mapping[str, str]] | None = None
    # Quotas of the release's namespace, and of hubs' where they may be read, by namespace and name;
    # None: not read yet, or not readable.
    quotas: Mapping[str, Quota] | None = field(default_factory=dict)
    # Quotas of hubs' namespaces may be read, but weren't yet: `quotas` lacks them.
    awaits_hub_quotas: bool = False
    # What LimitRanges of the release's namespace give containers, by namespace and name.
    container_defaults: Mapping[str, ContainerDefaults] = field(default_factory=dict)
    # By name of the node.
    sights: Mapping[str, Sight] = field(default_factory=dict)

    def sight_of(self, node: Node, now: Moment) -> Sight:
        """Since when a node is there and Ready; by its timestamps where nobody watched, as in a
        replay.
        """
        return self.sights.get(node.name) or see(node, None, now, math.inf)
