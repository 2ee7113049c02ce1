"""The node of each Ready builder pod (docker-in-docker, BuildKit).

`ring_of` in `webhook/rules/home.py` makes rings of those nodes that are usable.
"""

from __future__ import annotations

from collections.abc import Mapping

from roost_core.kube.event_stream import ListWatch
from roost_core.kube.watch_cache import label_selector
from roost_core.kube.watches import TakenChanges, Watched, Watches, apply_changes, pods_path
from roost_core.objects.fields import JSONObject
from roost_core.objects.selectors import read_label_selector
from roost_core.release.class_of_pod import namespace_matches
from roost_core.release.pod_classes import PodClass
from webhook.rules import Rulebook
from webhook.watching.namespaces import WatchedNamespaces


class WatchedBuilders(Watched[str]):
    """The node of each ready builder pod of one class."""

    def __init__(
        self,
        watches: Watches,
        pod_class: PodClass,
        builder_labels: Mapping[str, str],
        own_namespace: str,
        namespaces: WatchedNamespaces,
    ) -> None:
        super().__init__(None)
        selector = pod_class.namespace_selector
        # Of the namespaces besides the release's own; None: no others.
        self._selector = None if selector is None else read_label_selector(selector)
        self._own_namespace = own_namespace
        self._namespaces = namespaces
        self._nodes_of_pods: dict[str, str] = {}
        # The names of these nodes; the same object while nothing changes.
        self.last_known = frozenset[str]()
        self.cache = watches.add(
            ListWatch(
                pods_path(own_namespace if selector is None else ""),
                self._read,
                kind="builders",
                label_selector=label_selector(builder_labels),
            ),
            keeps_changes=True,
            before_list=namespaces.wait_for_list,
        )

    def _read(self, body: JSONObject) -> str | None:
        """The node of a builder in the release's namespace, or in one that the class selects.

        The builders of all hubs of a class make the same ring. None: the pod doesn't count.
        """
        namespace = body["metadata"].get("namespace") or ""
        if self._selector is None or namespace == self._own_namespace:
            return read_builder(body)
        if namespace_matches(self._selector, namespace, self._namespaces.labels()):
            return read_builder(body)
        return None

    def refresh(self, taken: TakenChanges) -> None:
        """Take in what changed."""
        apply_changes(self._nodes_of_pods, self.take(taken))
        nodes = frozenset(self._nodes_of_pods.values())
        if nodes != self.last_known:
            self.last_known = nodes


def watch_builders(
    watches: Watches, rulebook: Rulebook, namespaces: WatchedNamespaces
) -> dict[str, WatchedBuilders]:
    """Watch the builders of each class whose homes are nodes with a builder. By class."""
    settings = rulebook.settings
    return {
        name: WatchedBuilders(
            watches, pod_class, pod_class.home.builder_labels, settings.namespace, namespaces
        )
        for name, pod_class in settings.classes.items()
        if pod_class.home is not None and pod_class.home.builder_labels
    }


def read_builder(pod: JSONObject) -> str | None:
    """The node of a builder pod, whose build cache it uses.

    None: the pod isn't bound, isn't Ready, or is being deleted. BinderHub counts these builders,
    too, and fails each build while a builder isn't bound. pod: as parsed from JSON.
    """
    node = (pod.get("spec") or {}).get("nodeName")
    if not node or (pod.get("metadata") or {}).get("deletionTimestamp"):
        return None
    conditions = (pod.get("status") or {}).get("conditions") or ()
    is_ready = any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in conditions
    )
    return str(node) if is_ready else None
