"""Find what holds bound pods up: a volume, a sandbox, or an init container that runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.start_notices import settings
from roost_core.objects.pod import Pod
from roost_core.placement.hold_ups import HeldUpBy, HoldUp
from roost_core.placement.kubelet_pulls import PULL_FAULTS


class PodHoldUp(NamedTuple):
    """What holds one pod up."""

    # None: an init container that runs.
    by: HeldUpBy | None
    # What the Event says in short; for an init container, its name.
    cause: str
    # When it began, in Unix time; None: not known.
    since: float | None

    @property
    def kind(self) -> str:
        """What holds the pod up: a label's value in metrics."""
        return "init-container" if self.by is None else self.by.value

    @property
    def init_container(self) -> str:
        """The name of the init container that runs; "": something else holds the pod up."""
        return self.cause if self.by is None else ""


def find_hold_ups(snapshot: Snapshot, now: float) -> Mapping[str, PodHoldUp]:
    """What holds pods up now, by uid. Pods whose containers all run aren't looked at."""
    # By uid of the pod.
    by_pod: dict[str, list[HoldUp]] = {}
    for hold_up in snapshot.hold_ups.values():
        if now - hold_up.at < settings.HOLD_UP_STALE_SECONDS:
            by_pod.setdefault(hold_up.pod_uid, []).append(hold_up)
    hold_ups: dict[str, PodHoldUp] = {}
    for pod in snapshot.pods.values():
        if not pod.node_name or pod.phase != "Pending" or pod.leaving:
            continue
        running = _running_init_container(pod)
        if running:
            hold_ups[pod.uid] = PodHoldUp(None, running, None)
        elif pod.uid in by_pod and not _has_begun(pod):
            last = max(by_pod[pod.uid], key=lambda hold_up: hold_up.at)
            since = min(hold_up.since for hold_up in by_pod[pod.uid] if hold_up.by is last.by)
            hold_ups[pod.uid] = PodHoldUp(last.by, last.cause, since)
    return hold_ups


def _running_init_container(pod: Pod) -> str:
    """The name of the init container that the others wait for; "": there is none.

    A sidecar is an init container that stays. Nobody waits for it once it is ready.
    """
    running = (
        container.name
        for container in pod.containers
        if container.init and container.running and not container.ready
    )
    return next(running, "")


def _has_begun(pod: Pod) -> bool:
    """Whether the kubelet has done with volumes and the sandbox.

    The kubelet says so, or has begun to pull an image. Then an Event about a volume or the sandbox
    is out of date: Events stay for a while after the fault is gone.
    """
    return pod.has_sandbox or any(
        container.image_id
        or container.running
        or container.terminated
        or container.waiting_reason in PULL_FAULTS
        for container in pod.containers
    )
