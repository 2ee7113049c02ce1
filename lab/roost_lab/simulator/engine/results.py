"""The result of one replay: what it measured, and the bounds of some of these figures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from roost_lab.simulator.engine.histogram import Histogram

# Parts of the wait for a server, in order; their sum is TOTAL.
# In the scheduler's queue, until a placeholder has gone.
QUEUE = "queue"
# In place of QUEUE, of launches that found no room: until a new node or a user who left made room.
NODE_WAIT = "node"
# Until the node has pulled the images that were requested before.
PULL_WAIT = "pull-wait"
# Until it has pulled the image.
PULL = "pull"
# Until the containers run.
START = "start"
# Until the server answers.
ANSWER = "answer"
PARTS = (QUEUE, NODE_WAIT, PULL_WAIT, PULL, START, ANSWER)
TOTAL = "total"
# Where a cold start's image was when its pod was bound.
NOWHERE = "nowhere"
ONLY_FULL = "only on full nodes"
ELSEWHERE = "elsewhere with room"


@dataclass(slots=True)
class HubResult:
    """The result of one of several hubs. Fields mean what they mean in RunResult."""

    started: int = 0
    placed: int = 0
    cold: int = 0
    # Whole waits (TOTAL), also of launches that were given up.
    waits: Histogram = field(default_factory=Histogram)


@dataclass(slots=True, kw_only=True)
class RunResult:
    """The result of a replay of one policy, one seed and one set of assumptions."""

    policy: str
    seed: int
    # Assumption -> its value, of those that differ from the defaults.
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
    # NOWHERE, ONLY_FULL or ELSEWHERE -> number of cold tries.
    cold_why: dict[str, int] = field(default_factory=dict)
    # One of PARTS, or TOTAL -> durations.
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
    # Images that kubelets removed.
    images_collected: int = 0
    registry_bytes: int = 0
    # The most disk that one node's images ever took.
    greatest_disk_bytes: int = 0
    background_pulls: int = 0
    background_bytes: int = 0
    builds: int = 0
    build_cache_hits: int = 0
    build_seconds: Histogram = field(default_factory=Histogram)
    # Share of all builds, 0..1, that ran on the node with the most.
    busiest_builder_share: float = 0.0
    # Namespace -> its hub's result; empty unless there are several hubs.
    hubs: dict[str, HubResult] = field(default_factory=dict)
    # Key of a bound in bounds.py -> its value.
    bounds: dict[str, float] = field(default_factory=dict)
    # Processor time of the replay itself.
    cpu_seconds: float = 0.0

    @property
    def cold_share(self) -> float:
        """The share of cold starts among tries that came to a node, 0..1."""
        return self.cold / self.placed if self.placed else 0.0
