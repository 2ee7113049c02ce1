"""Keep a snapshot of the cluster by watches; each object is reduced to what plans need as it
arrives.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from roost.controllers.contract.bookings import BookingSource, bounded
from roost.controllers.contract.pod_kinds import (
    PULLER_WORD,
    is_popular_puller,
    is_puller,
    is_z2jh_puller,
    waits_at_gate,
)
from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.contract.snapshot import Moment, Sight, Snapshot, StatefulSetState, see
from roost.controllers.runtime.booking_sources import (
    BookingText,
    ConfigMapReader,
    ReadingTime,
    keep_config_map,
)
from roost_core.kube.client import Client
from roost_core.kube.readiness import ReadyVerdict
from roost_core.kube.watch_cache import WatchCache, label_selector
from roost_core.objects.device_classes import claimable_resources
from roost_core.objects.fields import JSONObject, MalformedObjectError
from roost_core.objects.metadata import labels_of
from roost_core.objects.node import Node, node_or_none
from roost_core.objects.pod import Pod, PodSpec
from roost_core.objects.pod_reader import read_pod
from roost_core.objects.selectors import read_label_selector
from roost_core.placement.beliefs import SNAPSHOT
from roost_core.placement.kubelet_pulls import PULLED, PullEvent, read_pull_event
from roost_core.placement.labels import EVENTS_LABEL, HUB_BOOKINGS, OWN_PART, PART_OF_LABEL
from roost_core.release.classes import namespace_matches, needs_namespace_labels


class Watching:
    """All watches, and the snapshot made from them.

    `follow` and `snapshot` belong to one thread.
    """

    def __init__(
        self,
        client: Client,
        release: ReleaseDocument,
        *,
        all_namespaces: bool = True,
        on_change: Callable[[], None],
        on_minor_change: Callable[[], None] = lambda: None,
        on_error: Callable[[str], None] = lambda _kind: None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Nothing is requested before `start`. on_minor_change: for what no plan waits for, such as
        users' pods.

        all_namespaces: False: the account may read pods of the release's own namespace only.
        """
        self._release = release
        self._read_pod = PodReader(release)
        # Those without which nothing is planned.
        self.caches: list[WatchCache[Any]] = []
        # What was learned may be missing, and so may hubs' bookings. The image gate must not wait
        # for them.
        self._others: list[WatchCache[Any]] = []

        make = partial(WatchCache[Any], client, on_change=on_change, on_error=on_error, clock=clock)

        def watch(
            path: str,
            read: Callable[[JSONObject], Any],
            kind: str,
            *,
            is_vital: bool = True,
            **more: Any,  # noqa: ANN401
        ) -> WatchCache[Any]:
            cache = make(path, read, kind=kind, **{"keeps_changes": False, **more})
            (self.caches if is_vital else self._others).append(cache)
            return cache

        own = f"/namespaces/{release.namespace}"
        ours = label_selector({PART_OF_LABEL: OWN_PART})
        self._nodes: WatchCache[Node] = watch(
            "/api/v1/nodes", node_or_none, "nodes", keeps_changes=True
        )
        self._pods: WatchCache[Pod] = watch(
            "/api/v1/pods" if all_namespaces else f"/api/v1{own}/pods",
            self._read_pod,
            "pods",
            keeps_changes=True,
            is_minor=_is_minor,
            on_minor_change=on_minor_change,
        )
        self._sets: WatchCache[StatefulSetState] = watch(
            f"/apis/apps/v1{own}/statefulsets",
            read_stateful_set,
            "statefulsets",
            label_selector=ours,
        )
        self._pulls: WatchCache[PullEvent] = watch(
            f"/api/v1{own}/events",
            read_pull_event,
            "events",
            # A field selector takes one value, so other reasons aren't fetched.
            field_selector=f"involvedObject.kind=Pod,reason={PULLED}",
            has_bookmarks=False,
            # Users' pods pull, too, but no plan waits for that.
            is_minor=lambda before, now: (
                not any(event and PULLER_WORD in event.pod for event in (before, now))
            ),
            on_minor_change=on_minor_change,
        )
        pod_classes = release.classes.values()
        self._namespaces: WatchCache[Mapping[str, str]] | None = None
        if all_namespaces and any(
            needs_namespace_labels(each.namespace_selector) for each in pod_classes
        ):
            self._namespaces = watch("/api/v1/namespaces", labels_of, "namespaces")
        self._device_classes: WatchCache[frozenset[str]] | None = None
        if all_namespaces:
            path = "/apis/resource.k8s.io/v1/deviceclasses"
            self._device_classes = watch(path, claimable_resources, "deviceclasses", is_vital=False)
        self._histories: WatchCache[Mapping[str, str]] | None = None
        if release.history_name:
            name = f"metadata.name={release.history_name}"
            path = f"/api/v1{own}/configmaps"
            self._histories = watch(
                path, _read_data, "configmaps", is_vital=False, field_selector=name
            )
        # Of all bookings: the calendar's, too.
        self.reading_time = ReadingTime(clock)
        # Besides ConfigMaps; set before `start`.
        self.calendar: Callable[[], BookingSource | None] = lambda: None
        # Label selectors of the hubs' namespaces, of the classes of users, which may book by
        # HUB_BOOKINGS, too.
        selectors = [
            read_label_selector(each.namespace_selector) for each in pod_classes if each.is_of_users
        ]
        self._hubs = [selector for selector in selectors if selector is not None]
        self._bookings: WatchCache[BookingText] | None = None
        self._hub_bookings: WatchCache[BookingText] | None = None
        if release.events is not None and release.events.config_maps:
            booked = label_selector({EVENTS_LABEL: release.name})
            self._read_bookings = ConfigMapReader(release.events.limits, self.reading_time)
            self._bookings = watch(
                f"/api/v1{own}/configmaps", keep_config_map, "configmaps", label_selector=booked
            )
            if self._hubs and all_namespaces:
                self._read_hub_bookings = ConfigMapReader(release.events.limits, self.reading_time)
                self._hub_bookings = watch(
                    "/api/v1/configmaps",
                    lambda item: keep_config_map(item, item["metadata"].get("namespace") or ""),
                    "configmaps of hubs",
                    is_vital=False,
                    label_selector=booked,
                    # The right is for this one name.
                    field_selector=f"metadata.name={HUB_BOOKINGS}",
                )
        self._nodes_now: dict[str, Node] = {}
        self._sights: dict[str, Sight] = {}
        self._clock, self._wall, self._at_most = clock, wall, math.inf
        self._pods_now: dict[str, Pod] = {}

    def start(self, stop: threading.Event) -> None:
        """Start a thread for each watch."""
        for cache in (*self.caches, *self._others):
            threading.Thread(
                target=cache.run, args=(stop,), name=f"watch-{cache.kind}", daemon=True
            ).start()

    def verdict(self) -> ReadyVerdict:
        """Whether every watch has listed and is up to date."""
        for cache in self.caches:
            if not cache.synced:
                return ReadyVerdict(
                    False, f"{cache.kind} not listed yet{f': {cache.fault}' if cache.fault else ''}"
                )
            if cache.age_seconds() > SNAPSHOT.age_seconds:
                return ReadyVerdict(
                    False,
                    f"no update of {cache.kind} for {cache.age_seconds():.0f} s: {cache.fault}",
                )
        return ReadyVerdict(True)

    def follow(self) -> None:
        """Take in what changed; call it while no snapshot is needed, or changes pile up."""
        has_listed, now = self._nodes.synced, Moment(self._wall(), self._clock())
        for name, node in _follow(self._nodes_now, self._nodes).items():
            before = self._sights.pop(name, None)
            if node is not None:
                self._sights[name] = see(node, before, now, self._at_most)
        # What the first list shows was there before this program; whatever comes later is seen to
        # come.
        self._at_most = 0.0 if has_listed else math.inf
        _follow(self._pods_now, self._pods)
        self._read_pod.drop_all_but(self._pods_now)

    def snapshot(self) -> Snapshot:
        """Return the cluster as known now.

        Its mappings are shared with earlier snapshots, which change with it.
        """
        self.follow()
        classes = () if self._device_classes is None else self._device_classes.objects().values()
        histories = None
        if self._histories is not None and self._histories.synced:
            histories = {
                name: text
                for data in self._histories.objects().values()
                for name, text in data.items()
            }
        return Snapshot(
            release=self._release.name,
            namespace=self._release.namespace,
            nodes=self._nodes_now,
            pods=self._pods_now,
            namespaces=None if self._namespaces is None else self._namespaces.objects(),
            stateful_sets={each.name: each for each in self._sets.objects().values()},
            pull_events=self._pulls.objects(),
            bookings=self._booking_sources(),
            claimable=frozenset().union(*classes),
            histories=histories,
            sights=self._sights,
        )

    def _booking_sources(self) -> Mapping[str, BookingSource]:
        calendar = self.calendar()
        sources = [] if calendar is None else [calendar]
        if self._bookings is not None:
            sources += self._read_bookings.sources(self._bookings.objects())
        if self._hub_bookings is not None:
            texts = {
                key: text
                for key, text in self._hub_bookings.objects().items()
                if self._is_hub(text.hub)
            }
            sources += self._read_hub_bookings.sources(texts)
        return {f"{source.kind} {source.hub}/{source.name}": source for source in bounded(sources)}

    def _is_hub(self, namespace: str) -> bool:
        """Whether a namespace has users of this release, beside the release's own namespace."""
        known = None if self._namespaces is None else self._namespaces.objects()
        return namespace != self._release.namespace and any(
            namespace_matches(selector, namespace, known) for selector in self._hubs
        )


class PodReader:
    """Reads pods as they arrive; equal specs become one object."""

    def __init__(self, release: ReleaseDocument) -> None:
        # Labels of users' pods, of which container statuses are kept, too.
        self._user_labels = [
            each.labels for each in release.classes.values() if each.image_gate or each.is_of_users
        ]
        self._specs: dict[PodSpec, PodSpec] = {}

    def __call__(self, item: JSONObject) -> Pod | None:
        """Read one pod; None for one that no plan needs."""
        labels = labels_of(item)
        is_own = labels.get(PART_OF_LABEL) == OWN_PART
        keeps_containers = (
            is_own
            or is_z2jh_puller(labels)
            or any(wanted.items() <= labels.items() for wanted in self._user_labels)
        )
        try:
            pod = read_pod(item, keeps_containers, specs=self._specs)
        except MalformedObjectError:
            return None
        # Finished pods take no room; only our own have to be deleted.
        return None if pod.is_finished and not is_own else pod

    def drop_all_but(self, pods: Mapping[str, Pod]) -> None:
        """Drop specs that no pod has any more, once they are many."""
        if len(self._specs) > 2 * len(pods) + 1000:
            self._specs = {pod.spec: pod.spec for pod in pods.values()}


def _is_minor(before: Pod | None, now: Pod | None) -> bool:
    """Whether a pod's change may wait: those of pullers' pods and of pods that begin to wait at the
    gate may not.
    """
    if now is not None and now.unschedulable_since is not None and waits_at_gate(now):
        return before is not None and before.unschedulable_since is not None
    return not any(pod is not None and _pulls(pod.labels) for pod in (before, now))


def _pulls(labels: Mapping[str, str]) -> bool:
    return is_puller(labels) or is_popular_puller(labels) or is_z2jh_puller(labels)


def _follow(known: dict[str, Any], cache: WatchCache[Any]) -> Mapping[str, Any]:
    changes = cache.take_changes()
    for key, changed in changes.items():
        if changed is None:
            known.pop(key, None)
        else:
            known[key] = changed
    return changes


def read_stateful_set(item: JSONObject) -> StatefulSetState:
    """Read one of our StatefulSets."""
    replicas = item["spec"].get("replicas")
    status = item.get("status") or {}
    return StatefulSetState(
        name=item["metadata"]["name"],
        uid=item["metadata"].get("uid") or "",
        replicas=1 if replicas is None else int(replicas),
        is_rolling=_is_rolling(item["metadata"], status),
    )


def _read_data(item: JSONObject) -> Mapping[str, str]:
    return {str(key): str(text) for key, text in (item.get("data") or {}).items()}


def _is_rolling(metadata: JSONObject, status: JSONObject) -> bool:
    """Whether its controller has yet to see the last change, or is rolling it out."""
    is_behind = int(status.get("observedGeneration") or 0) < int(metadata.get("generation") or 0)
    is_updating = bool(status.get("updateRevision")) and status["updateRevision"] != status.get(
        "currentRevision"
    )
    return is_behind or is_updating
