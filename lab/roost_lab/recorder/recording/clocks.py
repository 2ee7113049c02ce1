"""Tell how far nodes' clocks are off, and convert the kubelets' times to the API server's clock.

Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import replace
from typing import Final

from roost_lab.recorder.recording.reading import SECOND_US, EventReading, PodReading
from roost_lab.units import HOUR_US

# An Event counts for its node's clock for an hour: clocks drift, and are set right.
_EVENT_HOLDS_US: Final = HOUR_US
# With fewer Events a clock counts as right: all of them may have come late.
_FEWEST: Final = 3
# Kubelets' times are whole seconds, and an Event takes some time to reach the API server: a smaller
# difference says nothing of the clock.
_LEAST_US: Final = 2 * SECOND_US
# Most Events that a node's clock is judged by.
_MOST_EVENTS: Final = 100
# Conditions whose times are the scheduler's or the control plane's.
_NOT_THE_KUBELETS: Final = ("PodScheduled", "DisruptionTarget")


def behind_us(differences: Collection[int]) -> int:
    """How far a node's clock is behind the API server's, in µs; negative: it is ahead. 0: it is
    right, or too few Events tell.

    differences: for each Event, the time when the API server got it less the kubelet's time of it,
    in µs.
    """
    # An Event may come late, but never early. So the least difference is the clock's; what the
    # others have beyond it is how long they took to arrive.
    least = min(differences, default=0) if len(differences) >= _FEWEST else 0
    return least if abs(least) >= _LEAST_US else 0


def pod_in_server_time(pod: PodReading, behind: int) -> PodReading:
    """The pod, with its kubelet's times converted to the API server's clock.

    behind: how far its node's clock is behind, in µs; negative: ahead.
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
        # By the node's name, for each Event of its kubelet: when the API server got it, and that
        # time less the kubelet's, in µs.
        self._differences: dict[str, deque[tuple[int, int]]] = {}
        # How far wrong clocks are behind, in µs, by the node's name; negative: ahead.
        self.behind: dict[str, int] = {}

    def learn(self, event: EventReading) -> None:
        """Learn from a kubelet's Event how far its node's clock is behind."""
        if not _is_dated_by_kubelet(event):
            return
        differences = self._differences.setdefault(event.host, deque(maxlen=_MOST_EVENTS))
        # An Event that is repeated has the time of its last repetition, and was created at its
        # first. Their difference says nothing of a clock.
        if event.count == 1:
            differences.append((event.created_us, event.created_us - event.when.at_us))
        while differences and differences[0][0] < event.created_us - _EVENT_HOLDS_US:
            differences.popleft()
        behind = behind_us([difference for _, difference in differences])
        if behind:
            self.behind[event.host] = behind
        else:
            self.behind.pop(event.host, None)

    def correct_event(self, event: EventReading) -> EventReading:
        """The Event, with its kubelet's times converted to the API server's clock."""
        behind = self.behind.get(event.host, 0) if _is_dated_by_kubelet(event) else 0
        if not behind:
            return event
        when = event.when._replace(at_us=event.when.at_us + behind)
        return replace(event, when=when, last_us=event.last_us + behind)

    def correct_pod(self, pod: PodReading) -> PodReading:
        """The pod, with its kubelet's times converted to the API server's clock."""
        return pod_in_server_time(pod, self.behind.get(pod.state.node_name, 0))

    def forget(self, node: str) -> None:
        """A node is gone: another one of its name has a clock of its own."""
        self._differences.pop(node, None)
        self.behind.pop(node, None)


def _is_dated_by_kubelet(event: EventReading) -> bool:
    """Whether a kubelet made the Event, and gave its time in whole seconds."""
    is_whole_seconds = event.when.resolution_us == SECOND_US
    return bool(event.host) and bool(event.created_us) and is_whole_seconds
