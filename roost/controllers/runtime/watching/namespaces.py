"""Labels of namespaces.

A class of pods may select namespaces by their labels. To know a pod's class, the controllers then
need the labels of its namespace.
"""

from __future__ import annotations

from collections.abc import Mapping

from roost.controllers.contract.release import ReleaseDocument
from roost_core.kube.event_stream import ListWatch
from roost_core.kube.watches import NAMESPACES_PATH, Watched, Watches
from roost_core.objects.metadata import labels_of
from roost_core.release.class_of_pod import needs_namespace_labels


class WatchedNamespaces(Watched[Mapping[str, str]]):
    """The labels of all namespaces, if a class selects namespaces by more than their names."""

    def __init__(self, watches: Watches, release: ReleaseDocument) -> None:
        super().__init__(None)
        needs_labels = any(
            needs_namespace_labels(pod_class.namespace_selector)
            for pod_class in release.classes.values()
        )
        if needs_labels and watches.all_namespaces:
            self.cache = watches.add(ListWatch(NAMESPACES_PATH, labels_of, kind="namespaces"))

    def labels(self) -> Mapping[str, Mapping[str, str]] | None:
        """`Snapshot.namespaces`: None if no class needs them."""
        return None if self.cache is None else self.cache.objects()
