"""Count two kinds of pods for the metrics: pods that no rule changed, and pods that wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from webhook.metrics import WebhookMetrics, show
from webhook.watching.pod_reader import WatchedPod


class UnplacedAndWaiting:
    """Counts, by class, unplaced pods and pods that wait for Roost's scheduler.

    The webhook never saw an unplaced pod, or its review failed.
    """

    def __init__(self, classes: Iterable[str], metrics: WebhookMetrics) -> None:
        self._classes = list(classes)
        self._metrics = metrics
        # uid and class of unplaced pods, by `namespace/name`.
        self._unplaced: dict[str, tuple[str, str]] = {}
        # Class of waiting pods, by `namespace/name`.
        self._waiting: dict[str, str] = {}
        self._has_changed = False
        self.show()

    def update(self, pod_class: str, changes: Mapping[str, WatchedPod | None]) -> None:
        """Take in changes of a class's pods, by `namespace/name`; None: the pod is gone."""
        for key, pod in changes.items():
            is_waiting = pod is not None and pod.is_waiting
            self._note_waiting(key, pod_class if is_waiting else None)
            if pod is not None and pod.is_unplaced:
                self._note_unplaced(key, pod.uid, pod_class)
            elif key in self._unplaced:
                del self._unplaced[key]
                self._has_changed = True

    def _note_waiting(self, key: str, pod_class: str | None) -> None:
        """Note a waiting pod's class. pod_class: None: the pod doesn't wait."""
        if self._waiting.get(key) == pod_class:
            return
        self._has_changed = True
        if pod_class is None:
            del self._waiting[key]
        else:
            self._waiting[key] = pod_class

    def _note_unplaced(self, key: str, uid: str, pod_class: str) -> None:
        known_uid, _ = self._unplaced.get(key, ("", ""))
        if known_uid != uid:
            self._unplaced[key] = (uid, pod_class)
            self._metrics.unplaced_seen.labels(pod_class).inc()
            self._has_changed = True

    def show_changes(self) -> None:
        """Show the counts if any changed since they were last shown."""
        if self._has_changed:
            self.show()

    def show(self) -> None:
        """Show the counts of all classes; 0 for classes without such pods."""
        unplaced = Counter(pod_class for _, pod_class in self._unplaced.values())
        waiting = Counter(self._waiting.values())
        show(self._metrics.unplaced, {name: unplaced[name] for name in self._classes})
        show(self._metrics.waiting, {name: waiting[name] for name in self._classes})
        self._has_changed = False
