"""Follow starts of pods, as the watch shows them: how long, how many failed, the oldest that is pending.

A start ends when the pod runs: whether it answers, nobody tells the API server. One that goes before that has failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.runtime.metrics import ControllersMetrics
from roost_core.objects.pod import Pod
from roost_core.placement.labels import hub_of

_MOST_HUBS: Final = 50
# The start of one pod: class and hub, when it was created in Unix time, whether it is over.
Start = tuple[tuple[str, str], float, bool]


class Starts:
    """The starts that the leader has seen. Used by one thread."""

    def __init__(self, release: ReleaseDocument, metrics: ControllersMetrics) -> None:
        """release: by whose classes pods count."""
        self._release, self._metrics = release, metrics
        # By uid; None: it is of no class, or a placeholder. No mapping: nothing was seen since this replica leads.
        self._known: Mapping[str, Start | None] | None = None
        self._hubs: set[str] = set()

    def follow(self, snapshot: Snapshot, now: float) -> None:
        """Take note of what has changed since the last call; now: Unix time."""
        before = self._known or {}
        known: dict[str, Start | None] = {}
        for pod in snapshot.pods.values():
            start = before[pod.uid] if pod.uid in before else self._begin(pod, snapshot)
            if start is not None and not start[2] and (result := _result(pod)):
                # What ended before this replica led, another one has counted.
                if self._known is not None:
                    self._count(start, result, now)
                start = *start[:2], True
            known[pod.uid] = start
        for uid in before.keys() - known.keys():
            if (gone := before[uid]) is not None and not gone[2]:
                self._count(gone, "failed", now)
        self._known = known
        pending: dict[tuple[str, str], float] = {}
        for whose, created, is_over in filter(None, known.values()):
            pending[whose] = max(0.0 if is_over else now - created, pending.get(whose, 0.0))
        self._metrics.show_pending(pending)

    def forget(self) -> None:
        """Another replica leads: it follows them from here."""
        self._known = None
        self._metrics.show_pending({})

    def _begin(self, pod: Pod, snapshot: Snapshot) -> Start | None:
        found = self._release.class_of(pod, snapshot.namespaces)
        return None if found is None or found.attract else ((found.name, self._hub(pod)), pod.created, False)

    def _hub(self, pod: Pod) -> str:
        """As the recorder calls it; whoever creates pods may name any, so that those beyond a bound are one."""
        hub = hub_of(pod.labels, pod.namespace)
        if len(self._hubs) < _MOST_HUBS:
            self._hubs.add(hub)
        return hub if hub in self._hubs else "other"

    def _count(self, start: Start, result: str, now: float) -> None:
        self._metrics.starts.labels(*start[0], result).inc()
        if result == "started":
            self._metrics.start_seconds.labels(*start[0]).observe(max(0.0, now - start[1]))


def _result(pod: Pod) -> str:
    """What became of a start; "": it isn't over."""
    if pod.phase in ("Running", "Succeeded"):
        return "started"
    return "failed" if pod.phase == "Failed" or pod.leaving else ""
