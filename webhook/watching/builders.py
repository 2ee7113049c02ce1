"""The node of each Ready builder pod (docker-in-docker, BuildKit).

Which of these nodes are usable, and make a repository's ring: `ring_of` in `webhook/rules/home.py`.
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
        # None: those of the release's own namespace alone.
        self._selector = None if selector is None else read_label_selector(selector)
        self._own_namespace = own_namespace
        self._namespaces = namespaces
        self._nodes_of_pods: dict[str, str] = {}
        # The same object while nothing changes: rings are recognised by it.
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
        """The builders of all hubs of a class make one ring: those of the release's namespace, and
        of the selected ones.
        """
        namespace = body["metadata"].get("namespace") or ""
        is_of_class = (
            self._selector is None
            or namespace == self._own_namespace
            or namespace_matches(self._selector, namespace, self._namespaces.labels())
        )
        return read_builder(body) if is_of_class else None

    def refresh(self, taken: TakenChanges) -> None:
        """Take in what changed."""
        apply_changes(self._nodes_of_pods, self.take(taken))
        nodes = frozenset(self._nodes_of_pods.values())
        if nodes != self.last_known:
            self.last_known = nodes


def watch_builders(
    watches: Watches, rulebook: Rulebook, namespaces: WatchedNamespaces
) -> dict[str, WatchedBuilders]:
    """Watch the builders of each class whose pods have a home beside one; by class."""
    settings = rulebook.settings
    return {
        name: WatchedBuilders(
            watches, pod_class, pod_class.home.builder_labels, settings.namespace, namespaces
        )
        for name, pod_class in settings.classes.items()
        if pod_class.home is not None and pod_class.home.builder_labels
    }


def read_builder(pod: JSONObject) -> str | None:
    """The node whose build cache this builder Pod serves; None while it isn't bound, Ready and
    there to stay.

    BinderHub itself counts pending, failed and leaving builders, and fails every build while one
    isn't bound.
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
