"""Add up what happens in one replay: counts, durations and node-hours."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from roost_lab.simulator.engine.histogram import Histogram
from roost_lab.simulator.engine.results import PARTS, TOTAL, RunResult
from roost_lab.units import HOUR_SECONDS


class Measures:
    """The result of a replay in the making. Time never goes back."""

    def __init__(self, policy: str, seed: int) -> None:
        self.result = RunResult(policy=policy, seed=seed)
        self.result.waits = {part: Histogram() for part in (*PARTS, TOTAL)}
        self._nodes = 0
        # Up to when nodes are counted.
        self._until: float | None = None
        self._is_closed = False
        # Called once a wait is over: the attempt's number, seconds, and whether its server is up.
        self.on_wait: Callable[[int, float, bool], None] = lambda _number, _seconds, _is_up: None

    def nodes(self, by: int, now: float) -> None:
        """From now on there are `by` more nodes."""
        self._pass(now)
        self._nodes += by
        self.result.peak_nodes = max(self.result.peak_nodes, self._nodes)

    def begin_peak(self) -> None:
        """From now on, count the most nodes at once anew: the peak before is forgotten."""
        self.result.peak_nodes = self._nodes

    def waited(self, parts: Mapping[str, float]) -> float:
        """A launch's wait is over; parts: seconds of it. Returns them all together."""
        for part, seconds in parts.items():
            self.result.waits[part].add(seconds)
        total = sum(parts.values())
        self.result.waits[TOTAL].add(total)
        return total

    def close(self, now: float) -> None:
        """End the count of nodes: the trace ends here."""
        self._pass(now)
        self._is_closed = True

    def _pass(self, now: float) -> None:
        if self._until is not None and not self._is_closed:
            self.result.node_hours += self._nodes * (now - self._until) / HOUR_SECONDS
        self._until = now
