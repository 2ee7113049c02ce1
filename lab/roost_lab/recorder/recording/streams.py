"""Follow how far each stream of the API server has come, and date what it shows. Pure.

A stream is the list of one kind of objects, and the watch after it. It shows when a state was
observed. How surely the state was new then depends on what the stream may have missed before.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from enum import Enum, auto

from roost_lab.recorder.recording.reading import MICRO_US, Step
from roost_lab.recorder.store.records import GapRecord


class How(Enum):
    """How a state was observed."""

    # The watch told of its change.
    WATCHED = auto()
    # A list shows it. Its changes since the stream was last current were not watched.
    LISTED = auto()
    # The first list of this run shows it: it may have been so before the recorder began.
    FOUND = auto()


@dataclass(frozen=True, slots=True)
class Observation:
    """When a state was observed, and how surely it was new then."""

    # Microseconds since 1970.
    at_us: int
    # The state may have come about so many microseconds earlier. Of a list, only a gap before it
    # counts.
    late_us: int = MICRO_US
    how: How = How.WATCHED

    @property
    def is_watched(self) -> bool:
        """Whether the watch told of the change."""
        return self.how is How.WATCHED

    @property
    def is_exact(self) -> bool:
        """Whether the change came about when the watch told of it."""
        return self.is_watched and self.late_us == MICRO_US

    @property
    def is_after_gap(self) -> bool:
        """Whether a list shows what may have changed while nobody watched."""
        return not self.is_watched and self.late_us > MICRO_US

    @property
    def step(self) -> Step:
        """When a phase began, or a change came about."""
        return Step(self.at_us, self.late_us)


class Streams:
    """The streams by kind. Owned by one thread; all times are microseconds since 1970."""

    def __init__(self, current_us: Mapping[str, int]) -> None:
        """current_us: kind -> until when an earlier run recorded all changes."""
        self._current_us = dict(current_us)
        # Kind -> the keys that the running list has shown.
        self._listed: dict[str, set[str]] = {}
        # Kind -> since when changes are lost, and why.
        self._lost: dict[str, tuple[int, str]] = {}
        # Kind -> since when the watch has told of changes late.
        self._late_since_us: dict[str, int] = {}
        # Kinds that were listed in this run.
        self._complete: set[str] = set()

    def observe(
        self, kind: str, at_us: int, *, is_listed: bool = False, is_late: bool = False
    ) -> Observation:
        """Date a state that a stream shows now.

        is_listed: a list shows it, not the watch. is_late: the state may have come about at any
        time since the stream was last current.
        """
        since_us = at_us
        if is_late:
            current_us = self._current_us.get(kind, at_us)
            since_us = self._late_since_us.setdefault(kind, current_us)
        else:
            self._late_since_us.pop(kind, None)
        how = How.WATCHED
        if is_listed:
            how = How.LISTED if kind in self._complete else How.FOUND
            if kind in self._lost:
                since_us, _ = self._lost[kind]
        return Observation(at_us, max(MICRO_US, at_us - since_us), how)

    def begin_list(self, kind: str) -> None:
        """A list of this kind begins."""
        self._listed[kind] = set()

    def add_listed(self, kind: str, key: str) -> None:
        """An object exists; while a list of its kind runs, it counts as shown by the list."""
        if kind in self._listed:
            self._listed[kind].add(key)

    def mark_lost(self, kind: str, why: str) -> None:
        """Changes since the stream was last current can no longer be read."""
        current_us = self._current_us.get(kind)
        if current_us is not None:
            self._lost.setdefault(kind, (current_us, why))

    def end_list(self, kind: str, at_us: int) -> tuple[Set[str], GapRecord | None]:
        """A list is complete. Returns the keys that it has shown, and the gap before it, if any."""
        self._complete.add(kind)
        shown = self._listed.pop(kind, set())
        if kind not in self._lost:
            return shown, None
        since_us, why = self._lost.pop(kind)
        return shown, GapRecord(kind=kind, from_us=since_us, to_us=at_us, why=why)

    def mark_current(self, kind: str, at_us: int) -> None:
        """All changes until now have been delivered."""
        self._current_us[kind] = at_us
