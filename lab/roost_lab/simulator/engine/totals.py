"""Add up what happens in one replay: counts, durations, and nodes by the hour."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from roost_lab.simulator.engine.histogram import Histogram
from roost_lab.simulator.engine.results import PARTS, THRESHOLDS, TOTAL, NodeHours, RunResult

HOUR: Final = 3600


class Measures:
    """The result of a replay in the making. Time never goes back."""

    def __init__(self, policy: str, seed: int) -> None:
        self.result = RunResult(policy=policy, seed=seed)
        self.result.waits = {part: Histogram() for part in (*PARTS, TOTAL)}
        self.result.over = dict.fromkeys(THRESHOLDS, 0)
        self._nodes = 0
        # Up to when nodes are counted, and beginning of an hour -> node-hours in it.
        self._until: float | None = None
        self._hours: dict[int, float] = {}
        self._is_closed = False
        # Called once a wait is over: the attempt's number, seconds, and whether its server is up.
        self.on_wait: Callable[[int, float, bool], None] = lambda _number, _seconds, _is_up: None

    def nodes(self, by: int, now: float) -> None:
        """From now on there are `by` more nodes."""
        self._pass(now)
        self._nodes += by
        self.result.peak_nodes = max(self.result.peak_nodes, self._nodes)

    def started(self, parts: Mapping[str, float]) -> None:
        """A user's server came up after these waits in seconds."""
        total = 0.0
        waits = self.result.waits
        for part, seconds in parts.items():
            waits[part].add(seconds)
            total += seconds
        waits[TOTAL].add(total)
        self.over(total)
        self.result.started += 1

    def over(self, seconds: float) -> None:
        """Count a wait against the thresholds."""
        over = self.result.over
        for threshold in THRESHOLDS:
            if seconds > threshold:
                over[threshold] += 1

    def close(self, now: float) -> None:
        """End the count of nodes: the trace ends here."""
        self._pass(now)
        self._is_closed = True
        self.result.hours = [NodeHours(*row) for row in sorted(self._hours.items())]
        self.result.node_hours = sum(self._hours.values())

    def _pass(self, now: float) -> None:
        since = now if self._until is None else self._until
        while since < now and not self._is_closed:
            hour = int(since // HOUR) * HOUR
            end = min(now, hour + HOUR)
            self._hours[hour] = self._hours.get(hour, 0.0) + self._nodes * (end - since) / HOUR
            since = end
        self._until = since
