"""Follow starts of pods, as the watch shows them: how long, how many failed, the oldest that is
pending.

A start ends when the pod runs: whether it answers, nobody tells the API server. One that goes
before that has failed.
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
        # By uid; None: it is of no class, or a placeholder. No mapping: nothing was seen since this
        # replica leads.
        self._known: Mapping[str, Start | None] | None = None
        self._hubs: set[str] = set()

    def follow(self, snapshot: Snapshot, now: float) -> None:
        """Take note of what has changed since the last call; now: Unix time."""
        # What ended before this replica led, another one has counted.
        before, counts = self._known or {}, self._known is not None
        known: dict[str, Start | None] = {}
        pending: dict[tuple[str, str], float] = {}
        for pod in snapshot.pods.values():
            start = before[pod.uid] if pod.uid in before else self._begin(pod, snapshot)
            if start is not None:
                whose, created, is_over = start
                is_lost = pod.phase == "Failed" or pod.leaving
                result = (
                    "started"
                    if pod.phase in ("Running", "Succeeded")
                    else "failed"
                    if is_lost
                    else ""
                )
                if not is_over and result:
                    is_over = True
                    if counts:
                        self._metrics.count_start(whose, result, now - created)
                pending[whose] = max(0.0 if is_over else now - created, pending.get(whose, 0.0))
                start = whose, created, is_over
            known[pod.uid] = start
        for whose, created, is_over in (
            start for uid, start in before.items() if start and uid not in known
        ):
            if not is_over:
                self._metrics.count_start(whose, "failed", now - created)
        self._known = known
        self._metrics.show_pending(pending)

    def forget(self) -> None:
        """Another replica leads: it follows them from here."""
        self._known = None
        self._metrics.show_pending({})

    def _begin(self, pod: Pod, snapshot: Snapshot) -> Start | None:
        found = self._release.class_of(pod, snapshot.namespaces)
        if found is None or found.attract:
            return None
        hub = hub_of(pod.labels, pod.namespace)
        # Whoever creates pods may name any: those beyond a bound are one.
        if len(self._hubs) < _MOST_HUBS:
            self._hubs.add(hub)
        return (found.name, hub if hub in self._hubs else "other"), pod.created, False
