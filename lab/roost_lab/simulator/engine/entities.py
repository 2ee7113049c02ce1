"""Launches, pods and nodes of a replay, with what has happened to each."""

from __future__ import annotations

from dataclasses import dataclass, field

from roost_core.objects.node import Node
from roost_core.objects.pod import Pod
from roost_lab.simulator.engine.node_images import NodeImages, Pull
from roost_lab.simulator.engine.results import NODE_WAIT, PULL, PULL_WAIT, QUEUE
from roost_lab.simulator.setup.policy import PlaceholderStatefulSet
from roost_lab.traces.attempt import Attempt


# eq=False: two launches, pods or nodes are equal only if they are the same object.
@dataclass(slots=True, eq=False)
class Launch:
    """One admitted attempt, through all its tries."""

    attempt: Attempt
    image: str
    tries_left: int
    waited_for_node: bool = False
    # Seconds of the tries that failed, by part of the wait.
    spent: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys((QUEUE, NODE_WAIT, PULL_WAIT, PULL), 0.0)
    )

    def note_try(self, pod: SimPod, now: float) -> None:
        """A try ended before its server was up: add what was waited for."""
        spent = self.spent
        bound_at = pod.bound_at
        if pod.waited_for_node:
            self.waited_for_node = True
        wait = NODE_WAIT if pod.waited_for_node else QUEUE
        if bound_at is None:
            spent[wait] += now - pod.created
            return
        spent[wait] += bound_at - pod.created
        if pod.pull is None:
            return
        # Another pod may have begun the pull before, or it hasn't begun yet.
        pull_began = min(now, max(bound_at, pod.pull.begin))
        spent[PULL_WAIT] += pull_began - bound_at
        spent[PULL] += now - pull_began


@dataclass(slots=True, eq=False)
class SimPod:
    """One pod with what has happened to it."""

    kind: str
    state: Pod
    created: float
    # Among pods of equal priority the lower is tried first.
    order: int
    # `namespace/name`.
    key: str = field(init=False)
    launch: Launch | None = None
    owner: PlaceholderStatefulSet | None = None
    # The attempt whose image a build pod builds.
    builds: Attempt | None = None
    node: SimNode | None = None
    bound_at: float | None = None
    # Of its image.
    pull: Pull | None = None
    # When it asked its node's kubelet for its image.
    asked_at: float = 0.0
    ready_at: float | None = None
    # Failed scheduling attempts in a row.
    failures: int = 0
    # When the last attempt was made.
    tried_at: float = 0.0
    # When the next one will be; None: it isn't known.
    retries_at: float | None = None
    # Since when it has failed to get a node; None: it never failed.
    waits_since: float | None = None
    # No node had room, and no placeholder's room was made free for it.
    waited_for_node: bool = False
    in_queue: bool = False
    # Its class if that has a warm set, else "".
    warm_class: str = ""

    def __post_init__(self) -> None:
        self.key = self.state.key


@dataclass(slots=True, eq=False)
class SimNode:
    """One node that has joined."""

    name: str
    state: Node
    images: NodeImages
    has_left: bool = False
    pods: dict[str, SimPod] = field(default_factory=dict)
    users: int = 0
    # `namespace/name` -> a puller's pod here.
    pullers: dict[str, Pod] = field(default_factory=dict)
    # When its kubelet next looks whether images must go; None: no look is planned.
    collects_at: float | None = None
    # When it next reports its images; None: nothing has changed since the last report.
    shows_at: float | None = None
