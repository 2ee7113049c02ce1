"""One hour of a real trace on the real control plane and in the simulator: the same pods on the same nodes?

Both sides get the same values, nodes, pods, moments and sessions, all of them compressed in time alike. Fake nodes pull
nothing and report no images, so the simulator's don't either; that scores of images are equal is test_scheduler_model's
affair. Nodes are of different sizes, so that few decisions are ties, which kube-scheduler breaks at random.

Left alone, both are alike until a user pre-empts a placeholder for the first time: 97 of 97 launches went to the same
node. From then on they part: kube-scheduler takes any of the victims that started in the same second, where the
simulator knows which is later; and whether a pod is gone before the next user comes hangs on milliseconds, times the
compression. One victim on another node, and what follows lands elsewhere: 82 % went to the same node.

Played in step (hour_in_step.py), each decision is judged in the state that the real ones made. Seen on a machine with a
load of four on each core, in two runs: of 240 users 219 and 224 the same, 7 and 3 victims of equal rank, 14 and 13 the
moment of a deletion, none unexplained. With the weights of another policy 58 and 40 are unexplained.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml

from generator.values.release import Release
from roost.simulator.chance import Chance
from roost.simulator.engine.pods import NODE_PURPOSE, PLACEHOLDER, USER
from roost.simulator.setup.assumptions import SESSIONS, Assumptions, Autoscaler
from roost.simulator.setup.policy import load_policy
from roost.simulator.setup.shipped import values_files
from roost.simulator.trace.counts import InputCounts
from roost.simulator.trace.reading import open_trace
from tests import recorded_data
from tests.e2e.played_day import Witness
from tests.e2e.simulator.hour_in_step import (
    SAME,
    TIE,
    UNEXPLAINED,
    VICTIM,
    Followed,
    Outcome,
    StepWorld,
    followed_from,
    play_in_step,
)
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.talk import say
from tests.harness.waiting import wait_until
from tests.small_worlds import WatchedWorld
from tests.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from roost.simulator.engine.entities import SimPod
    from roost.simulator.trace.attempt import Attempt
    from roost_core.scheduler.objects import NodeState

pytestmark = pytest.mark.e2e

# 2019-05-28, 13 UTC: the busiest hour of a weekday.
HOUR_BEGIN = 1_559_048_400
LAUNCHES = 240
# An hour in two minutes, so delays of the machine count thirtyfold.
SPEED = 30.0
USER_BYTES = 550_000_000
ROOM = (10, 13, 18, 26, 40)
PLACEHOLDERS = 12
USER_REQUESTS = {"cpu": "10m", "memory": str(USER_BYTES)}
VALUES = {
    "imageGate": {"mode": "off"},
    "controllers": {"enabled": False},
    "prePuller": {"enabled": False},
    # Fake nodes report no images, so a warm set has nothing to go by here.
    "podClasses": {"user": {"warm": None}},
    "placeholders": [{"name": "default", "replicas": PLACEHOLDERS, "resources": {"requests": USER_REQUESTS}}],
}
SETTLED_SECONDS = 60.0


class Played(NamedTuple):
    """What came of it, by launch: the node, or "" for none; and how many placeholders were pre-empted."""

    nodes: dict[int, str]
    preempted: int
    # Placeholders by node before the first launch.
    placeholders: dict[str, int]
    # So many launches came before the first pre-emption.
    quiet: int
    # When each came and went, as it was played.
    attempts: list[Attempt]
    # Seconds since 1970 at the beginning.
    began_at: float = 0.0


def an_hour() -> list[Attempt]:
    """Every n-th launch of a busy hour, in compressed seconds from 0, with its compressed session."""
    attempts = open_trace([recorded_data.LAUNCHES], seed=1, counts=InputCounts())
    hour = [
        one
        for one in itertools.takewhile(lambda one: one.moment < HOUR_BEGIN + 3600, attempts)
        if one.moment >= HOUR_BEGIN
    ]
    chosen = hour[:: max(1, len(hour) // LAUNCHES)][:LAUNCHES]
    chance, model = Chance(1), SESSIONS["short"]
    return [
        one._replace(
            number=number,
            moment=(one.moment - HOUR_BEGIN) / SPEED,
            image_bytes=1,
            session_seconds=60
            * (model.least_minutes + chance.log_normal("session", number, model.median_rest_minutes, model.sigma))
            / SPEED,
        )
        for number, one in enumerate(chosen)
    ]


class SizedNodes(WatchedWorld):
    """Nodes of the sizes above."""

    def template(self, name: str, place: int = 0) -> NodeState:
        node = super().template(name, place)
        number = name.removeprefix("node-")
        if not number.isdecimal():
            return node
        return replace(node, allocatable={**node.allocatable, "memory": ROOM[int(number) - 1] * USER_BYTES})


class HourWorld(SizedNodes):
    """Notes how many launches came before the first pre-emption."""

    quiet = LAUNCHES

    def preempt(self, pod: SimPod) -> None:
        self.quiet = min(self.quiet, self.measures.result.admitted - 1)
        super().preempt(pod)


class FollowingWorld(SizedNodes, StepWorld):
    """The same nodes, in step with the real ones."""


class NominationWitness(Witness):
    """Also notes nominations, by pod: (seconds since 1970, node)."""

    def __init__(self, cluster: ControlPlane, namespace: str) -> None:
        self.nominations: dict[str, list[tuple[float, str]]] = {}
        super().__init__(cluster, namespace)

    def _see(self, kind: str, pod: dict[str, Any]) -> None:
        super()._see(kind, pod)
        node = pod.get("status", {}).get("nominatedNodeName")
        if node:
            self.nominations.setdefault(pod["metadata"]["name"], []).append((time.time(), node))


ASSUMED = Assumptions(
    autoscaler=Autoscaler.NONE,
    min_nodes=len(ROOM),
    max_nodes=len(ROOM),
    quota_per_repository=0,
    status_images=0,
    bind_seconds=0.0,
    start_seconds=0.0,
    pull_overhead_seconds=0.0,
    # Placeholders have no grace period, and fake nodes nothing to stop. In so compressed an hour it matters:
    # with 0.2 s instead 185 of 240 pods were on the same node, with this 207.
    preempted_gone_seconds=0.02,
    # kube-scheduler takes pods out of their back-off when it has nothing else to do (SchedulerPopFromBackoffQ).
    backoff_seconds=0.0,
    max_backoff_seconds=0.0,
)


def simulate(attempts: Sequence[Attempt], values: Path, namespace: str) -> Played:
    """In the simulator: starts take no time, as on fake nodes."""
    world = HourWorld(
        load_policy("hour", [str(values)], release=Release("hub", namespace)),
        ASSUMED,
        seed=1,
    )
    world.play(attempts)
    nodes = {one.number: one.node for one in world.bindings if one.kind == USER and one.number is not None}
    placeholders = Counter(one.node for one in itertools.takewhile(lambda one: one.kind == PLACEHOLDER, world.bindings))
    return Played(nodes, len(world.preempted), dict(placeholders), world.quiet, list(attempts))


def step(real: Played, followed: Followed, files: Sequence[str], namespace: str) -> Outcome:
    """In the simulator, in step with what was really done."""
    policy = load_policy("hour", files, release=Release("hub", namespace))
    return play_in_step(real.attempts, policy, ASSUMED, followed, FollowingWorld)


def play_for_real(attempts: Sequence[Attempt], stack: Stack, witness: Witness) -> Played:
    """On the control plane: one after the other, as the trace says or as soon as the machine gets there."""
    cluster, namespace = stack.cluster, stack.namespace
    priority = next(m["metadata"]["name"] for m in stack.manifests if m["kind"] == "PriorityClass" and m["value"] == 0)
    due: list[tuple[float, int, int]] = [(one.moment, 1, one.number) for one in attempts]
    heapq.heapify(due)
    placeholders = Counter(one.node for one in list(witness.pods.values()))
    created: dict[int, float] = {}
    deleted: dict[int, float] = {}
    began, began_at, latest = time.monotonic(), time.time(), 0.0
    last = attempts[-1].moment
    while due and due[0][0] <= last:
        moment, is_launch, number = heapq.heappop(due)
        now = time.monotonic() - began
        if moment > now:
            time.sleep(moment - now)
        latest = max(latest, now - moment)
        name = f"jupyter-{number}"
        if is_launch:
            cluster.create_pod(_user(name, attempts[number], priority), namespace)
            created[number] = time.monotonic() - began
            stays = attempts[number].session_seconds
            assert stays is not None
            heapq.heappush(due, (created[number] + stays, 0, number))
        else:
            cluster.api.delete(f"/api/v1/namespaces/{namespace}/pods/{name}")
            deleted[number] = time.monotonic() - began
    say(f"played in {time.monotonic() - began:.0f} s, at most {latest:.2f} s late")
    time.sleep(3.0)
    seen = list(witness.pods.values())
    nodes = {
        int(one.name.removeprefix("jupyter-")): one.node for one in seen if one.name.startswith("jupyter-") and one.node
    }
    gone = [one for one in seen if not one.name.startswith("jupyter-") and one.node and one.gone_seen is not None]
    # A loaded machine is late: what is simulated is what was played.
    played = [
        one._replace(
            moment=created[one.number], session_seconds=deleted.get(one.number, 10_000.0) - created[one.number]
        )
        for one in attempts
    ]
    # A victim is gone a moment after it was chosen.
    first_gone = min((one.gone_seen - began_at for one in gone if one.gone_seen is not None), default=last + 100.0)
    quiet = sum(one.moment < first_gone - 1.0 for one in played)
    return Played(nodes, len(gone), dict(placeholders), quiet, played, began_at)


def _user(name: str, attempt: Attempt, priority: str) -> dict[str, Any]:
    labels = {"component": "singleuser-server", "app": "jupyterhub"}
    prefers = {"key": NODE_PURPOSE, "operator": "In", "values": ["user"]}
    terms = [{"weight": 100, "preference": {"matchExpressions": [prefers]}}]
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}},
            "containers": [
                {
                    "name": "notebook",
                    "image": f"r2d.invalid/{attempt.number}:1",
                    "resources": {"requests": USER_REQUESTS},
                }
            ],
            "priorityClassName": priority,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
        },
    }


def test_an_hour_of_launches_lands_where_the_simulator_says(tmp_path: Path) -> None:
    attempts = an_hour()
    assert len(attempts) == LAUNCHES
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(VALUES))
    with ControlPlane() as cluster:
        namespace = cluster.create_namespace()
        with (
            FakeNodes(cluster.api) as nodes,
            PodKeeper(cluster.api, parallel_requests=8),
            NominationWitness(cluster, namespace) as witness,
        ):
            for number, users in enumerate(ROOM, 1):
                nodes.create(
                    f"node-{number}", cpu="7910m", memory=str(users * USER_BYTES), labels={NODE_PURPOSE: "user"}
                )
            with Stack(cluster, namespace, VALUES, scheduler_flags=()) as stack:
                path = f"/api/v1/namespaces/{namespace}/pods"

                def placeholders_run() -> bool:
                    pods = cluster.api.list(path, labelSelector="component=user-placeholder")
                    phases = [one["status"]["phase"] for one in pods]
                    return phases == ["Running"] * PLACEHOLDERS

                wait_until(placeholders_run, SETTLED_SECONDS, "placeholders to run")
                # Pre-emption looks at starts, in whole seconds.
                time.sleep(1.1)
                real = play_for_real(attempts, stack, witness)
    followed = followed_from(list(witness.pods.values()), witness.nominations, real.began_at)
    in_step = step(real, followed, [str(values)], namespace)
    otherwise = step(real, followed, [*values_files("kube-default"), str(values)], namespace)
    simulated = simulate(real.attempts, values, namespace)
    both = real.nodes.keys() & simulated.nodes.keys()
    differing = [number for number in sorted(both) if real.nodes[number] != simulated.nodes[number]]
    quiet = min(real.quiet, simulated.quiet)
    quiet_differing = sum(number < quiet for number in differing)
    share = 1 - len(differing) / len(both)
    say(f"placeholders before: {sorted(real.placeholders.items())}, simulated {sorted(simulated.placeholders.items())}")
    say(f"before the first pre-emption: {quiet - quiet_differing} of {quiet} pods on the same node")
    say(f"in all: {len(both) - len(differing)} of {len(both)} ({share:.1%}); differing: {differing}")
    say(f"pre-empted: {real.preempted}, simulated {simulated.preempted}")
    for name, one in (("real", real), ("simulated", simulated)):
        say(f"users by node, {name}: {sorted(Counter(one.nodes.values()).items())}")
    say(f"in step: users {dict(Counter(in_step.users.values()))}, placeholders {dict(in_step.placeholders)}")
    say(f"in step, by another policy: users {dict(Counter(otherwise.users.values()))}")
    assert both == set(range(LAUNCHES)) == in_step.users.keys()
    causes = Counter(in_step.users.values())
    # Nothing that isn't named, but for what a machine that stalls may hide.
    assert causes[UNEXPLAINED] <= LAUNCHES * 0.02
    assert causes[SAME] + causes[TIE] + causes[VICTIM] >= LAUNCHES * 0.85
    # Of some 70. Seen: 1, 1 and, on a loaded machine, 5: a placeholder is made anew while its predecessor terminates,
    # and the order of the two isn't recorded.
    assert in_step.placeholders[UNEXPLAINED] <= 10
    # The causes don't explain everything: other weights are found out.
    assert Counter(otherwise.users.values())[UNEXPLAINED] >= LAUNCHES * 0.1
    assert quiet >= 60
    assert quiet_differing <= quiet * 0.05
    # Seen: 0.85 and 0.86; a loaded machine costs some.
    assert share >= 0.65
    assert real.preempted > 0
    assert simulated.preempted == pytest.approx(real.preempted, rel=0.3, abs=5)
