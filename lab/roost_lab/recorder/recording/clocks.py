"""Tell how far a node's clock is off, and give what its kubelet dates the API server's time.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from roost_lab.recorder.recording.reading import SECOND_US, PodReading

# So long an Event speaks of its node's clock.
HOUR_US: Final = 3_600 * SECOND_US
# One Event may come late; so many don't all.
_FEWEST: Final = 3
# Whole seconds, and the way to the API server.
_LEAST_US: Final = 2 * SECOND_US
# Conditions that the scheduler and the control plane date.
_NOT_THE_KUBELETS: Final = ("PodScheduled", "DisruptionTarget")


def behind_us(differences: Collection[int]) -> int:
    """How far a clock is behind, by so many Events; 0: it is right, or these are too few to
    tell.
    """
    least = min(differences, default=0) if len(differences) >= _FEWEST else 0
    return least if abs(least) >= _LEAST_US else 0


def pod_in_server_time(pod: PodReading, behind: int) -> PodReading:
    """The pod with what its kubelet dates in the API server's time; behind: its node's clock, in
    µs.
    """
    if not behind:
        return pod

    def moved(at_us: int | None) -> int | None:
        return None if at_us is None else at_us + behind

    conditions = {
        kind: one if kind in _NOT_THE_KUBELETS else one._replace(since_us=moved(one.since_us))
        for kind, one in pod.conditions.items()
    }
    containers = tuple(replace(one, started_us=moved(one.started_us)) for one in pod.containers)
    return replace(
        pod, accepted_us=moved(pod.accepted_us), conditions=conditions, containers=containers
    )
