"""Compute bounds that no policy can beat, each with the figure it belongs to and a sentence that explains it.

Sources: Belady 1966 (MIN); the others follow from counting, as each sentence says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from roost_lab.simulator.engine.histogram import Histogram
from roost_lab.simulator.engine.results import THRESHOLDS
from roost_lab.simulator.setup.assumptions import PULLS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from roost_lab.simulator.engine.node_images import Image, Layer
    from roost_lab.simulator.setup.assumptions import Assumptions

SECONDS_AN_HOUR: Final = 3600.0
# Quantiles of waits that have a bound, by the figure's key.
WAIT_SHARES: Final = {"wait_p50": 0.5, "wait_p90": 0.9, "wait_p95": 0.95, "wait_p99": 0.99, "wait_p999": 0.999}


@dataclass(frozen=True, slots=True)
class Bound:
    """One bound: its key in a result's `bounds`, the figure it belongs to, and its explanation."""

    key: str
    # The name of a field of RunResult, or of a figure made of it.
    beside: str
    says: str
    # True: the figure can't be below it. False: it can't be above it.
    is_least: bool = True
    # In a result's `bounds` it has the key of each figure that it belongs to.
    by_figure: bool = False


BOUNDS: Final = (
    Bound(
        "node_hours",
        "node_hours",
        "Running pods divided by the pods that fit a node and rounded up, over time, and never below `min_nodes` "
        "(until a node is drained): what packing with free migration would need.",
    ),
    Bound("peak_nodes", "peak_nodes", "The most running pods divided by the pods that fit a node, rounded up."),
    Bound(
        "cold",
        "cold",
        "For each image, the most of its pods that ran at once divided by the pods that fit a node, rounded up: that "
        "many nodes had to get it. Only pulling ahead goes below it.",
    ),
    Bound(
        "cold_compulsory",
        "cold",
        "Distinct images: each had to be pulled once, however large nodes are. Only pulling ahead goes below it.",
    ),
    Bound(
        "waits",
        "wait",
        "The first start of an image waits for a pull of the layers that no other image has, alone and at the slower "
        "of the two rates, and so do starts during that pull; all others bind and start. Only pulling ahead goes below "
        "it.",
        by_figure=True,
    ),
    Bound(
        "registry_bytes",
        "registry_bytes",
        "Each layer that was needed, once in the cluster, as if nodes shared their layers.",
    ),
    Bound(
        "cold_bytes",
        "cold_bytes",
        "Each layer that was needed, once in the cluster. Only pulling ahead goes below it.",
    ),
    Bound(
        "node_bytes",
        "registry_bytes",
        "Each layer once for each node whose users needed it: the cost if nodes don't share layers. Anything above it "
        "is images that were pulled ahead for nobody, or collected and pulled again.",
    ),
    Bound(
        "images_collected",
        "images_collected",
        "Images that came to a node, less the most that fit its fullest disk at once: that many had to be removed. 0 "
        "where the disk holds everything that a node's users need.",
    ),
    Bound(
        "build_cache_hits",
        "build_cache_hits",
        "Builds less distinct repositories: the first build of a repository finds no cache.",
        is_least=False,
    ),
    Bound(
        "build_seconds",
        "build",
        "As if each build found the cache of its repository's earlier builds: the first is cold, and so is each that "
        "changes the environment.",
        by_figure=True,
    ),
    Bound(
        "busiest_builder_share",
        "busiest_builder_share",
        "The first n builds, for any n, divided by the nodes that had existed by then and rounded up: one node had "
        "that many. Bounded loads allow one node 1.25 times the mean of running builds.",
    ),
)


class BoundsMeter:
    """Bounds that follow from what really ran; each call takes constant time.

    pods_per_node: users of the usual size that a node can hold. node_bytes: memory of a node, by which pods count that
    have a size of their own; in one trace all have, or none. min_nodes: nodes that are never removed. begin: when
    nodes are paid from, in seconds since 1970; None: from the first call.
    """

    __slots__ = (
        "_builds",
        "_busiest",
        "_came",
        "_copies",
        "_last",
        "_layer_bytes",
        "_layers",
        "_least",
        "_least_now",
        "_node",
        "_node_layer_bytes",
        "_node_layers",
        "_node_seconds",
        "_nodes_needed",
        "_peak",
        "_repositories",
        "_running",
        "_surplus",
        "_usual",
    )

    def __init__(
        self, pods_per_node: int, min_nodes: int, begin: float | None = None, *, node_bytes: int = 1 << 60
    ) -> None:
        self._node = node_bytes
        self._usual = node_bytes // pods_per_node
        self._least = self._least_now = min_nodes
        self._last = begin
        # Bytes of the pods that run, and the most that ever ran.
        self._running = 0
        self._peak = 0
        self._node_seconds = 0.0
        # Image -> bytes of the pods of it that run, and the most nodes that these ever needed.
        self._copies: dict[str, int] = {}
        self._nodes_needed: dict[str, int] = {}
        self._layers: set[str] = set()
        self._layer_bytes = 0
        # Node that is there -> layers that users needed on it; and their bytes on all nodes that ever were.
        self._node_layers: dict[str, set[str]] = {}
        self._node_layer_bytes = 0
        # Node that is there -> image that came to it -> bytes on its disk that no other image shares.
        self._came: dict[str, dict[str, int]] = {}
        # Of nodes that left: images beyond those that their disks held at once.
        self._surplus = 0
        self._builds = 0
        self._repositories: set[str] = set()
        # Builds that some node had at least.
        self._busiest = 0

    def started(self, image: str, moment: float, memory_bytes: int | None = None) -> None:
        """A user's pod was bound. Time never goes back. memory_bytes: None for the usual size."""
        size = self._usual if memory_bytes is None else memory_bytes
        self._pass(moment)
        self._running += size
        self._peak = max(self._peak, self._running)
        copies = self._copies.get(image, 0) + size
        self._copies[image] = copies
        # A pod without any size is on some node, too.
        needed = max(1, -(-copies // self._node))
        if needed > self._nodes_needed.get(image, 0):
            self._nodes_needed[image] = needed

    def drains(self, moment: float) -> None:
        """A node is drained: it may be removed before the next has booted, so there may be no node at all."""
        self._pass(moment)
        self._least_now = 0

    def ended(self, image: str, moment: float, memory_bytes: int | None = None) -> None:
        """A user's pod was deleted."""
        size = self._usual if memory_bytes is None else memory_bytes
        self._pass(moment)
        self._running -= size
        copies = self._copies.get(image, 0) - size
        if copies:
            self._copies[image] = copies
        else:
            self._copies.pop(image, None)

    def needed(self, node: str, layers: Sequence[Layer]) -> None:
        """Some pod on that node needs these layers of its image."""
        there = self._node_layers.get(node)
        if there is None:
            there = self._node_layers[node] = set()
        for key, compressed_bytes, _ in layers:
            if key not in there:
                there.add(key)
                self._node_layer_bytes += compressed_bytes
                if key not in self._layers:
                    self._layers.add(key)
                    self._layer_bytes += compressed_bytes

    def came(self, node: str, image: Image) -> None:
        """The image is on the node's disk."""
        self._came.setdefault(node, {})[image.name] = image.own_disk_bytes

    def node_left(self, node: str, greatest_disk_bytes: int) -> None:
        """A node was removed. greatest_disk_bytes: the most that one node's images have taken."""
        self._surplus += _surplus(self._came.pop(node, {}).values(), greatest_disk_bytes)
        self._node_layers.pop(node, None)

    def built(self, repository: str, nodes: int = 1) -> None:
        """A build of this repository began; nodes: how many there have been until now."""
        self._builds += 1
        self._repositories.add(repository)
        self._busiest = max(self._busiest, -(-self._builds // nodes))

    def close(self, moment: float) -> dict[str, float]:
        """Key of a Bound -> its value so far; bounds of what never happened are left out."""
        self._pass(moment)
        return {
            "node_hours": self._node_seconds / SECONDS_AN_HOUR,
            "peak_nodes": float(max(self._least, -(-self._peak // self._node))),
            **self.counted(),
        }

    def counted(self, greatest_disk_bytes: int = 0) -> dict[str, float]:
        """The bounds that don't depend on time, as of the last call. greatest_disk_bytes: as in `node_left`."""
        found: dict[str, float] = {
            "cold": float(sum(self._nodes_needed.values())),
            "cold_compulsory": float(len(self._nodes_needed)),
        }
        if self._layers:
            found["registry_bytes"] = found["cold_bytes"] = float(self._layer_bytes)
            found["node_bytes"] = float(self._node_layer_bytes)
        if greatest_disk_bytes:
            there = sum(_surplus(images.values(), greatest_disk_bytes) for images in self._came.values())
            found["images_collected"] = float(self._surplus + there)
        if self._builds:
            found["build_cache_hits"] = float(self._builds - len(self._repositories))
            found["busiest_builder_share"] = self._busiest / self._builds
        return found

    def _pass(self, moment: float) -> None:
        if self._last is not None and moment > self._last:
            nodes = max(self._least_now, -(-self._running // self._node))
            self._node_seconds += nodes * (moment - self._last)
        if self._last is None or moment > self._last:
            self._last = moment


def _surplus(sizes: Iterable[int], disk_bytes: int) -> int:
    """How many images don't fit the disk if as many as possible are kept."""
    listed = sorted(sizes)
    if sum(listed) <= disk_bytes:
        return 0
    used = 0
    for place, size in enumerate(listed):
        used += size
        if used > disk_bytes:
            return len(listed) - place
    return 0


class WaitMeter:
    """Bounds of waits: how long launches would wait with endless nodes and room, and kubelets that pull in parallel."""

    __slots__ = ("_at_once", "_bind", "_floor", "_over", "_overhead", "_patience", "_present", "_rate", "_slow")

    def __init__(self, assumptions: Assumptions) -> None:
        rates = PULLS[assumptions.pulls]
        self._rate = min(rates.fetch, rates.unpack)
        self._overhead = assumptions.pull_overhead_seconds
        self._bind = assumptions.bind_seconds
        self._floor = assumptions.bind_seconds + assumptions.start_seconds
        # The longest wait: then the last try has timed out, or the person has left.
        self._patience = (assumptions.retries + 1) * assumptions.start_timeout_seconds
        if assumptions.leave_after_seconds:
            self._patience = min(self._patience, assumptions.leave_after_seconds)
            self._floor = min(self._floor, self._patience)
        # Image -> the earliest time at which it can be on a node.
        self._present: dict[str, float] = {}
        self._slow = Histogram()
        self._at_once = 0
        self._over = dict.fromkeys(THRESHOLDS, 0)

    def asked(self, image: Image, moment: float) -> None:
        """Somebody launches this image. Time never goes back."""
        present = self._present.get(image.name)
        bound = moment + self._bind
        if present is None:
            own = image.own_compressed_bytes
            present = self._present[image.name] = bound + own * image.needed_share / self._rate + self._overhead
        if present <= bound:
            self._at_once += 1
            return
        wait = min(self._patience, present - bound + self._floor)
        self._slow.add(wait)
        for threshold in THRESHOLDS:
            if wait > threshold:
                self._over[threshold] += 1

    def counted(self, starts: int, unlike: int = 0) -> dict[str, float]:
        """Key of a figure -> its bound; nothing without any start.

        starts: launches whose wait was told. unlike: such whose wait may be shorter than what is reckoned here. Those
        and the ones that weren't told are taken for the slowest.
        """
        if starts <= 0:
            return {}
        left_out = self._at_once + self._slow.count - starts + unlike
        waits = Histogram()
        waits.merge(self._slow)
        waits.add(self._floor, self._at_once)
        if left_out > 0:
            waits = waits.without_longest(left_out)
            waits.add(0.0, unlike)
        bounds = {key: waits.quantile(share) for key, share in WAIT_SHARES.items()}
        bounds["wait_mean"] = waits.total / starts
        for threshold, number in self._over.items():
            bounds[f"over_{threshold}"] = max(0, number - max(0, left_out)) / starts
        return bounds
