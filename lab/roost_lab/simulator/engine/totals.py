"""Add up what happens in one replay: counts, durations and node-hours."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from roost_lab.simulator.engine.histogram import Histogram
from roost_lab.simulator.engine.results import PARTS, TOTAL, RunResult
from roost_lab.units import HOUR_SECONDS


class Measures:
    """Makes the result of a replay. Times are seconds since 1970, and never go back."""

    def __init__(self, policy: str, seed: int) -> None:
        self.result = RunResult(policy=policy, seed=seed)
        self.result.waits = {part: Histogram() for part in (*PARTS, TOTAL)}
        self._nodes = 0
        # Until when node-hours are counted; None: no node has joined yet.
        self._counted_until: float | None = None
        self._is_closed = False
        # Called when a wait is over, with the attempt's number, the wait in seconds, and whether
        # the server is up.
        self.on_wait: Callable[[int, float, bool], None] = lambda _number, _seconds, _is_up: None

    def nodes(self, by: int, now: float) -> None:
        """From now on there are `by` more nodes, or fewer if it is negative."""
        self._count_node_hours(now)
        self._nodes += by
        self.result.peak_nodes = max(self.result.peak_nodes, self._nodes)

    def begin_peak(self) -> None:
        """Forget the most nodes at once that there were: count them from now on."""
        self.result.peak_nodes = self._nodes

    def waited(self, parts: Mapping[str, float]) -> float:
        """Count a wait that is over, and return its seconds in all. parts: part -> seconds."""
        for part, seconds in parts.items():
            self.result.waits[part].add(seconds)
        total = sum(parts.values())
        self.result.waits[TOTAL].add(total)
        return total

    def close(self, now: float) -> None:
        """Count no more node-hours after now: the trace ends here."""
        self._count_node_hours(now)
        self._is_closed = True

    def _count_node_hours(self, now: float) -> None:
        if self._counted_until is not None and not self._is_closed:
            node_seconds = self._nodes * (now - self._counted_until)
            self.result.node_hours += node_seconds / HOUR_SECONDS
        self._counted_until = now
