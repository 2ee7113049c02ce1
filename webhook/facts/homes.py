"""The pods of classes with a home, by node."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from typing import Self

from webhook.facts.placed_pod import PlacedPod

_made = itertools.count()


class Homes:
    """The unfinished pods of classes with a home, and how many there are on each node.

    Immutable.
    """

    __slots__ = ("_loads", "_totals", "made", "pods")

    def __init__(self, pods: Mapping[str, PlacedPod] | None = None) -> None:
        # Greater in what was made later.
        self.made = next(_made)
        # By `pod_key`.
        self.pods: Mapping[str, PlacedPod] = dict(pods or {})
        loads: dict[str, Counter[str]] = {}
        for pod, count in Counter(self.pods.values()).items():
            loads.setdefault(pod.pod_class, Counter())[pod.node] += count
        self._loads: Mapping[str, Mapping[str, int]] = loads
        self._totals = {pod_class: counts.total() for pod_class, counts in loads.items()}

    def loads(self, pod_class: str) -> Mapping[str, int]:
        """Pods of the class on each node, those still on their way to it too; under "" those
        without one.
        """
        return self._loads.get(pod_class, {})

    def total(self, pod_class: str) -> int:
        """Pods of the class, with a node and without."""
        return self._totals.get(pod_class, 0)

    def updated(self, changes: Mapping[str, PlacedPod | None]) -> Self:
        """A copy with `changes` (None: gone or finished)."""
        merged = {**self.pods, **changes}
        return type(self)({key: pod for key, pod in merged.items() if pod is not None})
