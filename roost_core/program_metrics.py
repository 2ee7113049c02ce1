"""The Prometheus metrics of one program, in a registry of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

_Labels = TypeVar("_Labels", bound=tuple[str, ...])


class ProgramMetrics:
    """All metrics of a program, those of its process among them; one object a process."""

    def __init__(self, prefix: str = "") -> None:
        """prefix: of the names that the program gives."""
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._prefix = prefix

    def counter(self, name: str, text: str, *labels: str) -> Counter:
        """Make a counter; `_total` is added to its name."""
        return Counter(self._prefix + name, text, labels, registry=self.registry)

    def gauge(self, name: str, text: str, *labels: str) -> Gauge:
        """Make a gauge."""
        return Gauge(self._prefix + name, text, labels, registry=self.registry)

    def histogram(self, name: str, text: str, buckets: Sequence[float], *labels: str) -> Histogram:
        """Make a histogram."""
        return Histogram(self._prefix + name, text, labels, buckets=buckets, registry=self.registry)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)


def show_only(gauge: Gauge, values: Mapping[_Labels, float]) -> None:
    """Show these values, by the values of the gauge's labels; all others of before disappear.

    A scrape meanwhile never finds one missing that was there before and stays.
    """
    for labels, value in values.items():
        gauge.labels(*labels).set(value)
    for family in gauge.collect():
        for sample in family.samples:
            shown = tuple(sample.labels.values())
            if shown not in values:
                gauge.remove(*shown)
