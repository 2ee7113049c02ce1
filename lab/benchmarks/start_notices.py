"""How true start notices are: what KubeSpawner's spawn page says is left of a start, against what
was left.

nice -n 10 python -m benchmarks.start_notices [--starts 300] [--seed 1]

Users start servers in groups on one of two real kubelets in turn, with images of various sizes from
a registry whose speed varies. Nodes lose their images between groups, as if they were new. Prints
the errors of what was said from ten seconds on, and how many ranges held. Exit code 1: the median
error is over 20 %, or not 75 to 90 % of the ranges held.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import math
import random
import re
import statistics
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks.figures import machine, say
from tests.e2e.controllers.test_start_notices import VALUES, page_settings
from tests.e2e.spawned import SpawnPages
from tests.harness.binaries import HarnessUnavailableError
from tests.harness.fixtures import kubelet_cluster, pause_registry
from tests.harness.real_nodes import RealNode
from tests.harness.waiting import wait_until
from tests.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.e2e.spawned import Spawn
    from tests.harness.registry import PushedImage, RealRegistry

# Images: the logarithm of their sizes varies as mybinder.org's (lab/docs/simulator.md,
# assumptions).
IMAGES: Final = 8
MEDIAN_BYTES: Final = 11_000_000
SIZE_DEVIATION: Final = 0.8
LEAST_BYTES = 3_000_000
MOST_BYTES = 40_000_000
# The registry's speed: drawn anew so often, its logarithm with this deviation.
BYTES_PER_SECOND: Final = 1_700_000
SPEED_SECONDS: Final = 10.0
SPEED_DEVIATION: Final = 0.25
GROUP: Final = 20
# Within so many seconds a group's users ask for their servers.
ARRIVALS_SECONDS: Final = 20.0
FROM_SECONDS: Final = 10.0
CLEAN_SECONDS: Final = 180.0

_LEFT: Final = re.compile(
    r"(?:About (?P<about>[0-9.]+ \w+)|A few seconds) left(?: \((?P<low>.+) to (?P<high>.+)\))?\.$"
)
_A_FEW_SECONDS: Final = "a few seconds"
# Texts round to multiples of five seconds; "a few seconds" are less than that.
_ROUNDING_SECONDS: Final = 2.5


class Said(NamedTuple):
    """One statement of the spawn page, in seconds."""

    user: str
    image: str
    after: float
    about: float
    low: float
    high: float
    # What was left.
    true: float
    # Whether the image was downloaded before, on whatever node.
    known: bool

    @property
    def error(self) -> float:
        """Relative to what was left."""
        return abs(self.about - self.true) / self.true

    @property
    def holds(self) -> bool:
        """Whether what was left is in the range that was said."""
        return self.low <= self.true <= self.high


def seconds_of(text: str) -> float:
    """What a duration in words means: the middle of what is rounded to it."""
    if text == _A_FEW_SECONDS:
        return 4.0
    number, unit = text.split()
    return float(number) * (60.0 if unit.startswith("minute") else 1.0)


def read_statements(spawn: Spawn, image: str, *, known: bool) -> Iterator[Said]:
    """What the page of one start said is left."""
    for shown in spawn.shown:
        found = _LEFT.search(shown.message)
        if found is None:
            continue
        about = seconds_of(found["about"] or _A_FEW_SECONDS)
        low = about - _ROUNDING_SECONDS
        high = about + _ROUNDING_SECONDS
        if found["low"]:
            # "15 to 30 seconds": both have the unit of the second.
            unit = found["high"].split()[-1] if found["low"].count(" ") == 0 else ""
            low = seconds_of(f"{found['low']} {unit}".strip())
            high = seconds_of(found["high"])
        if found["about"] is None or found["low"] == _A_FEW_SECONDS:
            low = 0.0
        true = max(0.1, spawn.up_at - shown.at)
        yield Said(spawn.user, image, shown.at - spawn.asked_at, about, low, high, true, known)


def play(starts: int, seed: int) -> list[Said]:
    """All statements of so many starts."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    said: list[Said] = []
    with (
        kubelet_cluster() as cluster,
        pause_registry() as registry,
        contextlib.ExitStack() as stack,
    ):
        namespace = cluster.create_namespace()
        images = [
            _push(registry, f"{namespace}/image-{number}:1", chance) for number in range(IMAGES)
        ]
        say(f"images of {', '.join(f'{image.size_bytes / 1e6:.0f}' for image in images)} MB")
        stack.enter_context(_varying_speed(registry, chance.random()))
        nodes = [
            stack.enter_context(RealNode(cluster, name, registry)) for name in ("first", "second")
        ]
        stack.enter_context(
            Stack(cluster, namespace, VALUES, scheduler=False, webhook=False, controllers=True)
        )
        settings = page_settings(namespace, images[0]) | {"start_timeout": 900}
        pages = stack.enter_context(SpawnPages(cluster, **settings))
        cleaner = stack.enter_context(ThreadPoolExecutor())
        clean = {node.name: cleaner.submit(lambda: None) for node in nodes}
        seen: set[str] = set()
        users = (f"user-{number}" for number in range(starts))
        for node in itertools.cycle(nodes):
            group = list(itertools.islice(users, GROUP))
            if not group:
                break
            clean[node.name].result()
            # The first image is asked for most.
            chosen = {
                user: chance.choices(images, [1 / (place + 1) for place in range(IMAGES)])[0]
                for user in group
            }
            traits = {"node_selector": {"kubernetes.io/hostname": node.name}}
            spawns = pages.start_each(
                [
                    (
                        chance.uniform(0.0, ARRIVALS_SECONDS),
                        user,
                        {**traits, "image": image.reference},
                    )
                    for user, image in chosen.items()
                ]
            )
            for spawn in spawns:
                image = chosen[spawn.user].reference
                said += read_statements(spawn, image, known=image in seen)
            seen |= {image.reference for image in chosen.values()}
            say(
                f"{node.name}: {len(group)} starts of {len(set(chosen.values()))} images;"
                f" {summary(said)}"
            )
            pods = [spawn.pod for spawn in spawns]
            clean[node.name] = cleaner.submit(_clean, node, namespace, pods, {*chosen.values()})
    return said


def summary(said: Sequence[Said]) -> str:
    """The two figures, of what was said from ten seconds on."""
    late = [notice for notice in said if notice.after >= FROM_SECONDS]
    if not late:
        return "nothing was said yet"
    return (
        f"{len(late)} statements: median error"
        f" {statistics.median(notice.error for notice in late):.0%},"
        f" {sum(notice.holds for notice in late) / len(late):.0%} of the ranges held"
    )


def _push(registry: RealRegistry, name: str, chance: random.Random) -> PushedImage:
    size_bytes = MEDIAN_BYTES * chance.lognormvariate(0.0, SIZE_DEVIATION)
    return registry.push_program(
        name, size_bytes=int(min(MOST_BYTES, max(LEAST_BYTES, size_bytes))), layers=3
    )


@contextlib.contextmanager
def _varying_speed(registry: RealRegistry, seed: float) -> Iterator[None]:
    stop = threading.Event()
    chance = random.Random(seed)  # noqa: S311 - no secret

    def vary() -> None:
        while True:
            registry.bytes_per_second = BYTES_PER_SECOND * chance.lognormvariate(
                0.0, SPEED_DEVIATION
            )
            if stop.wait(SPEED_SECONDS):
                return

    thread = threading.Thread(target=vary, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _clean(node: RealNode, namespace: str, pods: Sequence[str], images: set[PushedImage]) -> None:
    """Make the node as good as new: no pods, no images, and the kubelet has said so."""
    api = node.cluster.api
    for pod in pods:
        api.delete(f"/api/v1/namespaces/{namespace}/pods/{pod}", gracePeriodSeconds=0)

    def has_no_containers() -> bool:
        # A container that is left keeps its image's files, which would then not be downloaded
        # again.
        lines = node.ctr("containers", "list").splitlines()[1:]
        return not any(image.reference in line for line in lines for image in images)

    wait_until(has_no_containers, CLEAN_SECONDS, f"{node.name} to have no containers")
    for image in images:
        node.remove_image(image.reference)

    def has_no_images() -> bool:
        return not any(image.reference in node.status_images() for image in images)

    wait_until(has_no_images, CLEAN_SECONDS, f"{node.name} to report no images")


def main(argv: Sequence[str] | None = None) -> int:
    """Play, and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--starts", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args(argv)
    head = machine()
    try:
        said = play(arguments.starts, arguments.seed)
    except HarnessUnavailableError as error:
        say(str(error))
        return 2
    late = [notice for notice in said if notice.after >= FROM_SECONDS]
    print(head)
    print(
        f"{arguments.starts} starts, {len({notice.user for notice in said})} of which were told how"
        " long"
    )
    print(f"from {FROM_SECONDS:.0f} s on: {summary(said)}")
    print(f"  of images downloaded before: {summary([notice for notice in said if notice.known])}")
    print(f"  of others: {summary([notice for notice in said if not notice.known])}")
    print(f"all: {summary([notice._replace(after=math.inf) for notice in said])}")
    median = statistics.median(notice.error for notice in late) if late else math.inf
    held = sum(notice.holds for notice in late) / max(1, len(late))
    return int(not (median <= 0.2 and 0.75 <= held <= 0.9))


if __name__ == "__main__":
    sys.exit(main())
