"""Tell how far nodes' clocks are off, and give what their kubelets date the API server's time.

Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import replace
from typing import Final

from roost_lab.recorder.recording.reading import SECOND_US, EventReading, PodReading

# An Event tells of its node's clock for this long.
HOUR_US: Final = 3_600 * SECOND_US
# One Event may come late; so many don't all.
_FEWEST: Final = 3
# Kubelets give whole seconds, and an Event needs time to the API server: a difference below this
# says nothing of the clock.
_LEAST_US: Final = 2 * SECOND_US
# Most Events that a node's clock is judged by.
_MOST_EVENTS: Final = 100
# Conditions that the scheduler and the control plane date.
_NOT_THE_KUBELETS: Final = ("PodScheduled", "DisruptionTarget")


def behind_us(differences: Collection[int]) -> int:
    """How far a node's clock is behind the API server's, in µs; negative: it is ahead. 0: it is
    right, or too few Events tell.

    differences: of each Event, how much later than its own time the API server got it, in µs.
    """
    # An Event may come late, but never early: the least difference is the clock's, and what others
    # have beyond it is their way.
    least = min(differences, default=0) if len(differences) >= _FEWEST else 0
    return least if abs(least) >= _LEAST_US else 0


def pod_in_server_time(pod: PodReading, behind: int) -> PodReading:
    """The pod with what its kubelet dates in the API server's time; behind: how far its
    node's clock is behind, in µs; negative: ahead.
    """
    if not behind:
        return pod

    def moved(at_us: int | None) -> int | None:
        return None if at_us is None else at_us + behind

    conditions = {
        kind: (
            condition
            if kind in _NOT_THE_KUBELETS
            else condition._replace(since_us=moved(condition.since_us))
        )
        for kind, condition in pod.conditions.items()
    }
    containers = tuple(
        replace(
            container, started_us=moved(container.started_us), ended_us=moved(container.ended_us)
        )
        for container in pod.containers
    )
    return replace(
        pod, accepted_us=moved(pod.accepted_us), conditions=conditions, containers=containers
    )


class NodeClocks:
    """What kubelets' Events have told of their nodes' clocks. Owned by one thread."""

    def __init__(self) -> None:
        # Node's name -> (when the API server got an Event of its kubelet, how much later than its
        # own time), in µs.
        self._differences: dict[str, deque[tuple[int, int]]] = {}
        # How far wrong clocks are behind, in µs, by the node's name; negative: ahead.
        self.behind: dict[str, int] = {}

    def event_in_server_time(self, event: EventReading) -> EventReading:
        """Learn from a kubelet's Event how far its node's clock is behind, and correct the
        Event.
        """
        if not event.host or not event.created_us or event.when.resolution_us != SECOND_US:
            return event
        differences = self._differences.setdefault(event.host, deque(maxlen=_MOST_EVENTS))
        # A later count of the same Event dates the repetition, and its creation stays the first
        # one's.
        if event.count == 1:
            differences.append((event.created_us, event.created_us - event.when.at_us))
        while differences and differences[0][0] < event.created_us - HOUR_US:
            differences.popleft()
        behind = behind_us([difference for _, difference in differences])
        if not behind:
            self.behind.pop(event.host, None)
            return event
        self.behind[event.host] = behind
        when = event.when._replace(at_us=event.when.at_us + behind)
        return replace(event, when=when, last_us=event.last_us + behind)

    def pod_in_server_time(self, pod: PodReading) -> PodReading:
        """The pod with what its kubelet dates in the API server's time."""
        return pod_in_server_time(pod, self.behind.get(pod.state.node_name, 0))

    def forget(self, node: str) -> None:
        """A node is gone: another one of its name has a clock of its own."""
        self._differences.pop(node, None)
        self.behind.pop(node, None)
