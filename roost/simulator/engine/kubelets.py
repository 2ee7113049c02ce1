"""Drive the kubelets of all nodes: pulls that end, images that nodes report and collect, and the pullers' pods."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from roost.simulator.engine.kubelet import BACKGROUND
from roost.simulator.engine.pods import image_reference

if TYPE_CHECKING:
    from collections.abc import Callable

    from roost.simulator.engine.bounds import BoundsMeter
    from roost.simulator.engine.entities import SimNode
    from roost.simulator.engine.kubelet import Images
    from roost.simulator.setup.assumptions import Assumptions
    from roost.simulator.setup.policy import PullerSet
    from roost_core.scheduler.objects import NodeState


class ImageWatcher(Protocol):
    """Who is told what becomes of images on nodes: the controllers."""

    def images_shown(self) -> None:
        """A node reports other images."""
        ...

    def puller_began(self, node: SimNode, one: PullerSet) -> None:
        """A puller's pod is on a node, and pulls."""
        ...

    def puller_has(self, node: SimNode, one: PullerSet, container: str) -> None:
        """One image of a puller is there; its container runs."""
        ...


class KubeletsWorld(Protocol):
    """What kubelets read, and whom they tell."""

    now: float
    assumed: Assumptions
    nodes: dict[str, SimNode]
    images: Images
    bounds: BoundsMeter

    @property
    def controls(self) -> ImageWatcher:
        """Whom to tell of images."""
        ...

    def at(self, moment: float, what: Callable[[Any], None], whom: Any = None) -> None:  # noqa: ANN401 - its argument
        """Let something happen at that moment."""
        ...

    def put(self, node: SimNode, state: NodeState) -> None:
        """A node's status is another now."""
        ...


class Kubelets:
    """The kubelets of one replay."""

    def __init__(self, world: KubeletsWorld) -> None:
        self._world = world
        # Image -> nodes that have it.
        self.holders: dict[str, set[str]] = {}

    def background_pull(self, node: SimNode, image: str) -> float:
        """Have an image pulled that nobody waits for; returns when it will be there."""
        pull = node.images.pull(image, self._world.now, BACKGROUND)
        if pull.is_cold:
            self._world.at(pull.finish, self.image_arrived, (node, image))
        return pull.finish

    def node_left(self, node: SimNode) -> None:
        """A node went, with its images."""
        for name in list(self.holders):
            self._holds_no_more(node, name)

    def _holds_no_more(self, node: SimNode, image: str) -> None:
        holders = self.holders.get(image)
        if holders is not None:
            holders.discard(node.name)
            if not holders:
                del self.holders[image]

    def image_arrived(self, whom: tuple[SimNode, str]) -> None:
        """A pull has ended."""
        node, image = whom
        if self._world.nodes.get(node.name) is not node:
            return
        if node.images.has(image, self._world.now):
            self._world.bounds.came(node.name, self._world.images.get(image))
            self.holders.setdefault(image, set()).add(node.name)
        self._show_soon(node)
        self._plan_collection(node)

    def _show_soon(self, node: SimNode) -> None:
        if node.shows_at is None:
            node.shows_at = self._world.now + self._world.assumed.status_delay_seconds
            self._world.at(node.shows_at, self._show_images, node)

    def _plan_collection(self, node: SimNode) -> None:
        if node.collects_at is None and self._world.assumed.node_disk_bytes:
            moment = node.images.next_collection(self._world.now)
            if moment is not None:
                node.collects_at = moment
                self._world.at(moment, self._collect, node)

    def _collect(self, node: SimNode) -> None:
        node.collects_at = None
        if node.name not in self._world.nodes:
            return
        removed = node.images.collect(self._world.now)
        for name in removed:
            self._holds_no_more(node, name)
        if removed:
            self._show_soon(node)
        self._plan_collection(node)

    def _show_images(self, node: SimNode) -> None:
        node.shows_at = None
        if node.name not in self._world.nodes:
            return
        images = node.images.status_images(self._world.now)
        if images is not node.state.images:
            self._world.put(node, replace(node.state, images=images, image_count=len(images)))
            self._world.controls.images_shown()

    def begin_puller(self, node: SimNode, one: PullerSet) -> None:
        """The puller's pod begins on a node: one image after the other."""
        self._world.controls.puller_began(node, one)
        for container, image in one.images.items():
            # Its container runs for as long as the node does, so no kubelet collects the image.
            node.images.use(image_reference(image), self._world.now)
            finish = self.background_pull(node, image_reference(image))
            self._world.at(finish, self._puller_has, (node, one, container))

    def _puller_has(self, whom: tuple[SimNode, PullerSet, str]) -> None:
        node, one, container = whom
        if self._world.nodes.get(node.name) is node:
            self._world.controls.puller_has(node, one, container)
