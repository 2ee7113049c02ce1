"""What no policy can beat: a bound beside each figure, with the sentence of what it says.

Sources: Belady 1966 (MIN); the rest follows from counting, as each sentence says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SECONDS_AN_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Bound:
    """One bound: its key in a result's `bounds`, the figure it stands beside, and what it says."""

    key: str
    # The name of a field of RunResult, or of a figure made of it.
    beside: str
    says: str
    # The figure can't be below it; else it can't be above it.
    is_least: bool = True


BOUNDS: Final = (
    Bound(
        "node_hours",
        "node_hours",
        "Pods that run at once, divided by pods a node and rounded up, over time, never fewer than the least nodes: "
        "what a packing with free migration would need.",
    ),
    Bound("peak_nodes", "peak_nodes", "The most pods that ran at once, divided by pods a node and rounded up."),
    Bound(
        "cold",
        "cold",
        "For each image the most of its pods that ran at once, divided by pods a node and rounded up: so many nodes "
        "had to get it. Only pulling ahead goes below it.",
    ),
    Bound(
        "cold_compulsory",
        "cold",
        "Distinct images: each had to be pulled once, however large a node is. Only pulling ahead goes below it.",
    ),
    Bound("registry_bytes", "registry_bytes", "Each layer that was needed, once: nodes give it on to each other."),
    Bound(
        "build_cache_hits",
        "build_cache_hits",
        "Builds less distinct repositories: each repository's first build finds nothing.",
        is_least=False,
    ),
)


class BoundsMeter:
    """Bounds that need what really ran; each call takes the same time however much did.

    pods_per_node: users of the usual size that a node can hold. node_bytes: memory of a node, by which pods count that
    have a size of their own; in one trace all have, or none. min_nodes: nodes that are never taken away. begin: when
    nodes are paid from, in seconds since 1970; None: from the first call.
    """

    __slots__ = (
        "_builds",
        "_copies",
        "_last",
        "_layer_bytes",
        "_layers",
        "_least",
        "_node",
        "_node_seconds",
        "_nodes_needed",
        "_peak",
        "_repositories",
        "_running",
        "_usual",
    )

    def __init__(
        self, pods_per_node: int, min_nodes: int, begin: float | None = None, *, node_bytes: int = 1 << 60
    ) -> None:
        self._node = node_bytes
        self._usual = node_bytes // pods_per_node
        self._least = min_nodes
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
        self._builds = 0
        self._repositories: set[str] = set()

    def started(self, image: str, moment: float, memory_bytes: int | None = None) -> None:
        """A user's pod takes its place on a node. Moments never go back. memory_bytes: None for the usual size."""
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

    def ended(self, image: str, moment: float, memory_bytes: int | None = None) -> None:
        """It has gone."""
        size = self._usual if memory_bytes is None else memory_bytes
        self._pass(moment)
        self._running -= size
        copies = self._copies.get(image, 0) - size
        if copies:
            self._copies[image] = copies
        else:
            self._copies.pop(image, None)

    def needed(self, layer: str, compressed_bytes: int) -> None:
        """Some pod needed this layer of its image."""
        if layer not in self._layers:
            self._layers.add(layer)
            self._layer_bytes += compressed_bytes

    def built(self, repository: str) -> None:
        """A build of this repository began."""
        self._builds += 1
        self._repositories.add(repository)

    def close(self, moment: float) -> dict[str, float]:
        """Key of a Bound -> its value, up to this moment; bounds of what never happened are left out."""
        self._pass(moment)
        found: dict[str, float] = {
            "node_hours": self._node_seconds / SECONDS_AN_HOUR,
            "peak_nodes": float(max(self._least, -(-self._peak // self._node))),
            "cold": float(sum(self._nodes_needed.values())),
            "cold_compulsory": float(len(self._nodes_needed)),
        }
        if self._layers:
            found["registry_bytes"] = float(self._layer_bytes)
        if self._builds:
            found["build_cache_hits"] = float(self._builds - len(self._repositories))
        return found

    def _pass(self, moment: float) -> None:
        if self._last is not None and moment > self._last:
            nodes = max(self._least, -(-self._running // self._node))
            self._node_seconds += nodes * (moment - self._last)
        if self._last is None or moment > self._last:
            self._last = moment
