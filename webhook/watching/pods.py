"""The pods of all classes: homes, warm sets, failed pulls, and the counts of the metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from roost_core.kube.watch_cache import label_selector
from roost_core.kube.watches import TakenChanges, Watched, Watches, pods_path
from roost_core.release.pod_classes import PodClass
from webhook.facts.homes import Homes
from webhook.facts.placed_pod import PlacedPod
from webhook.facts.warm import WarmFacts
from webhook.metrics import WebhookMetrics
from webhook.rules import Rulebook
from webhook.rules.contract import Reads
from webhook.watching.failed_pulls import FailedPulls
from webhook.watching.namespaces import WatchedNamespaces
from webhook.watching.nodes import WatchedNodes
from webhook.watching.pod_counts import PodCounts
from webhook.watching.pod_reader import PodReader, WatchedPod
from webhook.watching.reported_images import ReportedImages

_NO_HOMES: Final = Homes()


class PodsOfClass(Watched[WatchedPod]):
    """The pods that the labels of one class select."""

    def __init__(
        self,
        watches: Watches,
        rulebook: Rulebook,
        pod_class: PodClass,
        namespaces: WatchedNamespaces,
    ) -> None:
        reader = PodReader(rulebook, pod_class, namespaces)
        self.looks_elsewhere = reader.looks_elsewhere
        super().__init__(
            watches.add(
                pods_path("" if reader.looks_elsewhere else rulebook.settings.namespace),
                reader.read,
                kind=f"pods/{pod_class.name}",
                label_selector=label_selector(pod_class.labels),
                keeps_changes=True,
                before_list=namespaces.wait_for_list,
            )
        )

    @property
    def is_broken(self) -> bool:
        """Whether the last try to list or watch failed."""
        return self.cache is not None and bool(self.cache.fault)


class WatchedPods:
    """The pods of all classes."""

    def __init__(
        self,
        watches: Watches,
        rulebook: Rulebook,
        namespaces: WatchedNamespaces,
        metrics: WebhookMetrics,
    ) -> None:
        settings = rulebook.settings
        self.by_class = {
            name: PodsOfClass(watches, rulebook, pod_class, namespaces)
            for name, pod_class in settings.classes.items()
        }
        self._classes_with_home = rulebook.classes_that_read(Reads.HOMES)
        self._warm_classes = (
            rulebook.classes_that_read(Reads.WARM) if settings.reads_nodes else list[str]()
        )
        self._homes = Homes()
        # Of all classes: what has run is no failed pull. Rules read them of the warm classes, which
        # take in what nodes report, too.
        self._warm = {name: WarmFacts() for name in settings.classes}
        self._failed_pulls = FailedPulls(watches.clock)
        self._counts = PodCounts(settings.classes, metrics)

    def refresh(self, taken: TakenChanges) -> list[str]:
        """Take in what changed; return the keys of the pods with a home that did."""
        homes: dict[str, PlacedPod | None] = {}
        for name, pods in self.by_class.items():
            changes = pods.take(taken)
            placed = {key: pod and pod.placed for key, pod in changes.items()}
            # Before warm sets know of the changes.
            self._failed_pulls.update(placed, self._proves)
            if changes:
                self._warm = {**self._warm, name: self._warm[name].updated(placed)}
            self._counts.update(name, changes)
            if name in self._classes_with_home:
                for key, pod in changes.items():
                    is_ours = pod is not None and not pod.is_of_others
                    homes[key] = placed[key] if is_ours else None
        if homes:
            self._homes = self._homes.updated(homes)
        self._counts.show_changes()
        return list(homes)

    def keep_in_step(self, nodes: WatchedNodes, images: ReportedImages) -> None:
        """Let warm sets forget images with their nodes, and take in what nodes report."""
        self._warm = images.follow(
            self._warm, nodes.readable, self._warm_classes, with_reports=nodes.is_known
        )
        self._failed_pulls.drop_proven(self._proves)

    def _proves(self, node: str, image: str) -> bool:
        return any(warm.proves(node, image) for warm in self._warm.values())

    @property
    def homes(self) -> Homes:
        """`Facts.homes`; none unless all pods with a home are known."""
        if all(self.by_class[name].is_known for name in self._classes_with_home):
            return self._homes
        return _NO_HOMES

    @property
    def warm(self) -> Mapping[str, WarmFacts]:
        """`Facts.warm`."""
        return {
            name: self._warm[name] for name in self._warm_classes if self.by_class[name].is_known
        }

    @property
    def failed_pulls(self) -> FailedPulls:
        """`Facts.failed_pulls` and `Facts.given_up`."""
        return self._failed_pulls

    @property
    def shows_new(self) -> bool:
        """`Facts.shows_new_pods`: no watch of pods with a home is known to be broken."""
        return not any(self.by_class[name].is_broken for name in self._classes_with_home)
