"""Launches, pods and nodes of a replay, with what has happened to each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roost_lab.simulator.engine.results import NODE_WAIT, PULL, PULL_WAIT, QUEUE

if TYPE_CHECKING:
    from roost_core.objects.node import Node
    from roost_core.objects.pod import Pod
    from roost_lab.simulator.engine.node_images import NodeImages, Pull
    from roost_lab.simulator.setup.policy import PlaceholderSet
    from roost_lab.traces.attempt import Attempt


class Launch:
    """One admitted attempt, through all its tries."""

    __slots__ = ("attempt", "image", "spent", "tries_left", "waited_for_node")

    def __init__(self, attempt: Attempt, image: str, tries_left: int) -> None:
        self.attempt = attempt
        self.image = image
        self.tries_left = tries_left
        # Seconds of the tries that failed, by part of the wait.
        self.spent = {QUEUE: 0.0, NODE_WAIT: 0.0, PULL_WAIT: 0.0, PULL: 0.0}
        self.waited_for_node = False

    def note_try(self, pod: SimPod, now: float) -> None:
        """A try ended before its server was up: add what was waited for."""
        spent, bound = self.spent, pod.bound_at
        self.waited_for_node |= pod.waited_for_node
        spent[NODE_WAIT if pod.waited_for_node else QUEUE] += (now if bound is None else bound) - pod.created
        if bound is None or pod.pull is None:
            return
        turn = min(now, max(bound, pod.pull.begin))
        spent[PULL_WAIT] += turn - bound
        spent[PULL] += now - turn


class SimPod:
    """One pod with what has happened to it."""

    __slots__ = (
        "asked_at", "bound_at", "builds", "created", "failures", "has_home", "in_queue", "key", "kind", "launch",
        "node", "order", "owner", "pull", "ready_at", "retries_at", "state", "tried_at", "waited_for_node",
        "waits_since", "warm_class",
    )  # fmt: skip

    def __init__(self, kind: str, state: Pod, created: float, order: int) -> None:
        self.kind = kind
        self.state = state
        # `namespace/name`.
        self.key = state.key
        self.created = created
        # Among pods of equal priority the lower is tried first.
        self.order = order
        self.launch: Launch | None = None
        self.owner: PlaceholderSet | None = None
        # The attempt whose image a build pod builds.
        self.builds: Attempt | None = None
        self.node: SimNode | None = None
        self.bound_at: float | None = None
        # Its image, and when it asked its node's kubelet for it.
        self.pull: Pull | None = None
        self.asked_at = 0.0
        self.ready_at: float | None = None
        # Failed scheduling attempts in a row, the time of the last, and of the next if known.
        self.failures = 0
        self.tried_at = 0.0
        self.retries_at: float | None = None
        self.waits_since: float | None = None
        # No node had room, and no placeholder's room was made free for it.
        self.waited_for_node = False
        self.in_queue = False
        # The webhook's facts count it for its class's homes.
        self.has_home = False
        # Its class if that has a warm set, else "".
        self.warm_class = ""


class SimNode:
    """One node that has joined."""

    __slots__ = (
        "collects_at", "has_left", "images", "joined_at", "name", "pods", "pullers", "shows_at", "state", "users",
    )  # fmt: skip

    def __init__(self, state: Node, images: NodeImages, now: float) -> None:
        self.name = state.name
        self.state = state
        self.images = images
        self.joined_at = now
        self.has_left = False
        self.pods: dict[str, SimPod] = {}
        self.users = 0
        # `namespace/name` -> a puller's pod here.
        self.pullers: dict[str, Pod] = {}
        self.collects_at: float | None = None
        self.shows_at: float | None = None
