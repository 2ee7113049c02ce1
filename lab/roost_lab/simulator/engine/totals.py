"""Add up what happens in one replay: counts, durations, and means by the hour."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from roost_lab.simulator.engine.histogram import Histogram
from roost_lab.simulator.engine.results import PARTS, THRESHOLDS, TOTAL, HourRow, RunResult

HOUR: Final = 3600
# Indexes of the levels that `level` changes.
USERS, PLACEHOLDERS, NODES = 0, 1, 2


class Measures:
    """The result of a replay in the making. Time never goes back."""

    def __init__(self, policy: str, seed: int) -> None:
        self.result = RunResult(policy=policy, seed=seed)
        self.result.waits = {part: Histogram() for part in (*PARTS, TOTAL)}
        self.result.over = dict.fromkeys(THRESHOLDS, 0)
        # How many there are now, and since when that is counted.
        self._levels = [0, 0, 0]
        self._since: float | None = None
        self._sums = [0.0, 0.0, 0.0]
        self._hour: int | None = None
        self._began = 0.0
        self._closed_at: float | None = None
        # Called once a wait is over: the attempt's number, seconds, and whether its server is up.
        self.on_wait: Callable[[int, float, bool], None] = lambda _number, _seconds, _is_up: None

    def level(self, which: int, by: int, now: float) -> None:
        """From now on `by` more of USERS, PLACEHOLDERS or NODES run."""
        self._pass(now)
        self._levels[which] += by
        if which == NODES:
            self.result.peak_nodes = max(self.result.peak_nodes, self._levels[NODES])

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
        """End the counts over time: the trace ends here."""
        self._pass(now)
        self._flush(now)
        self._closed_at = now

    def _pass(self, now: float) -> None:
        if self._closed_at is not None:
            return
        if self._since is None:
            self._since, self._hour, self._began = now, int(now // HOUR) * HOUR, now
            return
        hour_end = (self._hour or 0) + HOUR
        while now >= hour_end:
            self._add(hour_end)
            self._flush(hour_end)
            self._hour = hour_end
            hour_end += HOUR
        self._add(now)

    def _add(self, now: float) -> None:
        span = now - (self._since or 0.0)
        if span > 0:
            for index, level in enumerate(self._levels):
                self._sums[index] += level * span
            self._since = now

    def _flush(self, end: float) -> None:
        """Write the hour's row."""
        if self._hour is None:
            return
        sums = self._sums
        span = max(1e-9, end - max(self._hour, self._began))
        self.result.hours.append(
            HourRow(begin=self._hour, users=sums[0] / span, placeholders=sums[1] / span, nodes=sums[2] / span)
        )
        self.result.node_hours += sums[2] / HOUR
        self._sums = [0.0, 0.0, 0.0]
