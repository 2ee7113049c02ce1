"""Make up what a recorder would have stored of a hub: users by the clock, builds, placeholders, an
autoscaler, a gap.

The same seed gives the same records, so screenshots and benchmarks can be made again. It is a
story, not a simulation of kube-scheduler: its numbers say nothing about Roost.
"""

from __future__ import annotations

import heapq
import json
import math
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Final

from roost_lab.recorder.store.records import (
    DecisionKind,
    DecisionRecord,
    GapRecord,
    NodeRecord,
    Phase,
    PhaseRecord,
    PodRecord,
    PreemptionRecord,
    PullRecord,
)
from roost_lab.units import HOUR_SECONDS, US

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roost_lab.recorder.store.database import Store
    from roost_lab.recorder.store.records import Record

# A Monday.
BEGIN: Final = datetime(2026, 11, 2, tzinfo=UTC).timestamp()
USER = "user"
BUILD = "build"
PLACEHOLDER = "placeholder"
PODS_PER_NODE: Final = 24
NODE_SECONDS: Final = 150.0
IDLE_SECONDS: Final = 1800.0
# Pending pods are tried this often.
RETRY_SECONDS: Final = 15.0
MIB: Final = 1 << 20
MACHINE_TYPE: Final = '{"node.kubernetes.io/instance-type": "n2-highmem-16"}'
_BATCH: Final = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """How much happens."""

    seed: int = 7
    days: float = 3.0
    # Users a day; builds are a fifth of that.
    users_a_day: float = 900.0
    images: int = 24
    placeholders: int = 30
    nodes_at_least: int = 2


@dataclass(eq=False, slots=True)
class _Pod:
    kind: str
    uid: str
    name: str
    image: int
    created: float
    seconds: float
    node: _Node | None = None
    tries: int = 0
    gone: bool = False


@dataclass(eq=False, slots=True)
class _Node:
    uid: str
    name: str
    created: float
    counts: dict[str, int] = field(default_factory=lambda: {USER: 0, BUILD: 0, PLACEHOLDER: 0})
    placeholders: list[_Pod] = field(default_factory=list)
    images: set[int] = field(default_factory=set)
    idle_since: float = 0.0
    pulling_until: float = 0.0

    @property
    def free(self) -> int:
        return PODS_PER_NODE - sum(self.counts.values())


def end_us(story: Story) -> int:
    """The moment at which a story ends."""
    return round((BEGIN + story.days * 24 * HOUR_SECONDS) * US)


def records(story: Story) -> Iterator[Record]:
    """Everything that was recorded, roughly in order of time; what only Events tell is missing in
    the gap.
    """
    gaps = list(_gaps(story))
    yield from gaps
    for record in _StoryWriter(story).tell():
        if isinstance(record, PullRecord | PreemptionRecord | DecisionRecord):
            is_known = isinstance(record, DecisionRecord) and record.kind == DecisionKind.BIND
            if not is_known and any(gap.from_us <= record.at_us < gap.to_us for gap in gaps):
                continue
        yield record


def write_story(store: Store, story: Story) -> None:
    """Make the database's tables, and store all of it."""
    store.migrate()
    rows = records(story)
    while batch := list(islice(rows, _BATCH)):
        store.write(batch, {})
    store.write((), {"pods": ("1", end_us(story))})


def _gaps(story: Story) -> Iterator[GapRecord]:
    if story.days < 2:
        return
    from_us = round((BEGIN + 37.6 * HOUR_SECONDS) * US)
    why = "the API server had forgotten what came after the last position"
    for kind in ("events", "pods"):
        yield GapRecord(kind=kind, from_us=from_us, to_us=from_us + 95 * 60 * US, why=why)


class _StoryWriter:
    def __init__(self, story: Story) -> None:
        self._story = story
        self._chance = random.Random(story.seed)  # noqa: S311 - no secret: the same seed must tell the same story
        self._end = BEGIN + story.days * 24 * HOUR_SECONDS
        self._heap: list[tuple[float, int, str, object]] = []
        self._number = 0
        self._nodes: list[_Node] = []
        self._coming = 0
        self._pending: list[_Pod] = []
        self._sizes = [
            self._chance.lognormvariate(math.log(900), 0.7) * MIB for _ in range(story.images)
        ]

    def tell(self) -> Iterator[Record]:
        for _ in range(self._story.nodes_at_least):
            yield from self._add_node(BEGIN - 5 * HOUR_SECONDS)
        for _ in range(self._story.placeholders):
            self._pending.append(self._new_pod(PLACEHOLDER, BEGIN, math.inf))
        self._push(BEGIN, "retry")
        self._push(BEGIN, "arrive", USER)
        self._push(BEGIN, "arrive", BUILD)
        while self._heap:
            now, _, what, about = heapq.heappop(self._heap)
            if now >= self._end:
                break
            if what == "arrive":
                kind = str(about)
                yield from self._start(kind, now)
                self._push(now + self._next_arrival(kind, now), "arrive", kind)
            elif what == "end" and isinstance(about, _Pod):
                yield from self._finish(
                    about, now, "finished" if about.kind == BUILD else "deleted"
                )
            elif what == "node":
                self._coming -= 1
                yield from self._add_node(now)
                yield from self._retry(now)
            else:
                yield from self._retry(now)
                yield from self._remove_idle(now)
                self._push(now + RETRY_SECONDS, "retry")

    def _push(self, at: float, what: str, about: object = None) -> None:
        self._number += 1
        heapq.heappush(self._heap, (at, self._number, what, about))

    def _next_arrival(self, kind: str, now: float) -> float:
        hour = (now - BEGIN) / HOUR_SECONDS % 24
        # Night, a rise to eleven, a second peak at fifteen; a course begins at nine.
        wave = (
            0.12
            + math.exp(-(((hour - 11) / 2.5) ** 2))
            + 0.8 * math.exp(-(((hour - 15.5) / 2.5) ** 2))
        )
        course = 7.0 if 9.0 <= hour < 9.15 and kind == USER else 1.0
        a_day = self._story.users_a_day * (1.0 if kind == USER else 0.2)
        # The wave's mean is about 0.45.
        rate = a_day / 24 / HOUR_SECONDS / 0.45 * wave * course
        return min(self._chance.expovariate(rate), 600.0)

    def _new_pod(self, kind: str, now: float, seconds: float) -> _Pod:
        number = self._chance.getrandbits(64)
        uid = f"{number:016x}"
        image = min(int(self._chance.paretovariate(0.9)) - 1, self._story.images - 1)
        names = {
            USER: f"jupyter-{uid[:8]}",
            BUILD: f"build-{uid[:8]}",
            PLACEHOLDER: f"placeholder-{uid[:4]}",
        }
        return _Pod(
            kind,
            f"{uid[:8]}-{uid[8:12]}-4000-8000-{uid[12:]}00000000",
            names[kind],
            image,
            now,
            seconds,
        )

    def _start(self, kind: str, now: float) -> Iterator[Record]:
        typical = 40 * 60.0 if kind == USER else 150.0
        pod = self._new_pod(kind, now, self._chance.lognormvariate(math.log(typical), 0.8))
        yield from self._pod_records(pod)
        yield from self._try(pod, now)

    def _try(self, pod: _Pod, now: float) -> Iterator[Record]:
        free = [node for node in self._nodes if node.free > 0]
        if free:
            wanted = max(
                free, key=lambda node: (node.counts[pod.kind], node.counts[USER], node.name)
            )
            if pod.kind == PLACEHOLDER:
                wanted = min(free, key=lambda node: (node.counts[USER], node.name))
            yield from self._bind(pod, wanted, now + self._chance.uniform(0.004, 0.06), len(free))
            return
        full = [node for node in self._nodes if node.placeholders]
        if full and pod.kind != PLACEHOLDER:
            node = max(full, key=lambda node: (node.counts[USER], node.name))
            victim = node.placeholders[-1]
            at_us = round(now * US)
            yield PreemptionRecord(
                victim_uid=victim.uid,
                by_uid=pod.uid,
                node_name=node.name,
                at_us=at_us,
                kind="preempted",
            )
            yield self._decision(pod, DecisionKind.PREEMPT, now, node, f"/{victim.uid}")
            yield from self._finish(victim, now + 0.4, "preempted")
            yield from self._bind(pod, node, now + self._chance.uniform(0.5, 2.2), len(self._nodes))
            return
        if pod.tries == 0:
            self._pending.append(pod)
        yield from self._fail(pod, now)
        waiting = sum(1 for other in self._pending if other is pod or other.tries)
        if self._coming * PODS_PER_NODE < waiting:
            self._coming += 1
            self._push(now + NODE_SECONDS + self._chance.uniform(0, 60), "node")

    def _fail(self, pod: _Pod, now: float) -> Iterator[Record]:
        pod.tries += 1
        if pod.tries & (pod.tries - 1) or (pod.tries > 1 and pod.kind == PLACEHOLDER):
            # The scheduler says the same again and again; the recorder keeps what is new.
            return
        total = len(self._nodes)
        tainted = min(self._coming, total)
        reasons = {"Insufficient memory": total - tainted}
        if tainted:
            reasons["node(s) had untolerated taint {hub.jupyter.org/images: pulling}"] = tainted
        if self._chance.random() < 0.05:
            reasons["node(s) didn't match Pod's node affinity/selector"] = 1
        if pod.kind == USER and self._chance.random() < 0.1:
            reasons["Too many pods"] = 1
        text = json.dumps(reasons, sort_keys=True)
        at_us = round(now * US)
        yield DecisionRecord(
            id=f"{pod.uid}/fail/{pod.tries}",
            pod_uid=pod.uid,
            kind=DecisionKind.FAIL,
            node_name="",
            node_uid="",
            at_us=at_us,
            resolution_us=1,
            last_us=at_us,
            tries=1,
            scheduler=f"hub-{pod.kind}",
            source="event",
            nodes_total=total,
            nodes_feasible=0,
            reasons=text,
            message=f"0/{total} nodes are available",
        )

    def _retry(self, now: float) -> Iterator[Record]:
        pending = self._pending
        self._pending = []
        for pod in sorted(pending, key=lambda pod: (pod.kind == PLACEHOLDER, pod.created)):
            if pod.kind == PLACEHOLDER and not pod.tries:
                yield from self._pod_records(pod)
            tries_before = pod.tries
            yield from self._try(pod, now)
            if pod.node is None and tries_before:
                self._pending.append(pod)

    def _bind(self, pod: _Pod, node: _Node, at: float, feasible: int) -> Iterator[Record]:
        pod.node = node
        node.counts[pod.kind] += 1
        if pod.kind == PLACEHOLDER:
            node.placeholders.append(pod)
        draw = self._chance.random()
        model = "agrees" if draw < 0.973 else "differs" if draw < 0.991 else "unknown"
        yield self._decision(pod, DecisionKind.BIND, at, node, "", feasible=feasible, model=model)
        yield from self._phases(pod, node, at)
        if math.isfinite(pod.seconds):
            self._push(max(at, pod.created) + pod.seconds, "end", pod)

    def _phases(self, pod: _Pod, node: _Node, at: float) -> Iterator[Record]:
        chance = self._chance
        yield self._phase(pod, Phase.SCHEDULED, at)
        accepted = at + chance.uniform(0.01, 0.3)
        yield self._phase(pod, Phase.ACCEPTED, math.floor(accepted), US)
        there = accepted + chance.uniform(0.1, 0.6)
        if pod.kind == USER:
            image = self._image(pod)
            size = self._sizes[pod.image]
            warm = pod.image in node.images
            if warm:
                yield PullRecord(
                    pod_uid=pod.uid,
                    image=image,
                    node_name=node.name,
                    at_us=round(there * US),
                    warm=True,
                )
            else:
                pull = 1 + size / (60 * MIB) * chance.uniform(0.7, 1.8)
                queued = max(0.0, node.pulling_until - there)
                node.pulling_until = there = there + queued + pull
                node.images.add(pod.image)
                yield PullRecord(
                    pod_uid=pod.uid,
                    image=image,
                    node_name=node.name,
                    at_us=round(there * US),
                    warm=False,
                    pull_us=round(pull * US),
                    pull_and_wait_us=round((pull + queued) * US),
                    image_bytes=round(size),
                )
            yield self._phase(pod, Phase.PULLED, there, detail=image)
        started = there + chance.lognormvariate(math.log(0.9), 0.4)
        yield self._phase(pod, Phase.STARTED, math.floor(started), US, detail="notebook")
        settles = chance.lognormvariate(math.log(2.5), 0.5) if pod.kind == USER else 0.3
        yield self._phase(pod, Phase.READY, math.floor(started + settles), US)

    def _finish(self, pod: _Pod, now: float, reason: str) -> Iterator[Record]:
        if pod.gone:
            return
        pod.gone = True
        if pod.node is not None:
            pod.node.counts[pod.kind] -= 1
            if pod.kind == PLACEHOLDER:
                pod.node.placeholders.remove(pod)
            if not pod.node.counts[USER] and not pod.node.counts[BUILD]:
                pod.node.idle_since = now
        yield from self._pod_records(pod, now, reason)
        yield self._phase(pod, Phase.GONE, now)
        if pod.kind == PLACEHOLDER:
            self._pending.append(self._new_pod(PLACEHOLDER, now, math.inf))

    def _add_node(self, now: float) -> Iterator[Record]:
        self._number += 1
        node = _Node(
            f"node-{self._number:08x}",
            f"pool-user-{self._number % 0xFFFF:04x}",
            now,
            idle_since=now,
        )
        self._nodes.append(node)
        created_us = round((now - 60) * US)
        yield NodeRecord(
            uid=node.uid,
            name=node.name,
            created_us=created_us,
            ready_us=round(now * US),
            allocatable='{"cpu": 15890, "memory": 60129542144}',
            labels=MACHINE_TYPE,
        )

    def _remove_idle(self, now: float) -> Iterator[Record]:
        spare = (
            sum(node.free + node.counts[PLACEHOLDER] for node in self._nodes)
            - self._story.placeholders
        )
        for node in list(self._nodes):
            is_idle = (
                not node.counts[USER]
                and not node.counts[BUILD]
                and now - node.idle_since > IDLE_SECONDS
            )
            if (
                not is_idle
                or spare < 2 * PODS_PER_NODE
                or len(self._nodes) <= self._story.nodes_at_least
            ):
                continue
            spare -= PODS_PER_NODE
            self._nodes.remove(node)
            for pod in list(node.placeholders):
                yield PreemptionRecord(
                    victim_uid=pod.uid, node_name=node.name, at_us=round(now * US), kind="evicted"
                )
                yield from self._finish(pod, now, "evicted")
            yield NodeRecord(uid=node.uid, name=node.name, gone_us=round(now * US))

    def _image(self, pod: _Pod) -> str:
        names = (
            "scipy-notebook",
            "r-notebook",
            "course-python",
            "requirements-demo",
            "climate-atlas",
            "geodata-lab",
        )
        name = names[pod.image % len(names)]
        return f"registry.example.org/hub/{name}:2026.{10 - pod.image // len(names)}"

    def _pod_records(
        self, pod: _Pod, gone: float | None = None, reason: str | None = None
    ) -> Iterator[Record]:
        yield PodRecord(
            uid=pod.uid,
            namespace="hub",
            name=pod.name,
            pod_class=pod.kind,
            hub="jhub.hub",
            image=self._image(pod)
            if pod.kind == USER
            else f"registry.example.org/hub/{pod.kind}:1",
            scheduler=f"hub-{pod.kind}",
            priority=-10 if pod.kind == PLACEHOLDER else 0,
            cpu_millicores=500,
            memory_bytes=2048 * MIB,
            created_us=math.floor(pod.created) * US,
            deleted_us=None if gone is None else round(gone * US),
            end_reason=reason,
        )
        if gone is None:
            yield self._phase(pod, Phase.CREATED, math.floor(pod.created), US)

    def _phase(
        self, pod: _Pod, phase: Phase, at: float, resolution_us: int = 1, detail: str = ""
    ) -> Record:
        source = "pod" if resolution_us > 1 else "event"
        return PhaseRecord(
            pod_uid=pod.uid,
            phase=phase,
            detail=detail,
            at_us=round(at * US),
            resolution_us=resolution_us,
            source=source,
        )

    def _decision(
        self,
        pod: _Pod,
        kind: DecisionKind,
        at: float,
        node: _Node,
        suffix: str,
        *,
        feasible: int | None = None,
        model: str | None = None,
    ) -> Record:
        at_us = round(at * US)
        return DecisionRecord(
            id=f"{pod.uid}/{kind}{suffix}",
            pod_uid=pod.uid,
            kind=kind,
            node_name=node.name,
            node_uid=node.uid,
            at_us=at_us,
            resolution_us=1,
            last_us=at_us,
            scheduler=f"hub-{pod.kind}",
            source="event",
            nodes_total=len(self._nodes) if feasible is not None else None,
            nodes_feasible=feasible,
            model=model,
        )
