"""Compute bounds that no policy can beat, each with the figure it belongs to and a sentence that
explains it.

They follow from counting, as each sentence says.
"""

from dataclasses import dataclass
from typing import Final

from roost_lab.units import HOUR_SECONDS


@dataclass(frozen=True, slots=True)
class FigureBound:
    """One bound: its key in a result's `bounds`, the figure it belongs to, and its explanation."""

    key: str
    # The name of a field of RunResult, or of a figure made of it.
    beside: str
    says: str


BOUNDS: Final = (
    FigureBound(
        "node_hours",
        "node_hours",
        "Running pods divided by the pods that fit a node and rounded up, over time, and at least"
        " `min_nodes`. Packing would need that if pods could move.",
    ),
    FigureBound(
        "peak_nodes",
        "peak_nodes",
        "The most running pods divided by the pods that fit a node, rounded up.",
    ),
    FigureBound(
        "cold",
        "cold",
        "Each image had to come to as many nodes as its pods filled at once. Only pulling ahead"
        " goes below.",
    ),
    FigureBound(
        "cold_compulsory",
        "cold",
        "Each image had to be pulled once. Only pulling ahead goes below.",
    ),
    FigureBound(
        "build_cache_hits",
        "build_cache_hits",
        "Builds less distinct repositories: a repository's first build finds no cache.",
    ),
)


class BoundsMeter:
    """Bounds that follow from what really ran; each call takes constant time.

    pods_per_node: users of the usual size that a node can hold. node_bytes: memory of a node. Where
    a trace tells the memory of its pods, they count by it. min_nodes: nodes that are never removed.
    begin: when nodes are paid from, in seconds since 1970; None: from the first call.
    """

    def __init__(
        self,
        pods_per_node: int,
        min_nodes: int,
        begin: float | None = None,
        *,
        node_bytes: int = 1 << 60,
    ) -> None:
        self._node_bytes = node_bytes
        self._usual_bytes = node_bytes // pods_per_node
        self._min_nodes = min_nodes
        self._last = begin
        # Bytes of the pods that run.
        self._running = 0
        # The most of these at once.
        self._peak = 0
        self._node_seconds = 0.0
        # Image -> bytes of its pods that run.
        self._running_by_image: dict[str, int] = {}
        # Image -> the most nodes that these ever filled.
        self._nodes_needed: dict[str, int] = {}
        self._builds = 0
        self._repositories: set[str] = set()

    def started(self, image: str, moment: float, memory_bytes: int | None = None) -> None:
        """A user's pod was bound. Time never goes back. memory_bytes: None for the usual size."""
        size = self._usual_bytes if memory_bytes is None else memory_bytes
        self._pass(moment)
        self._running += size
        self._peak = max(self._peak, self._running)
        self._running_by_image[image] = self._running_by_image.get(image, 0) + size
        # A pod without any size is on some node, too.
        needed = max(1, self._nodes_for(self._running_by_image[image]))
        self._nodes_needed[image] = max(needed, self._nodes_needed.get(image, 0))

    def ended(self, image: str, moment: float, memory_bytes: int | None = None) -> None:
        """A user's pod was deleted."""
        size = self._usual_bytes if memory_bytes is None else memory_bytes
        self._pass(moment)
        self._running -= size
        self._running_by_image[image] = self._running_by_image.get(image, 0) - size

    def built(self, repository: str) -> None:
        """A build of this repository began."""
        self._builds += 1
        self._repositories.add(repository)

    def close(self, moment: float) -> dict[str, float]:
        """Key of a FigureBound -> its value so far; bounds of what never happened are left out."""
        self._pass(moment)
        peak_nodes = max(self._min_nodes, self._nodes_for(self._peak))
        return {
            "node_hours": self._node_seconds / HOUR_SECONDS,
            "peak_nodes": float(peak_nodes),
            **self.counted(),
        }

    def counted(self) -> dict[str, float]:
        """The bounds that don't depend on time, as of the last call."""
        found = {
            "cold": float(sum(self._nodes_needed.values())),
            "cold_compulsory": float(len(self._nodes_needed)),
        }
        if self._builds:
            found["build_cache_hits"] = float(self._builds - len(self._repositories))
        return found

    def _pass(self, moment: float) -> None:
        last = moment if self._last is None else self._last
        nodes = max(self._min_nodes, self._nodes_for(self._running))
        self._node_seconds += nodes * max(0.0, moment - last)
        self._last = max(last, moment)

    def _nodes_for(self, pods_bytes: int) -> int:
        """How many nodes pods of so many bytes fill, the last one perhaps in part."""
        # Rounded up, in whole numbers.
        return -(-pods_bytes // self._node_bytes)
