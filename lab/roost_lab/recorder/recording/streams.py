"""Follow how far each stream has come, and tell by it how surely what it shows is new. Pure."""

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
    # A list shows it. Its changes since the stream's last news were not watched.
    LISTED = auto()
    # The first list of this run shows it: it may have been so before the recorder began.
    FOUND = auto()


@dataclass(frozen=True, slots=True)
class Observation:
    """When a state was observed, and how surely it was new then.

    at: microseconds since 1970. late: it may have come about so many microseconds earlier; of a
    list, only a gap before it counts. how: by a watch or by a list.
    """

    at: int
    late: int = MICRO_US
    how: How = How.WATCHED

    @property
    def is_watched(self) -> bool:
        """Whether the watch told of the change."""
        return self.how is How.WATCHED

    @property
    def is_exact(self) -> bool:
        """Whether the change came about when it was told."""
        return self.is_watched and self.late == MICRO_US

    @property
    def is_after_gap(self) -> bool:
        """Whether a list shows what may have changed while nobody watched."""
        return not self.is_watched and self.late > MICRO_US

    @property
    def step(self) -> Step:
        """When a phase began or a change came."""
        return Step(self.at, self.late)


class Streams:
    """The streams by kind. Owned by one thread; all times are microseconds since 1970."""

    def __init__(self, heard: Mapping[str, int]) -> None:
        """heard: the last signs of life that are stored."""
        self._heard = dict(heard)
        # The keys that a running list has shown.
        self._listed: dict[str, set[str]] = {}
        # From when changes are lost, and why.
        self._lost: dict[str, tuple[int, str]] = {}
        # Since when changes are told late.
        self._late_since: dict[str, int] = {}
        # Kinds that were listed in this run.
        self._complete: set[str] = set()

    def observe(
        self, kind: str, at: int, *, is_listed: bool = False, is_late: bool = False
    ) -> Observation:
        """What a stream tells at this time. is_late: any time since its last news."""
        if is_late:
            since = self._late_since.setdefault(kind, self._heard.get(kind, at))
        else:
            self._late_since.pop(kind, None)
            since = at
        if not is_listed:
            return Observation(at, max(MICRO_US, at - since))
        if kind in self._lost:
            since = self._lost[kind][0]
        how = How.LISTED if kind in self._complete else How.FOUND
        return Observation(at, max(MICRO_US, at - since), how)

    def listing(self, kind: str) -> None:
        """A list of this kind begins."""
        self._listed[kind] = set()

    def show(self, kind: str, key: str) -> None:
        """An object exists."""
        if kind in self._listed:
            self._listed[kind].add(key)

    def lost(self, kind: str, why: str) -> None:
        """Changes since the stream's last sign of life can no longer be read."""
        since = self._heard.get(kind)
        if since is not None:
            self._lost.setdefault(kind, (since, why))

    def complete(self, kind: str, at: int) -> tuple[Set[str], GapRecord | None]:
        """A list is complete: the keys that it has shown, and the gap before it, if there was
        one.
        """
        self._complete.add(kind)
        shown = self._listed.pop(kind, set())
        if kind not in self._lost:
            return shown, None
        since, why = self._lost.pop(kind)
        return shown, GapRecord(kind=kind, from_us=since, to_us=at, why=why)

    def heard(self, kind: str, at: int) -> None:
        """All changes until now have been delivered."""
        self._heard[kind] = at
