"""A controller, and the planner by which the loop runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from roost.controllers.contract.actions import Done, PlanGauge, Planned
from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.contract.snapshot import Moment, Snapshot

Memory = TypeVar("Memory")
Settings = TypeVar("Settings")


class Planner(Generic[Memory]):
    """One controller at work, with its settings and its memory."""

    def __init__(self, controller: Controller[Settings, Memory], settings: Settings) -> None:
        self.name = controller.name
        self.gauges = tuple(controller.gauges)
        self._controller: Controller[Any, Memory] = controller
        self._settings = settings
        self._memory = controller.empty
        # The last plan, and when it was made.
        self._last: tuple[Planned[Memory], float] | None = None

    def plan(self, snapshot: Snapshot, now: Moment) -> Planned[Memory]:
        """Make a plan, and keep its memory for the next plan.

        If the last plan is younger than the controller's pace, its result is returned again,
        without its actions.
        """
        pace_seconds = self._controller.pace_seconds
        if self._last is not None:
            last, made_at = self._last
            seconds_left = made_at + pace_seconds - now.steady
            if seconds_left > 0.0:
                return replace(last, actions=(), wake_after_seconds=seconds_left)
        planned = self._controller.plan(snapshot, self._memory, self._settings, now)
        self._memory = planned.memory
        self._last = (planned, now.steady)
        return planned

    def note(self, done: Sequence[Done], now: Moment) -> None:
        """Take note of the outcomes of the last plan's actions."""
        self._memory = self._controller.note(self._memory, done, self._settings, now)

    def forget(self) -> None:
        """Drop all memory."""
        self._memory = self._controller.empty
        self._last = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller(Generic[Settings, Memory]):
    """One controller, as `plan.py` in its folder defines it and the registry lists it."""

    # In logs and metrics.
    name: str
    # Reads its settings; faults go to the release's reader. None: it has nothing to do.
    read: Callable[[ReleaseDocument], Settings | None]
    plan: Callable[[Snapshot, Memory, Settings, Moment], Planned[Memory]]
    # The memory of the first plan.
    empty: Memory
    # Takes note of the outcomes of a plan's actions.
    note: Callable[[Memory, Sequence[Done], Settings, Moment], Memory] = (
        lambda memory, _done, _settings, _now: memory
    )
    gauges: Sequence[PlanGauge] = ()
    # The least time between two plans, for a planner that needn't see each change of the cluster.
    pace_seconds: float = 0.0

    def planner(self, release: ReleaseDocument) -> Planner[Memory] | None:
        """Make its planner; None: it has nothing to do."""
        settings = self.read(release)
        return None if settings is None else Planner(self, settings)
