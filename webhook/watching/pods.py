"""The pods of all classes: warm sets, failed pulls, and the counts of the metrics."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from roost_core.kube.event_stream import ListWatch
from roost_core.kube.watch_cache import label_selector
from roost_core.kube.watches import TakenChanges, Watched, Watches, pods_path
from roost_core.release.pod_classes import PodClass
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
        # For all classes: what has run is no failed pull. Rules read those of the warm classes,
        # which take in what nodes report, too.
        self._warm = {name: WarmFacts() for name in settings.classes}
        self._failed_pulls = FailedPulls(watches.clock)
        self._counts = PodCounts(settings.classes, metrics)

    def refresh(self, taken: TakenChanges, nodes: WatchedNodes) -> None:
        """Take in what changed."""
        for name, pods in self.by_class.items():
            changes = pods.take(taken)
            placed = {key: pod and pod.placed for key, pod in changes.items()}
            # Before warm sets know of the changes.
            evidence = _PullEvidence(self._warm, name, placed, nodes)
            self._failed_pulls.update(
                placed, is_no_fault=evidence.is_no_fault, is_no_loss=evidence.is_no_loss
            )
            if changes:
                lacking = {key: evidence.with_what_lacks(pod) for key, pod in placed.items()}
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
        return nodes.lists(node, image) or _proves(self._warm, node, image)

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


def _proves(warm: Mapping[str, WarmFacts], node: str, image: str) -> bool:
    return any(known.proves(node, image) for known in warm.values())


class _PullEvidence:
    """What speaks for a node when a pull fails there: its own list of images, and pods that run
    there. A pod with `Always` asks a registry although the node holds the image.

    - The node lists the image, or a pod runs there with it: the failed pull says nothing.
    - It lists all its images, and this image isn't among them: the pull counts; with `Always` only
      if no pod has run there with the image.
    - It lists 50 images or none, or can't be read: the pull counts; with `Always` it says nothing.
    """

    def __init__(
        self,
        warm: Mapping[str, WarmFacts],
        changed_class: str,
        changes: Mapping[str, PlacedPod | None],
        nodes: WatchedNodes,
    ) -> None:
        """warm: before these changes of the pods of one class."""
        self._warm = warm
        self._changed_class = changed_class
        self._changes = changes
        self._nodes = nodes

    def is_no_fault(self, pod: PlacedPod, image: str) -> bool:
        """Whether the pull that this pod says fails says nothing of its node."""
        if self._is_there(pod.node, image):
            return True
        return image in pod.always and self._may_hold(pod.node, image)

    def is_no_loss(self, pod: PlacedPod, image: str) -> bool:
        """Whether it says nothing of its node that this pod was given up before it started."""
        if self._nodes.lists(pod.node, image) or _proves(self._warm, pod.node, image):
            return True
        return image in pod.always and self._may_hold(pod.node, image)

    def with_what_lacks(self, pod: PlacedPod | None) -> PlacedPod | None:
        """The pod with those failing images alone that its node certainly lacks."""
        if pod is None or not pod.failing:
            return pod
        lacking = [
            image
            for image in pod.failing
            if image not in pod.always and not self._is_there(pod.node, image)
        ]
        return pod._replace(failing=tuple(lacking))

    def _is_there(self, node: str, image: str) -> bool:
        """Whether the node holds the image now."""
        return self._nodes.lists(node, image) or (node, image) in self._running

    def _may_hold(self, node: str, image: str) -> bool:
        return _proves(self._warm, node, image) or self._nodes.may_hold_more(node)

    @cached_property
    def _running(self) -> frozenset[tuple[str, str]]:
        """Nodes and images of pods that have started: kubelets remove no image in use."""
        running: set[tuple[str, str]] = set()
        for name, known in self._warm.items():
            pods = known.pods if name != self._changed_class else {**known.pods, **self._changes}
            running |= {
                (pod.node, image)
                for pod in pods.values()
                if pod is not None and not pod.is_starting
                for image in pod.images
            }
        return frozenset(running)
