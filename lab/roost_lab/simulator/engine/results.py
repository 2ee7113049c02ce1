"""What one replay measured: plain numbers, and their bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from roost_lab.simulator.engine.histogram import Histogram

# Parts of a start's wait, in order; their sum is "total". NODE_WAIT: of launches that found no
# room, whether a new node made it or somebody who left; QUEUE: of all others, until a placeholder
# has gone.
QUEUE = "queue"
NODE_WAIT = "node"
PULL_WAIT = "pull-wait"
PULL = "pull"
START = "start"
ANSWER = "answer"
PARTS = (QUEUE, NODE_WAIT, PULL_WAIT, PULL, START, ANSWER)
TOTAL = "total"
# Where a cold start's image was when its pod was bound.
NOWHERE = "nowhere"
ONLY_FULL = "only on full nodes"
ELSEWHERE = "elsewhere with room"


@dataclass(slots=True)
class HubResult:
    """What one of several hubs had of a replay."""

    # As RunResult's.
    started: int = 0
    placed: int = 0
    cold: int = 0
    # All waits, those of launches given up too.
    waits: Histogram = field(default_factory=Histogram)


@dataclass(slots=True, kw_only=True)
class RunResult:
    """One policy, one seed, one set of assumptions."""

    policy: str
    seed: int
    # What differs from the default assumptions, key -> value.
    setting: dict[str, Any] = field(default_factory=dict)
    # Launches.
    attempts: int = 0
    # Launches that the quota of their repository, or of the hub, refused.
    refused_by_repository: int = 0
    refused_by_total: int = 0
    admitted: int = 0
    # Launches whose server came up.
    started: int = 0
    # Launches whose every try failed.
    given_up: int = 0
    # Launches that still tried at the very end.
    still_waiting: int = 0
    # Pods of admitted launches, one for each try.
    tries: int = 0
    # Tries that were bound to a node.
    placed: int = 0
    # Tries that took too long.
    timeouts: int = 0
    # Tries that were bound to a node without their image.
    cold: int = 0
    # NOWHERE, ONLY_FULL, ELSEWHERE -> number.
    cold_why: dict[str, int] = field(default_factory=dict)
    # PARTS and TOTAL -> durations.
    waits: dict[str, Histogram] = field(default_factory=dict)
    # Launches that found no room, not even by pre-emption, and waited for a new node or for
    # somebody to leave.
    waited_for_node: int = 0
    node_hours: float = 0.0
    peak_nodes: int = 0
    nodes_created: int = 0
    placeholder_preemptions: int = 0
    # Users' pods that were pre-empted; no values of Roost's do that.
    users_preempted: int = 0
    # Placeholders evicted by the mover.
    moves: int = 0
    placeholder_pending_seconds: float = 0.0
    # Removed by kubelets.
    images_collected: int = 0
    registry_bytes: int = 0
    # The most disk that one node's images ever took.
    greatest_disk_bytes: int = 0
    background_pulls: int = 0
    background_bytes: int = 0
    builds: int = 0
    build_cache_hits: int = 0
    build_seconds: Histogram = field(default_factory=Histogram)
    # Share of builds, 0..1, on the node with the most.
    busiest_builder_share: float = 0.0
    # By namespace; empty unless there are several hubs.
    hubs: dict[str, HubResult] = field(default_factory=dict)
    # By key of roost_lab/simulator/engine/bounds.py.
    bounds: dict[str, float] = field(default_factory=dict)
    # Processor time of the replay itself.
    cpu_seconds: float = 0.0

    @property
    def cold_share(self) -> float:
        """The share of cold starts among tries that came to a node, 0..1."""
        return self.cold / self.placed if self.placed else 0.0
