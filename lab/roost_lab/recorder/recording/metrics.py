"""The recorder's Prometheus metrics, in a registry of their own."""

from __future__ import annotations

import time
from collections import Counter as Counting
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

from prometheus_client import Counter, Histogram

from roost_core.program_metrics import ProgramMetrics
from roost_core.start_counts import START_BUCKETS, StartCounts
from roost_lab.recorder.store.phases import PHASES
from roost_lab.recorder.store.records import GapRecord, Record

WRITE_BUCKETS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)
# Seconds. A hub may tell of a start for an hour.
PHASE_BUCKETS: Final = (*START_BUCKETS, 3600.0)


class StartResult(StrEnum):
    """What became of a start."""

    # Ready (answering, where the hub's log is read), and its node had its images.
    WARM = "warm"
    # Ready, after a pull.
    COLD = "cold"
    # Ready; the kubelet's Events about its images did not arrive.
    UNKNOWN = "unknown"
    # Its hub gave it up, or it was gone before.
    FAILED = "failed"
    # Seating had asked for it before a class: nobody waited for it.
    SEATED = "seated"


class RecorderMetrics(ProgramMetrics):
    """All metrics. One object for each process."""

    def __init__(self, version: str) -> None:
        super().__init__("roost_recorder_")
        self._rows = self.counter("rows", "Rows sent to the database, by table.", "table")
        self._rows.labels(GapRecord.table.name)
        self._writes = self.histogram(
            "write_duration_seconds", "Duration of a transaction.", WRITE_BUCKETS
        )
        self.not_recorded = self.counter(
            "odd_objects", "Objects or rows that could not be recorded, by kind.", "kind"
        )
        self.waits = self.counter("waits", "Seconds that watches waited for the database.")
        self._store_errors = self.counter(
            "store_errors", "Number of times that the database started to fail."
        )
        self._stream_errors = self.counter("stream_errors", "Broken watches, by kind.", "kind")
        self._database_fails = self.gauge(
            "database_failing", "1 while the database accepts no rows."
        )
        self._gap_ended = self.gauge(
            "last_gap_timestamp_seconds",
            "Unix time at which the last gap was recorded; 0 when there was none since the start.",
        )
        self._records = self.gauge(
            "recording", "1 while all watches deliver and the database stores what they deliver."
        )
        self._behind = self.gauge(
            "behind_seconds",
            "Age of the oldest change that is not stored yet; 0 when none is waiting.",
        )
        phases = Histogram(
            "roost_start_phase_seconds",
            "Time that pods took for a phase of their start, to a second, by class, hub and phase.",
            ("pod_class", "hub", "phase"),
            buckets=PHASE_BUCKETS,
            registry=self.registry,
        )
        starts = Counter(
            "roost_starts",
            "Starts of pods that have ended: warm, cold (after a pull), unknown, failed (given up,"
            " or gone before), or seated (before a class: nobody waited).",
            ("pod_class", "hub", "result"),
            registry=self.registry,
        )
        self.starts = StartCounts(starts, phases, StartResult, PHASES)
        self.gauge("build_info", "1 for the running version.", "version").labels(version).set(1)

    def observe(
        self, *, is_recording: Callable[[], bool], behind_seconds: Callable[[], float]
    ) -> None:
        """Call these at each scrape."""
        self._records.set_function(is_recording)
        self._behind.set_function(behind_seconds)

    def count_rows(self, records: Sequence[Record], seconds: float) -> None:
        """Count the rows of one transaction."""
        for table, count in Counting(record.table.name for record in records).items():
            self._rows.labels(table).inc(count)
            if table == GapRecord.table.name:
                self._gap_ended.set(time.time())
        self._writes.observe(seconds)
        self._database_fails.set(0)

    def count_store_error(self) -> None:
        """Count one failure of the database."""
        self._store_errors.inc()
        self._database_fails.set(1)

    def count_stream_error(self, kind: str) -> None:
        """Count one broken stream."""
        self._stream_errors.labels(kind).inc()
