"""Record a replay as the recorder records a cluster, into an SQLite file that `roost view` and
`roost why` read.

Memory grows with what exists at a time, not with the replay: a pod is written when it is gone.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from roost_core.objects.image_references import normalise_reference
from roost_core.objects.node import Node
from roost_core.objects.requests import CPU, MEMORY
from roost_core.placement.labels import WARM_TARGET_ANNOTATION
from roost_core.scheduler.cycle import SchedulingDecision
from roost_lab.recorder.recording.assembler import Assembler
from roost_lab.recorder.recording.changes import records_of
from roost_lab.recorder.recording.decision_records import decision, failed_attempt
from roost_lab.recorder.recording.reading import NodeReading, Step
from roost_lab.recorder.recording.streams import Observation
from roost_lab.recorder.store.database import Store, StoreError
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
    Record,
    StoredState,
)
from roost_lab.simulator.engine.entities import SimNode, SimPod
from roost_lab.simulator.engine.journal import Journal
from roost_lab.simulator.engine.node_images import Pull
from roost_lab.simulator.engine.pods import MADE_UP_REGISTRY, USER
from roost_lab.simulator.sweep.replay import replay
from roost_lab.simulator.sweep.run import Job, SweepError
from roost_lab.units import US

# Records that are written in one transaction.
BATCH: Final = 10_000
# Characters of a repository in an image's name.
MAX_REPOSITORY: Final = 200
_UNSAFE: Final = re.compile(r"[^\w./-]+", re.ASCII)
# The record's source of times: see PhaseRecord.
_WATCH: Final = "watch"


class ReplayRecorder(Journal):
    """A journal that writes a replay into a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._batch: list[Record] = []
        # Nodes alone; a replay knows more of its pods than a watch shows.
        self._assembler = Assembler(lambda _labels, _namespace: "", StoredState())
        self._changes = 0
        # By a pod's order: what the scheduler said of it, by message, the latest last; and why it
        # was removed.
        self._failures: dict[int, dict[str, DecisionRecord]] = {}
        self._removals: dict[int, PreemptionRecord] = {}
        # An image that the engine made a reference for -> one that names its repository, and is
        # written. Grows with distinct images, as the engine's own catalogue does.
        self._images: dict[str, str] = {}
        # When the last thing happened, µs.
        self._last_us = 0

    def node_changed(self, node: SimNode, state: Node, now: float) -> None:
        """Write its first state, and each change of it."""
        self._changes += 1
        for pod in node.pods.values():
            self._name_image(pod)
        images = {self._images.get(image, image): size for image, size in state.images.items()}
        reading = NodeReading(replace(state, images=images), str(self._changes))
        observed = Observation(self._time(now))
        self._write(records_of(self._assembler.node(node.name, reading, observed)))

    def node_left(self, node: SimNode, now: float) -> None:
        """Write its end."""
        self._write(records_of(self._assembler.node_deleted(node.name, self._time(now))))

    def pod_unfit(self, pod: SimPod, decision: SchedulingDecision | None, now: float) -> None:
        """Keep what the scheduler says; the same message again is another try.

        decision: None: it says what it said last.
        """
        failures = self._failures.setdefault(pod.order, {})
        now_us = self._time(now)
        message = next(reversed(failures), "")
        if decision is not None:
            message = decision.message
        known = failures.pop(message, None)
        if known is not None:
            failures[message] = replace(known, last_us=now_us, tries=known.tries + 1)
        elif message:
            scheduler = pod.state.scheduler_name
            when = Step(now_us, 1)
            failures[message] = failed_attempt(_uid(pod), scheduler, message, when, source=_WATCH)

    def pod_removed(self, pod: SimPod, by: SimPod | None, now: float) -> None:
        """Keep for which pod."""
        self._removals[pod.order] = PreemptionRecord(
            victim_uid=_uid(pod),
            by_uid=None if by is None else _uid(by),
            node_name="" if pod.node is None else pod.node.name,
            at_us=self._time(now),
            kind="evicted" if by is None else "preempted",
        )

    def pod_gone(self, pod: SimPod, now: float) -> None:
        """Write all about it."""
        self._write(self._pod_records(pod, self._time(now)))

    def ended(self, pods: Iterable[SimPod]) -> None:
        """Write the pods that are there, and until when the record goes."""
        for pod in pods:
            self._batch += self._pod_records(pod, None)
        self._store.write(self._batch, dict.fromkeys((PODS, NODES), ("0", self._last_us)))

    def _pod_records(self, pod: SimPod, gone_us: int | None) -> Iterator[Record]:
        """All about a pod. gone_us: None while it exists."""
        uid = _uid(pod)
        image = self._image_of(pod)
        removal = self._removals.pop(pod.order, None)
        yield _pod_record(pod, image, gone_us, removal)
        yield from self._failures.pop(pod.order, {}).values()
        if pod.waits_since is not None:
            yield _phase(uid, Phase.UNSCHEDULABLE, _us(pod.waits_since))
        if pod.node is not None and pod.bound_at is not None:
            yield _binding(pod, pod.node.name, _us(pod.bound_at))
            yield _phase(uid, Phase.SCHEDULED, _us(pod.bound_at))
        end_us = self._last_us if gone_us is None else gone_us
        if pod.node is not None and pod.pull is not None and _us(pod.pull.finish) <= end_us:
            pull = _pull_record(pod, pod.node.name, pod.pull, image)
            yield pull
            yield _phase(uid, Phase.PULLED, pull.at_us, image)
        # Pods other than users' run at once.
        ready = pod.ready_at if pod.kind == USER else pod.bound_at
        if ready is not None:
            yield _phase(uid, Phase.STARTED, _us(ready))
            yield _phase(uid, Phase.READY, _us(ready))
        if removal is not None and removal.node_name:
            yield removal

    def _image_of(self, pod: SimPod) -> str:
        """Its image; once it is bound, with the repository's name where the engine's has only a
        hash of it.
        """
        self._name_image(pod)
        image = next(iter(pod.state.spec.images), "")
        if pod.bound_at is not None:
            image = self._images.get(image, image)
        return normalise_reference(image) if image else ""

    def _name_image(self, pod: SimPod) -> None:
        """Remember the name of a bound pod's image that is written in the place of the engine's."""
        image = next(iter(pod.state.spec.images), "")
        if pod.launch is not None and pod.bound_at is not None and image not in self._images:
            self._images[image] = _named(image, pod.launch.attempt.repository)

    def _time(self, now: float) -> int:
        self._last_us = _us(now)
        return self._last_us

    def _write(self, records: Iterable[Record]) -> None:
        self._batch += records
        if len(self._batch) >= BATCH:
            self._store.write(self._batch, {})
            self._batch.clear()


def _pod_record(
    pod: SimPod, image: str, gone_us: int | None, removal: PreemptionRecord | None
) -> PodRecord:
    state = pod.state
    requests = dict(state.spec.requests)
    attempt = pod.launch.attempt if pod.launch is not None else pod.builds
    reason = "deleted" if removal is None else removal.kind
    if removal is None and pod.node is not None and pod.node.has_left:
        reason = "node-gone"
    return PodRecord(
        uid=_uid(pod),
        namespace=state.namespace,
        # The launch's own, so that it has one name in the replays of all policies.
        name=state.name if attempt is None else f"{pod.kind}-{attempt.number}",
        pod_class=pod.kind,
        # Each hub of a replay has its own.
        hub=state.namespace,
        repo=attempt.repository if attempt is not None else "",
        image=image,
        scheduler=state.scheduler_name[:MAX_SCHEDULER],
        priority=state.priority,
        cpu_millicores=requests.get(CPU, 0),
        memory_bytes=requests.get(MEMORY, 0),
        created_us=_us(pod.created),
        deleted_us=gone_us,
        end_reason=None if gone_us is None else reason,
        warm_target=state.annotations.get(WARM_TARGET_ANNOTATION, ""),
    )


def _binding(pod: SimPod, node: str, at_us: int) -> DecisionRecord:
    when = Step(at_us, 1)
    scheduler = pod.state.scheduler_name
    # No two nodes of a replay have the same name.
    return decision(
        DecisionKind.BIND, _uid(pod), node, when, source=_WATCH, node_uid=node, scheduler=scheduler
    )


def _pull_record(pod: SimPod, node: str, pull: Pull, image: str) -> PullRecord:
    """How a pod came to its image, once the node holds it: at once, or by a pull."""
    asked_us = _us(pod.asked_at)
    pulled_us = max(_us(pull.finish), asked_us)
    # The pull may have begun for another pod, before this one asked.
    wait_us = pulled_us - asked_us
    return PullRecord(
        pod_uid=_uid(pod),
        image=image,
        node_name=node,
        at_us=pulled_us,
        warm=not wait_us,
        pull_us=min(wait_us, pulled_us - _us(pull.begin)) if wait_us else None,
        pull_and_wait_us=wait_us or None,
    )


def _phase(uid: str, phase: Phase, at_us: int, detail: str = "") -> PhaseRecord:
    return PhaseRecord(
        pod_uid=uid, phase=phase, detail=detail, at_us=at_us, resolution_us=1, source=_WATCH
    )


def record_files(folder: Path, policies: Sequence[str]) -> list[Path]:
    """Make the folder; where the replay of each policy is recorded.

    Raises SweepError if one is there already.
    """
    files = [folder / f"{_UNSAFE.sub('-', policy.replace('/', '-'))}.db" for policy in policies]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            if files.count(file) > 1:
                raise SweepError(
                    f"--record: two policies would have one file, {file}: rename one of their"
                    " values files"
                )
            if file.exists():
                raise SweepError(
                    f"--record: {file} exists, and may be a record of something else: remove it, or"
                    " name another folder"
                )
    except OSError as error:
        raise SweepError(f"--record: {error.filename or folder}: {error.strerror}") from None
    return files


def record_job(path: Path, job: Job) -> None:
    """Replay a job, and record it into a new file. Raises SweepError."""
    part = path.with_name(f"{path.name}.part")
    try:
        part.unlink(missing_ok=True)
        with contextlib.closing(Store.open(str(part))) as store:
            store.migrate()
            attempts = job.trace.open(job.seed)
            hubs = job.trace.hubs
            journal = ReplayRecorder(store)
            replay(attempts, job.policy, job.assumptions, job.seed, hubs=hubs, journal=journal)
        part.rename(path)
    except StoreError as error:
        raise SweepError(str(error)) from None
    except OSError as error:
        raise SweepError(f"--record: {error.filename or part}: {error.strerror}") from None


def _named(image: str, repository: str) -> str:
    """An image's name with its repository, if the engine made up the name."""
    host, _, digest = image.partition("/")
    if host != MADE_UP_REGISTRY:
        return image
    name = _UNSAFE.sub("-", repository.lower())[:MAX_REPOSITORY].strip("-/")
    return f"{host}/{name}:{digest[:7]}"


def _uid(pod: SimPod) -> str:
    # Placeholders have the same name again and again.
    return f"replayed-{pod.order}"


def _us(moment: float) -> int:
    return round(moment * US)
