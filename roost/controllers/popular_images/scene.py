"""See what one plan of popular images goes by: the pods that pull, nodes and what they hold, who is about to start."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from roost.controllers.popular_images.nodes import NodeViews, image_sizes
from roost_core.placement.labels import OWN_COMPONENT_LABEL, OWN_POPULAR_PULLER

if TYPE_CHECKING:
    from roost.controllers.contract.snapshot import Moment, Snapshot
    from roost.controllers.popular_images.memory import PopularMemory
    from roost.controllers.popular_images.popularity import Popularity, Rules
    from roost.controllers.popular_images.settings import PopularSettings
    from roost_core.scheduler.objects import PodState

# Pods that start on a node pull through the same queue, one image after the other; one stuck for longer is no reason.
STARTING_SECONDS: Final = 600.0
# Pods of one pool share one set of rules. More sets than this are users' own pins, and looking at all would take long.
MOST_RULES: Final = 64
# Names of images whose sizes are remembered.
MOST_SIZES: Final = 200_000


class Scene:
    """The cluster as one plan sees it. What is known of nodes is kept from plan to plan as far as it stays true."""

    def __init__(self, snapshot: Snapshot, memory: PopularMemory, settings: PopularSettings, now: Moment) -> None:
        """Look at all of it."""
        self.snapshot = snapshot
        self._memory = memory
        self._now = now
        self._see_pods()
        self._see_nodes(settings)

    def _see_pods(self) -> None:
        running = self._memory.popularity.running
        self.pull_pods: list[PodState] = []
        # Nodes with pods of any class that run.
        self.occupied: set[str] = set()
        # Where pods of others are about to start.
        self.starting: set[str] = set()
        lately = self._now.wall - STARTING_SECONDS
        for pod in self.snapshot.pods.values():
            is_pending = pod.phase == "Pending"
            if not is_pending and running.get(pod.uid) is not None:
                self.occupied.add(pod.node_name)
            elif pod.labels.get(OWN_COMPONENT_LABEL) == OWN_POPULAR_PULLER:
                self.pull_pods.append(pod)
            elif is_pending and pod.node_name and pod.created > lately:
                self.starting.add(pod.node_name)
        self.pull_pods.sort(key=lambda pod: pod.name)

    @cached_property
    def pods_on(self) -> Counter[str]:
        """Pods by name of the node."""
        return Counter([pod.node_name for pod in self.snapshot.pods.values()])

    def _see_nodes(self, settings: PopularSettings) -> None:
        self.rules = self._rules_of(self._memory.popularity)
        makes = NodeViews(
            settings, [one.as_node_rules() for one in self.rules], same_rules=self.rules is self._memory.rules
        )
        before = self._memory.views
        # By name of the node.
        self.views = {name: makes.view(state, before.get(name)) for name, state in self.snapshot.nodes.items()}
        # Bytes by name of an image.
        sizes = dict(self._memory.sizes)
        for name, view in self.views.items():
            known = before.get(name)
            if known is not None and known.holds is view.holds:
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

    def _rules_of(self, popularity: Popularity) -> tuple[Rules, ...]:
        weights: Counter[Rules] = Counter()
        for launch, pods in popularity.launches.items():
            weights[launch.rules] += pods
        for one in set(map(itemgetter(1), popularity.gone)):
            weights.setdefault(one, 0)
        rules = sorted(weights, key=lambda one: (-weights[one], repr(one)))[:MOST_RULES]
        # The same object: views made for it stay good.
        return self._memory.rules if set(rules) == set(self._memory.rules) else tuple(rules)
