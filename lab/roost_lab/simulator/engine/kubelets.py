"""Run the kubelets of all nodes: pulls, the images that nodes report and collect, and the pullers'
pods.

How long a pull takes is said by `node_images.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from roost_lab.simulator.engine.pods import image_reference

if TYPE_CHECKING:
    from collections.abc import Callable

    from roost_core.objects.node import Node
    from roost_lab.simulator.engine.cluster import Cluster
    from roost_lab.simulator.engine.entities import SimNode
    from roost_lab.simulator.setup.policy import PullerSet


class PullerWatcher(Protocol):
    """Hears how far a puller is: its release's controllers."""

    def puller_began(self, node: SimNode, puller: PullerSet) -> None:
        """Its pod is on a node and begins to pull."""

    def puller_has(self, node: SimNode, puller: PullerSet, container: str) -> None:
        """The image of one of its containers is on the node."""


class Kubelets:
    """The kubelets of one replay."""

    def __init__(
        self,
        cluster: Cluster,
        put: Callable[[SimNode, Node], None],
        images_shown: Callable[[], None],
    ) -> None:
        """put: replaces a node's object. images_shown: is called when a node reports others."""
        self._cluster = cluster
        self._put = put
        self._images_shown = images_shown
        # Image -> nodes that have it.
        self.holders: dict[str, set[str]] = {}

    def background_pull(self, node: SimNode, image: str) -> float:
        """Pull an image that nobody waits for; returns when it will be on the node."""
        pull = node.images.pull(image, self._cluster.now, in_background=True)
        if pull.is_cold:
            self._cluster.at(pull.finish, self.image_arrived, (node, image))
        return pull.finish

    def node_left(self, node: SimNode) -> None:
        """A node was removed, with its images."""
        for name in list(self.holders):
            self._holds_no_more(node, name)

    def _holds_no_more(self, node: SimNode, image: str) -> None:
        holders = self.holders.get(image)
        if holders is not None:
            holders.discard(node.name)
            if not holders:
                del self.holders[image]

    def image_arrived(self, argument: tuple[SimNode, str]) -> None:
        """A pull has ended."""
        node, image = argument
        if self._cluster.nodes.get(node.name) is not node:
            return
        if node.images.has(image, self._cluster.now):
            self.holders.setdefault(image, set()).add(node.name)
        self._show_soon(node)
        self._plan_collection(node)

    def _show_soon(self, node: SimNode) -> None:
        if node.shows_at is None:
            node.shows_at = self._cluster.now + self._cluster.assumed.status_delay_seconds
            self._cluster.at(node.shows_at, self._show_images, node)

    def _plan_collection(self, node: SimNode) -> None:
        assumed = self._cluster.assumed
        if not (assumed.node_disk_bytes or assumed.gc_max_age_seconds):
            return
        moment = node.images.next_collection(self._cluster.now)
        if moment is not None and (node.collects_at is None or moment < node.collects_at):
            node.collects_at = moment
            self._cluster.at(moment, self._collect, node)

    def _collect(self, node: SimNode) -> None:
        if node.name not in self._cluster.nodes or node.collects_at != self._cluster.now:
            # The node went, or an earlier look took the place of this look.
            return
        node.collects_at = None
        removed = node.images.collect(self._cluster.now)
        for name in removed:
            self._holds_no_more(node, name)
        if removed:
            self._show_soon(node)
        self._plan_collection(node)

    def _show_images(self, node: SimNode) -> None:
        node.shows_at = None
        if node.name not in self._cluster.nodes:
            return
        images = node.images.status_images(self._cluster.now)
        if images is not node.state.images:
            self._put(node, replace(node.state, images=images, image_count=len(images)))
            self._images_shown()

    def begin_puller(self, node: SimNode, puller: PullerSet, watcher: PullerWatcher) -> None:
        """The puller's pod starts on a node and requests all its pulls; `node_images.py` queues
        them.
        """
        watcher.puller_began(node, puller)
        for container, image in puller.images.items():
            # Its container runs as long as the node does, so the image isn't collected.
            node.images.use(image_reference(image), self._cluster.now)
            finish = self.background_pull(node, image_reference(image))
            self._cluster.at(finish, self._puller_has, (node, puller, container, watcher))

    def _puller_has(self, argument: tuple[SimNode, PullerSet, str, PullerWatcher]) -> None:
        node, puller, container, watcher = argument
        if self._cluster.nodes.get(node.name) is node:
            watcher.puller_has(node, puller, container)
