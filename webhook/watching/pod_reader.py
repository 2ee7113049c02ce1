"""Read a pod of one class as its watch tells of it."""

from __future__ import annotations

from typing import NamedTuple

from roost_core.objects.fields import JSONObject, MalformedObjectError
from roost_core.objects.pod_body import MIRROR_ANNOTATION, PodBody, read_pod_body
from roost_core.placement.labels import (
    OPT_OUT_ANNOTATION,
    OWN_COMPONENT_LABEL,
    OWN_PART,
    OWN_PLACEHOLDER,
    PART_OF_LABEL,
    POLICY_REVISION_ANNOTATION,
    STRICT_SUFFIX,
)
from roost_core.release.class_of_pod import namespace_matches
from roost_core.release.pod_classes import PodClass
from webhook.facts.placed_pod import PlacedPod, read_placed_pod
from webhook.rules import Rulebook
from webhook.rules.contract import Reads
from webhook.rules.scheduler import own_scheduler_name
from webhook.watching.namespaces import WatchedNamespaces


class WatchedPod(NamedTuple):
    """The parts of a pod of one of the classes that the facts and metrics need."""

    uid: str
    # None: finished.
    placed: PlacedPod | None
    # It was created without the webhook.
    is_unplaced: bool = False
    # It names Roost's scheduler and has no node yet.
    is_waiting: bool = False


class PodReader:
    """Reads the pods that a class's labels select."""

    def __init__(
        self, rulebook: Rulebook, pod_class: PodClass, namespaces: WatchedNamespaces
    ) -> None:
        settings = rulebook.settings
        self._pod_class = pod_class
        self._classes = rulebook.classes
        self._own_namespace = settings.namespace
        self._namespaces = namespaces
        # Other hubs' pods count only in warm sets.
        self._counts_other_hubs = namespaces.shared is not None and Reads.WARM in rulebook.reads(
            pod_class.name
        )
        self._own_schedulers = {
            own_scheduler_name(settings, pod_class, suffix) for suffix in ("", STRICT_SUFFIX)
        } - {""}

    @property
    def looks_elsewhere(self) -> bool:
        """Whether pods of other namespaces than the release's own are read."""
        return self._counts_other_hubs or self._pod_class.namespace_selector is not None

    def read(self, body: JSONObject) -> WatchedPod | None:
        """Read one pod; None for one that is of no concern to the class."""
        metadata = body["metadata"]
        namespace = metadata.get("namespace") or ""
        try:
            pod = read_pod_body(body, namespace)
        except MalformedObjectError:
            return None
        # Two classes can select the same pod: it belongs to one of them.
        pod_class = self._classes.classify(pod.labels, namespace, self._namespaces.labels())
        if pod_class != self._pod_class:
            return self._read_other_hubs(body, pod)
        # A pod that is being deleted doesn't wait.
        is_unbound = not body["spec"].get("nodeName") and not metadata.get("deletionTimestamp")
        return WatchedPod(
            uid=str(metadata.get("uid") or ""),
            placed=read_placed_pod(body, self._pod_class.name),
            is_unplaced=self._is_unplaced(pod),
            is_waiting=pod.scheduler_name in self._own_schedulers and is_unbound,
        )

    def _is_unplaced(self, pod: PodBody) -> bool:
        """Whether a rule should have changed this pod, and none did.

        A pod that names Roost's scheduler can still lack the other rules; only Roost's own
        placeholders are created with all of them. A pod that its author bound to a node can't be
        told from a scheduled one, nor an older pod from a missed one.
        """
        if POLICY_REVISION_ANNOTATION in pod.annotations:
            return False
        if pod.annotations.get(OPT_OUT_ANNOTATION) == "true":
            return False
        if MIRROR_ANNOTATION in pod.annotations:
            return False
        if pod.is_daemon:
            return False
        if pod.labels.get(PART_OF_LABEL) != OWN_PART:
            return True
        # No rule is for Roost's other pods.
        is_placeholder = pod.labels.get(OWN_COMPONENT_LABEL) == OWN_PLACEHOLDER
        return is_placeholder and pod.scheduler_name not in self._own_schedulers

    def _read_other_hubs(self, body: JSONObject, pod: PodBody) -> WatchedPod | None:
        """A pod of another hub that would belong to the class: it takes room in the warm set.

        Only once it has a node: before, it may still go to a node outside the set.
        """
        shared = self._namespaces.shared
        if shared is None or not self._counts_other_hubs:
            return None
        labels = self._namespaces.labels()
        if not namespace_matches(shared, pod.namespace, labels):
            return None
        # Which class it would have, if it were this hub's.
        if self._classes.classify(pod.labels, self._own_namespace, labels) != self._pod_class:
            return None
        placed = read_placed_pod(body, self._pod_class.name)
        if placed is None or not placed.node:
            return None
        # Only a pod that is unplaced is counted by its uid, and another hub's never is.
        return WatchedPod(uid="", placed=placed)
