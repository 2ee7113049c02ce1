"""Find what a pod waited for between its binding and its containers' start: its volumes, its
sandbox, init containers, images, and how much of it nothing explains. Pure.

A kubelet mounts the volumes, makes the sandbox with the pod's address, runs init containers one
after the other, and then starts the others. So what failed before has succeeded by the first sign
of a later step. What no wait and no pull explains is never given to a step that merely came last.

The record keeps what kubelets said, and waits are found when somebody asks. So a better rule mends
what was recorded before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from roost_core.placement.hold_ups import LATE_WORDS, short_cause
from roost_lab.pages.dates import as_date
from roost_lab.recorder.recording.pod_events import ATTACHED, KIND_OF_REASON, WaitKind, kind_of
from roost_lab.recorder.store.records import Phase
from roost_lab.units import US

Row = Mapping[str, Any]
_WORDS: Final[Mapping[WaitKind, str]] = {
    WaitKind.VOLUME: "its volume",
    WaitKind.DEVICES: "its devices",
    WaitKind.SANDBOX: "its sandbox",
    WaitKind.INIT: "init container",
    WaitKind.IMAGE: "image",
    WaitKind.CONTAINER: "container",
}


class Wait(NamedTuple):
    """One thing that a bound pod waited for. Times are in µs."""

    kind: WaitKind
    # The volume, container or image; of several volumes the first; "" for the whole pod.
    subject: str
    from_us: int
    to_us: int
    # The cause in the words of whoever told it; "" where nothing failed.
    message: str = ""
    # When its volume was attached.
    attached_us: int | None = None
    # Whether the wait still goes on when the record ends.
    goes_on: bool = False

    @property
    def span_us(self) -> int:
        """How long it lasted, or has lasted."""
        return self.to_us - self.from_us

    @property
    def awaits(self) -> str:
        """What the pod waited for, in words: its volume, init container x."""
        is_named = self.kind in (WaitKind.INIT, WaitKind.IMAGE, WaitKind.CONTAINER)
        if is_named and self.subject:
            return f"{_WORDS[self.kind]} {self.subject}"
        return _WORDS[self.kind]

    @property
    def cause(self) -> str:
        """The cause in short, and how it ended: Multi-Attach error for volume pvc-1 (attached
        10:06:10).
        """
        cause = short_cause(self.message)
        if self.attached_us is None:
            return cause
        return f"{cause or self.subject} (attached {as_date(self.attached_us):%H:%M:%S})"


class AfterBinding(NamedTuple):
    """What a bound pod waited for until its containers ran, or until now."""

    # By their beginning. Those of a kind don't overlap.
    waits: Sequence[Wait]
    # µs, of which neither these nor pulls explain anything.
    unexplained_us: int
    # Its containers run.
    is_over: bool
    # Spans in µs that something explains: waits and pulls, in order, without overlaps.
    explained: Sequence[tuple[int, int]]

    def explained_us(self, from_us: int, to_us: int) -> int:
        """How much of a time something explains."""
        return sum(max(0, min(end, to_us) - max(begin, from_us)) for begin, end in self.explained)


def find_waits(
    phases: Iterable[Row],
    pulls: Iterable[Row],
    events: Iterable[Row],
    bound_us: int,
    until_us: int | None = None,
) -> AfterBinding:
    """Find what one pod waited for.

    phases, pulls, events: its rows of the tables `phase`, `pull` and `pod_event`. until_us: until
    when anything is known, of a pod whose containers don't run; None: as the rows say.
    """
    story = _Story(list(phases), list(pulls), list(events), bound_us, until_us)
    waits = [
        *story.of_volumes(),
        *story.of_events(WaitKind.DEVICES, story.volumes_done),
        *story.of_events(WaitKind.SANDBOX, story.sandbox_done),
        *story.of_init_containers(),
        *story.of_images(),
        *story.of_events(WaitKind.CONTAINER, story.ran),
    ]
    waits = sorted((wait for wait in waits if wait.span_us > 0), key=lambda wait: wait.from_us)
    # Since an init container runs, nothing else is waited for; and the first cause counts.
    taken = _union([(wait.from_us, wait.to_us) for wait in waits] + story.of_pulls())
    explained = sum(end - begin for begin, end in taken)
    unexplained_us = max(0, story.end_us - bound_us - explained)
    return AfterBinding(waits, unexplained_us, story.is_over, taken)


def _union(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans in order, those that overlap or touch as one; without empty ones."""
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(span for span in spans if span[1] > span[0]):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return merged


class _Story:
    """What is known of one pod since its binding."""

    def __init__(
        self,
        phases: list[Row],
        pulls: list[Row],
        events: list[Row],
        bound_us: int,
        until_us: int | None,
    ) -> None:
        self._phases = phases
        self._events = events
        self._bound_us = bound_us
        # (begin, end, image) of each pull that took time.
        self._pulls = [
            (row["at_us"] - (row["pull_and_wait_us"] or 0), row["at_us"], row["image"])
            for row in pulls
            if not row["warm"]
        ]
        started = self._at(Phase.STARTED)
        ready = self._at(Phase.READY)
        self.is_over = bool(started or ready)
        moments_us = [row["at_us"] for row in phases] + [row["last_us"] for row in events]
        gone = min(self._at(Phase.TERMINATING) + self._at(Phase.GONE), default=None)
        if started or ready:
            self.end_us = max(started or ready)
        else:
            last_us = until_us if until_us is not None else max(moments_us, default=bound_us)
            self.end_us = max(bound_us, last_us)
            if gone is not None and gone <= self.end_us:
                self.end_us = gone
                self.is_over = True
        self.ran = [*started, *ready]
        init = self._at(Phase.INIT_STARTED)
        image_failures = [
            row["at_us"]
            for row in events
            if self._kind(row) in (WaitKind.IMAGE, WaitKind.CONTAINER)
        ]
        self.sandbox_done = [
            *init,
            *self._at(Phase.PULLING),
            *(begin for begin, _, _ in self._pulls),
            *(row["at_us"] for row in pulls if row["warm"]),
            *image_failures,
            *self.ran,
        ]
        sandbox = [row["at_us"] for row in events if self._kind(row) is WaitKind.SANDBOX]
        self.volumes_done = [*sandbox, *self.sandbox_done]

    def _at(self, phase: Phase) -> list[int]:
        return [row["at_us"] for row in self._phases if row["phase"] == phase]

    @staticmethod
    def _kind(row: Row) -> WaitKind | None:
        return kind_of(row["reason"], row["message"]) if row["reason"] in KIND_OF_REASON else None

    def _wait(self, kind: WaitKind, row: Row, from_us: int, ends: Iterable[int]) -> Wait:
        # None: it goes on.
        end = min((end for end in ends if end >= from_us), default=None)
        begin = min(max(from_us, self._bound_us), self.end_us)
        to_us = max(begin, self.end_us if end is None else min(end, self.end_us))
        goes_on = end is None and not self.is_over
        return Wait(kind, row["subject"], begin, to_us, row["message"], goes_on=goes_on)

    def of_events(self, kind: WaitKind, ends: Iterable[int]) -> list[Wait]:
        """Waits from the first Event of a kind on until one of these times."""
        rows = [row for row in self._events if self._kind(row) is kind]
        return _merged([self._wait(kind, row, row["at_us"], ends) for row in rows])

    def of_volumes(self) -> list[Wait]:
        """From the first failure on, or from its binding where that is told minutes later."""
        of_volumes = [row for row in self._events if self._kind(row) is WaitKind.VOLUME]
        rows = [row for row in of_volumes if row["reason"] != ATTACHED]
        attached = {
            row["subject"]: row["last_us"] for row in self._events if row["reason"] == ATTACHED
        }
        waits: list[Wait] = []
        for row in rows:
            is_late = any(words in row["message"] for words in LATE_WORDS)
            from_us = self._bound_us if is_late else row["at_us"]
            end = attached.pop(row["subject"], None)
            is_attached = end is not None and end >= row["at_us"]
            ends = list(self.volumes_done)
            if end is not None and is_attached:
                ends.append(end)
            wait = self._wait(WaitKind.VOLUME, row, from_us, ends)
            waits.append(wait._replace(attached_us=end if is_attached else None))
        for subject, at_us in attached.items():
            # No Event tells of a failure: attaching the volume took so long.
            row = {"subject": subject, "message": ""}
            wait = self._wait(WaitKind.VOLUME, row, self._bound_us, [at_us])
            waits.append(wait._replace(attached_us=at_us))
        return _merged(waits)

    def of_init_containers(self) -> list[Wait]:
        """From each init container's start until its end, or the first sign of the next one."""
        ended = {
            row["detail"]: row["at_us"] for row in self._phases if row["phase"] == Phase.INIT_ENDED
        }
        begun = [row for row in self._phases if row["phase"] == Phase.INIT_STARTED]
        waits: list[Wait] = []
        for row in begun:
            from_us = row["at_us"]
            name = row["detail"]
            others = [other["at_us"] for other in begun if other is not row]
            next_ones = [
                *self._at(Phase.PULLING),
                *(begin for begin, _, _ in self._pulls),
                *self._at(Phase.PULLED),
            ]
            ends = [
                *self.ran,
                *(at_us for at_us in others if at_us > from_us),
                *(at_us for at_us in next_ones if at_us > from_us),
            ]
            if name in ended:
                ends = [max(from_us, ended[name])]
            container = {"subject": name, "message": ""}
            waits.append(self._wait(WaitKind.INIT, container, from_us, ends))
        return waits

    def of_images(self) -> list[Wait]:
        """From the first failed pull of an image until it was there."""
        waits: list[Wait] = []
        for row in self._events:
            if self._kind(row) is not WaitKind.IMAGE:
                continue
            steps = [step for step in self._phases if step["detail"] == row["subject"]]
            pulled = [step["at_us"] for step in steps if step["phase"] == Phase.PULLED]
            pulling = [step["at_us"] for step in steps if step["phase"] == Phase.PULLING]
            begun = [at_us for at_us in pulling if at_us <= row["at_us"]]
            from_us = max(begun, default=row["at_us"])
            waits.append(self._wait(WaitKind.IMAGE, row, from_us, [*pulled, *self.ran]))
        return _merged(waits)

    def of_pulls(self) -> list[tuple[int, int]]:
        """Pulls that took time, within its start."""
        return [
            (max(begin, self._bound_us), min(end, self.end_us)) for begin, end, _ in self._pulls
        ]


def _merged(waits: Iterable[Wait]) -> list[Wait]:
    """Waits of one kind as one where they overlap; the longest one's cause counts."""
    merged: list[Wait] = []
    for wait in sorted(waits, key=lambda wait: (wait.from_us, -wait.to_us)):
        last = merged[-1] if merged else None
        is_other = wait.kind is WaitKind.IMAGE and last is not None and last.subject != wait.subject
        if last is None or wait.from_us > last.to_us or is_other:
            merged.append(wait)
            continue
        longest = max(last, wait, key=lambda wait: (bool(wait.message), wait.span_us))
        merged[-1] = longest._replace(
            from_us=last.from_us,
            to_us=max(last.to_us, wait.to_us),
            goes_on=last.goes_on or wait.goes_on,
        )
    return merged


# Shorter waits aren't told.
LEAST_US: Final = US
