"""The recorder's Prometheus metrics, in a registry of their own."""

from __future__ import annotations

import time
from collections import Counter as Counting
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from roost_lab.recorder.recording.live_starts import PHASES, Result
from roost_lab.recorder.store.records import GapRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from roost_lab.recorder.recording.live_starts import Whose
    from roost_lab.recorder.store.records import Record

PREFIX: Final = "roost_recorder_"
WRITE_BUCKETS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)
# Pods have whole seconds. 300: after so long, hubs give a start up by default.
START_BUCKETS: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 180.0, 300.0, 600.0, 1200.0, 3600.0)


class Metrics:
    """All metrics. One object for each process."""

    def __init__(self, version: str) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._changes = Counter(
            PREFIX + "changes",
            "Changes that the API server reported, by kind and change.",
            ("kind", "change"),
            registry=self.registry,
        )
        self._rows = Counter(
            PREFIX + "rows", "Rows sent to the database, by table.", ("table",), registry=self.registry
        )
        self._rows.labels(GapRecord.TABLE)
        self._writes = Histogram(
            PREFIX + "write_duration_seconds",
            "Duration of a transaction.",
            buckets=WRITE_BUCKETS,
            registry=self.registry,
        )
        self._not_recorded = Counter(
            PREFIX + "odd_objects",
            "Objects or rows that could not be recorded, by kind.",
            ("kind",),
            registry=self.registry,
        )
        self._waits = Counter(PREFIX + "waits", "Seconds that watches waited for the database.", registry=self.registry)
        self._store_errors = Counter(
            PREFIX + "store_errors", "Number of times that the database started to fail.", registry=self.registry
        )
        self._stream_errors = Counter(
            PREFIX + "stream_errors", "Broken watches, by kind.", ("kind",), registry=self.registry
        )
        self._database_fails = Gauge(
            PREFIX + "database_failing", "1 while the database accepts no rows.", registry=self.registry
        )
        self._gap_ended = Gauge(
            PREFIX + "last_gap_timestamp_seconds",
            "Unix time at which the last gap was recorded; 0 when there was none since the start.",
            registry=self.registry,
        )
        self._records = Gauge(
            PREFIX + "recording",
            "1 while all watches deliver and the database stores what they deliver.",
            registry=self.registry,
        )
        self._behind = Gauge(
            PREFIX + "behind_seconds",
            "Age of the oldest change that is not stored yet; 0 when none is waiting.",
            registry=self.registry,
        )
        self._phases = Histogram(
            "roost_start_phase_seconds",
            "Time that pods took for a phase of their start, by class, hub and phase.",
            ("pod_class", "hub", "phase"),
            buckets=START_BUCKETS,
            registry=self.registry,
        )
        self._starts = Counter(
            "roost_starts",
            "Starts of pods that have ended: warm, cold (after a pull), unknown, or failed (gone before ready).",
            ("pod_class", "hub", "result"),
            registry=self.registry,
        )
        self._oldest_pending = Gauge(
            "roost_oldest_pending_seconds",
            "Age of the oldest pod that is pending, by class and hub; 0 when none is.",
            ("pod_class", "hub"),
            registry=self.registry,
        )
        info = Gauge(PREFIX + "build_info", "1 for the running version.", ("version",), registry=self.registry)
        info.labels(version).set(1)

    def observe(self, *, is_recording: Callable[[], bool], behind_seconds: Callable[[], float]) -> None:
        """Call these at each scrape."""
        self._records.set_function(is_recording)
        self._behind.set_function(behind_seconds)

    def count_change(self, kind: str, change: str) -> None:
        """Count one change."""
        self._changes.labels(kind, change).inc()

    def count_rows(self, records: Sequence[Record], seconds: float) -> None:
        """Count the rows of one transaction."""
        for table, count in Counting(record.TABLE for record in records).items():
            self._rows.labels(table).inc(count)
            if table == GapRecord.TABLE:
                self._gap_ended.set(time.time())
        self._writes.observe(seconds)
        self._database_fails.set(0)

    def count_not_recorded(self, kind: str) -> None:
        """Count one object that could not be recorded."""
        self._not_recorded.labels(kind).inc()

    def count_wait(self) -> None:
        """Count one second of waiting."""
        self._waits.inc()

    def count_store_error(self) -> None:
        """Count one failure of the database."""
        self._store_errors.inc()
        self._database_fails.set(1)

    def count_stream_error(self, kind: str) -> None:
        """Count one broken stream."""
        self._stream_errors.labels(kind).inc()

    def observe_phase(self, whose: Whose, phase: str, seconds: float) -> None:
        """Count one phase of a start."""
        self._phases.labels(*whose, phase).observe(seconds)

    def count_start(self, whose: Whose, result: str) -> None:
        """Count one start that has ended."""
        self._starts.labels(*whose, result).inc()

    def show_oldest_pending(self, whose: Whose, created_us: Callable[[], int | None]) -> None:
        """Show the age of the oldest pending pod, read on each scrape; all its other metrics begin at 0."""

        def age_seconds() -> float:
            oldest_us = created_us()
            return 0.0 if oldest_us is None else max(0.0, time.time() - oldest_us / 1_000_000)

        self._oldest_pending.labels(*whose).set_function(age_seconds)
        # For Prometheus, a counter that first appears as 1 has not increased.
        for result in Result:
            self._starts.labels(*whose, result)
        for phase in PHASES:
            self._phases.labels(*whose, phase)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)
