"""What must always hold of popular images, whatever the cluster does."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from roost.controllers.contract.actions import CreatePod, DeletePod, Planned
from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.popular_images.plan import PopularMemory, disk_bytes_of, plan_popular_images
from roost.controllers.popular_images.settings import PopularSettings
from roost_core.objects.node import Node
from roost_core.objects.pod import Pod
from roost_core.placement.labels import POPULAR_BYTES_ANNOTATION
from tests.popular_builders import (
    GB,
    WALL,
    as_pod,
    at,
    cluster,
    node_of,
    node_state,
    popular_settings,
    reference_of,
    user,
)

NODES = ("a", "b", "c")
IMAGES = tuple(f"quay.io/lab/image-{index}:1" for index in range(4)) + tuple(
    f"quay.io/binder-repo-abcde{index}:{tag}" for index in range(2) for tag in ("old", "new")
)
SIZES = {image: (index + 1) * GB // 2 for index, image in enumerate(IMAGES)}
HOLDER = "holder"


@dataclass
class World:
    """A cluster that does what plans ask for, and what a machine may do besides; it counts what is under way."""

    settings: PopularSettings
    now: float = 0.0
    memory: PopularMemory = field(default_factory=PopularMemory)
    # Node -> image -> bytes.
    held: dict[str, dict[str, int]] = field(default_factory=lambda: {name: {} for name in NODES})
    troubled: set[str] = field(default_factory=set)
    users: list[Pod] = field(default_factory=list)
    bodies: dict[str, dict[str, Any]] = field(default_factory=dict)
    phases: dict[str, str] = field(default_factory=dict)
    # When this leader began, and what it has begun to pull since.
    led_since: float | None = None
    begun_bytes: int = 0

    def node(self, name: str) -> Node:
        conditions = {"DiskPressure": "True"} if name in self.troubled else {}
        # 70 % of the disk hold six gigabytes or so, as containerd counts them.
        return node_state(name, disk=33 * GB, images=self.held[name], conditions=conditions)

    def snapshot(self) -> Snapshot:
        # It tells the sizes, and takes no pulls itself.
        holder = node_state(HOLDER, images=SIZES, unschedulable=True)
        pods = [as_pod(body, phase=self.phases[name]) for name, body in self.bodies.items()]
        # No node is ever empty.
        placeholders = [user(f"placeholder-{name}", IMAGES[0], name, component="user-placeholder") for name in NODES]
        return cluster([holder, *map(self.node, NODES)], [*self.users, *placeholders, *pods])

    def plan(self) -> Planned[PopularMemory]:
        if self.led_since is None:
            self.led_since, self.begun_bytes = self.now, 0
        planned = plan_popular_images(self.snapshot(), self.memory, self.settings, at(self.now))
        self.memory = planned.memory
        return planned

    def pulling(self, node: str | None = None) -> list[str]:
        return [
            name
            for name, body in self.bodies.items()
            if self.phases[name] == "Pending" and node in (None, node_of(body))
        ]

    def apply(self, planned: Planned[PopularMemory], writes: str) -> None:
        """Carry it out, all or nothing. `writes`: what becomes of the requests and of their answers."""
        for action in planned.actions if writes not in ("lost", "held back") else ():
            if isinstance(action, CreatePod):
                name = action.body["metadata"]["name"]
                self.bodies[name], self.phases[name] = action.body, "Pending"
                self.begun_bytes += int(action.body["metadata"]["annotations"][POPULAR_BYTES_ANNOTATION])
            elif isinstance(action, DeletePod):
                self.bodies.pop(action.name, None)
                self.phases.pop(action.name, None)

    def finish(self, name: str, *, reported: bool) -> None:
        self.phases[name] = "Running"
        if reported:
            self.report(name)

    def report(self, name: str) -> None:
        body = self.bodies[name]
        reference, node = reference_of(body), node_of(body)
        self.held[node][reference] = int(body["metadata"]["annotations"][POPULAR_BYTES_ANNOTATION])


STEPS = st.one_of(
    st.tuples(st.just("wait"), st.sampled_from([0.5, 7.0, 61.0, 400.0, 7200.0])),
    st.tuples(st.just("wait"), st.sampled_from([1.0, 10.0, 65.0])),
    st.tuples(st.just("arrive"), st.tuples(st.sampled_from(IMAGES), st.integers(1, 6))),
    st.tuples(st.just("leave"), st.integers(0, 20)),
    st.tuples(st.just("finish"), st.tuples(st.integers(0, 5), st.booleans())),
    st.tuples(st.just("fail"), st.integers(0, 5)),
    st.tuples(st.just("evict"), st.integers(0, 5)),
    st.tuples(st.just("trouble"), st.sampled_from(NODES)),
    st.tuples(st.just("relief"), st.sampled_from(NODES)),
    st.tuples(st.just("collect"), st.sampled_from(NODES)),
    st.tuples(st.just("writes"), st.tuples(st.sampled_from([10.0, 65.0]), st.sampled_from(["lost", "held back"]))),
    st.tuples(st.just("new leader"), st.none()),
)


def step(world: World, kind: str, detail: Any, number: int) -> str:
    """Let one thing happen; tells what becomes of the next writes."""
    names = sorted(world.bodies)
    if kind == "wait":
        world.now += detail
    elif kind == "arrive":
        image, count = detail
        world.users += [user(f"user-{number}-{index}", image, "a", started=WALL + world.now) for index in range(count)]
    elif kind == "leave":
        world.users = world.users[detail:]
    elif kind == "finish" and names:
        index, reported = detail
        name = names[index % len(names)]
        if world.phases[name] == "Pending":
            world.finish(name, reported=reported)
    elif kind == "fail" and names:
        name = names[detail % len(names)]
        if world.phases[name] == "Pending":
            world.phases[name] = "Failed"
    elif kind == "evict" and names:
        name = names[detail % len(names)]
        del world.bodies[name], world.phases[name]
    elif kind == "trouble":
        world.troubled.add(detail)
    elif kind == "relief":
        world.troubled.discard(detail)
    elif kind == "collect":
        world.held[detail].clear()
    elif kind == "new leader":
        world.memory, world.led_since = PopularMemory(), None
    elif kind == "writes":
        seconds, fate = detail
        world.now += seconds
        return str(fate)
    return "done"


@settings(max_examples=120, deadline=None)
@given(
    crowd=st.lists(st.tuples(st.sampled_from(IMAGES), st.integers(2, 6)), min_size=3, max_size=8),
    steps=st.lists(STEPS, min_size=4, max_size=30),
    per_node=st.integers(0, 6),
    parallel=st.integers(1, 9),
    bytes_per_minute=st.sampled_from([GB // 4, GB, 3 * GB, 100 * GB]),
)
def test_no_limit_is_ever_exceeded_and_nothing_is_pulled_where_it_is(
    crowd: Sequence[tuple[str, int]],
    steps: Sequence[tuple[str, Any]],
    per_node: int,
    parallel: int,
    bytes_per_minute: int,
) -> None:
    world = World(popular_settings(perNode=per_node, parallel=parallel, bytes_per_minute=bytes_per_minute))
    arrivals = [("arrive", one) for one in crowd]
    for number, (kind, detail) in enumerate([*arrivals, ("wait", 60.0), ("wait", 60.0), *steps]):
        writes = step(world, kind, detail, number)
        seen_before = {name: dict(held) for name, held in world.held.items()}
        pulling_before = {name: world.pulling(name) for name in NODES}
        planned = world.plan()
        by_node: Counter[str] = Counter()
        for action in planned.actions:
            if not isinstance(action, CreatePod):
                continue
            name, reference = node_of(action.body), reference_of(action.body)
            by_node[name] += 1
            assert name not in world.troubled, "brought to a node under pressure"
            assert name != HOLDER, "brought to a cordoned node"
            assert reference not in world.held[name], "pulled what is there"
            assert action.body["metadata"]["name"] not in world.bodies, "pulled twice"
        for name in NODES:
            assert by_node[name] <= per_node
            if by_node[name]:
                assert len(pulling_before[name]) + by_node[name] <= 1
                coming = [*pulling_before[name]]
                total = sum(seen_before[name].values()) + sum(
                    int(world.bodies[one]["metadata"]["annotations"][POPULAR_BYTES_ANNOTATION]) for one in coming
                )
                total += sum(
                    int(action.body["metadata"]["annotations"][POPULAR_BYTES_ANNOTATION])
                    for action in planned.actions
                    if isinstance(action, CreatePod) and node_of(action.body) == name
                )
                assert disk_bytes_of(total) <= 33 * GB * 0.7 + 10
        if by_node:
            assert sum(map(len, pulling_before.values())) + by_node.total() <= parallel
        world.apply(planned, writes)
        assert world.led_since is not None
        largest = max(SIZES.values())
        allowed = bytes_per_minute * (world.now - world.led_since) / 60 + max(0, largest - bytes_per_minute)
        assert world.begun_bytes <= allowed + 1


@settings(max_examples=100, deadline=None)
@given(
    counts=st.dictionaries(st.sampled_from(IMAGES), st.integers(0, 9)),
    held=st.dictionaries(st.sampled_from(NODES), st.sets(st.sampled_from(IMAGES))),
    shuffle=st.randoms(use_true_random=False),
)
def test_the_order_in_which_things_are_listed_means_nothing(
    counts: dict[str, int], held: dict[str, set[str]], shuffle: Any
) -> None:
    people = [
        user(f"{index}-{number}", image, started=WALL + number)
        for index, (image, count) in enumerate(sorted(counts.items()))
        for number in range(count)
    ]
    nodes = [node_state(name, images={image: SIZES[image] for image in sorted(held.get(name, ()))}) for name in NODES]
    rules = popular_settings(parallel=2, perNode=3)

    def plans(nodes: Sequence[Node], people: Sequence[Pod]) -> list[list[str]]:
        snapshot, memory, found = cluster(nodes, people), PopularMemory(), []
        for seconds in (0, 60, 4000, 9000):
            # The second half of the users leaves in the end.
            if seconds == 9000:
                gone = {one.key for one in sorted(people, key=lambda one: one.name)[::2]}
                snapshot = cluster(nodes, [one for one in people if one.key not in gone])
            planned = plan_popular_images(snapshot, memory, rules, at(seconds))
            memory = planned.memory
            found.append([str(action) for action in planned.actions])
        return found

    shuffled_nodes, shuffled_people = list(nodes), list(people)
    shuffle.shuffle(shuffled_nodes)
    shuffle.shuffle(shuffled_people)
    # Dictionaries of images are read in their order as well.
    shuffled_nodes = [replace(one, images=dict(reversed(list(one.images.items())))) for one in shuffled_nodes]
    assert plans(nodes, people) == plans(shuffled_nodes, shuffled_people)
