"""Give each plan its settings and memory: what the loop runs, one object a controller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from roost.controllers.contract.actions import Done, GaugeDefinition, Planned
    from roost.controllers.contract.snapshot import Moment, Snapshot
    from roost_core.placement.settings_reader import Document

M = TypeVar("M")


class Planner(Protocol):
    """One controller."""

    @property
    def name(self) -> str:
        """A word for logs, metrics and --only."""

    @property
    def gauges(self) -> Sequence[GaugeDefinition]:
        """What its plans may report."""

    def plan(self, snapshot: Snapshot, now: Moment) -> Planned[Any]:
        """Say what to do now, and remember."""

    def note(self, done: Sequence[Done], now: Moment) -> None:
        """Learn what became of the last plan's actions."""

    def forget(self) -> None:
        """Lose all memory: somebody else led meanwhile."""


class MemoryPlanner(Generic[M]):
    """A planner made of pure functions: (snapshot, memory, now) -> Planned, and (memory, done, now) -> memory."""

    def __init__(
        self,
        name: str,
        plan: Callable[[Snapshot, M, Moment], Planned[M]],
        empty: M,
        *,
        note: Callable[[M, Sequence[Done], Moment], M] = lambda memory, _done, _now: memory,
        gauges: Sequence[GaugeDefinition] = (),
    ) -> None:
        """Prepare, with an empty memory."""
        self.name = name
        self.gauges = tuple(gauges)
        self._plan = plan
        self._note = note
        self._empty = empty
        self._memory = empty

    def plan(self, snapshot: Snapshot, now: Moment) -> Planned[M]:
        """Say what to do now, and remember."""
        planned = self._plan(snapshot, self._memory, now)
        self._memory = planned.memory
        return planned

    def note(self, done: Sequence[Done], now: Moment) -> None:
        """Learn what became of the last plan's actions."""
        self._memory = self._note(self._memory, done, now)

    def forget(self) -> None:
        """Lose all memory."""
        self._memory = self._empty


class Sources:
    """What planners are made from: the settings' document, the scheduler's configuration where one is rendered, and the
    cluster's minor, which decides how kube-scheduler reads that.
    """

    def __init__(self, document: Document, scheduler_configuration: Mapping[str, Any] | None, minor: int) -> None:
        """Hold them; scheduler_configuration is a KubeSchedulerConfiguration as YAML gives it, minor 36 for 1.36."""
        self.document = document
        self.minor = minor
        self.scheduler_configuration = scheduler_configuration
