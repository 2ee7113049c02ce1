"""Small worlds to replay in: nodes with room for a few users, handwritten launches, and witnesses
of the engine.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any, NamedTuple

from benchmarks.studies import values_files
from generator.values.merge import SetOptions
from roost_lab.simulator.engine.entities import SimNode, SimPod
from roost_lab.simulator.engine.hub import Hub
from roost_lab.simulator.engine.pods import USER
from roost_lab.simulator.engine.results import RunResult
from roost_lab.simulator.engine.totals import Measures
from roost_lab.simulator.engine.world import World
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler
from roost_lab.simulator.setup.policy import Policy, load_policy
from roost_lab.traces.attempt import Attempt

BEGIN = 1_558_483_200.0
USER_BYTES = 550_000_000
IMAGE_BYTES = 1_600_000_000
# The hub's image in the shipped policies, which their gates manage.
MANAGED = "quay.io/jupyterhub/k8s-singleuser-sample:4.4.0"


def attempt(
    number: int, after_seconds: float, image: str = "a", *, stays: float = 3600.0, **more: Any
) -> Attempt:
    """One attempt, its image's repository called like it."""
    details = {"repository": image, "image_bytes": IMAGE_BYTES, "session_seconds": stays, **more}
    return Attempt(number, BEGIN + after_seconds, image=image, **details)


def in_order(*said: tuple[float, str], stays: float = 3600.0) -> list[Attempt]:
    """Attempts by (seconds after the beginning, image)."""
    return [
        attempt(number, after, image, stays=stays) for number, (after, image) in enumerate(said)
    ]


def small(room: int = 4, nodes: int = 2, **more: Any) -> Assumptions:
    """`nodes` nodes with room for `room` users each, all of the same age and none to come."""
    standard = {
        "node_memory_bytes": room * USER_BYTES,
        "min_nodes": nodes,
        "max_nodes": nodes,
        "autoscaler": Autoscaler.NONE,
        "base_families": 1,
        "shared_share": 0.0,
        "quota_per_repository": 0,
    }
    return Assumptions(**{**standard, **more})


@cache
def policy(name: str, values: str = "{}") -> Policy:
    """A shipped policy or a study, with some of its values replaced: JSON of top-level keys."""
    replaced = tuple(f"{key}={json.dumps(value)}" for key, value in json.loads(values).items())
    return load_policy(name, values_files(name), SetOptions(json_values=replaced))


def without_pullers(name: str) -> Policy:
    """A shipped policy whose nodes pull nothing but what users need."""
    return policy(name, json.dumps({"prePuller": {"enabled": False}}))


def with_placeholders(name: str, replicas: int, **more: Any) -> Policy:
    """A shipped policy with so many placeholders of a user's size."""
    # A device comes with its node.
    resources = {
        "requests": {"cpu": "10m", "memory": str(USER_BYTES)},
        "limits": {"example.org/gpu": "1"},
    }
    placeholders = {"name": "default", "replicas": replicas, "resources": resources}
    return policy(name, json.dumps({"placeholders": [placeholders], **more}))


class Binding(NamedTuple):
    """A pod came to a node."""

    moment: float
    pod: str
    kind: str
    node: str
    # Of a user: the attempt's number, and whether the image was there.
    number: int | None
    had_image: bool


class WatchedMeasures(Measures):
    """Nodes of which there must not be fewer than none."""

    def nodes(self, by: int, now: float) -> None:
        super().nodes(by, now)
        assert self._nodes >= 0


class WatchedHub(Hub):
    """A hub that notes how long sessions last."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        # By attempt.
        self.sessions: dict[int, float] = {}

    def _session_seconds(self, attempt: Attempt) -> float:
        seconds = super()._session_seconds(attempt)
        self.sessions[attempt.number] = seconds
        return seconds


class WatchedWorld(World):
    """A world that notes what happens in it, and fails at what never may."""

    hub_type: type[Hub] = WatchedHub
    hub: WatchedHub

    def __init__(
        self, policy: Policy, assumptions: Assumptions, seed: int = 1, hubs: Sequence[str] = ()
    ) -> None:
        super().__init__(policy, assumptions, seed, hubs)
        self.measures = WatchedMeasures(policy.name, seed)
        self.bindings: list[Binding] = []
        self.boots: list[float] = []
        self.removed: list[tuple[float, str]] = []
        # Victims' names, in order of their going.
        self.preempted: list[str] = []
        self.steps = 0

    def _step(self) -> None:
        before = self.now
        super()._step()
        assert self.now >= before, "time went back"
        self.steps += 1

    def bind(self, pod: SimPod, node_name: str) -> None:
        had_image = False
        if pod.launch is not None:
            had_image = self.nodes[node_name].images.has(pod.launch.image, self.now)
        number = None if pod.launch is None else pod.launch.attempt.number
        self.bindings.append(
            Binding(self.now - BEGIN, pod.key, pod.kind, node_name, number, had_image)
        )
        super().bind(pod, node_name)
        row = self.state.rows[node_name]
        assert len(row.pods) <= row.max_pods
        assert all(amount <= row.allocatable.get(name, 0) for name, amount in row.requested.items())

    def preempt(self, pod: SimPod) -> None:
        self.preempted.append(pod.state.name)
        super().preempt(pod)

    def boot_seconds(self) -> float:
        seconds = super().boot_seconds()
        self.boots.append(seconds)
        return seconds

    def remove_node(self, node: SimNode) -> None:
        assert not any(pod.kind == USER for pod in node.pods.values()), (
            f"{node.name} has users and is taken away"
        )
        self.removed.append((self.now - BEGIN, node.name))
        super().remove_node(node)

    @property
    def still_starting(self) -> int:
        """Users' pods that are there and not up."""
        return sum(pod.kind == USER and pod.ready_at is None for pod in self.sim_pods.values())

    def node_of(self, number: int) -> str:
        """Where an attempt's pod was put last."""
        return next(binding.node for binding in reversed(self.bindings) if binding.number == number)

    def users_nodes(self) -> list[str]:
        """The nodes of users' pods, in order of binding."""
        return [binding.node for binding in self.bindings if binding.kind == USER]


def play(
    attempts: Iterable[Attempt],
    policy: Policy,
    assumptions: Assumptions,
    seed: int = 1,
    *,
    make: Callable[[Policy, Assumptions, int], WatchedWorld] = WatchedWorld,
) -> tuple[RunResult, WatchedWorld]:
    """Replay, and give the result and the world as it was left."""
    world = make(policy, assumptions, seed)
    return world.play(attempts), world


def comparable(result: RunResult) -> Mapping[str, Any]:
    """All that two equal replays have in common."""
    return {key: value for key, value in asdict(result).items() if key != "cpu_seconds"}
