"""Pods, of all namespaces where the account may read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from roost.controllers.contract.pod_kinds import is_z2jh_puller
from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.runtime.watching.minor_changes import is_minor_change_of_pod
from roost_core.kube.event_stream import ListWatch
from roost_core.kube.watches import Watched, Watches, apply_changes, pods_path
from roost_core.objects.fields import JSONObject, MalformedObjectError
from roost_core.objects.metadata import labels_of
from roost_core.objects.pod import Pod, PodSpec
from roost_core.objects.pod_reader import read_pod
from roost_core.placement.labels import OWN_PART, PART_OF_LABEL


class WatchedPods(Watched[Pod]):
    """All pods that plans need. Finished pods that aren't Roost's are left out."""

    def __init__(
        self, watches: Watches, release: ReleaseDocument, on_minor_change: Callable[[], None]
    ) -> None:
        self._reader = PodReader(release)
        self._pods = watches.add(
            ListWatch(
                pods_path("" if watches.all_namespaces else release.namespace),
                self._reader.read,
                kind="pods",
            ),
            keeps_changes=True,
            is_minor=is_minor_change_of_pod,
            on_minor_change=on_minor_change,
        )
        super().__init__(self._pods)
        self._known: dict[str, Pod] = {}

    def follow(self) -> None:
        """Take in what changed."""
        apply_changes(self._known, self._pods.take_changes())
        self._reader.drop_all_but(self._known)

    @property
    def by_key(self) -> Mapping[str, Pod]:
        """`Snapshot.pods`: always the same mapping, which each `follow` changes."""
        return self._known


class PodReader:
    """Reads pods as they arrive. Pods with equal specs share one spec, to save memory."""

    def __init__(self, release: ReleaseDocument) -> None:
        # Labels by which pods are known whose containers' statuses are read, too.
        self._labels_with_statuses = [
            pod_class.labels
            for pod_class in release.classes.values()
            if pod_class.image_gate or pod_class.is_of_users
        ]
        self._specs: dict[PodSpec, PodSpec] = {}

    def read(self, item: JSONObject) -> Pod | None:
        """Read a pod; None: no plan needs it, or it is malformed."""
        labels = labels_of(item)
        is_own = labels.get(PART_OF_LABEL) == OWN_PART
        keeps_containers = (
            is_own
            or is_z2jh_puller(labels)
            or any(of_class.items() <= labels.items() for of_class in self._labels_with_statuses)
        )
        try:
            pod = read_pod(item, keeps_containers, specs=self._specs)
        except MalformedObjectError:
            return None
        # A finished pod takes no room. Only Roost's own have to be known: they are deleted.
        return None if pod.is_finished and not is_own else pod

    def drop_all_but(self, pods: Mapping[str, Pod]) -> None:
        """Drop specs that no pod has any more, once there are many. pods: all that are known."""
        has_many_unused = len(self._specs) > 2 * len(pods) + 1000
        if has_many_unused:
            self._specs = {pod.spec: pod.spec for pod in pods.values()}
