"""Gather what one plan of popular images reads: pods that pull, nodes and their images, pods about to start."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from roost.controllers.contract.buffered_room import nodes_with_room
from roost.controllers.popular_images.node_views import NodeViews, image_sizes
from roost.controllers.popular_images.pull_pods import is_pull_pod

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost.controllers.contract.snapshot import Moment, Snapshot
    from roost.controllers.popular_images.memory import PopularMemory
    from roost.controllers.popular_images.popularity import Popularity
    from roost.controllers.popular_images.settings import PopularSettings
    from roost_core.objects.pod import Pod
    from roost_core.objects.selectors import NodeRules

# Pods that start on a node share its queue of pulls; one that has been stuck for longer than this is ignored.
STARTING_SECONDS: Final = 600.0
# Pods of one pool share one set of rules. More than this many sets come from users' own selectors, and would be slow.
MOST_RULES: Final = 64
# Names of images whose sizes are remembered.
MOST_SIZES: Final = 200_000


class Scene:
    """The cluster as one plan sees it; nodes' views are reused from plan to plan where they still hold."""

    def __init__(self, snapshot: Snapshot, memory: PopularMemory, settings: PopularSettings, now: Moment) -> None:
        self.snapshot = snapshot
        self._memory = memory
        self._now = now
        self._buffered = settings.buffered
        self._read_pods()
        self._read_nodes(settings)

    def _read_pods(self) -> None:
        running = self._memory.popularity.running
        self.pull_pods: list[Pod] = []
        # Names of nodes with running pods of any class.
        self.occupied: set[str] = set()
        # Names of nodes where others' pods are about to start: users, pullers, and other hubs' pulls of popular images.
        self.starting: set[str] = set()
        recent = self._now.wall - STARTING_SECONDS
        for pod in self.snapshot.pods.values():
            is_pending = pod.phase == "Pending"
            if not is_pending and running.get(pod.uid) is not None:
                self.occupied.add(pod.node_name)
            elif is_pull_pod(pod, self.snapshot.release, self.snapshot.namespace):
                self.pull_pods.append(pod)
            elif is_pending and pod.node_name and pod.created > recent:
                self.starting.add(pod.node_name)
        self.pull_pods.sort(key=lambda pod: pod.name)

    @cached_property
    def pods_on(self) -> Counter[str]:
        """Pods by name of the node."""
        return Counter([pod.node_name for pod in self.snapshot.pods.values()])

    @cached_property
    def buffered_nodes(self) -> Mapping[str, tuple[str, ...]]:
        """Names of nodes that hold the room of CapacityBuffers, by name of the set."""
        return nodes_with_room(self.snapshot, self._buffered)

    @cached_property
    def kept(self) -> frozenset[str]:
        """Names of nodes that an autoscaler leaves alone though nobody is there: a CapacityBuffer's room is."""
        return frozenset(name for names in self.buffered_nodes.values() for name in names)

    def _read_nodes(self, settings: PopularSettings) -> None:
        self.rules = self._rules_of(self._memory.popularity)
        node_views = NodeViews(settings, self.rules, same_rules=self.rules is self._memory.rules)
        before = self._memory.views
        # By name of the node.
        self.views = {name: node_views.view(state, before.get(name)) for name, state in self.snapshot.nodes.items()}
        # Bytes by name of an image.
        sizes = dict(self._memory.sizes)
        for name, view in self.views.items():
            earlier = before.get(name)
            if earlier is not None and earlier.holds is view.holds:
                continue
            for image, size in image_sizes(view.state.images):
                if size > sizes.get(image, 0):
                    sizes[image] = size
        if len(sizes) > MOST_SIZES:
            sizes = {image: size for view in self.views.values() for image, size in image_sizes(view.state.images)}
        self.sizes = sizes
        empty = self._memory.empty_since
        # By name of the node, in steady seconds.
        self.empty_since = {name: empty.get(name, self._now.steady) for name in self.views if name not in self.occupied}

    def _rules_of(self, popularity: Popularity) -> tuple[NodeRules, ...]:
        weights: Counter[NodeRules] = Counter()
        for launch, pods in popularity.launches.items():
            weights[launch.rules] += pods
        for rules_gone in set(map(itemgetter(1), popularity.gone)):
            weights.setdefault(rules_gone, 0)
        rules = sorted(weights, key=lambda each: (-weights[each], repr(each)))[:MOST_RULES]
        # The same object, so that views made for it remain valid.
        return self._memory.rules if set(rules) == set(self._memory.rules) else tuple(rules)
