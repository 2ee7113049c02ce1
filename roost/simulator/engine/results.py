"""What one replay measured: plain numbers, kept as JSON, each with the bound that stands beside it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

from roost.simulator.engine.histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION: Final = 3
# Parts of a start's wait, in order; their sum is "total".
QUEUE, NODE_WAIT, PULL_WAIT, PULL, START, TOTAL = "queue", "node", "pull-wait", "pull", "start", "total"
PARTS: Final = (QUEUE, NODE_WAIT, PULL_WAIT, PULL, START)
# Thresholds of which the share beyond is told, seconds.
THRESHOLDS: Final = (30, 60, 300)
# Where a cold start's image was at the moment its pod was bound.
NOWHERE, ONLY_FULL, ELSEWHERE = "nowhere", "only on full nodes", "elsewhere with room"


@dataclass(frozen=True, slots=True)
class HourRow:
    """One hour of the replay, for plots over time."""

    # Seconds since 1970 of its beginning.
    begin: int
    launches: int = 0
    cold: int = 0
    refused: int = 0
    timeouts: int = 0
    # Means over the hour, by time.
    users: float = 0.0
    placeholders: float = 0.0
    nodes: float = 0.0
    # Sum of all waits of starts in it, seconds.
    wait_seconds: float = 0.0


@dataclass(slots=True, kw_only=True)
class RunResult:
    """One policy, one seed, one set of assumptions."""

    policy: str
    seed: int
    # What differs from the default assumptions, key -> value.
    setting: dict[str, Any] = field(default_factory=dict)
    attempts: int = 0
    refused_by_repository: int = 0
    refused_by_total: int = 0
    admitted: int = 0
    # Launches whose server came up, those whose every try ended without, and those that still tried at the very end.
    started: int = 0
    given_up: int = 0
    still_waiting: int = 0
    # Pods of admitted launches, a launch has one a try; those of them that came to a node, and of these those that
    # found their image missing there; tries that took longer than the spawner waits.
    tries: int = 0
    placed: int = 0
    timeouts: int = 0
    cold: int = 0
    cold_bytes: int = 0
    # NOWHERE, ONLY_FULL, ELSEWHERE -> number.
    cold_why: dict[str, int] = field(default_factory=dict)
    # PARTS and TOTAL -> durations.
    waits: dict[str, Histogram] = field(default_factory=dict)
    # Threshold in seconds -> starts (and given up ones) beyond it.
    over: dict[int, int] = field(default_factory=dict)
    # Starts that waited for a node to come.
    waited_for_node: int = 0
    node_hours: float = 0.0
    peak_nodes: int = 0
    nodes_created: int = 0
    placeholder_preemptions: int = 0
    # Users' pods that a scheduler took away for others: no values of Roost's do that.
    users_preempted: int = 0
    # Placeholders evicted by the mover.
    moves: int = 0
    placeholder_pending_seconds: float = 0.0
    # Images removed by kubelets, and such as were then pulled again on that node.
    images_collected: int = 0
    collected_then_pulled: int = 0
    registry_bytes: int = 0
    # The most that one node's images ever took on its disk.
    greatest_disk_bytes: int = 0
    background_pulls: int = 0
    background_bytes: int = 0
    builds: int = 0
    build_cache_hits: int = 0
    build_seconds: Histogram = field(default_factory=Histogram)
    # Of all builds, those on the node with most, by share 0..1.
    busiest_builder_share: float = 0.0
    # Bounds, by the name of the field they stand beside; see roost/simulator/engine/bounds.py for what each says.
    bounds: dict[str, float] = field(default_factory=dict)
    hours: list[HourRow] = field(default_factory=list)
    # Of the replay itself, for performance figures; not part of what is compared.
    cpu_seconds: float = 0.0

    @property
    def cold_share(self) -> float:
        """Of tries that came to a node, 0..1."""
        return self.cold / self.placed if self.placed else 0.0

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` takes."""
        found: dict[str, Any] = {"version": VERSION}
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name == "waits":
                value = {name: histogram.to_json() for name, histogram in value.items()}
            elif one.name == "build_seconds":
                value = value.to_json()
            elif one.name == "over":
                value = {str(key): number for key, number in value.items()}
            elif one.name == "hours":
                value = [[getattr(row, name.name) for name in fields(HourRow)] for row in value]
            found[one.name] = value
        return found

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> RunResult:
        """The opposite of `to_json`. Raises ValueError for another version; KeyError or TypeError for no result."""
        if found["version"] != VERSION:
            raise ValueError(f"a result of version {found['version']}, not {VERSION}")
        values = {one.name: found[one.name] for one in fields(cls)}
        values["waits"] = {name: Histogram.from_json(one) for name, one in values["waits"].items()}
        values["build_seconds"] = Histogram.from_json(values["build_seconds"])
        values["over"] = {int(key): number for key, number in values["over"].items()}
        values["hours"] = [HourRow(*row) for row in values["hours"]]
        return cls(**values)
