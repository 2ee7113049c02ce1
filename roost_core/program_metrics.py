"""The Prometheus metrics of a program, in a separate registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

_Labels = TypeVar("_Labels", bound=tuple[str, ...])


class ProgramMetrics:
    """All metrics of a program, with those of its process. A process has one of these objects."""

    def __init__(self, prefix: str = "") -> None:
        """prefix: the beginning of the names of all metrics that are made below."""
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
    """Set a gauge to `values`, by the values of its labels, and remove all its other values.

    A value that stays is never missing, so a scrape meanwhile sees it.
    """
    for label_values, value in values.items():
        gauge.labels(*label_values).set(value)
    for family in gauge.collect():
        for sample in family.samples:
            label_values_before = tuple(sample.labels.values())
            if label_values_before not in values:
                gauge.remove(*label_values_before)
