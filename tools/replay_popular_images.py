"""Replay real launches against the plan of popular images: how many find their image on their node, at what price.

The world is simple on purpose, and every part of it is an argument: nodes of so many seats that users fill one after
the other, that boot when there is no seat and leave when they stay empty; disks that forget least recently used images;
pulls that take bytes / rate. The plan is the one that runs in the cluster, with its own limits. Compared with no plan,
and with an oracle that is told the launches of the next 24 hours, whether or not the images were built by then.

What it doesn't have: time that users wait, shared layers, builds, the kubelet's serial queue, ties drawn by lot.
Facts behind the defaults: mybinder.org in 2019, as far as it was published.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import heapq
import json
import math
import sys
from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from roost.controllers.contract.actions import CreatePod, DeletePod
from roost.controllers.contract.snapshot import Moment, Snapshot
from roost.controllers.popular_images.memory import PopularMemory
from roost.controllers.popular_images.nodes import disk_bytes_of
from roost.controllers.popular_images.plan import LaunchReader, plan_popular_images, plan_pulls
from roost.controllers.popular_images.popularity import Rules, Use, count_users
from roost.controllers.popular_images.settings import PopularSettings
from roost_core.placement.labels import POPULAR_IMAGE_ANNOTATION, POPULAR_NODE_ANNOTATION
from roost_core.placement.nodes import NodeFact
from roost_core.placement.settings import PodClass
from roost_core.scheduler.objects import NodeState, PodSpec, PodState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

DAY: Final = 86_400.0
GB: Final = 10**9
# Kubelets collect above 85 % down to 80 %.
COLLECT_ABOVE, COLLECT_TO = 0.85, 0.80
_LABELS: Final = {"component": "singleuser-server"}
RELEASE, NAMESPACE = "replay", "binder"


@dataclass(frozen=True, slots=True)
class Launch:
    """One record of the trace; its stay belongs to it, whatever the policy does."""

    at: float
    repository: str
    image: str
    stay_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What is assumed."""

    seed: int = 1
    seats: int = 66
    boot_seconds: float = 210.0
    # A node leaves so long after its last user.
    linger_seconds: float = 600.0
    repository_quota: int = 100
    # Stays: ten minutes that a culler takes, and a log-normal rest.
    idle_minutes: float = 10.0
    median_minutes: float = 26.0
    p90_minutes: float = 62.0
    # Compressed, log-normal.
    median_image_bytes: int = 570_000_000
    image_sigma: float = 0.5
    pull_bytes_per_second: float = 25_000_000.0
    # None: endless.
    disk_bytes: int | None = None
    # node.status.images has the largest only; below 0: it has all.
    reported_images: int = 50
    # While something is missing, and while nothing is.
    plan_every_seconds: float = 60.0
    quiet_plan_every_seconds: float = 180.0
    # Chance that a repository is pushed to on a day, which gives it a new tag.
    pushes_a_day: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What is brought to nodes."""

    name: str
    per_node: int = 0
    is_oracle: bool = False
    half_life_hours: float = 24.0
    min_users: float = 2.0
    parallel_per_node: int = 1
    parallel_per_cluster: int = 3
    bytes_per_minute: int = 2 * 2**30


@dataclass
class Result:
    """What came of one replay."""

    launches: int = 0
    refused: int = 0
    cold: int = 0
    # The same, from the second day on: the window begins with nothing anywhere.
    later_launches: int = 0
    later_cold: int = 0
    pulls: int = 0
    pulled_bytes: int = 0
    cold_bytes: int = 0
    # Brought, and launched there before the image or the node went.
    used_pulls: int = 0
    node_seconds: float = 0.0
    most_pulling: int = 0
    images: set[str] = field(default_factory=set)

    @property
    def found_percent(self) -> float:
        """Launches that found their image, of all that were admitted."""
        return 100.0 * (1 - self.cold / max(1, self.launches))

    @property
    def later_found_percent(self) -> float:
        """The same from the second day on."""
        return 100.0 * (1 - self.later_cold / max(1, self.later_launches))


def fraction(*parts: object) -> float:
    """A number from 0 to 1 that belongs to these parts, and to no order of drawing."""
    digest = blake2b("\0".join(map(str, parts)).encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") + 0.5) / 2**64


def normal(*parts: object) -> float:
    """A standard normal number that belongs to these parts."""
    return math.sqrt(-2 * math.log(fraction(*parts, "u"))) * math.cos(2 * math.pi * fraction(*parts, "v"))


def read_launches(path: Path, world: World, days: float = math.inf) -> list[Launch]:
    """Read the first days of a launch archive: BinderHub's events, one JSON object a line, by whole minutes.

    Raises ValueError, KeyError when it is none, OSError.
    """
    rest = world.median_minutes - world.idle_minutes
    sigma = math.log((world.p90_minutes - world.idle_minutes) / rest) / 1.2816
    launches = []
    begin: float | None = None
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for index, line in enumerate(lines):
            record = json.loads(line)
            if record.get("schema") != "binderhub.jupyter.org/launch":
                raise ValueError(
                    f"{path}:{index + 1}: found schema {record.get('schema')!r}, expected BinderHub's launches"
                )
            minute = datetime.fromisoformat(record["timestamp"]).timestamp()
            begin = minute if begin is None else begin
            if minute - begin >= days * DAY:
                break
            at = minute - begin + 60.0 * fraction(world.seed, "offset", index)
            owner_and_name, _, ref = record["spec"].rpartition("/")
            repository = f"{record['provider']}/{owner_and_name}"
            launches.append(
                Launch(
                    at=at,
                    repository=repository,
                    image=_image(repository, ref, _pushes(repository, at, world)),
                    stay_seconds=60.0
                    * (world.idle_minutes + rest * math.exp(sigma * normal(world.seed, "stay", index))),
                )
            )
    return sorted(launches, key=lambda launch: launch.at)


def _pushes(repository: str, at: float, world: World) -> int:
    if not world.pushes_a_day:
        return 0
    return sum(
        fraction(world.seed, "push", repository, day) < world.pushes_a_day
        and (day + fraction(world.seed, "when", repository, day)) * DAY <= at
        for day in range(int(at // DAY) + 1)
    )


def _image(repository: str, ref: str, pushes: int) -> str:
    """As BinderHub names it."""
    slug = "".join(letter if letter.isalnum() else "-" for letter in repository.lower()).strip("-")[:80]
    tag = "".join(letter if letter.isalnum() else "-" for letter in ref)[:40].strip("-") or "HEAD"
    name = blake2b(repository.encode(), digest_size=3).hexdigest()
    return f"registry.example.org/binder-{slug}-{name}:{tag}-{pushes}"


class Node:
    """One node, its images in order of use, and its users."""

    def __init__(self, name: str, at: float) -> None:
        self.name = name
        self.joined = at
        self.images: OrderedDict[str, int] = OrderedDict()
        self.users: Counter[str] = Counter()
        self.filled = 0
        # Brought by the plan, and not launched yet.
        self.unused: set[str] = set()
        self.empty_since = at
        self.state: NodeState | None = None


class Replay:
    """One run."""

    def __init__(self, launches: Sequence[Launch], world: World, policy: Policy) -> None:
        self.launches = launches
        self.world = world
        self.policy = policy
        self.settings = _settings(policy, world)
        self.result = Result()
        self.memory = PopularMemory()
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, PodState] = {}
        self.specs: dict[str, PodSpec] = {}
        self.waiting: deque[Launch] = deque()
        self.running: Counter[str] = Counter()
        self.booting = 0
        self.made = 0
        self.events: list[tuple[float, int, str, Any]] = []
        self.upcoming: Counter[str] = Counter()
        self.head = self.tail = 0

    def run(self) -> Result:
        """Replay everything."""
        self._node_ready(0.0)
        if self.policy.per_node:
            self._later(0.0, "plan", None)
        arrivals = iter(self.launches)
        launch = next(arrivals, None)
        end = self.launches[-1].at
        while launch is not None:
            while self.events and self.events[0][0] <= launch.at:
                at, _, kind, detail = heapq.heappop(self.events)
                self._happens(at, kind, detail)
            self._arrive(launch)
            launch = next(arrivals, None)
        self.result.node_seconds += sum(end - node.joined for node in self.nodes.values())
        return self.result

    def _later(self, at: float, kind: str, detail: object) -> None:
        self.made += 1
        heapq.heappush(self.events, (at, self.made, kind, detail))

    def _happens(self, at: float, kind: str, detail: Any) -> None:  # noqa: ANN401 - each kind has its own
        if kind == "leave":
            self._leave(at, *detail)
        elif kind == "ready":
            self.booting -= 1
            self._node_ready(at)
        elif kind == "idle":
            self._maybe_remove(at, *detail)
        elif kind == "pulled":
            self._pulled(at, detail)
        else:
            self._plan(at)

    # Users

    def _arrive(self, launch: Launch) -> None:
        if self.running[launch.repository] >= self.world.repository_quota:
            self.result.refused += 1
            return
        self.running[launch.repository] += 1
        self.waiting.append(launch)
        self._seat(launch.at)

    def _seat(self, at: float) -> None:
        while self.waiting:
            # Packed: the node with most users that has a seat.
            roomy = [node for node in self.nodes.values() if node.filled < self.world.seats]
            if not roomy:
                break
            node = max(roomy, key=lambda one: (one.filled, one.name))
            self._start(at, self.waiting.popleft(), node)
        while len(self.waiting) > self.booting * self.world.seats:
            self.booting += 1
            self._later(at + self.world.boot_seconds, "ready", None)

    def _start(self, at: float, launch: Launch, node: Node) -> None:
        result, image = self.result, launch.image
        is_cold = image not in node.images
        result.launches += 1
        result.cold += is_cold
        if at >= DAY:
            result.later_launches += 1
            result.later_cold += is_cold
        if is_cold:
            result.images.add(image)
            result.cold_bytes += self.size(image)
        if image in node.unused:
            node.unused.discard(image)
            result.used_pulls += 1
        node.users[image] += 1
        node.filled += 1
        self._touch(node, image)
        self.made += 1
        name = f"user-{self.made}"
        self.pods[f"{NAMESPACE}/{name}"] = PodState(
            namespace=NAMESPACE,
            name=name,
            uid=name,
            labels=_LABELS,
            node_name=node.name,
            phase="Running",
            created=at,
            started=at,
            spec=self.specs.setdefault(image, PodSpec(images=(image,))),
        )
        self._later(at + launch.stay_seconds, "leave", (launch, node, name))

    def _leave(self, at: float, launch: Launch, node: Node, name: str) -> None:
        del self.pods[f"{NAMESPACE}/{name}"]
        self.running[launch.repository] -= 1
        node.users[launch.image] -= 1
        node.filled -= 1
        if not node.filled:
            node.empty_since = at
            self._later(at + self.world.linger_seconds, "idle", (node, at))
        self._seat(at)

    # Nodes

    def size(self, image: str) -> int:
        """Compressed bytes."""
        world = self.world
        return int(world.median_image_bytes * math.exp(world.image_sigma * normal(world.seed, "size", image)))

    def _node_ready(self, at: float) -> None:
        self.made += 1
        node = Node(f"node-{self.made:07d}", at)
        self.nodes[node.name] = node
        self._later(at + self.world.linger_seconds, "idle", (node, at))
        self._seat(at)

    def _maybe_remove(self, at: float, node: Node, since: float) -> None:
        if node.filled or node.empty_since != since or node.name not in self.nodes:
            return
        if len(self.nodes) == 1:
            self._later(at + self.world.linger_seconds, "idle", (node, since))
            return
        del self.nodes[node.name]
        self.result.node_seconds += at - node.joined

    def _touch(self, node: Node, image: str) -> None:
        if image in node.images:
            node.images.move_to_end(image)
            return
        node.images[image] = self.size(image)
        node.state = None
        if self.world.disk_bytes is None:
            return
        used = disk_bytes_of(sum(node.images.values()))
        if used > COLLECT_ABOVE * self.world.disk_bytes:
            for one in list(node.images):
                if used <= COLLECT_TO * self.world.disk_bytes:
                    break
                if not node.users[one] and one != image:
                    used -= disk_bytes_of(node.images.pop(one))
                    node.unused.discard(one)

    # The plan

    def _plan(self, at: float) -> None:
        snapshot = Snapshot(
            release=RELEASE,
            namespace=NAMESPACE,
            nodes={name: self._state(node) for name, node in self.nodes.items()},
            pods=self.pods,
        )
        now = Moment(at, at)
        if self.policy.is_oracle:
            # Counted as by the plan, so that only the demand is another.
            counted = count_users(
                self.memory.popularity,
                self.pods.values(),
                LaunchReader(self.settings),
                self.settings.half_life_seconds,
                at,
            )
            memory = replace(self.memory, popularity=counted)
            planned = plan_pulls(snapshot, memory, self.settings, now, self._oracle(at))
        else:
            planned = plan_popular_images(snapshot, self.memory, self.settings, now)
        self.memory = planned.memory
        for action in planned.actions:
            if isinstance(action, CreatePod):
                self._begin(at, action.body)
            elif isinstance(action, DeletePod):
                self.pods.pop(f"{NAMESPACE}/{action.name}", None)
        self.result.most_pulling = max(self.result.most_pulling, int(planned.gauges["popular_images_pulling"][()]))
        is_quiet = not planned.actions and not planned.gauges["popular_images_missing"][()]
        seconds = self.world.quiet_plan_every_seconds if is_quiet else self.world.plan_every_seconds
        self._later(at + seconds, "plan", None)

    def _oracle(self, at: float) -> dict[Use, float]:
        """Launches of the next day, by image."""
        while self.tail < len(self.launches) and self.launches[self.tail].at < at + DAY:
            self.upcoming[self.launches[self.tail].image] += 1
            self.tail += 1
        while self.head < self.tail and self.launches[self.head].at < at:
            self.upcoming[self.launches[self.head].image] -= 1
            self.head += 1
        return {Use(image, Rules()): float(count) for image, count in self.upcoming.items() if count}

    def _state(self, node: Node) -> NodeState:
        if node.state is None:
            most = self.world.reported_images if self.world.reported_images >= 0 else len(node.images)
            reported = heapq.nlargest(most, node.images.items(), key=lambda one: (one[1], one[0]))
            node.state = NodeState(
                fact=NodeFact(node.name),
                uid=node.name,
                created=node.joined,
                allocatable={"pods": 10_000, "ephemeral-storage": self.world.disk_bytes or 10**18},
                images=dict(reported),
                ready_since=node.joined,
                image_count=len(reported),
            )
        return node.state

    def _begin(self, at: float, body: dict[str, Any]) -> None:
        metadata = body["metadata"]
        image, name = (
            metadata["annotations"][POPULAR_IMAGE_ANNOTATION],
            metadata["annotations"][POPULAR_NODE_ANNOTATION],
        )
        self.made += 1
        pod = PodState(
            namespace=NAMESPACE,
            name=metadata["name"],
            uid=f"pull-{self.made}",
            labels=metadata["labels"],
            annotations=metadata["annotations"],
            node_name=name,
            created=at,
        )
        self.pods[pod.key] = pod
        is_there = image in self.nodes[name].images
        if not is_there:
            self.result.pulls += 1
            self.result.pulled_bytes += self.size(image)
        seconds = 1.0 if is_there else 1.0 + self.size(image) / self.world.pull_bytes_per_second
        self._later(at + seconds, "pulled", pod)

    def _pulled(self, at: float, pod: PodState) -> None:
        del at
        node = self.nodes.get(pod.node_name)
        if self.pods.get(pod.key) is not pod:
            return
        if node is None:
            del self.pods[pod.key]
            return
        self.pods[pod.key] = replace(pod, phase="Running")
        image = pod.annotations[POPULAR_IMAGE_ANNOTATION]
        if image not in node.images:
            node.unused.add(image)
            self._touch(node, image)


def _settings(policy: Policy, world: World) -> PopularSettings:
    user = PodClass(
        name="user",
        labels=_LABELS,
        namespace_selector=None,
        profile="",
        image_gate=False,
        join={},
        avoid={},
        preferred_node_terms=(),
        home=None,
        attract=False,
        resources={},
    )
    return PopularSettings(
        release=RELEASE,
        namespace=NAMESPACE,
        classes={"user": user},
        counted=frozenset({"user"}),
        per_node=policy.per_node,
        half_life_seconds=policy.half_life_hours * 3600,
        min_users=policy.min_users,
        disk_share=0.7,
        parallel_per_node=policy.parallel_per_node,
        parallel_per_cluster=policy.parallel_per_cluster,
        bytes_per_minute=policy.bytes_per_minute,
        reported_images=world.reported_images,
    )


def policies(per_node: Iterable[int], bytes_per_minute: int) -> Iterator[Policy]:
    """None, then for each size the plan and the oracle."""
    yield Policy(name="none")
    for count in per_node:
        yield Policy(name=f"perNode {count}", per_node=count, bytes_per_minute=bytes_per_minute)
        yield Policy(name=f"perNode {count}, oracle", per_node=count, is_oracle=True, bytes_per_minute=bytes_per_minute)


HEADER: Final = (
    "| policy | launches that find their image, % | from day 2 on, % | cold pulls | background pulls | of them used, % "
    "| background GB | node-hours |\n|---|---|---|---|---|---|---|---|"
)


def as_row(policy: Policy, result: Result) -> str:
    """One line of the table."""
    used = 100.0 * result.used_pulls / result.pulls if result.pulls else 0.0
    return (
        f"| {policy.name} | {result.found_percent:.2f} | {result.later_found_percent:.2f} | {result.cold:,} "
        f"| {result.pulls:,} | {used:.0f} | {result.pulled_bytes / GB:,.0f} | {result.node_seconds / 3600:,.0f} |"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Print a table. 0 done, 1 the trace can't be read."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path, help="launches as BinderHub's events archive has them, .jsonl or .jsonl.gz")
    parser.add_argument("--per-node", type=int, nargs="+", default=[5, 20, 50])
    parser.add_argument("--disk-gb", type=float, default=None, help="of one node; endless unless given")
    parser.add_argument("--bytes-per-minute", type=int, default=2 * 2**30)
    parser.add_argument(
        "--pushes-a-day", type=float, default=0.0, help="chance that a repository is pushed to on a day"
    )
    parser.add_argument(
        "--reported-images", type=int, default=50, help="kubelets' nodeStatusMaxImages; -1: they report all"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=("none", "plan", "oracle"), help="one of the three, to run them side by side")
    parser.add_argument("--days", type=float, default=math.inf, help="replay the first days only")
    chosen = parser.parse_args(argv)
    world = World(
        seed=chosen.seed,
        disk_bytes=None if chosen.disk_gb is None else int(chosen.disk_gb * GB),
        pushes_a_day=chosen.pushes_a_day,
        reported_images=chosen.reported_images,
    )
    try:
        launches = read_launches(chosen.trace, world, chosen.days)
    except (OSError, ValueError, KeyError) as error:
        print(f"{chosen.trace}: no launches can be read: {error}", file=sys.stderr)
        return 1
    # Nothing here goes in circles.
    gc.disable()
    print(HEADER)
    for policy in policies(chosen.per_node, chosen.bytes_per_minute):
        kind = "oracle" if policy.is_oracle else "plan" if policy.per_node else "none"
        if chosen.only in (None, kind):
            print(as_row(policy, Replay(launches, world, policy).run()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
