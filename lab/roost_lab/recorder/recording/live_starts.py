"""Follow pods while they start, for metrics: how long the phases of a start took, whether its node had the images, and
which starts have not ended. Pure: times come in as arguments.

Each start counts once, also when the recorder restarts: what the first list shows as started counted before, and what
happened since arrives as changes. Starts within a gap don't count.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from roost_lab.recorder.recording.model import PLACEHOLDER
from roost_lab.recorder.recording.reading import US, PodReading

if TYPE_CHECKING:
    from roost_lab.recorder.recording.metrics import RecorderMetrics
    from roost_lab.recorder.store.records import PullRecord

# Most hubs with a label of their own: a pod's labels are its author's, and each hub is a hundred time series.
MAX_HUBS: Final = 50
OTHER_HUBS: Final = "other"
# So long after a start ended, nothing more is awaited of its kubelet's Events.
TOLD_AFTER_US: Final = 60 * US
# Most pods whose pulls are kept before the pods themselves are known; other programs' pods are among them.
MAX_UNKNOWN: Final = 10_000
# Whose start it is, a class's and a hub's: the labels of all metrics.
Whose = tuple[str, str]
# As reports name them.
NODE, CONTAINERS, READY, WHOLE, PULL = PHASES = ("node", "containers", "ready", "whole", "pull")


class StartResult(StrEnum):
    """What became of a start."""

    # Ready, and its node had its images.
    WARM = "warm"
    # Ready, after a pull.
    COLD = "cold"
    # Ready; the kubelet's Events about its images did not arrive.
    UNKNOWN = "unknown"
    # Gone before it was ready.
    FAILED = "failed"


@dataclass(slots=True)
class _Start:
    whose: Whose
    has_ended: bool = False


class LiveStarts:
    """Owned by one thread."""

    def __init__(self, metrics: RecorderMetrics) -> None:
        self._metrics = metrics
        # Pods that exist, by uid, of all classes but placeholders.
        self._starts: dict[str, _Start] = {}
        # Those whose metrics there are.
        self._whose: set[Whose] = set()
        # Uid -> image -> how long it was pulled, in µs; None: the node had it. Until the start's result is counted.
        self._pulls: dict[str, dict[str, int | None]] = {}
        # Uid -> how many images it has. Started pods of which not all Events arrived, and when each is given up.
        self._untold: dict[str, int] = {}
        self._deadlines: deque[tuple[int, str]] = deque()
        self._hubs: set[str] = set()

    def pod_changed(self, pod: PodReading, pod_class: str, hub: str, now_us: int, *, was_there: bool) -> None:
        """A pod in its current state. was_there: it may have been like this before the recorder began."""
        if pod_class in ("", PLACEHOLDER):
            return
        uid = pod.state.uid
        start = self._starts.get(uid)
        if start is None:
            start = self._starts[uid] = _Start((pod_class, self._hub_label(hub)))
            if start.whose not in self._whose:
                self._whose.add(start.whose)
                self._metrics.begin(start.whose)
        if start.has_ended or not _is_started(pod):
            return
        start.has_ended = True
        if was_there:
            self._pulls.pop(uid, None)
            return
        for phase, seconds in _phases(pod):
            self._metrics.phases.labels(*start.whose, phase).observe(seconds)
        self._untold[uid] = len({container.image for container in pod.containers})
        self._deadlines.append((now_us + TOLD_AFTER_US, uid))
        self._count_if_told(uid)

    def pod_gone(self, uid: str) -> None:
        """A pod is gone."""
        start = self._starts.get(uid)
        if start is not None and not start.has_ended:
            self._metrics.starts.labels(*start.whose, StartResult.FAILED).inc()
        elif uid in self._untold:
            self._count(uid)
        if start is not None:
            del self._starts[uid]
        self._pulls.pop(uid, None)

    def pulled(self, pull: PullRecord) -> None:
        """An image of a pod is on its node; of a repeated one, the first counts."""
        uid = pull.pod_uid
        start = self._starts.get(uid)
        if start is not None and start.has_ended and uid not in self._untold:
            return
        self._pulls.setdefault(uid, {}).setdefault(pull.image, None if pull.warm else pull.pull_and_wait_us or 0)
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
        if uid in self._untold and len(self._pulls.get(uid, ())) >= self._untold[uid]:
            self._count(uid)

    def _count(self, uid: str) -> None:
        del self._untold[uid]
        whose, pulls = self._starts[uid].whose, self._pulls.pop(uid, {})
        spans_us = [span_us for span_us in pulls.values() if span_us is not None]
        if spans_us:
            self._metrics.phases.labels(*whose, PULL).observe(max(spans_us) / US)
        result = StartResult.COLD if spans_us else StartResult.WARM if pulls else StartResult.UNKNOWN
        self._metrics.starts.labels(*whose, result).inc()

    def _hub_label(self, hub: str) -> str:
        if hub not in self._hubs and len(self._hubs) >= MAX_HUBS:
            return OTHER_HUBS
        self._hubs.add(hub)
        return hub


def _is_started(pod: PodReading) -> bool:
    return pod.condition("Ready").status == "True" or pod.state.phase == "Succeeded"


def _phases(pod: PodReading) -> Iterator[tuple[str, float]]:
    """The phases of a start that has ended, in seconds; times of pods are whole seconds."""
    bound_us, ready_us = pod.condition("PodScheduled").reached_us, pod.condition("Ready").reached_us
    started_us = max((one.started_us for one in pod.containers if one.started_us is not None), default=None)
    if pod.condition("Ready").status != "True":
        # A pod that has finished isn't ready any more; few have a readiness probe.
        ready_us = started_us
    for phase, from_us, to_us in (
        (NODE, pod.created_us, bound_us),
        (CONTAINERS, bound_us, started_us),
        (READY, started_us, ready_us),
        (WHOLE, pod.created_us, ready_us),
    ):
        if from_us is not None and to_us is not None:
            yield phase, max(0, to_us - from_us) / US
