"""Prometheus metrics of seating, in a registry of their own."""

from __future__ import annotations

from collections.abc import Iterable

from roost_core.program_metrics import ProgramMetrics


class SeatingMetrics(ProgramMetrics):
    """All metrics; one object a process."""

    def __init__(self, results: Iterable[str]) -> None:
        """results: of a start, as `starts` counts them."""
        super().__init__("roost_seating_")
        self.starts = self.counter(
            "starts", "Servers that the hub was asked for, by result.", "result"
        )
        self.stops = self.counter("stops", "Servers of absent people that were stopped.")
        self.hub_errors = self.counter("hub_errors", "Looks at the hub that failed.")
        self.people = self.gauge(
            "people", "People of the classes that are current, by what became of them.", "state"
        )
        # For Prometheus, a counter that first appears as 1 has not increased.
        for result in results:
            self.starts.labels(result)
