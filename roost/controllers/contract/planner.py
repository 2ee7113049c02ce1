"""A controller, and the planner by which the loop runs it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from roost.controllers.contract.actions import Done, GaugeDefinition, Planned
    from roost.controllers.contract.release import ReleaseDocument
    from roost.controllers.contract.snapshot import Moment, Snapshot

M = TypeVar("M")
S = TypeVar("S")


class Planner(Generic[M]):
    """One controller at work: (snapshot, memory, now) -> Planned, and (memory, done, now) -> memory."""

    def __init__(
        self,
        name: str,
        plan: Callable[[Snapshot, M, Moment], Planned[M]],
        empty: M,
        *,
        note: Callable[[M, Sequence[Done], Moment], M] = lambda memory, _done, _now: memory,
        gauges: Sequence[GaugeDefinition] = (),
        pace_seconds: float = 0.0,
    ) -> None:
        """Begin with the memory `empty`; note: the default ignores outcomes."""
        self.name = name
        self.gauges = tuple(gauges)
        self._plan = plan
        self._note = note
        self._empty = empty
        self._memory = empty
        self._pace_seconds = pace_seconds
        # The last plan, and when it was made.
        self._last: tuple[Planned[M], float] | None = None

    def plan(self, snapshot: Snapshot, now: Moment) -> Planned[M]:
        """Make a plan, an empty one where the last was made just now; its memory is kept for the next."""
        if self._last is not None:
            last, made_at = self._last
            seconds_left = made_at + self._pace_seconds - now.steady
            if 0.0 < seconds_left <= self._pace_seconds:
                return replace(last, actions=(), wake_after_seconds=seconds_left)
        planned = self._plan(snapshot, self._memory, now)
        self._memory, self._last = planned.memory, (planned, now.steady)
        return planned

    def note(self, done: Sequence[Done], now: Moment) -> None:
        """Take note of the outcomes of the last plan's actions."""
        self._memory = self._note(self._memory, done, now)

    def forget(self) -> None:
        """Drop all memory."""
        self._memory, self._last = self._empty, None


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller(Generic[S, M]):
    """One controller: what its folder's plan.py ends in, and what the registry lists."""

    # In logs, metrics and --only.
    name: str
    # Reads its settings; faults go to the release's reader. None: it has nothing to do.
    read: Callable[[ReleaseDocument], S | None]
    plan: Callable[[Snapshot, M, S, Moment], Planned[M]]
    # The memory of the first plan.
    empty: M
    # Takes note of the outcomes of a plan's actions.
    note: Callable[[M, Sequence[Done], S, Moment], M] = lambda memory, _done, _settings, _now: memory
    gauges: Sequence[GaugeDefinition] = ()
    # It plans no more often than this: the cluster changes more often than it needs to know.
    pace_seconds: float = 0.0

    def planner(self, release: ReleaseDocument) -> Planner[M] | None:
        """Make its planner; None: it has nothing to do."""
        settings = self.read(release)
        if settings is None:
            return None
        return Planner(
            self.name,
            lambda snapshot, memory, now: self.plan(snapshot, memory, settings, now),
            self.empty,
            note=lambda memory, done, now: self.note(memory, done, settings, now),
            gauges=self.gauges,
            pace_seconds=self.pace_seconds,
        )
