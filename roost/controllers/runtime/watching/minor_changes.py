"""Which changes no plan waits for: `loop.py` plans at once after all others."""

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
    """Whether a pod's change may wait: those of pullers' pods and of pods that begin to wait at the
    gate may not.
    """
    if now is not None and now.unschedulable_since is not None and waits_at_gate(now):
        return before is not None and before.unschedulable_since is not None
    return not any(pod is not None and _pulls(pod.labels) for pod in (before, now))


def _pulls(labels: Mapping[str, str]) -> bool:
    return is_puller(labels) or is_popular_puller(labels) or is_z2jh_puller(labels)


def is_minor_pull_event(before: PullEvent | None, now: PullEvent | None) -> bool:
    """Whether no plan waits for an Event: users' pods pull, too."""
    return not any(event and PULLER_WORD in event.pod for event in (before, now))
