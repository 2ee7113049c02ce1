"""The interface between the loop and a controller, and the planner that all controllers use."""

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
        """The controller's name in logs, metrics and --only."""

    @property
    def gauges(self) -> Sequence[GaugeDefinition]:
        """The metrics that its plans may report."""

    def plan(self, snapshot: Snapshot, now: Moment) -> Planned[Any]:
        """Make a plan; its memory is kept for the next."""

    def note(self, done: Sequence[Done], now: Moment) -> None:
        """Take note of the outcomes of the last plan's actions."""

    def forget(self) -> None:
        """Drop all memory, because another replica has led since."""


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
        """Begin with the memory `empty`; note: the default ignores outcomes."""
        self.name = name
        self.gauges = tuple(gauges)
        self._plan = plan
        self._note = note
        self._empty = empty
        self._memory = empty

    def plan(self, snapshot: Snapshot, now: Moment) -> Planned[M]:
        """Make a plan; its memory is kept for the next."""
        planned = self._plan(snapshot, self._memory, now)
        self._memory = planned.memory
        return planned

    def note(self, done: Sequence[Done], now: Moment) -> None:
        """Take note of the outcomes of the last plan's actions."""
        self._memory = self._note(self._memory, done, now)

    def forget(self) -> None:
        """Drop all memory."""
        self._memory = self._empty


class Sources:
    """What planners are made from.

    document: controllers.json. scheduler_configuration: a KubeSchedulerConfiguration as parsed from YAML, None where
    none is rendered. minor: the cluster's, 36 for 1.36, which decides how kube-scheduler reads that configuration.
    """

    def __init__(self, document: Document, scheduler_configuration: Mapping[str, Any] | None, minor: int) -> None:
        self.document = document
        self.minor = minor
        self.scheduler_configuration = scheduler_configuration
