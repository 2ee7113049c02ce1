"""The cluster now, without a recorder: the watches of an API server and hubs' logs in, the rows of
a moment out.

What neither tells is left out: what happened to pods that are gone, and how long pulls took.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from generator.values.files import read_defaults
from roost_core.kube.client import ApiError, Client
from roost_core.kube.event_stream import ListWatch
from roost_core.kube.watch_cache import WatchCache
from roost_core.objects.fields import JSONObject
from roost_core.objects.image_references import normalise_reference
from roost_core.objects.pod import ContainerState
from roost_core.placement.labels import RELEASE_KEY
from roost_core.release.class_of_pod import Classes
from roost_core.release.pod_classes import read_pod_classes
from roost_core.release.reader import Document, Reader, SettingsError, load_document, parse_document
from roost_core.release.release_settings import ReleaseSettings
from roost_lab.recorder.recording.assembler import Classify
from roost_lab.recorder.recording.hub_log_followers import HubLogs
from roost_lab.recorder.recording.node_records import node_record
from roost_lab.recorder.recording.pod_records import disruptions, pod_record, steps_of
from roost_lab.recorder.recording.reading import NodeReading, PodReading, read_node, read_pod
from roost_lab.recorder.recording.scheduler_model import USER
from roost_lab.recorder.store.records import Phase, PreemptionRecord
from roost_lab.report.statistics import Span
from roost_lab.units import MINUTE_US, US
from roost_lab.view.course import Course
from roost_lab.view.moment import (
    GATED,
    ClusterMoment,
    PodState,
    Rows,
    images_of_interest,
    moment_of,
)
from roost_lab.view.unanswered_servers import Answers

# A container that waits for one of these reasons may be pulling its image; with the last two the
# pull has failed.
PULLING_REASONS: Final = frozenset(
    {"ContainerCreating", "PodInitializing", "ErrImagePull", "ImagePullBackOff"}
)
FAILING_REASONS: Final = frozenset({"ErrImagePull", "ImagePullBackOff"})
SYNC_SECONDS: Final = 30.0
_DEFAULT: Final = "pods have the default values' classes here"
_OWN: Final = "labelSelector=app.kubernetes.io%2Fname%3Droost"
# How long hubs' logs are awaited, so that the first moment knows who has answered.
LOG_SECONDS: Final = 5.0


class FoundClasses(NamedTuple):
    """Classes of pods, and a line that says so if they are the default ones in place of the
    release's; "" otherwise.
    """

    classes: Classes
    warning: str = ""


def find_classes(client: Client, path: str | None = None) -> FoundClasses:
    """The classes of the release that is installed there; those of the default values where none
    is, or can be read.

    path: a release.json in place of the cluster's. Of several releases, that of the first namespace
    by name. Raises SettingsError for a faulty document, ClusterError if the cluster doesn't answer.
    """
    if path is not None:
        document, _ = load_document(path, Path(path).read_bytes)
        return FoundClasses(_classes_of(document))
    try:
        listed = client.get(f"/api/v1/configmaps?{_OWN}").get("items") or []
    except ApiError as error:
        return FoundClasses(_default_classes(), f"ConfigMaps can't be listed ({error}): {_DEFAULT}")
    why_not = ""
    for item in sorted(listed, key=lambda item: str(item["metadata"].get("namespace"))):
        text = (item.get("data") or {}).get(RELEASE_KEY, "")
        if not text:
            # Another ConfigMap of Roost's.
            continue
        try:
            return FoundClasses(_classes_of(parse_document(text.encode())))
        except SettingsError as error:
            namespace = item["metadata"].get("namespace")
            if not why_not:
                why_not = (
                    f"the release in namespace {namespace} can't be read, perhaps because another"
                    f" version of Roost installed it ({error.one_line()}): {_DEFAULT}"
                )
    return FoundClasses(_default_classes(), why_not)


def _default_classes() -> Classes:
    classes = read_pod_classes(Reader(), read_defaults().values.get("podClasses"))
    # Classes of no release, so in all namespaces.
    everywhere = {
        name: replace(pod_class, namespace_selector={}) for name, pod_class in classes.items()
    }
    return Classes("", everywhere)


def _classes_of(document: Document) -> Classes:
    release = ReleaseSettings(Reader(), document)
    classes = Classes(release.namespace, release.classes)
    release.raise_faults()
    return classes


class LiveCluster:
    """The watches that a moment needs, and the logs of hubs, as far as they may be read."""

    def __init__(self, client: Client, classes: Classes) -> None:
        self._classes = classes

        def cache(path: str, read: Callable[[JSONObject], Any], kind: str) -> WatchCache[Any]:
            return WatchCache(client, ListWatch(path, read, kind=kind), keeps_changes=False)

        self._nodes = cache("/api/v1/nodes", read_node, "nodes")
        self._pods = cache(
            "/api/v1/pods", lambda item: read_pod(item, (), {}, keep_containers=True), "pods"
        )
        self._namespaces = cache(
            "/api/v1/namespaces", lambda item: item["metadata"].get("labels") or {}, "namespaces"
        )
        self._caches = (self._nodes, self._pods, self._namespaces)
        self._lock = threading.Lock()
        self.answers = Answers()
        self._logs = HubLogs(client, lambda notice: self.answers.hear(notice.item), lambda _: None)

    def start(self, stop: threading.Event) -> str:
        """Start a thread for each watch, until `stop`; returns why the cluster can't be read, ""
        when it can.
        """
        for cache in self._caches:
            threading.Thread(target=cache.run, args=(stop,), daemon=True).start()
        deadline = time.monotonic() + SYNC_SECONDS
        while self.fault:
            if time.monotonic() > deadline:
                return self.fault
            time.sleep(0.05)
        deadline = time.monotonic() + LOG_SECONDS
        while self._follow_hubs() and time.monotonic() < deadline:
            time.sleep(0.05)
        return ""

    def _follow_hubs(self) -> bool:
        """Follow the logs of hubs' pods. Returns whether any of these logs has said nothing yet."""
        # A page's requests come in several threads.
        with self._lock:
            for pod in self._pods.objects().values():
                self._logs.pod_changed(pod)
            return not self._logs.followed.keys() <= self.answers.begins.keys()

    @property
    def fault(self) -> str:
        """What has not been listed yet, and why; "" when everything has."""
        for cache in self._caches:
            if not cache.synced:
                return cache.fault or f"{cache.kind} not listed yet"
        return ""

    def moment(self, at_us: int | None = None) -> ClusterMoment:  # noqa: ARG002 - a Source of server.py, without a past
        """The cluster now, whatever time is asked for."""
        namespaces = self._namespaces.objects()

        def classify(labels: Mapping[str, str], namespace: str) -> str:
            pod_class = self._classes.classify(labels, namespace, namespaces)
            return pod_class.name if pod_class is not None else ""

        self._follow_hubs()
        nodes = self._nodes.objects().values()
        pods = self._pods.objects().values()
        return moment_of(rows_of(nodes, pods, classify, time.time_ns() // 1000, self.answers))

    def course(self, span: Span) -> Course | None:  # noqa: ARG002 - a Source of server.py, without a past
        """None: a live cluster has no past."""
        return None

    def why(self, uid: str) -> str | None:
        """What the cluster tells of a pod now; None when it isn't there."""
        return why_of(self.moment(), uid)


def rows_of(
    nodes: Iterable[NodeReading],
    pods: Iterable[PodReading],
    classify: Classify,
    now_us: int,
    answers: Answers,
) -> Rows:
    """The rows that a recorder would have of these objects."""
    by_name = {node.state.name: node for node in nodes}
    unfinished = [pod for pod in pods if not pod.state.is_finished]
    rows = [_pod_row(pod, by_name.get(pod.state.node_name), classify) for pod in unfinished]
    known_since = answers.known_since(unfinished)
    for pod, row in zip(unfinished, rows, strict=True):
        if row["state"] is PodState.RUNNING and answers.awaited(pod, known_since, now_us):
            row["state"] = PodState.LOADING
    wanted = {normalise_reference(image) for image in images_of_interest(now_us, rows)}
    removals = [
        {**row, **asdict(record), "by_namespace": None, "by_name": None}
        for pod, row in zip(unfinished, rows, strict=True)
        for record in disruptions(None, pod)
        if isinstance(record, PreemptionRecord)
    ]
    bindings = [{**row, "at_us": row["bound_us"]} for row in rows if row["bound_us"] is not None]
    users_namespaces = [row["namespace"] for row in rows if row["pod_class"] == USER]
    return Rows(
        at_us=now_us,
        pods=rows,
        nodes=[asdict(node_record(node)) for node in by_name.values()],
        images=[
            {"node_uid": node.state.uid, "image": image}
            for node in by_name.values()
            for image in node.state.image_names
            if image in wanted
        ],
        image_counts={node.state.uid: node.state.image_count for node in by_name.values()},
        reasons=[
            {"pod_uid": pod.state.uid, "text": text, "is_gate": bool(pod.gates)}
            for pod in unfinished
            if not pod.state.node_name
            for text in _reasons(pod)
        ],
        bindings=[row for row in bindings if row["at_us"] > now_us - MINUTE_US],
        removals=removals,
        wait=answers.until(users_namespaces, known_since),
    )


def _pod_row(pod: PodReading, node: NodeReading | None, classify: Classify) -> dict[str, Any]:
    state = pod.state
    record = pod_record(pod, classify(state.labels, state.namespace))
    steps = steps_of(pod)
    bound = steps.get((Phase.SCHEDULED, ""))
    progress, awaited = _progress(pod, node)
    bound_us = None
    if state.node_name:
        bound_us = pod.created_us if bound is None else bound.at_us
    return {
        **asdict(record),
        "node_name": state.node_name,
        "node_uid": node.state.uid if node is not None else "",
        "bound_us": bound_us,
        "started_us": None,
        "state": progress,
        "awaits": awaited,
    }


def _progress(pod: PodReading, node: NodeReading | None) -> tuple[PodState, str]:
    """How far a pod on a node is, and which image it awaits."""
    containers = pod.state.containers
    main = [container for container in containers if not container.init]
    if main and all(container.running or container.terminated for container in main):
        return PodState.RUNNING, ""
    present = frozenset(node.state.image_names) if node is not None else frozenset()
    for container in _next_containers(containers):
        # A container whose image is there waits for something else: a volume, its network.
        if container.image and normalise_reference(container.image) not in present:
            is_failing = container.waiting_reason in FAILING_REASONS
            return PodState.FAILING if is_failing else PodState.PULLING, container.image
    return PodState.STARTING, ""


def _next_containers(containers: Iterable[ContainerState]) -> list[ContainerState]:
    """Containers that the kubelet would start now if it had their image, failed pulls first. Init
    containers start one after the other.
    """
    due = [container for container in containers if not container.init]
    for container in containers:
        if container.init and not container.terminated and not container.running:
            due = [container]
            break
    waiting = [
        container
        for container in due
        if container.waiting_reason in PULLING_REASONS and not container.image_id
    ]
    return sorted(waiting, key=lambda container: container.waiting_reason not in FAILING_REASONS)


def _reasons(pod: PodReading) -> list[str]:
    if pod.gates:
        return [f"{GATED} {gate}." for gate in pod.gates[:1]]
    message = pod.condition("PodScheduled").message
    return [message] if message else []


def why_of(moment: ClusterMoment, uid: str) -> str | None:
    """What a live cluster tells of a pod; None when it isn't there."""
    for pending in moment.pending:
        if pending.uid == uid:
            reason = pending.reason or "No scheduler has tried yet."
            return f"{pending.name} waits for a node.\n{reason}\n"
    for node in moment.nodes:
        for pod in node.pods:
            if pod.uid == uid:
                awaited = ""
                if pod.state in (PodState.PULLING, PodState.FAILING):
                    awaited = f" {pod.awaits or pod.image}"
                seconds = (moment.at_us - pod.created_us) // US
                return (
                    f"{pod.name} is on node {node.name}: {pod.state}{awaited}, created {seconds} s"
                    " ago.\nWaits, its answer and why it is there, a record tells: `roost record`,"
                    " `roost why`.\n"
                )
    return None
