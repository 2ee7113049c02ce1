"""Play a day of a busy hub on a real control plane at speed, and note what was done, when, and by whose clock.

Owns the hub's side: launches, ends of sessions, placeholders, nodes that join and leave, and one real kubelet that
pulls from a slow registry. Roost's scheduler, webhook and recorder run as rendered. No note comes from the recorder.
"""

import contextlib
import heapq
import itertools
import math
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final, Self

import sqlalchemy as sa

from roost_lab.recorder.recording.live_starts import WHOLE, StartResult
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store
from roost_lab.traces.attempt import Attempt
from roost_lab.traces.counts import InputCounts
from roost_lab.traces.reading import open_trace
from tests.harness.api import ApiError, Watch
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.real_nodes import RealNode
from tests.harness.registry import RealRegistry
from tests.harness.waiting import wait_until
from tests.stack import Replica, Stack

Object = dict[str, Any]
US: Final = 1_000_000
DAY: Final = 86_400.0
# As mybinder.org had it: running pods of one repository.
REPOSITORY_QUOTA: Final = 100
USERS_PER_NODE: Final = 66
USER_REQUESTS: Final = {"cpu": "50m", "memory": "512Mi"}
REAL_REQUESTS: Final = {"cpu": "5m", "memory": "8Mi"}
BOOT_SECONDS, LINGER_SECONDS = 210.0, 600.0
REAL_NODE: Final = "real-node"
# How a pod asks for the real kubelet's node, or for those that are objects only.
POOL: Final = "pool"
PULL_BYTES_PER_SECOND: Final = 600_000
REAL_BYTES: Final = (300_000, 2_000_000)
STORED_SECONDS: Final = 180.0
COUNTERS: Final = ("changes", "rows", "odd_objects", "store_errors", "stream_errors", "waits")


def fraction(*parts: object) -> float:
    """A number from 0 to 1 that belongs to these parts, and to no order of drawing."""
    digest = blake2b("\0".join(map(str, parts)).encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") + 0.5) / 2**64


def launches_of(trace: Path, day: int) -> list[Attempt]:
    """One day of the trace, its midnight at 0; day 0 is the first."""
    launches = []
    begin: float | None = None
    for launch in open_trace([trace], seed=1, counts=InputCounts()):
        begin = (launch.moment // DAY + day) * DAY if begin is None else begin
        if launch.moment >= begin + DAY:
            break
        # Ten minutes until the culler takes an idle user, and a log-normal rest: median 26, ninth decile 62.
        rest = NormalDist(math.log(16), math.log(52 / 16) / 1.2816).inv_cdf(fraction("stay", launch.number))
        name = blake2b(launch.image.encode(), digest_size=6).hexdigest()
        launches.append(
            launch._replace(
                moment=launch.moment - begin,
                image=f"registry.example.org/binder-{name}:1",
                session_seconds=60.0 * (10.0 + math.exp(rest)),
            )
        )
    return [launch for launch in launches if launch.moment >= 0]


def real_images(count: int) -> list[str]:
    """References of images that are pulled for real; nodes ask the day's registry whatever the host."""
    return [f"quay.io/day/course-{index}:1" for index in range(count)]


def busiest(launches: Sequence[Attempt], seconds: float) -> list[Attempt]:
    """The launches of the busiest span of so many seconds, which begins at 0."""
    moments = [launch.moment for launch in launches]

    def count(begin: float) -> int:
        return bisect_left(moments, begin + seconds) - bisect_left(moments, begin)

    begin = max(moments, key=count)
    return [one._replace(moment=one.moment - begin) for one in launches if begin <= one.moment < begin + seconds]


def plan_sessions(launches: Sequence[Attempt], speed: float, real_share: float, images: Sequence[str]) -> list[Attempt]:
    """All of them, so many times as fast; a share, drawn by index, pulls for real, on the node with a kubelet."""
    sessions = []
    ranks = {name: rank for rank, (name, _) in enumerate(Counter(one.repository for one in launches).most_common())}
    for index, launch in enumerate(launches):
        # Repositories share the images that there are.
        real = images[ranks[launch.repository] % len(images)]
        image = real if fraction("real", index) < real_share else launch.image
        stay_seconds = max(1.0, (launch.session_seconds or 0.0) / speed)
        sessions.append(launch._replace(moment=launch.moment / speed, image=image, session_seconds=stay_seconds))
    return sessions


@dataclass(slots=True)
class Seen:
    """What the test's own watch told of one pod: moments by its own clock, and the first of each that the pod names."""

    name: str
    bound_seen: float | None = None
    gone_seen: float | None = None
    node: str = ""
    is_running: bool = False
    # (phase, container) -> µs, of whole seconds.
    steps: dict[tuple[str, str], int] = field(default_factory=dict)


def moment_us(text: str) -> int:
    """Microseconds since 1970 of a time as the API has it."""
    whole = datetime.fromisoformat(text)
    return int(whole.timestamp()) * US + whole.microsecond


def _steps(pod: Object) -> dict[tuple[str, str], int]:
    """What a pod's object says of its own way, read without the recorder's code."""
    metadata, status = pod["metadata"], pod.get("status", {})
    steps: dict[tuple[str, str], int] = {("created", ""): moment_us(metadata["creationTimestamp"])}
    true = {"PodScheduled": "scheduled", "Initialized": "initialized", "Ready": "ready"}
    for one in status.get("conditions", []):
        if one["status"] == "True" and one["type"] in true:
            steps[true[one["type"]], ""] = moment_us(one["lastTransitionTime"])
        elif one["type"] == "PodScheduled" and one.get("reason") == "Unschedulable":
            steps["unschedulable", ""] = moment_us(one["lastTransitionTime"])
    if "startTime" in status:
        steps["accepted", ""] = moment_us(status["startTime"])
    for one in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
        for state in one.get("state", {}).values():
            if state.get("startedAt"):
                steps["started", one["name"]] = moment_us(state["startedAt"])
    if "deletionTimestamp" in metadata:
        grace_us = metadata.get("deletionGracePeriodSeconds", 0) * US
        steps["terminating", ""] = moment_us(metadata["deletionTimestamp"]) - grace_us
    return steps


class Witness:
    """Watches the hub's pods, beside the recorder. `pods` is by uid."""

    def __init__(self, cluster: ControlPlane, namespace: str) -> None:
        self.pods: dict[str, Seen] = {}
        self.faults: list[str] = []
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._api = cluster.api
        listed = self._api.get(self._path)
        for pod in listed["items"]:
            self._see("ADDED", pod)
        self._version = listed["metadata"]["resourceVersion"]
        self._open()
        self._is_closed = False
        self._thread = threading.Thread(target=self._follow, name="witness", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closed = True
        self._watch.close()
        self._thread.join()

    def _open(self) -> None:
        self._watch: Watch = self._api.watch(self._path, timeout_seconds=3600, resourceVersion=self._version)

    def _follow(self) -> None:
        try:
            while not self._is_closed:
                for kind, pod in self._watch:
                    self._see(kind, pod)
                if not self._is_closed:
                    # The API server ends watches that are slow to read; from its last version on nothing is missed.
                    self._open()
        except Exception as error:  # noqa: BLE001 - a thread's end is told of by whoever compares
            self.faults.append(repr(error))

    def _see(self, kind: str, pod: Object) -> None:
        now, metadata = time.time(), pod["metadata"]
        self._version = metadata["resourceVersion"]
        seen = self.pods.get(metadata["uid"])
        if seen is None:
            seen = self.pods[metadata["uid"]] = Seen(metadata["name"])
        node = pod["spec"].get("nodeName", "")
        if node and seen.bound_seen is None:
            seen.bound_seen, seen.node = now, node
        seen.is_running = pod.get("status", {}).get("phase") == "Running"
        for step, at_us in _steps(pod).items():
            seen.steps.setdefault(step, at_us)
        if kind == "DELETED":
            seen.gone_seen = now


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is played."""

    sessions: Sequence[Attempt]
    speed: float
    placeholders: int
    real_images: Sequence[str]
    # Users that fill a node.
    users_per_node: int = USERS_PER_NODE


class PlayedDay:
    """`with PlayedDay(size) as day: day.play()`; then ask its notes, and the database at `day.database`."""

    def __init__(self, size: Size, *, say: Callable[[str], None] = lambda _: None) -> None:
        self.size = size
        # Name of a user's pod -> its uid.
        self.launched: dict[str, str] = {}
        self.refused = 0
        # Node name -> (creationTimestamp in µs, still there).
        self.made_nodes: dict[str, int] = {}
        self._say = say
        self._exits = contextlib.ExitStack()
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()
        # Images by node, and how many of them its status tells.
        self._on_node: dict[str, set[str]] = {}
        self._shown: dict[str, int] = {}
        self._heap: list[tuple[float, int, bool, Callable[[], None]]] = []
        self._order = itertools.count()
        self._faults: list[str] = []

    # Life

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as exits:
            self._start(exits)
            self._exits = exits.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    def _start(self, exits: contextlib.ExitStack) -> None:
        self.cluster = exits.enter_context(ControlPlane())
        self.registry = exits.enter_context(RealRegistry())
        self.namespace = self.cluster.create_namespace()
        smallest, largest = REAL_BYTES
        for index, name in enumerate(self.size.real_images):
            # Popular ones are not the large ones.
            size_bytes = round(smallest + (largest - smallest) * fraction("bytes", index))
            self.registry.push_program(name.partition("/")[2], size_bytes=size_bytes)
        self.registry.bytes_per_second = PULL_BYTES_PER_SECOND
        placeholders = {
            "name": "default",
            "replicas": self.size.placeholders,
            "resources": {"requests": USER_REQUESTS},
            "nodeSelector": {POOL: "user"},
        }
        values = {
            "imageGate": {"mode": "off"},
            "controllers": {"enabled": False},
            "placeholders": [placeholders],
            "recorder": {"enabled": True},
        }
        self.nodes = exits.enter_context(FakeNodes(self.cluster.api))
        self.stack = exits.enter_context(Stack(self.cluster, self.namespace, values, scheduler_flags=()))
        (self.priority,) = (
            one["metadata"]["name"]
            for one in self.stack.manifests
            if one["kind"] == "PriorityClass" and one["value"] == 0
        )
        self.database = self.stack.recorder_environment()["ROOST_DATABASE"]
        self.recorder: Replica = self.stack.start_recorder()
        self.recorder.wait_ready()
        self.witness = exits.enter_context(Witness(self.cluster, self.namespace))
        keeper = PodKeeper(
            self.cluster.api, leave=lambda pod: pod["spec"].get("nodeName") == REAL_NODE, parallel_requests=16
        )
        self.keeper = exits.enter_context(keeper)
        self.real_node = exits.enter_context(
            RealNode(self.cluster, REAL_NODE, self.registry, labels={POOL: "real"}, kubelet={"maxPods": 250})
        )

    # The day

    def play(self) -> None:
        """Play all sessions, then wait until the last is stored, and end the recorder in order."""
        for number in range(2):
            self._add_node(f"node-{number}")
        numbers = itertools.count(2)
        over = threading.Event()
        scaling = threading.Thread(target=self._scale, args=(over, numbers), name="autoscaler", daemon=True)
        scaling.start()
        # Every session begins when the trace says, or as soon as the machine gets there.
        for index, session in enumerate(self.size.sessions):
            name = f"jupyter-{index}"
            self._at(session.moment, partial(self._launch, name, session))
        end_seconds = max(session.moment for session in self.size.sessions)
        self.began_at = time.monotonic()
        told_at = 0.0
        # Apart, so that launches that the machine can't keep up with don't hold ends up.
        with ThreadPoolExecutor(8, "launches") as launches, ThreadPoolExecutor(6, "ends") as ends:
            while (now := time.monotonic() - self.began_at) < end_seconds + 1.0:
                while (due := self._next(now)) is not None:
                    is_end, work = due
                    (ends if is_end else launches).submit(self._do, work)
                if now - told_at >= 60.0:
                    told_at = now
                    self._say(self._state(now))
                time.sleep(0.005)
        over.set()
        scaling.join()
        self.played_seconds = time.monotonic() - self.began_at
        self._say(self._state(self.played_seconds))
        self._settle()

    def _state(self, now: float) -> str:
        pods = [seen for seen in list(self.witness.pods.values()) if seen.gone_seen is None]
        waiting = sum(not seen.node for seen in pods)
        return (
            f"{now:.0f} s: {len(self.launched)} launched, {len(pods)} pods there, {waiting} of them without a node, "
            f"{len(self.nodes.names)} nodes"
        )

    def _at(self, seconds: float, work: Callable[[], None], *, is_end: bool = False) -> None:
        with self._lock:
            heapq.heappush(self._heap, (seconds, next(self._order), is_end, work))

    def _next(self, now: float) -> tuple[bool, Callable[[], None]] | None:
        with self._lock:
            return heapq.heappop(self._heap)[2:] if self._heap and self._heap[0][0] <= now else None

    def _do(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - the day goes on; `_settle` raises it
            self._faults.append(repr(error))

    def _launch(self, name: str, session: Attempt) -> None:
        with self._lock:
            if self._running[session.repository] >= REPOSITORY_QUOTA:
                self.refused += 1
                return
            self._running[session.repository] += 1
        is_real = session.image in self.size.real_images
        container = {
            "name": "notebook",
            "image": session.image,
            "resources": {"requests": REAL_REQUESTS if is_real else USER_REQUESTS},
        }
        body = {
            "metadata": {"name": name, "labels": {"component": "singleuser-server", "app": "jupyterhub"}},
            "spec": {
                "containers": [container],
                "nodeSelector": {POOL: "real" if is_real else "user"},
                "priorityClassName": self.priority,
                "terminationGracePeriodSeconds": 1,
                "automountServiceAccountToken": False,
            },
        }
        uid = self.launched[name] = self.cluster.create_pod(body, self.namespace)["metadata"]["uid"]
        now = time.monotonic() - self.began_at
        self._at(now + (session.session_seconds or 0.0), lambda: self._end(name, uid, session.repository), is_end=True)

    def _end(self, name: str, uid: str, repository: str) -> None:
        path = f"/api/v1/namespaces/{self.namespace}/pods/{name}"
        self.cluster.api.delete(path, {"preconditions": {"uid": uid}})
        with self._lock:
            self._running[repository] -= 1

    # Its nodes

    def _add_node(self, name: str) -> None:
        node = self.nodes.create(name, cpu="16", memory=f"{512 * self.size.users_per_node}Mi", labels={POOL: "user"})
        self.made_nodes[name] = moment_us(node["metadata"]["creationTimestamp"])

    def _scale(self, over: threading.Event, numbers: Iterator[int]) -> None:
        """As an autoscaler: room for all, after a boot; a node that stays empty of users leaves."""
        booting: list[tuple[float, str]] = []
        empty_since: dict[str, float] = {}
        while not over.wait(0.5):
            now = time.monotonic()
            pods = [
                (seen.node, seen.name.startswith("jupyter-"))
                for seen in list(self.witness.pods.values())
                if seen.gone_seen is None and seen.node != REAL_NODE
            ]
            wanted = max(2, math.ceil(len(pods) / self.size.users_per_node))
            for _, name in [one for one in booting if one[0] <= now]:
                self._do(partial(self._add_node, name))
            booting = [one for one in booting if one[0] > now]
            names = self.nodes.names
            for _ in range(wanted - len(names) - len(booting)):
                booting.append((now + BOOT_SECONDS / self.size.speed, f"node-{next(numbers)}"))
            used = {node for node, is_user in pods if is_user}
            for name in names:
                if name in used or len(names) <= wanted:
                    empty_since.pop(name, None)
                elif now - empty_since.setdefault(name, now) > LINGER_SECONDS / self.size.speed:
                    del empty_since[name]
                    self._do(partial(self.nodes.delete, name))
                    break
            self._show_images()

    def _show_images(self) -> None:
        """`status.images` of the fake nodes: what their users run, as a kubelet would find in time."""
        for seen in list(self.witness.pods.values()):
            if seen.node in self.made_nodes and seen.is_running and seen.name.startswith("jupyter-"):
                index = int(seen.name.removeprefix("jupyter-"))
                self._on_node.setdefault(seen.node, set()).add(self.size.sessions[index].image)
        for name in self.nodes.names:
            images = self._on_node.get(name, set())
            if len(images) != self._shown.get(name, 0):
                self._shown[name] = len(images)
                sizes = {image: round(2e9 * fraction("size", image)) for image in sorted(images)}
                largest = sorted(sizes, key=lambda image: -sizes[image])[:50]
                with contextlib.suppress(ApiError):
                    self.nodes.set_images(name, {image: sizes[image] for image in largest})

    # Its end

    def _settle(self) -> None:
        """Wait until what was begun is over, and the recorder has the last of it; end the recorder."""

        def is_quiet() -> bool:
            there = self.cluster.api.list(f"/api/v1/namespaces/{self.namespace}/pods")
            return not any("deletionTimestamp" in pod["metadata"] for pod in there)

        wait_until(is_quiet, STORED_SECONDS, "deletions to end", interval_seconds=1.0)
        marker = self.cluster.create_pod(_marker(), self.namespace)["metadata"]
        # Events are a stream of their own.
        self.cluster.api.create(_marking_event(marker), self.namespace)
        self.cluster.api.delete(f"/api/v1/namespaces/{self.namespace}/pods/{marker['name']}")
        store = Store.open(self.database)
        of_marker = sa.select(schema.phase.c.phase).where(schema.phase.c.pod_uid == marker["uid"])

        def has_marker() -> bool:
            with store.reading() as connection:
                return {"gone", "unschedulable"} <= set(connection.execute(of_marker).scalars())

        wait_until(
            has_marker, STORED_SECONDS, "the last pod to be stored", interval_seconds=0.5, explain=self._recorder_tail
        )
        store.close()
        self.recorder_mib = self._recorder_mib()
        self.counters = {name: self.recorder.metric(f"roost_recorder_{name}_total") for name in COUNTERS}
        self.starts = {
            result: self.recorder.metric("roost_starts_total", pod_class="user", result=result)
            for result in StartResult
        }
        self.whole_starts = tuple(
            self.recorder.metric(f"roost_start_phase_seconds_{part}", pod_class="user", phase=WHOLE)
            for part in ("count", "sum")
        )
        self.recorder.process.stop()
        if self._faults or self.witness.faults:
            raise AssertionError(f"the day was not played as planned: {[*self._faults[:5], *self.witness.faults]}")

    def _recorder_tail(self) -> str:
        return f"{self.recorder.get('/readyz')}\n{self.recorder.process.tail(20)}"

    def _recorder_mib(self) -> float:
        status = Path(f"/proc/{self.recorder.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def _marker() -> Object:
    """A pod that no scheduler takes."""
    spec = {"schedulerName": "nobody", "containers": [{"name": "c", "image": "me/image:1"}]}
    return {"metadata": {"name": "marker"}, "spec": spec}


def _marking_event(marker: Object) -> Object:
    """What a scheduler would say of it."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "marker"},
        "type": "Warning",
        "reason": "FailedScheduling",
        "action": "Scheduling",
        "note": "nobody takes it",
        "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": "nobody",
        "reportingInstance": "nobody",
        "regarding": {key: marker[key] for key in ("name", "namespace", "uid")} | {"kind": "Pod", "apiVersion": "v1"},
    }
