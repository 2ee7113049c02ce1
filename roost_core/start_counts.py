"""Count starts of pods by class and hub, for the metrics of the controllers and of the recorder.

Each program says which metrics it has, which results of a start it knows, and which phases it
times. There are time series of at most 51 hubs, whatever hubs the pods name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from prometheus_client import Counter, Histogram

# The first so many hubs are counted by name. All further hubs are counted together.
MAX_HUBS: Final = 50
OTHER_HUBS: Final = "other"
# In seconds. 300 is there because hubs wait so long for a start, by default.
START_BUCKETS: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 180.0, 300.0, 600.0, 1200.0)
# The class and the hub of a start: the values of the labels `class` and `hub`.
StartLabels = tuple[str, str]


class StartCounts:
    """How starts ended, and how long they took. Used by one thread."""

    def __init__(
        self, ended: Counter, seconds: Histogram, results: Iterable[str], phases: Iterable[str] = ()
    ) -> None:
        """ended: a metric with the labels class, hub and result. seconds: a metric with the labels
        class and hub, and phase if there are phases.
        """
        self._ended = ended
        self._seconds = seconds
        self._results = tuple(results)
        self._phases = tuple(phases)
        self._hubs: set[str] = set()
        self._begun: set[StartLabels] = set()

    def begin(self, pod_class: str, hub: str) -> StartLabels:
        """Return the labels of a start. If they are new, their metrics begin at 0."""
        if len(self._hubs) < MAX_HUBS:
            self._hubs.add(hub)
        labels = (pod_class, hub if hub in self._hubs else OTHER_HUBS)
        if labels not in self._begun:
            self._begun.add(labels)
            # For Prometheus, a counter that first appears as 1 has not increased.
            for result in self._results:
                self._ended.labels(*labels, result)
            if not self._phases:
                self._seconds.labels(*labels)
            for phase in self._phases:
                self._seconds.labels(*labels, phase)
        return labels

    def count(self, labels: StartLabels, result: str) -> None:
        """Count the end of one start."""
        self._ended.labels(*labels, result).inc()

    def observe(self, labels: StartLabels, seconds: float, *phase: str) -> None:
        """Note how long a start took, or a phase of it. Clocks differ: below 0 counts as 0."""
        self._seconds.labels(*labels, *phase).observe(max(0.0, seconds))
