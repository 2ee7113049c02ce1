"""Which changes are minor. After any other change, `loop.py` makes a plan at once."""

from __future__ import annotations

from collections.abc import Mapping

from roost.controllers.contract.pod_kinds import (
    PULLER_WORD,
    is_popular_puller,
    is_puller,
    is_z2jh_puller,
    waits_at_gate,
)
from roost_core.objects.pod import Pod
from roost_core.placement.kubelet_pulls import PullEvent


def is_minor_change_of_pod(before: Pod | None, now: Pod | None) -> bool:
    """Whether a change of a pod is minor. None: the pod didn't exist before, or doesn't now.

    A plan is made at once when a pod begins to wait at the image gate, and when a puller's pod
    changes.
    """
    if now is not None and now.unschedulable_since is not None and waits_at_gate(now):
        # Minor if it was unschedulable before. Whether it waited at the gate then isn't asked.
        return before is not None and before.unschedulable_since is not None
    return not any(pod is not None and _is_pullers(pod.labels) for pod in (before, now))


def _is_pullers(labels: Mapping[str, str]) -> bool:
    """Whether a pod with these labels is of a puller: Roost's, popular images' or z2jh's."""
    return is_puller(labels) or is_popular_puller(labels) or is_z2jh_puller(labels)


def is_minor_pull_event(before: PullEvent | None, now: PullEvent | None) -> bool:
    """Whether a change of an Event about a pull is minor: it isn't about a puller's pod.

    The pods of users pull images, too, and cause many of these Events.
    """
    return not any(event and PULLER_WORD in event.pod for event in (before, now))
