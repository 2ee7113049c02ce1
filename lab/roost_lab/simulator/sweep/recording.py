"""Record a replay as the recorder records a cluster, into an SQLite file that `roost view` and `roost why` read.

Memory grows with what exists at a time, not with the replay: a pod is written when it is gone.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from roost_core.objects.images import normalise_reference
from roost_core.objects.requests import CPU, MEMORY
from roost_core.placement.labels import WARM_TARGET_ANNOTATION
from roost_lab.recorder.recording.decision_records import failed_attempt
from roost_lab.recorder.recording.node_records import image_record, node_changes, node_record
from roost_lab.recorder.recording.reading import NodeReading, Step
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.database import StoreError as DatabaseError
from roost_lab.recorder.store.records import (
    MAX_SCHEDULER,
    NODES,
    PODS,
    DecisionKind,
    DecisionRecord,
    Phase,
    PhaseRecord,
    PodRecord,
    PreemptionRecord,
    PullRecord,
)
from roost_lab.simulator.engine.pods import MADE_UP_REGISTRY, USER
from roost_lab.simulator.sweep.replay import replay
from roost_lab.simulator.sweep.run import SweepError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from roost_core.objects.node import Node
    from roost_core.scheduler.cycle import Decision
    from roost_lab.recorder.store.records import NodeRecord, Record
    from roost_lab.simulator.engine.entities import SimNode, SimPod
    from roost_lab.simulator.engine.node_images import Pull
    from roost_lab.simulator.engine.results import RunResult
    from roost_lab.simulator.sweep.run import Job

# Records that are written in one transaction.
BATCH: Final = 10_000
SUFFIX: Final = ".db"
# Characters of a repository in an image's name.
MAX_REPOSITORY: Final = 200
_PART: Final = ".part"
_UNSAFE: Final = re.compile(r"[^\w./-]+", re.ASCII)
# The record's source of times: see PhaseRecord.
_WATCH: Final = "watch"


class ReplayRecorder:
    """A journal that writes a replay into a store. `close` writes the rest."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._batch: list[Record] = []
        self._pods: dict[int, _PodStory] = {}
        self._nodes: dict[str, _NodeStory] = {}
        self._changes = 0
        # An image that the engine made a reference for -> one that names its repository, and is written. Grows with
        # distinct images, as the engine's own catalogue does.
        self._images: dict[str, str] = {}
        # When the last thing happened, µs.
        self._last_us = 0

    def close(self) -> None:
        """Write what still exists, and until when the record goes."""
        for node in self._nodes.values():
            self._batch += node.records(None)
        for pod in self._pods.values():
            self._batch += pod.records(self._last_us, None, None)
        self._nodes.clear()
        self._pods.clear()
        self._write(dict.fromkeys((PODS, NODES), ("0", self._last_us)))

    # As Journal

    def node_changed(self, node: SimNode, state: Node, now: float) -> None:
        """Write the first state, and each change of it."""
        story = self._nodes.get(node.name)
        if story is None:
            reading = _reading(state, 0)
            story = self._nodes[node.name] = _NodeStory(reading, node_record(reading))
            # Before its pods: their rows have its age.
            self._batch.append(node_record(reading))
        self._changes += 1
        reading = _reading(state, self._changes)
        step = Step(self._time(now), 1)
        if _recorded(story.reading.state) != _recorded(state):
            new = node_record(reading)
            self._batch += node_changes(story.stored, new, reading, step)
            story.stored = new
        story.reading = reading
        if story.reported is not state.images:
            for image in state.images.keys() - story.images.keys():
                story.images[image] = _SeenImage(self._images.get(image, image), self._time(now))
            for image in story.images.keys() - state.images.keys():
                seen, size = story.images.pop(image), story.reported[image]
                self._batch.append(image_record(node.name, seen.name, seen.first_us, size, self._time(now)))
            story.reported = state.images
        self._write_if_full()

    def node_left(self, node: SimNode, now: float) -> None:
        """Write its end."""
        self._batch += self._nodes.pop(node.name).records(self._time(now))
        for pod in node.pods.values():
            story = self._story(pod)
            story.end_reason = story.end_reason or "node-gone"
        self._write_if_full()

    def pod_unfit(self, pod: SimPod, decision: Decision | None, now: float) -> None:
        """Keep what the scheduler says; the same message again is another try."""
        story = self._story(pod)
        if story.unfit_us is None:
            story.unfit_us = self._time(now)
        message = story.last_message if decision is None else decision.message
        if not message:
            return
        story.last_message = message
        known = story.failures.get(message)
        if known is None:
            story.failures[message] = failed_attempt(
                story.uid, pod.state.scheduler_name, message, Step(self._time(now), 1), source=_WATCH
            )
        else:
            story.failures[message] = replace(known, last_us=self._time(now), tries=known.tries + 1)

    def pod_preempted(self, pod: SimPod, by: SimPod, now: float) -> None:
        """Keep for which pod."""
        self._removed(pod, "preempted", now, _uid(by))

    def pod_evicted(self, pod: SimPod, now: float) -> None:
        """Keep that it was."""
        self._removed(pod, "evicted", now, None)

    def pod_bound(self, pod: SimPod, node: SimNode, now: float) -> None:
        """Keep where, and that pods other than users' run at once."""
        story = self._story(pod)
        story.bound_us, story.node = self._time(now), node.name
        if pod.kind != USER:
            story.ready_us = self._time(now)

    def image_pulled(self, pod: SimPod, image: str, pull: Pull, begins: float) -> None:
        """Keep how long its image takes."""
        story = self._story(pod)
        if image not in self._images and pod.launch is not None:
            self._images[image] = _named(image, pod.launch.attempt.repository)
        story.image = self._images.get(image, image)
        wait_us = max(0, _us(pull.finish) - _us(begins))
        story.pull = PullRecord(
            pod_uid=story.uid,
            image=normalise_reference(story.image),
            node_name=pod.node.name if pod.node is not None else "",
            at_us=max(_us(pull.finish), _us(begins)),
            warm=not wait_us,
            pull_us=min(wait_us, _us(pull.finish) - _us(pull.begin)) if wait_us else None,
            pull_and_wait_us=wait_us or None,
        )

    def pod_ready(self, pod: SimPod, now: float) -> None:
        """Keep since when it runs."""
        self._story(pod).ready_us = self._time(now)

    def pod_gone(self, pod: SimPod, now: float) -> None:
        """Write all about it."""
        story = self._story(pod)
        del self._pods[pod.order]
        now_us = self._time(now)
        self._batch += story.records(now_us, now_us, story.end_reason or "deleted")
        self._write_if_full()

    def _removed(self, pod: SimPod, kind: str, now: float, by_uid: str | None) -> None:
        story = self._story(pod)
        story.end_reason = kind
        if pod.node is not None:
            story.removal = PreemptionRecord(
                victim_uid=story.uid, by_uid=by_uid, node_name=pod.node.name, at_us=self._time(now), kind=kind
            )

    def _story(self, pod: SimPod) -> _PodStory:
        return self._pods.setdefault(pod.order, _PodStory(pod, _uid(pod)))

    def _write_if_full(self) -> None:
        if len(self._batch) >= BATCH:
            self._write({})

    def _time(self, now: float) -> int:
        self._last_us = _us(now)
        return self._last_us

    def _write(self, positions: dict[str, tuple[str, int]]) -> None:
        self._store.write(self._batch, positions)
        self._batch.clear()


class _SeenImage(NamedTuple):
    """An image that a node reports."""

    name: str
    first_us: int


@dataclass(slots=True)
class _NodeStory:
    """A node that exists."""

    reading: NodeReading
    stored: NodeRecord
    # What it reports now, by the engine's references; and the node's own list of it.
    images: dict[str, _SeenImage] = field(default_factory=dict)
    reported: Mapping[str, int] = field(default_factory=dict)

    def records(self, gone_us: int | None) -> Iterator[Record]:
        """Its last state, and the images that it has."""
        yield node_record(self.reading, gone_us)
        for image, seen in self.images.items():
            yield image_record(self.stored.name, seen.name, seen.first_us, self.reported[image], gone_us)


@dataclass(slots=True)
class _PodStory:
    """A pod that exists; times in µs since 1970."""

    pod: SimPod
    uid: str
    bound_us: int | None = None
    node: str = ""
    ready_us: int | None = None
    # Of a user that was bound; "": as the pod says.
    image: str = ""
    unfit_us: int | None = None
    last_message: str = ""
    failures: dict[str, DecisionRecord] = field(default_factory=dict)
    pull: PullRecord | None = None
    removal: PreemptionRecord | None = None
    end_reason: str = ""

    def records(self, end_us: int, gone_us: int | None, reason: str | None) -> Iterator[Record]:
        """All about it until `end_us`. gone_us: None while it exists."""
        yield self._pod_record(gone_us, reason)
        yield from self.failures.values()
        if self.unfit_us is not None:
            yield self._phase(Phase.UNSCHEDULABLE, self.unfit_us)
        if self.bound_us is not None:
            yield self._binding(self.bound_us)
            yield self._phase(Phase.SCHEDULED, self.bound_us)
        if self.pull is not None and self.pull.at_us <= end_us:
            yield self.pull
            yield self._phase(Phase.PULLED, self.pull.at_us, self.pull.image)
        if self.ready_us is not None:
            yield self._phase(Phase.STARTED, self.ready_us)
            yield self._phase(Phase.READY, self.ready_us)
        if self.removal is not None:
            yield self.removal

    def _pod_record(self, gone_us: int | None, reason: str | None) -> PodRecord:
        pod, state = self.pod, self.pod.state
        image = self.image or next(iter(state.spec.images), "")
        requests = dict(state.spec.requests)
        attempt = pod.launch.attempt if pod.launch is not None else pod.builds
        return PodRecord(
            uid=self.uid,
            namespace=state.namespace,
            name=state.name,
            pod_class=pod.kind,
            # Each hub of a replay has its own.
            hub=state.namespace,
            repo=attempt.repository if attempt is not None else "",
            image=normalise_reference(image) if image else "",
            scheduler=state.scheduler_name[:MAX_SCHEDULER],
            priority=state.priority,
            cpu_millicores=requests.get(CPU, 0),
            memory_bytes=requests.get(MEMORY, 0),
            created_us=_us(pod.created),
            deleted_us=gone_us,
            end_reason=reason,
            warm_target=state.annotations.get(WARM_TARGET_ANNOTATION, ""),
        )

    def _binding(self, at_us: int) -> DecisionRecord:
        return DecisionRecord(
            id=f"{self.uid}/{DecisionKind.BIND}",
            pod_uid=self.uid,
            kind=DecisionKind.BIND,
            node_name=self.node,
            node_uid=self.node,
            at_us=at_us,
            resolution_us=1,
            last_us=at_us,
            scheduler=self.pod.state.scheduler_name[:MAX_SCHEDULER],
            source=_WATCH,
        )

    def _phase(self, phase: Phase, at_us: int, detail: str = "") -> PhaseRecord:
        return PhaseRecord(pod_uid=self.uid, phase=phase, detail=detail, at_us=at_us, resolution_us=1, source=_WATCH)


@dataclass(frozen=True, slots=True)
class Recording:
    """The files of one command, a database for each policy."""

    folder: Path

    def prepare(self, policies: Sequence[str]) -> None:
        """Make the folder. Raises SweepError if it can't be made, or has one of the files."""
        files: dict[Path, str] = {}
        for policy in policies:
            other = files.setdefault(self.file_of(policy), policy)
            if other != policy:
                raise SweepError(
                    f"--record: the policies {other} and {policy} would have one file, {self.file_of(policy)}: rename "
                    "one of their values files"
                )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            there = [path for path in files if path.exists()]
        except OSError as error:
            raise SweepError(f"--record: {error.filename or self.folder}: {error.strerror}") from None
        if there:
            raise SweepError(
                f"--record: {there[0]} exists, and may be a record of something else: remove it, or name another folder"
            )

    @property
    def work(self) -> Callable[[Job], RunResult]:
        """What records a job, for `run_sweep`."""
        return partial(record_job, self)

    def finish(self, jobs: Sequence[Job]) -> list[Path]:
        """The files of the jobs, in their order: those of equal jobs, which are replayed once, are copied."""
        written = {job.key: self.file_of(job.policy.name) for job in reversed(jobs)}
        for job in jobs:
            path = self.file_of(job.policy.name)
            if not path.exists():
                shutil.copyfile(written[job.key], path)
        return [self.file_of(job.policy.name) for job in jobs]

    def file_of(self, policy: str) -> Path:
        """Where the replay of that policy is recorded."""
        return self.folder / f"{_UNSAFE.sub('-', policy.replace('/', '-'))}{SUFFIX}"


def record_job(recording: Recording, job: Job) -> RunResult:
    """Replay a job, and record it. Raises SweepError."""
    path = recording.file_of(job.policy.name)
    part = path.with_name(path.name + _PART)
    try:
        part.unlink(missing_ok=True)
        store = Store.open(str(part))
        try:
            store.migrate()
            recorder = ReplayRecorder(store)
            result = replay(
                *(job.trace.open(job.seed), job.policy, job.assumptions, job.seed),
                hubs=job.trace.hubs,
                journal=recorder,
            )
            recorder.close()
        finally:
            store.close()
        part.rename(path)
    except DatabaseError as error:
        raise SweepError(str(error)) from None
    except OSError as error:
        raise SweepError(f"{part}: {error.strerror}") from None
    return result


def _reading(state: Node, version: int) -> NodeReading:
    ready_us = None if state.ready_since is None else _us(state.ready_since)
    # No two nodes of a replay have the same name.
    return NodeReading(replace(state, uid=state.name), str(version), _us(state.created), ready_us)


def _recorded(node: Node) -> tuple[object, ...]:
    return node.ready, node.unschedulable, node.taints, node.labels


def _named(image: str, repository: str) -> str:
    """A reference with the repository's name, if the engine's has only a hash of it."""
    host, _, digest = image.partition("/")
    if host != MADE_UP_REGISTRY:
        return image
    return f"{host}/{_UNSAFE.sub('-', repository.lower())[:MAX_REPOSITORY].strip('-/')}:{digest[:7]}"


def _uid(pod: SimPod) -> str:
    # Placeholders have the same name again and again.
    return f"replayed-{pod.order}"


def _us(moment: float) -> int:
    return round(moment * 1_000_000)
