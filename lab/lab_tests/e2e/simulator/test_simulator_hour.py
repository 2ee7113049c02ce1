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

import itertools
from collections import Counter
from typing import TYPE_CHECKING

import pytest
import yaml

from benchmarks.studies import values_files
from generator.values.release import Release
from lab_tests.e2e.simulator.hour_in_step import (
    SAME,
    TIE,
    UNEXPLAINED,
    VICTIM,
    Followed,
    Outcome,
    StepWorld,
    followed_from,
    play_in_step,
    unexplained,
)
from lab_tests.e2e.simulator.played_hour import (
    LAUNCHES,
    PLACEHOLDER_SET,
    ROOM,
    HourWitness,
    HourWorld,
    Played,
    SizedNodes,
    an_hour,
    create_nodes,
    play_for_real,
    wait_for_placeholders,
)
from roost_lab.simulator.engine.pods import PLACEHOLDER, USER
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler
from roost_lab.simulator.setup.policy import load_policy
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.talk import say
from tests.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from roost_lab.traces.attempt import Attempt

pytestmark = pytest.mark.e2e

# An hour in two minutes, so delays of the machine count thirtyfold.
SPEED = 30.0
VALUES = {
    "imageGate": {"mode": "off"},
    "controllers": {"enabled": False},
    "prePuller": {"enabled": False},
    # With a warm set: test_simulator_hour_warm.py. Placeholders avoid users, so that nodes with as many users differ:
    # otherwise one deletion that is seen a moment later sends most of those after it elsewhere (a run without: 60 of
    # the first 97 the same, and 133 of 240, though in step all but named causes).
    "podClasses": {"user": {"warm": None}, "placeholder": {"avoid": {"user": 1}}},
    "placeholders": [PLACEHOLDER_SET],
}


class FollowingWorld(SizedNodes, StepWorld):
    """The same nodes, in step with the real ones."""


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
    return play_in_step(real.attempts, FollowingWorld(policy, ASSUMED, followed))


def test_an_hour_of_launches_lands_where_the_simulator_says(tmp_path: Path) -> None:
    # An image each: of pods that are alike only the first would be tried where it doesn't fit.
    attempts = [one._replace(image=f"r2d.invalid/{one.number}:1", image_bytes=1) for one in an_hour(SPEED)]
    assert len(attempts) == LAUNCHES
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(VALUES))
    with ControlPlane() as cluster:
        namespace = cluster.create_namespace()
        with (
            FakeNodes(cluster.api) as nodes,
            PodKeeper(cluster.api, parallel_requests=8),
            HourWitness(cluster, namespace) as witness,
        ):
            create_nodes(nodes, range(1, len(ROOM) + 1))
            with Stack(cluster, namespace, VALUES, scheduler_flags=()) as stack:
                wait_for_placeholders(stack)
                real = play_for_real(attempts, stack, witness)
    followed = followed_from(witness, real.began_at)
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
    assert len(real.stalled) <= LAUNCHES * 0.3
    assert len(unexplained(in_step.users, real)) <= LAUNCHES * 0.02
    assert causes[SAME] + causes[TIE] + causes[VICTIM] >= LAUNCHES * 0.85
    # Of some 60. Seen: 1, 1 and, on a loaded machine, 5: a placeholder is made anew while its predecessor terminates,
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
