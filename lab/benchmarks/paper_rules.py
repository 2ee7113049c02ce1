"""The placement rules that `benchmarks.paper` compares with Roost's, each as an order of nodes for
one user's pod.

Roost's own rule prefers nodes by name (`webhook.rules.warm`). A rule here takes its place in a
replay, so all rules have the same knowledge, the same webhook, kube-scheduler, placeholders and
autoscaler, and differ in the order alone: the first of the order that has room gets the pod.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from roost_core.objects.requests import CPU, MEMORY
from roost_core.placement.labels import USER_CLASS
from roost_core.placement.warm_sets import MAX_NODES, slots_of, with_weights
from tests.binderhub_ring import rank_nodes
from tests.warm_rule import set_size
from webhook.rules.image_gate import gate_label
from webhook.rules.warm import NoWarmSet, WarmChoice, choose_warm_nodes, read_warm_needs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from roost_core.placement.nodes import Nodes
    from roost_core.placement.warm_sets import Spare
    from roost_core.release.pod_classes import Warm
    from roost_lab.simulator.engine.entities import SimNode
    from roost_lab.simulator.engine.node_images import Image
    from roost_lab.simulator.engine.world import World
    from webhook.facts.warm import WarmFacts
    from webhook.rules.contract import Case
    from webhook.rules.warm import WarmNeeds


class Scene(NamedTuple):
    """What a rule may know when a user's pod is created."""

    # Normalised.
    image: str
    requests: Mapping[str, int]
    # Of each usable node, the oldest first: how many such pods it takes.
    slots: Mapping[str, int]
    # The same nodes: users there or on their way.
    loads: Mapping[str, int]
    # Nodes known to have the image, or to be pulling it.
    held: frozenset[str]
    facts: WarmFacts
    spare: Spare

    @property
    def nodes_in_set(self) -> int:
        """How many of the oldest nodes make Roost's set."""
        waiting = self.facts.pods_on("")
        return set_size(self.slots.values(), waiting + sum(self.loads.values()) + 1, self.spare)


class Rule(Protocol):
    """Orders nodes for a pod; those that it leaves out come last."""

    def __call__(self, scene: Scene, /) -> Iterable[str]:
        """Names, the best first; full nodes may be among them."""


class RuleChooser:
    """Chooses in the place of Roost's rule: another order, of all nodes."""

    def __init__(self, warm: Warm, rule: Rule) -> None:
        self._spare = warm.spare
        self._rule = rule
        self._slots: dict[str, int] = {}
        self._nodes: Nodes | None = None

    def __call__(self, case: Case, needs: WarmNeeds | None = None) -> WarmChoice | NoWarmSet | None:
        """The rule's order, without full nodes, where Roost would choose."""
        found = choose_warm_nodes(case, needs)
        nodes = case.facts.nodes
        if not isinstance(found, WarmChoice) or nodes is None:
            return found
        needs = needs or read_warm_needs(case)
        facts = case.facts.warm[USER_CLASS]
        if nodes is not self._nodes:
            # All users request the same, and there is one pool.
            usable = sorted((node.created, node.name) for node in nodes.values() if node.is_usable)
            self._slots = {
                name: slots_of(nodes[name].allocatable, needs.requests) for _, name in usable
            }
            self._nodes = nodes
        loads = {name: facts.pods_on(name) for name in self._slots}
        labelled = (
            nodes.holders.get(gate_label(case.settings, image), frozenset())
            for image, _ in needs.images
        )
        held = frozenset().union(*labelled, *(facts.holders(image) for _, image in needs.images))
        scene = Scene(
            needs.images[0][1], dict(needs.requests), self._slots, loads, held, facts, self._spare
        )
        order = dict.fromkeys((*self._rule(scene), *self._slots))
        names = [name for name in order if loads[name] < self._slots[name]][:MAX_NODES]
        return WarmChoice(with_weights(names), sum(name in held for name in names), len(names))


def use_rule(world: World, rule: Rule) -> None:
    """Let a replay that hasn't begun place users by a rule; its policy must have a warm set for
    users.
    """
    # Only comparisons replace a rule, so nothing offers it.
    maker = world.releases[0].maker
    assert maker._rulebook is not None
    warm = maker._rulebook.settings.classes[USER_CLASS].warm
    assert warm is not None
    maker.choose_warm_nodes = RuleChooser(warm, rule)


# Orders from what the webhook knows


def image_first(scene: Scene) -> Sequence[str]:
    """Any node with the image, then packing: the fullest first."""
    return sorted(scene.slots, key=lambda name: (name not in scene.held, -scene.loads[name]))


def pod_affinity(scene: Scene) -> Sequence[str]:
    """The node with most running users of the image, then packing: preferred pod affinity by a
    label of the image.
    """
    same = Counter(pod.node for pod in scene.facts.pods.values() if scene.image in pod.images)
    return sorted(scene.slots, key=lambda name: (-same[name], -scene.loads[name]))


def first_fit(scene: Scene) -> Sequence[str]:
    """The oldest node with room: the set's order, without a look at images."""
    return list(scene.slots)


class RendezvousInSet:
    """In Roost's set of the oldest nodes, the image's order by rendezvous hashing; then the
    oldest.
    """

    def __call__(self, scene: Scene) -> Sequence[str]:
        """Names, the best first."""
        return rank_nodes(scene.image, list(scene.slots)[: scene.nodes_in_set])


# Published rules


class ChRlu:
    """CH-RLU: consistent hashing, and popular images leave an overloaded node for the next of the
    ring.

    A. Fuerst and P. Sharma, "Locality-aware load-balancing for serverless clusters", HPDC 2022;
    their code is `ch_rlu.rs` of COS-IN/iluvatar-faas. Here a function is an image, its load that of
    users, and the ring rendezvous hashing. Loads are known at once, so the random update stands for
    the pod itself alone.
    """

    # Share of the images, those launched most often, that may leave their node; nodes of the ring
    # that they try.
    POPULAR: Final = 0.2
    CHAIN: Final = 4
    # Share of a node's slots above which it is overloaded, and the deviation of the random update.
    BOUND: Final = 0.9
    DEVIATION: Final = 0.1
    # Launches between two looks at what is popular.
    LOOK_EVERY: Final = 100

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)  # noqa: S311 - not for secrets
        self._launches: Counter[str] = Counter()
        self._popular: frozenset[str] = frozenset()

    def __call__(self, scene: Scene) -> Sequence[str]:
        """Names, the best first."""
        self._launches[scene.image] += 1
        if self._launches.total() % self.LOOK_EVERY == 0:
            number = round(self.POPULAR * len(self._launches))
            self._popular = frozenset(image for image, _ in self._launches.most_common(number))
        order = rank_nodes(scene.image, scene.slots)
        if scene.image not in self._popular:
            return order
        for name in order[: self.CHAIN]:
            slots = scene.slots[name]
            if (
                scene.loads[name] / slots + self._chance.gauss(1 / slots, self.DEVIATION)
                <= self.BOUND
            ):
                return [name, *order]
        return order


class LayerAware:
    """LRScheduler: kube-scheduler's scores for free and balanced resources, and the layers that a
    node has.

    Z. Tang et al., "LRScheduler: A layer-aware and resource-adaptive container scheduler in edge
    computing", arXiv 2506.03694; thresholds and weights are those of its code, `layer/score.go` of
    pwtttttt/Layer-Scheduler. Of kube-scheduler's other scores only ImageLocality would tell nodes
    apart here, and is left out. As there, layers that are on their way don't count.
    """

    # The layers' weight: while a node has more than so many bytes of the image, its CPU is less
    # requested than this, and requests of CPU and memory deviate less than this; and else.
    LEAST_BYTES: Final = 10 * 2**20
    MOST_CPU: Final = 0.6
    MOST_DEVIATION: Final = 0.16
    HIGH = 2.0
    LOW = 0.5

    def __init__(self, world: World) -> None:
        self._world = world
        # Node -> images that came and went when its layers were looked at, and those.
        self._layers: dict[str, tuple[tuple[int, int], frozenset[str]]] = {}

    def __call__(self, scene: Scene) -> Sequence[str]:
        """Names, the best first."""
        image = self._world.images.get(scene.image)
        return sorted(scene.slots, key=lambda name: -self._score(scene, image, name))

    def _score(self, scene: Scene, image: Image, name: str) -> float:
        row = self._world.state.rows[name]
        cpu, memory = (
            (row.requested.get(resource, 0) + scene.requests.get(resource, 0))
            / row.allocatable[resource]
            for resource in (CPU, MEMORY)
        )
        deviation = abs(cpu - memory) / 2
        on_node = self._layers_on(self._world.nodes[name])
        there = sum(layer.compressed_bytes for layer in image.layers if layer.key in on_node)
        has_room = cpu < self.MOST_CPU and deviation < self.MOST_DEVIATION
        weight = self.HIGH if there > self.LEAST_BYTES and has_room else self.LOW
        free = 100 * (1 - (cpu + memory) / 2)
        return free + 100 * (1 - deviation) + weight * 100 * there / image.compressed_bytes

    def _layers_on(self, node: SimNode) -> frozenset[str]:
        names = node.images.names(self._world.now)
        state = node.images.count, self._world.figures.collected
        known = self._layers.get(node.name)
        if known is None or known[0] != state:
            layers = frozenset(
                layer.key for name in names for layer in self._world.images.get(name).layers
            )
            known = self._layers[node.name] = state, layers
        return known[1]


RULES: Final[Mapping[str, Callable[[World, int], Rule]]] = {
    "image-first": lambda _world, _seed: image_first,
    "pod affinity": lambda _world, _seed: pod_affinity,
    "first fit": lambda _world, _seed: first_fit,
    "rendezvous in the set": lambda _world, _seed: RendezvousInSet(),
    "LRScheduler": lambda world, _seed: LayerAware(world),
    "CH-RLU": lambda _world, seed: ChRlu(seed),
}
