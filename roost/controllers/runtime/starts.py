"""Follow starts of pods, as the watch shows them: how long, how many failed, the oldest that is pending.

A start ends when the pod runs: whether it answers, nobody tells the API server. One that goes before that has failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.runtime.metrics import ControllersMetrics
from roost_core.objects.pod import Pod


class Start(NamedTuple):
    """The start of one pod: class and hub (namespace), when it was created in Unix time, whether it is over."""

    whose: tuple[str, str]
    created: float
    is_over: bool


class Starts:
    """The starts that the leader has seen. Used by one thread."""

    def __init__(self, release: ReleaseDocument, metrics: ControllersMetrics) -> None:
        """release: by whose classes pods count."""
        self._release, self._metrics = release, metrics
        # By uid; None: it is of no class, or a placeholder. No mapping: nothing was seen since this replica leads.
        self._known: Mapping[str, Start | None] | None = None

    def follow(self, snapshot: Snapshot, now: float) -> None:
        """Take note of what has changed since the last call; now: Unix time."""
        before = self._known or {}
        known: dict[str, Start | None] = {}
        for pod in snapshot.pods.values():
            start = before[pod.uid] if pod.uid in before else self._begin(pod, snapshot)
            if start is not None and not start.is_over and (result := _result(pod)):
                # What ended before this replica led, another one has counted.
                if self._known is not None:
                    self._count(start, result, now)
                start = start._replace(is_over=True)
            known[pod.uid] = start
        for uid in before.keys() - known.keys():
            if (gone := before[uid]) is not None and not gone.is_over:
                self._count(gone, "failed", now)
        self._known = known
        pending: dict[tuple[str, str], float] = {}
        for start in known.values():
            if start is not None:
                age = 0.0 if start.is_over else max(0.0, now - start.created)
                pending[start.whose] = max(age, pending.get(start.whose, 0.0))
        self._metrics.show_pending(pending)

    def forget(self) -> None:
        """Another replica leads: it follows them from here."""
        self._known = None
        self._metrics.show_pending({})

    def _begin(self, pod: Pod, snapshot: Snapshot) -> Start | None:
        found = self._release.class_of(pod, snapshot.namespaces)
        return None if found is None or found.attract else Start((found.name, pod.namespace), pod.created, False)

    def _count(self, start: Start, result: str, now: float) -> None:
        self._metrics.starts.labels(*start.whose, result).inc()
        if result == "started":
            self._metrics.start_seconds.labels(*start.whose).observe(max(0.0, now - start.created))


def _result(pod: Pod) -> str:
    """What became of a start; "": it isn't over."""
    if pod.phase in ("Running", "Succeeded"):
        return "started"
    return "failed" if pod.phase == "Failed" or pod.leaving else ""
