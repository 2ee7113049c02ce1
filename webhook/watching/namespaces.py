"""Namespaces' labels, by which a pod of another namespace belongs to a class."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

from roost_core.kube.event_stream import ListWatch
from roost_core.kube.watches import NAMESPACES_PATH, TakenChanges, Watched, Watches, apply_changes
from roost_core.objects.metadata import labels_of
from roost_core.objects.selectors import Requirement, read_label_selector
from roost_core.release.class_of_pod import namespace_matches, needs_namespace_labels
from webhook.rules import Rulebook
from webhook.rules.contract import Reads

# Seconds between two looks at whether namespaces were listed.
_LOOK_SECONDS: Final = 0.05


class WatchedNamespaces(Watched[Mapping[str, str]]):
    """The labels of namespaces. Watched if a selector of the values needs more than their names."""

    def __init__(self, watches: Watches, rulebook: Rulebook) -> None:
        super().__init__(None)
        settings = rulebook.settings
        selectors = [pod_class.namespace_selector for pod_class in settings.classes.values()]
        # Selects other namespaces whose pods count in warm sets, too. None: there are none.
        self.shared: frozenset[Requirement] | None = None
        has_warm_sets = settings.reads_nodes and bool(rulebook.classes_that_read(Reads.WARM))
        if settings.shared_namespaces is not None and has_warm_sets:
            self.shared = read_label_selector(settings.shared_namespaces)
        if self.shared is not None:
            selectors.append(settings.shared_namespaces)
        parsed = [read_label_selector(selector) for selector in selectors if selector is not None]
        self._selectors = [selector for selector in parsed if selector is not None]
        if any(needs_namespace_labels(selector) for selector in selectors):
            self.cache = watches.add(
                ListWatch(NAMESPACES_PATH, labels_of, kind="namespaces"), keeps_changes=True
            )
        # Whether pods may have been read as of a wrong class, and must be listed again. This is so
        # if a known namespace is selected now, or no longer is. It is also so if pods were listed
        # while namespaces couldn't be read, and now they can.
        self.has_other_hubs = False
        self._pods_listed_without_namespaces = False
        self._last_known: Mapping[str, Mapping[str, str]] = {}

    def wait_for_list(self, stop: threading.Event) -> None:
        """Wait until namespaces were listed, or it is clear that they may not be read.

        A pod's class may depend on their labels. So pods are listed after this.
        """
        cache = self.cache
        while cache is not None and not stop.is_set():
            if cache.synced or cache.is_forbidden:
                if not cache.synced:
                    self._pods_listed_without_namespaces = True
                return
            stop.wait(_LOOK_SECONDS)

    def labels(self) -> Mapping[str, Mapping[str, str]] | None:
        """The labels by namespace, as they are now; None: namespaces weren't listed yet."""
        if self.cache is None or not self.cache.synced:
            return None
        return self.cache.objects()

    def refresh(self, taken: TakenChanges) -> None:
        """Take in what changed."""
        if self.cache is None:
            return
        before = self._last_known
        changes = self.take(taken)
        known = dict(before)
        apply_changes(known, changes)
        self._last_known = known
        if self._pods_listed_without_namespaces and self.cache.synced:
            self.has_other_hubs = True
        for name, labels in changes.items():
            if labels is None or name not in before:
                continue
            if self._selected_by(name, before) != self._selected_by(name, known):
                self.has_other_hubs = True

    def _selected_by(self, name: str, known: Mapping[str, Mapping[str, str]]) -> list[bool]:
        """For each selector, whether it selects a namespace. known: labels by namespace."""
        return [namespace_matches(selector, name, known) for selector in self._selectors]

    @property
    def fact(self) -> Mapping[str, Mapping[str, str]] | None:
        """`Facts.namespaces`."""
        return self._last_known if self.is_known else None
