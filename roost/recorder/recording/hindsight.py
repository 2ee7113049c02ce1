"""Remember the last changes, and take the model back to the states that a scheduler may have decided on.

A scheduler decides one pod after the other on its own cache: what its watches told it some milliseconds before, and its
own decisions at once, which the API server learns of later and in another order. Nothing tells what it had seen, so the
states that it can have seen are gone through, the likeliest first: what others changed last is taken back one by one,
and its own decisions told just before (or just after) the one in question are left out (or counted already).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

US: Final = 1_000_000
# What was told so long before a binding may not have reached the scheduler yet, and what it decided before that binding
# may be told so long after. Milliseconds mostly; more on a busy control plane.
WINDOW_US: Final = US
# Changes that are kept, whatever the window.
MAX_CHANGES: Final = 2_000
# Of others' changes, so many are taken back at most, and of the scheduler's own decisions so many change places.
MAX_BACK: Final = 16
MAX_SHIFT: Final = 2
# States that are asked for one binding at most: the more, the more often one of them agrees by chance.
MAX_STATES: Final = 24
# So many neighbours of the streams' order may be out of the API server's.
_MAX_DISORDER: Final = 256

# Kind ("pod", "node") and key of what changed.
Subject = tuple[str, str]


class Change(NamedTuple):
    """One change of a pod or node, as far as schedulers care."""

    # resourceVersion as a number: the API server's own order, over all kinds.
    version: int
    at_us: int
    subject: Subject
    # None: it isn't there.
    before: Any
    after: Any
    # schedulerName of the pod that was bound or got a nomination by this; "": somebody else's doing.
    scheduler: str


@dataclass(frozen=True, slots=True)
class Past:
    """One state that a scheduler may have seen, in terms of what was told."""

    # Changes by others that it hadn't seen, and since when the first of them was told, before the binding was.
    unseen: int
    back_us: int
    # Its own decisions told after the binding that it had made before (positive), or the reverse (negative).
    shift: int

    @property
    def words(self) -> str:
        """What differs from the moment at which the binding was told."""
        parts = []
        if self.unseen:
            changes = "change" if self.unseen == 1 else "changes"
            parts.append(f"before the last {self.unseen} {changes}, {self.back_us / 1000:.0f} ms earlier")
        if self.shift:
            bindings = "decision" if abs(self.shift) == 1 else "decisions"
            moved = f"{abs(self.shift)} {bindings} told {'later counted' if self.shift > 0 else 'earlier left out'}"
            parts.append(moved)
        return ", ".join(parts)


class Hindsight:
    """The last changes in the API server's order."""

    def __init__(self, put: Callable[[Subject, Any], None], is_same: Callable[[str, str], bool]) -> None:
        """Prepare. put: make a subject be so in the model's state; is_same: whether one process runs both profiles."""
        self._put = put
        self._is_same = is_same
        self._changes: deque[Change] = deque()
        # Up to when changes were forgotten: no state before can be gone back to.
        self._forgotten_us = 0

    def forget(self, at_us: int) -> None:
        """Forget all: what was told up to then was no change but a list."""
        self._forgotten_us = max(self._forgotten_us, at_us)
        self._changes.clear()

    def note(self, change: Change, keep_from_us: int) -> None:
        """Remember a change; what is older than keep_from_us may be forgotten."""
        changes = self._changes
        # Nodes and pods come by streams of their own: almost in order.
        later: list[Change] = []
        while changes and changes[-1].version > change.version and len(later) < _MAX_DISORDER:
            later.append(changes.pop())
        changes.append(change)
        changes.extend(reversed(later))
        while changes and (changes[0].at_us < keep_from_us or len(changes) > MAX_CHANGES):
            self._forgotten_us = max(self._forgotten_us, changes.popleft().at_us)

    def pasts(self, subject: Subject, version: int, at_us: int, scheduler: str, since_version: int) -> Generator[Past]:
        """Put the model's state into each past that the decision may have seen, and back at the end.

        subject: the pod that was bound; version, at_us: of the binding as it was told; scheduler: its profile;
        since_version: of the pod's creation. Whoever had seen that had seen all that came to other pods before.
        Nodes come by a watch of their own, which may be behind.
        """
        if at_us <= self._forgotten_us:
            return
        changes = [one for one in self._changes if one.at_us >= at_us - WINDOW_US]
        index = next((at for at, one in enumerate(changes) if one.version >= version), len(changes))
        own = [bool(one.scheduler) and self._is_same(one.scheduler, scheduler) for one in changes]
        others = [
            at
            for at in range(index)
            if not own[at]
            and changes[at].subject != subject
            and (changes[at].version > since_version or changes[at].subject[0] != subject[0])
        ]
        mine_before = [
            at
            for at in range(index)
            if own[at] and changes[at].subject != subject and changes[at].version > since_version
        ]
        mine_after = [at for at in range(index, len(changes)) if own[at] and changes[at].subject != subject]
        by_subject: dict[Subject, list[int]] = {}
        for at, one in enumerate(changes):
            by_subject.setdefault(one.subject, []).append(at)
        present = {one.subject: one.after for one in changes}
        now = dict(present)
        try:
            for back, shift in _nearest_first(len(others), len(mine_before), len(mine_after)):
                applied = set(range(index))
                applied.difference_update(others[len(others) - back :])
                if shift < 0:
                    applied.difference_update(mine_before[shift:])
                applied.update(mine_after[: max(0, shift)])
                for changed, places in by_subject.items():
                    wanted = _as_of(changes, places, applied, own)
                    if wanted is not now[changed]:
                        self._put(changed, wanted)
                        now[changed] = wanted
                back_us = at_us - changes[others[-back]].at_us if back else 0
                yield Past(back, max(0, back_us), shift)
        finally:
            for changed, after in present.items():
                if now[changed] is not after:
                    self._put(changed, after)


def _nearest_first(others: int, before: int, after: int) -> Iterator[tuple[int, int]]:
    """(changes taken back, own decisions moved), those first that differ least from what was told."""
    found = [
        (back, shift)
        for back in range(min(others, MAX_BACK) + 1)
        for shift in range(-min(before, MAX_SHIFT), min(after, MAX_SHIFT) + 1)
    ]
    found.sort(key=lambda one: (one[0] + 2 * abs(one[1]), abs(one[1]), one[1]))
    yield from found[:MAX_STATES]


def _as_of(changes: Sequence[Change], places: Sequence[int], applied: set[int], own: Sequence[bool]) -> Any:  # noqa: ANN401 - what the model keeps of a pod or node
    """One subject after those of its changes that are applied."""
    found = changes[places[0]].before
    is_cut = False
    for at in places:
        one = changes[at]
        if at in applied:
            # What came after a binding that isn't counted can't be without it; but what is gone is gone.
            if not is_cut or one.after is None:
                found = one.after
        elif own[at]:
            is_cut = True
    return found
