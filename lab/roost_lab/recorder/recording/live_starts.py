"""Follow pods while they start: how long the phases of a start took, whether its node had the
images, which starts have not ended, and whose a hub's news is. Pure: times come in as arguments.

Where a hub's log is read, a start ends with the hub's word, else when the pod is ready. Each start
counts once, also when the recorder restarts: what the first list shows as started counted before,
and what happened since arrives as changes. Starts within a gap don't count.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Final, NamedTuple

from roost_core.placement.labels import hub_of
from roost_core.start_counts import StartLabels
from roost_lab.recorder.recording.changes import Change, PodChange
from roost_lab.recorder.recording.hub_log import MILLI_US, HubNews, server_of
from roost_lab.recorder.recording.metrics import RecorderMetrics, StartResult
from roost_lab.recorder.recording.pod_records import hub_records, phase_record
from roost_lab.recorder.recording.reading import MICRO_US, PodReading, Step
from roost_lab.recorder.recording.scheduler_model import PLACEHOLDER
from roost_lab.recorder.recording.seated_starts import SeatedStarts
from roost_lab.recorder.recording.streams import How
from roost_lab.recorder.store.phases import ANSWER, CONTAINERS, HUB, NODE, PULL, READY, WHOLE
from roost_lab.recorder.store.records import Phase, PhaseRecord, PullRecord, Record
from roost_lab.units import US

# This long after a start ended, no more Events of its kubelet are awaited.
TOLD_AFTER_US: Final = 60 * US
# Most pods whose pulls are kept before the pods themselves are known; other programs' pods are
# among them.
MAX_UNKNOWN: Final = 10_000


@dataclass(slots=True)
class _Start:
    uid: str
    labels: StartLabels
    # Exact where the watch told of it in time.
    created: Step
    # Its server's name in the log of its hub, `user` or `user:server`; "": none.
    server: str
    # When the watch told that it was bound.
    bound_us: int | None = None
    # Since when its containers run, by `_within_second`.
    started_us: int | None = None
    is_ready: bool = False
    # The hub's word, if it came before the news that the pod is ready.
    answer: HubNews | None = None
    # Seating asked for it before a class: nobody waited.
    is_seated: bool = False
    # True, too, of a start that may have ended before the recorder began: it isn't counted.
    has_ended: bool = False


class _Span(NamedTuple):
    """How long a phase of a start took; None: a time that isn't known."""

    phase: str
    from_us: int | None
    to_us: int | None


class LiveStarts:
    """Owned by one thread."""

    def __init__(self, metrics: RecorderMetrics, seated: Set[str] = frozenset()) -> None:
        """seated: uids of pods that are seating's by what is stored."""
        self._counts = metrics.starts
        self._seated = SeatedStarts(seated)
        # Pods that exist, by uid, of all classes but placeholders.
        self._starts: dict[str, _Start] = {}
        # Namespace -> the server's name in its hub's log -> its last pod's start, until the hub has
        # told of it.
        self._awaited: dict[str, dict[str, _Start]] = {}
        # Namespaces of hubs whose log is read, and since when.
        self._logs: dict[str, int] = {}
        # Uid -> image -> how long it was pulled, in µs; None: the node had it. Until the start's
        # result is counted.
        self._pulls: dict[str, dict[str, int | None]] = {}
        # Started pods of which not all Events arrived. Uid -> how many images it has.
        self._untold: dict[str, int] = {}
        # Until when the Events of each pod are awaited, and its uid; the first to end comes first.
        self._deadlines: deque[tuple[int, str]] = deque()

    def hub_log(self, namespace: str, now_us: int, *, is_read: bool) -> None:
        """Whether the log of this namespace's hub can be read from now on."""
        if is_read:
            self._logs.setdefault(namespace, now_us)
        else:
            self._logs.pop(namespace, None)

    def follow(self, change: Change) -> list[Record]:
        """Count what a change says of starts; records, if a pod went before its hub, whose log is
        read, had said how its start ended, or if it is of a server that seating asked for.
        """
        for record in change.records:
            if isinstance(record, PullRecord):
                self._pulled(record)
        if not isinstance(change, PodChange):
            return []
        if change.is_gone:
            return self._pod_gone(change)
        if change.pod_class not in ("", PLACEHOLDER):
            return self._pod_changed(change)
        return []

    def _pod_changed(self, change: PodChange) -> list[Record]:
        pod = change.pod
        observed = change.observed
        uid = pod.state.uid
        start = self._starts.get(uid)
        if start is None:
            hub = hub_of(pod.state.labels, pod.state.namespace)
            start = self._starts[uid] = _Start(
                uid, self._counts.begin(change.pod_class, hub), change.created, server_of(pod)
            )
            # The last pod of a server is the one that its hub tells of.
            awaited = self._awaited.setdefault(pod.state.namespace, {})
            awaited.pop(start.server, None)
            if start.server:
                awaited[start.server] = start
            if len(awaited) > MAX_UNKNOWN:
                del awaited[next(iter(awaited))]
        elif pod.state.node_name and start.bound_us is None and observed.is_exact:
            start.bound_us = observed.at_us
        records: list[Record] = []
        if start.server:
            start.is_seated, records = self._seated.pod_changed(
                pod.state.namespace, start.server, uid, start.created.at_us
            )
        if not start.is_ready and not start.has_ended and _is_started(pod):
            self._pod_ready(start, change)
        return records

    def _pod_ready(self, start: _Start, change: PodChange) -> None:
        """Count what its pod alone tells."""
        pod = change.pod
        observed = change.observed
        uid = start.uid
        start.is_ready = True
        if observed.how is How.FOUND:
            start.has_ended = True
            self._pulls.pop(uid, None)
            return
        second_us = _started_us(pod)
        if second_us is not None:
            exact_us = observed.at_us if observed.is_exact else None
            start.started_us = _within_second(second_us, exact_us)
        is_awaited = bool(start.server) and pod.state.namespace in self._logs
        for span in _phases(pod, start):
            # The hub's log will tell how long the whole start took.
            if not (span.phase == WHOLE and is_awaited):
                self._observe(start, span)
        self._untold[uid] = len({container.image for container in pod.containers})
        if not is_awaited:
            self._end(start, observed.at_us)
        elif start.answer is not None:
            self._answered(start, start.answer, observed.at_us)

    def hub_told(self, namespace: str, news: HubNews, now_us: int) -> list[Record]:
        """A hub's verdict on a start, and what it says of those that seating asked for; no records
        when no pod awaits it.
        """
        records = self._seated.told(namespace, news)
        for record in records:
            if isinstance(record, PhaseRecord) and record.pod_uid in self._starts:
                self._starts[record.pod_uid].is_seated = True
        if news.outcome in (Phase.ANSWERED, Phase.FAILED):
            records += self._verdict(namespace, news, now_us)
        return records

    def _verdict(self, namespace: str, news: HubNews, now_us: int) -> list[Record]:
        awaited = self._awaited.get(namespace, {})
        found = [
            start
            for name, start in awaited.items()
            if news.is_about(name) and start.created.at_us <= news.when.at_us
        ]
        if not found:
            return []
        start = min(found, key=lambda start: start.created.at_us)
        del awaited[start.server]
        start.answer = news
        if news.outcome is Phase.FAILED and not start.has_ended:
            self._fail(start)
        elif start.is_ready and not start.has_ended:
            self._answered(start, news, now_us)
        return hub_records(start.uid, news)

    def _answered(self, start: _Start, news: HubNews, now_us: int) -> None:
        asked_us = None if news.span_us is None else news.when.at_us - news.span_us
        created = start.created
        told_us = created.at_us if created.resolution_us == MICRO_US else None
        self._observe(start, _Span(HUB, asked_us, _within_second(created.at_us, told_us)))
        self._observe(start, _Span(ANSWER, start.started_us, news.when.at_us))
        self._observe(start, _Span(WHOLE, asked_us, news.when.at_us))
        self._end(start, now_us)

    def _observe(self, start: _Start, span: _Span) -> None:
        # Nobody waited for what seating asked for.
        if start.is_seated:
            return
        if span.from_us is not None and span.to_us is not None:
            self._counts.observe(start.labels, (span.to_us - span.from_us) / US, span.phase)

    def _end(self, start: _Start, now_us: int) -> None:
        start.has_ended = True
        self._deadlines.append((now_us + TOLD_AFTER_US, start.uid))
        self._count_if_told(start.uid)

    def _fail(self, start: _Start) -> None:
        start.has_ended = True
        self._untold.pop(start.uid, None)
        self._pulls.pop(start.uid, None)
        self._counts.count(start.labels, StartResult.FAILED)

    def _pod_gone(self, change: PodChange) -> list[Record]:
        namespace = change.pod.state.namespace
        uid = change.pod.state.uid
        now_us = change.observed.at_us
        start = self._starts.get(uid)
        records: list[Record] = []
        if (
            start is not None
            and start.is_ready
            and not start.has_ended
            and namespace not in self._logs
        ):
            # The hub's log can no longer be read, so Ready is all that will be known.
            self._end(start, now_us)
        if start is not None and not start.has_ended:
            self._fail(start)
            read_since_us = self._logs.get(namespace)
            is_read = read_since_us is not None and read_since_us <= start.created.at_us
            if start.server and is_read:
                records.append(phase_record(uid, Phase.ABANDONED, Step(now_us, MILLI_US), "watch"))
        elif uid in self._untold:
            self._count(uid)
        self._starts.pop(uid, None)
        self._pulls.pop(uid, None)
        return records

    def _pulled(self, pull: PullRecord) -> None:
        """An image of a pod is on its node; of a repeated one, the first counts."""
        uid = pull.pod_uid
        start = self._starts.get(uid)
        if start is not None and start.has_ended and uid not in self._untold:
            return
        self._pulls.setdefault(uid, {}).setdefault(
            pull.image, None if pull.warm else pull.pull_and_wait_us or 0
        )
        self._count_if_told(uid)
        if len(self._pulls) > MAX_UNKNOWN + len(self._starts):
            del self._pulls[next(iter(self._pulls))]

    def give_up(self, now_us: int) -> None:
        """Count the starts whose Events are overdue."""
        while self._deadlines and self._deadlines[0][0] <= now_us:
            _, uid = self._deadlines.popleft()
            if uid in self._untold:
                self._count(uid)

    def _count_if_told(self, uid: str) -> None:
        start = self._starts.get(uid)
        has_ended = start is not None and start.has_ended and uid in self._untold
        if has_ended and len(self._pulls.get(uid, ())) >= self._untold[uid]:
            self._count(uid)

    def _count(self, uid: str) -> None:
        del self._untold[uid]
        start = self._starts[uid]
        labels = start.labels
        pulls = self._pulls.pop(uid, {})
        spans_us = [span_us for span_us in pulls.values() if span_us is not None]
        if start.is_seated:
            result = StartResult.SEATED
        elif spans_us:
            self._counts.observe(labels, max(spans_us) / US, PULL)
            result = StartResult.COLD
        elif pulls:
            result = StartResult.WARM
        else:
            result = StartResult.UNKNOWN
        self._counts.count(labels, result)


def _is_started(pod: PodReading) -> bool:
    return pod.condition("Ready").status == "True" or pod.state.phase == "Succeeded"


def _within_second(second_us: int, told_us: int | None) -> int:
    """The best guess of when something happened that the pod's object dates by a whole second: when
    the watch told of it, if within that second; else its middle, at most half a second off.

    told_us: None: the watch didn't tell of it at once.
    """
    if told_us is not None and 0 <= told_us - second_us < US:
        return told_us
    return second_us + US // 2


def _started_us(pod: PodReading) -> int | None:
    """When the last of a pod's containers started, a whole second; None: none did."""
    starts_us = [container.started_us for container in pod.containers]
    return max((at_us for at_us in starts_us if at_us is not None), default=None)


def _phases(pod: PodReading, start: _Start) -> Iterator[_Span]:
    """The phases of a pod that is ready. Both ends of a span are equally exact: whole seconds, but
    for a node that the watch told of.
    """
    bound_us = pod.condition("PodScheduled").reached_us
    ready_us = pod.condition("Ready").reached_us
    started_us = _started_us(pod)
    if pod.condition("Ready").status != "True":
        # A pod that has finished isn't ready any more; few have a readiness probe.
        ready_us = started_us
    if start.created.resolution_us == MICRO_US and start.bound_us is not None:
        # The watch told of both at once.
        yield _Span(NODE, start.created.at_us, start.bound_us)
    else:
        yield _Span(NODE, pod.created_us, bound_us)
    yield _Span(CONTAINERS, bound_us, started_us)
    yield _Span(READY, started_us, ready_us)
    yield _Span(WHOLE, pod.created_us, ready_us)
