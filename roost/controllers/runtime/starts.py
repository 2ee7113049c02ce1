"""Follow starts of pods, as the watch shows them: how long, how many failed, the oldest that is
pending, and how many have been for long.

A start ends when the pod runs: whether it answers, nobody tells the API server. One that goes
before that has failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.runtime.metrics import FAILED, STARTED, ControllersMetrics
from roost_core.objects.pod import Pod
from roost_core.placement.labels import hub_of
from roost_core.start_counts import StartLabels

# What a pod waits for whose containers don't run.
NODE_OR_IMAGE: Final = "node-or-image"
VOLUME_OR_ADDRESS: Final = "volume-or-address"
# A minute before hubs give up by default, so that Prometheus sees it whatever its interval.
LATE_SECONDS: Final = 240.0


@dataclass(frozen=True, slots=True)
class Start:
    """The start of one pod."""

    labels: StartLabels
    # Unix time.
    created: float
    is_over: bool = False


class Starts:
    """The starts that the leader has seen. Used by one thread."""

    def __init__(self, release: ReleaseDocument, metrics: ControllersMetrics) -> None:
        """release: by whose classes pods count."""
        self._release = release
        self._metrics = metrics
        # By uid; None: it is of no class, or a placeholder. No mapping: nothing was seen since this
        # replica leads.
        self._known: Mapping[str, Start | None] | None = None

    def follow(self, snapshot: Snapshot, now: float) -> None:
        """Take note of what has changed since the last call; now: Unix time."""
        before = self._known or {}
        led_before = self._known is not None
        known: dict[str, Start | None] = {}
        pending: dict[tuple[str, str, str], float] = {}
        late: Counter[tuple[str, str, str]] = Counter()
        for pod in snapshot.pods.values():
            start = before[pod.uid] if pod.uid in before else self._begin(pod, snapshot)
            if start is not None:
                result = _result(pod)
                if result and not start.is_over:
                    start = replace(start, is_over=True)
                    # What ended before this replica led, another one has counted.
                    if led_before:
                        self._count(start, result, now)
                wait = 0.0 if start.is_over else now - _waits_since(pod)
                # The pod waits for one cause. The other is written, too, so that it shows 0.
                for cause in (NODE_OR_IMAGE, VOLUME_OR_ADDRESS):
                    key = (*start.labels, cause)
                    seconds = wait if cause == _waits_for(pod) else 0.0
                    pending[key] = max(seconds, pending.get(key, 0.0))
                    late[key] += seconds > LATE_SECONDS
            known[pod.uid] = start
        for uid, start in before.items():
            if start is not None and uid not in known and not start.is_over:
                self._count(start, FAILED, now)
        self._known = known
        self._metrics.show_pending(pending, late)

    def forget(self) -> None:
        """Another replica leads: it follows them from here."""
        self._known = None
        self._metrics.show_pending({}, {})

    def _begin(self, pod: Pod, snapshot: Snapshot) -> Start | None:
        pod_class = self._release.class_of(pod, snapshot.namespaces)
        if pod_class is None or pod_class.is_of_placeholders:
            return None
        hub = hub_of(pod.labels, pod.namespace)
        return Start(self._metrics.starts.begin(pod_class.name, hub), pod.created)

    def _count(self, start: Start, result: str, now: float) -> None:
        self._metrics.starts.count(start.labels, result)
        if result == STARTED:
            self._metrics.starts.observe(start.labels, now - start.created)


def _waits_for(pod: Pod) -> str:
    """What a pod waits for: VOLUME_OR_ADDRESS or NODE_OR_IMAGE.

    A kubelet mounts volumes, then it makes the sandbox with its address, then it pulls.
    """
    return VOLUME_OR_ADDRESS if pod.node_name and not pod.has_sandbox else NODE_OR_IMAGE


def _waits_since(pod: Pod) -> float:
    """Since when it waits for that, Unix time.

    For volumes only the time on the node counts: a slow autoscaler is no fault of the storage.
    Otherwise the pod's age counts, as for the hub.
    """
    if _waits_for(pod) == VOLUME_OR_ADDRESS and pod.bound_at is not None:
        return pod.bound_at
    return pod.created


def _result(pod: Pod) -> str:
    """How its start ended; "": it hasn't."""
    if pod.phase in ("Running", "Succeeded"):
        return STARTED
    return FAILED if pod.phase == "Failed" or pod.leaving else ""
