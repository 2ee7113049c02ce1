"""Prometheus metrics of seating, in a registry of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

PREFIX: Final = "roost_seating_"


class SeatingMetrics:
    """All metrics; one object a process."""

    def __init__(self, results: Iterable[str]) -> None:
        """results: of a start, as `starts` counts them."""
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self.starts = Counter(
            PREFIX + "starts",
            "Servers that the hub was asked for, by result.",
            ("result",),
            registry=self.registry,
        )
        self.stops = Counter(
            PREFIX + "stops", "Servers of absent people that were stopped.", registry=self.registry
        )
        self.hub_errors = Counter(
            PREFIX + "hub_errors", "Looks at the hub that failed.", registry=self.registry
        )
        self.people = Gauge(
            PREFIX + "people",
            "People of the classes that are current, by what became of them.",
            ("state",),
            registry=self.registry,
        )
        # For Prometheus, a counter that first appears as 1 has not increased.
        for result in results:
            self.starts.labels(result)

    def text(self) -> bytes:
        """What /metrics answers."""
        return generate_latest(self.registry)
