"""What must always hold of popular images, whatever the cluster does."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from roost.controllers.contract.actions import CreatePod, DeletePod, Planned
from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.popular_images.node_disks import DISK_BYTES_PER_IMAGE_BYTE
from roost.controllers.popular_images.plan import PopularMemory, plan_popular_images
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
    """A cluster that does what plans ask for, and what a machine may do besides; it counts what is
    under way.
    """

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
        # 70 % of the disk hold 2.2 gigabytes, as containerd counts them: three images or fewer.
        return node_state(name, disk=12 * GB, images=self.held[name], conditions=conditions)

    def snapshot(self) -> Snapshot:
        # It tells the sizes, and takes no pulls itself.
        holder = node_state(HOLDER, images=SIZES, unschedulable=True)
        pods = [as_pod(body, phase=self.phases[name]) for name, body in self.bodies.items()]
        # No node is ever empty.
        placeholders = [
            user(f"placeholder-{name}", IMAGES[0], name, component="user-placeholder")
            for name in NODES
        ]
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
        """Carry it out, all or nothing.

        `writes`: what becomes of the requests and of their answers.
        """
        for action in planned.actions if writes not in ("lost", "held back") else ():
            if isinstance(action, CreatePod):
                name = action.body["metadata"]["name"]
                self.bodies[name], self.phases[name] = action.body, "Pending"
                self.begun_bytes += bytes_of(action.body)
            elif isinstance(action, DeletePod):
                self.bodies.pop(action.name, None)
                self.phases.pop(action.name, None)


STEPS = st.one_of(
    st.tuples(st.just("wait"), st.sampled_from([0.5, 1.0, 7.0, 10.0, 61.0, 65.0, 400.0, 7200.0])),
    st.tuples(st.just("arrive"), st.tuples(st.sampled_from(IMAGES), st.integers(1, 6))),
    st.tuples(st.just("leave"), st.integers(0, 20)),
    st.tuples(st.just("finish"), st.tuples(st.integers(0, 5), st.booleans())),
    st.tuples(st.just("fail"), st.tuples(st.integers(0, 5), st.just(False))),
    st.tuples(st.just("evict"), st.integers(0, 5)),
    st.tuples(st.sampled_from(["trouble", "collect"]), st.sampled_from(NODES)),
    st.tuples(
        st.just("writes"),
        st.tuples(st.sampled_from([10.0, 65.0]), st.sampled_from(["lost", "held back"])),
    ),
    st.tuples(st.just("new leader"), st.none()),
)


def bytes_of(body: dict[str, Any]) -> int:
    return int(body["metadata"]["annotations"][POPULAR_BYTES_ANNOTATION])


def step(world: World, kind: str, detail: Any, number: int) -> str:
    """Let one thing happen; tells what becomes of the next writes."""
    names = sorted(world.bodies)
    match kind:
        case "wait":
            world.now += detail
        case "arrive":
            image, count = detail
            world.users += [
                user(f"user-{number}-{n}", image, "a", started=WALL + world.now)
                for n in range(count)
            ]
        case "leave":
            world.users = world.users[detail:]
        case "finish" | "fail" if names:
            index, reported = detail
            name = names[index % len(names)]
            if world.phases[name] == "Pending":
                world.phases[name] = "Running" if kind == "finish" else "Failed"
                if reported:
                    world.held[node_of(world.bodies[name])][reference_of(world.bodies[name])] = (
                        bytes_of(world.bodies[name])
                    )
        case "evict" if names:
            name = names[detail % len(names)]
            del world.bodies[name], world.phases[name]
        case "trouble":
            world.troubled ^= {detail}
        case "collect":
            world.held[detail].clear()
        case "new leader":
            world.memory, world.led_since = PopularMemory(), None
        case "writes":
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
    world = World(
        popular_settings(perNode=per_node, parallel=parallel, bytes_per_minute=bytes_per_minute)
    )
    arrivals = [("arrive", one) for one in crowd]
    for number, (kind, detail) in enumerate([*arrivals, ("wait", 60.0), ("wait", 60.0), *steps]):
        writes = step(world, kind, detail, number)
        seen_before = {name: dict(held) for name, held in world.held.items()}
        pulling_before = {name: world.pulling(name) for name in NODES}
        planned = world.plan()
        by_node: Counter[str] = Counter()
        new = [action.body for action in planned.actions if isinstance(action, CreatePod)]
        for body in new:
            name, reference = node_of(body), reference_of(body)
            by_node[name] += 1
            assert name not in world.troubled, "brought to a node under pressure"
            assert name != HOLDER, "brought to a cordoned node"
            assert reference not in world.held[name], "pulled what is there"
            assert body["metadata"]["name"] not in world.bodies, "pulled twice"
        for name in NODES:
            assert by_node[name] <= per_node
            if by_node[name]:
                assert len(pulling_before[name]) + by_node[name] <= 1
                coming = [*map(world.bodies.__getitem__, pulling_before[name]), *new]
                total = sum(seen_before[name].values()) + sum(
                    bytes_of(one) for one in coming if node_of(one) == name
                )
                assert int(total * DISK_BYTES_PER_IMAGE_BYTE) <= 12 * GB * 0.7 + 10
        if by_node:
            assert sum(map(len, pulling_before.values())) + by_node.total() <= parallel
        world.apply(planned, writes)
        assert world.led_since is not None
        largest = max(SIZES.values())
        allowed = bytes_per_minute * (world.now - world.led_since) / 60 + max(
            0, largest - bytes_per_minute
        )
        assert world.begun_bytes <= allowed + 1
