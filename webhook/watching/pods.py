"""The pods of all classes: warm sets, failed pulls, and the counts of the metrics."""

from __future__ import annotations

from collections.abc import Mapping

from roost_core.kube.event_stream import ListWatch
from roost_core.kube.watch_cache import label_selector
from roost_core.kube.watches import TakenChanges, Watched, Watches, pods_path
from roost_core.release.pod_classes import PodClass
from webhook.facts.warm import WarmFacts
from webhook.metrics import WebhookMetrics
from webhook.rules import Rulebook
from webhook.rules.contract import Reads
from webhook.watching.failed_pulls import FailedPulls
from webhook.watching.namespaces import WatchedNamespaces
from webhook.watching.nodes import WatchedNodes
from webhook.watching.pod_reader import PodReader, WatchedPod
from webhook.watching.pull_evidence import PullEvidence, is_proven
from webhook.watching.reported_images import ReportedImages
from webhook.watching.unplaced_and_waiting import UnplacedAndWaiting


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
                ListWatch(
                    pods_path("" if reader.looks_elsewhere else rulebook.settings.namespace),
                    reader.read,
                    kind=f"pods/{pod_class.name}",
                    label_selector=label_selector(pod_class.labels),
                ),
                keeps_changes=True,
                before_list=namespaces.wait_for_list,
            )
        )


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
        self._warm_classes = (
            rulebook.classes_that_read(Reads.WARM) if settings.reads_nodes else list[str]()
        )
        # Of all classes: an image that ran in any class is no failed pull. Rules read the warm
        # classes' alone, which also take in what nodes report.
        self._warm = {name: WarmFacts() for name in settings.classes}
        self._failed_pulls = FailedPulls(watches.clock)
        self._counts = UnplacedAndWaiting(settings.classes, metrics)

    def refresh(self, taken: TakenChanges, nodes: WatchedNodes) -> None:
        """Take in what changed."""
        for name, pods in self.by_class.items():
            changes = pods.take(taken)
            placed = {key: pod and pod.placed for key, pod in changes.items()}
            # Before warm sets know of the changes.
            evidence = PullEvidence(self._warm, name, placed, nodes)
            self._failed_pulls.update(
                placed,
                excuses_failure=evidence.excuses_failure,
                excuses_lost_start=evidence.excuses_lost_start,
            )
            if changes:
                lacking = {key: evidence.with_lacking_images(pod) for key, pod in placed.items()}
                self._warm = {**self._warm, name: self._warm[name].updated(lacking)}
            self._counts.update(name, changes)
        self._counts.show_changes()

    def keep_in_step(self, nodes: WatchedNodes, images: ReportedImages) -> None:
        """Let warm sets forget images with their nodes, and take in what nodes report."""
        self._warm = images.follow(
            self._warm, nodes.readable, self._warm_classes, with_reports=nodes.is_known
        )
        self._failed_pulls.drop_proven(lambda node, image: self._proves(node, image, nodes))

    def _proves(self, node: str, image: str, nodes: WatchedNodes) -> bool:
        return nodes.lists(node, image) or is_proven(self._warm, node, image)

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
