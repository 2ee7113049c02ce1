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

    def began(self, timestamp: float, longest_ago: float) -> float:
        """When something began, in steady seconds, by another machine's timestamp.

        timestamp: Unix time. longest_ago: seconds before now; an earlier beginning counts as this
        one. 0 for what this program saw begin, because clocks differ, and jump.
        """
        seconds_ago = max(0.0, self.wall - timestamp)
        return self.steady - min(seconds_ago, longest_ago)


class Sight(NamedTuple):
    """A node as this program saw it come and get ready: by its own clock, in steady seconds."""

    uid: str
    created: float
    # None: it isn't Ready.
    ready_since: float | None
    # `Node.ready_since`, the node's own timestamp. When it changes, the node got ready again.
    timestamp: float | None


def see(node: Node, before: Sight | None, now: Moment, longest_ago: float) -> Sight:
    """When a node came and got ready, by this program's clock.

    before: the result of the last look; None: there was none. longest_ago: as for `Moment.began`,
    for what changed since.
    """
    if before is None or before.uid != node.uid:
        before = Sight(node.uid, now.began(node.created, longest_ago), None, None)
    timestamp = node.ready_since
    ready_since = before.ready_since
    if timestamp != before.timestamp:
        ready_since = None if timestamp is None else now.began(timestamp, longest_ago)
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
    # Its number is the number that controllers wrote last. Neither the values nor a person changed
    # it since.
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
    # What headroom learned, as stored in its ConfigMap: the text of a history, by the set's name;
    # None: not read yet, or not readable.
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
        """Since when a node is there and Ready. For a node that this program didn't watch, as in a
        replay, the node's own timestamps count.
        """
        return self.sights.get(node.name) or see(node, None, now, math.inf)
