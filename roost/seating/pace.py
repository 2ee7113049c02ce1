"""How fast seating may start servers, by how its last starts ended.

`plan.py` reads `window`, `paused_until` and `failed_spawns`, and finds how many may start. The
numbers that a rehearsal plays, too, are in `roost_core/release/seating_pace.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from roost_core.release.seating_pace import FIRST_SEATS

# After so many failures in a row, nothing is started for a while.
_FAILURES_IN_A_ROW: Final = 3
FAILURE_PAUSE_SECONDS: Final = 300.0
# A hub ends itself at the fifth failed start in a row (z2jh's consecutiveFailureLimit). After so
# many nothing is started until somebody's start succeeded.
MOST_FAILED_SPAWNS: Final = 4
# Clocks of hub and pod differ by less.
_CLOCK_SECONDS: Final = 10.0
# So many of the last starts are kept.
_MOST_STARTS: Final = 200
# Fewer than so many starts say nothing.
_FEWEST_STARTS: Final = 10


@dataclass(slots=True)
class Pace:
    """What the last starts say of the next ones. Times are Unix time."""

    # Seconds that the last starts took.
    start_seconds: list[float] = field(default_factory=list)
    # How many servers may be starting; grows with each that answers.
    window: int = FIRST_SEATS
    failures_in_a_row: int = 0
    # Starts that failed since one succeeded, as the hub counts them.
    failed_spawns: int = 0
    # When the last of them failed.
    failed_at: float = 0.0
    # Nothing is started before.
    paused_until: float = 0.0

    def usual_start_seconds(self, default: float) -> float:
        """What nine in ten of the last starts took at most; `default` until ten are known."""
        if len(self.start_seconds) < _FEWEST_STARTS:
            return default
        known = sorted(self.start_seconds)
        return known[int(len(known) * 0.9)]

    def start_answered(self, seconds: float) -> None:
        """A server that was asked for answers, `seconds` later."""
        self.start_seconds.append(seconds)
        del self.start_seconds[:-_MOST_STARTS]
        self.failures_in_a_row = 0
        self.failed_spawns = 0
        self.window += 1

    def saw_ready(self, started: float) -> None:
        """A look at the hub found anybody's server ready, which began at `started`."""
        if started > self.failed_at + _CLOCK_SECONDS:
            self.failed_spawns = 0

    def start_failed(self, now: float, *, is_refusal: bool) -> None:
        """Start fewer: a server that was asked for did not come.

        is_refusal: the hub refused before it began, and counts no failed start.
        """
        if not is_refusal:
            self.failed_spawns += 1
            self.failed_at = now
        self.failures_in_a_row += 1
        self._halve_window()
        if self.failures_in_a_row >= _FAILURES_IN_A_ROW:
            self.paused_until = now + FAILURE_PAUSE_SECONDS
            self.window = 1
            # One more is tried then.
            self.failures_in_a_row = _FAILURES_IN_A_ROW - 1

    def hub_is_busy(self, seconds: float, now: float) -> None:
        """Start fewer, and none for `seconds`: the hub is at its limit."""
        self._halve_window()
        self.paused_until = max(self.paused_until, now + seconds)

    def begin_anew(self) -> None:
        """Between classes: as many may start as at first. Failures and a pause stay."""
        self.window = FIRST_SEATS

    def _halve_window(self) -> None:
        self.window = max(1, self.window // 2)
