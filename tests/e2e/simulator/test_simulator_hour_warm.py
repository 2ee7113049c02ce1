"""The hour of test_simulator_hour.py with warm sets and the image gate, as they are by default: the same nodes?

The real webhook learns from the API server which node holds which image, and the real controllers label nodes that are
pulling. Nodes are objects: the harness has them pull as the simulator's kubelets do, and writes what a kubelet would.
Pullers bring the images of half of the launches; the largest node joins when the others are full, and is closed to
users of those images until they are there.

So the webhook's choices are compared, the facts that it has at that moment, and what kube-scheduler makes of them.
Seen on a machine with a load of four on each core, in two runs: of 240 users 225 and 218 the same, 11 and 12 victims of
equal rank, 3 and 8 the moment of a deletion, 1 and 2 by facts a moment old, none unexplained. Of the webhook's choices
233 and 222 the same, 7 and 16 by facts at most 0.34 s older, 0 and 2 unexplained.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest
import yaml

from generator.values.release import Release
from roost.simulator.engine.pods import USER
from roost.simulator.setup.assumptions import Assumptions, Autoscaler
from roost.simulator.setup.policy import load_policy
from roost_core.placement.labels import pulled_label
from tests.e2e.simulator.hour_in_step import SAME, TIE, UNEXPLAINED, VICTIM, Followed, User, followed_from, play_in_step
from tests.e2e.simulator.modelled_kubelets import ModelledKubelets
from tests.e2e.simulator.played_hour import (
    LAUNCHES,
    PLACEHOLDER_SET,
    ROOM,
    SETTLED_SECONDS,
    HourWitness,
    HourWorld,
    NodeWitness,
    Played,
    SizedNodes,
    an_hour,
    create_nodes,
    play_for_real,
    wait_for_placeholders,
)
from tests.e2e.simulator.webhook_in_step import Report, WebhookStepWorld, read_report
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.talk import say
from tests.harness.waiting import wait_until
from tests.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


pytestmark = pytest.mark.e2e

# An hour in three minutes.
SPEED: Final = 20.0
SEED: Final = 1
# Images that pullers bring: of half of the launches, and of one in twenty. A node pulls for eight seconds each.
MANAGED: Final = ("r2d.invalid/2a1f24ae2314f47d3095", "r2d.invalid/6e9c1ddfd83afa793f3e")
MANAGED_SIZES: Final = {f"{name}:1": 560_000_000 for name in MANAGED}
VALUES: Final = {
    "singleuser": {"image": {"name": MANAGED[0], "tag": "1"}},
    "prePuller": {"method": "noop", "extraImages": {"second": {"name": MANAGED[1], "tag": "1"}}},
    "placeholderMover": {"enabled": False},
    "placeholders": [PLACEHOLDER_SET],
}
# The largest node joins when the others are about to be full. Its kubelet registers it a little before it is ready.
LATE: Final = len(ROOM)
REGISTERED_SECONDS, READY_SECONDS = 33.0, 35.0
# Values that must be found out: a set that lacks a whole node, none, and no gate.
SMALLER: Final = {"podClasses": {"user": {"warm": {"spare": "-100%"}}}}
WITHOUT: Final = {"podClasses": {"user": {"warm": None}}}
UNGATED: Final = {"imageGate": {"mode": "off"}}
ALONE: Final = Assumptions(
    autoscaler=Autoscaler.NONE,
    min_nodes=len(ROOM) - 1,
    max_nodes=len(ROOM),
    quota_per_repository=0,
    node_disk_bytes=0,
    # Smaller images, as pulls are as fast as ever.
    image_median_bytes=int(1_600_000_000 / SPEED),
    preempted_gone_seconds=0.02,
    # kube-scheduler takes pods out of their back-off when it has nothing else to do (SchedulerPopFromBackoffQ).
    backoff_seconds=0.0,
    max_backoff_seconds=0.0,
    bind_seconds=0.25 / SPEED,
    start_seconds=1.1 / SPEED,
    pull_overhead_seconds=1.0 / SPEED,
    status_delay_seconds=10.0 / SPEED,
)


class FollowingWorld(SizedNodes, WebhookStepWorld):
    """The same nodes, in step with the real ones."""


class GrowingWorld(HourWorld):
    """The late node can join."""

    def join_late(self, _: None) -> None:
        self.join()


class Seen(NamedTuple):
    """What was really done in the hour."""

    real: Played
    followed: Followed
    reports: Sequence[Report]
    # Images that nodes pulled because a user came who needed them.
    pulls: int


def in_step(seen: Seen, more: Mapping[str, object], folder: Path, namespace: str) -> FollowingWorld:
    """Play in step under the values above, with these over them."""
    values = folder / f"in-step-{len(list(folder.iterdir()))}.yaml"
    values.write_text(yaml.safe_dump({**VALUES, **more}))
    policy = load_policy("hour", [str(values)], release=Release("hub", namespace))
    world = FollowingWorld(policy, ALONE, seen.followed, seen.reports)
    # Pulls take no time here: pods run when they really did.
    play_in_step([one._replace(image_bytes=1) for one in seen.real.attempts], world)
    return world


def simulate(seen: Seen, folder: Path, namespace: str) -> HourWorld:
    """In the simulator alone. Sessions begin when servers run, as the simulator counts them."""
    users = seen.followed.users
    attempts = [one._replace(session_seconds=_stayed(users[one.number])) for one in seen.real.attempts]
    values = folder / "alone.yaml"
    values.write_text(yaml.safe_dump(VALUES))
    policy = load_policy("hour", [str(values)], release=Release("hub", namespace))
    world = GrowingWorld(policy, ALONE, seed=SEED)
    for name, size in MANAGED_SIZES.items():
        world.images.get(name, size)
    world.at(READY_SECONDS, world.join_late)
    world.play(attempts)
    return world


def _stayed(user: User) -> float:
    """Seconds for which a user's containers ran."""
    return max(0.0, min(user.gone_at, 10_000.0) - min(user.ran_at, user.gone_at))


def joins(nodes: FakeNodes) -> list[tuple[float, Callable[[], object]]]:
    """The late node registers, and is ready."""
    name = f"node-{LATE}"

    def be_ready() -> None:
        nodes.set_ready(name, ready=True)
        nodes.set_taints(name, ())

    return [(REGISTERED_SECONDS, lambda: create_nodes(nodes, (LATE,), ready=False)), (READY_SECONDS, be_ready)]


def _labels(told: NodeWitness, namespace: str) -> Counter[str]:
    """How many labels of images nodes have now, by value."""
    last = {node["metadata"]["name"]: node for _, node in told.reports}
    prefix = pulled_label("hub", namespace, "any").partition("/")[0]
    return Counter(
        text for node in last.values() for key, text in node["metadata"]["labels"].items() if key.startswith(prefix)
    )


def test_with_warm_sets_and_the_gate_launches_land_where_the_simulator_says(tmp_path: Path) -> None:
    attempts = an_hour(SPEED)
    assert len(attempts) == LAUNCHES
    with ControlPlane() as cluster:
        namespace = cluster.create_namespace()
        with FakeNodes(cluster.api) as nodes, HourWitness(cluster, namespace) as witness, NodeWitness(cluster) as told:
            kubelets = ModelledKubelets(cluster, nodes, ALONE, SEED, MANAGED_SIZES)
            with PodKeeper(cluster.api, hold=kubelets.hold, parallel_requests=8) as keeper, kubelets.run(keeper):
                create_nodes(nodes, range(1, LATE))
                with Stack(cluster, namespace, VALUES, controllers=True, scheduler_flags=()) as stack:
                    wait_for_placeholders(stack)
                    labelled = (LATE - 1) * len(MANAGED)
                    wait_until(lambda: _labels(told, namespace) == {"true": labelled}, SETTLED_SECONDS, "all labels")
                    real = play_for_real(attempts, stack, witness, joins(nodes))
    assert not kubelets.faults
    assert not witness.faults
    reports = [read_report(at - real.began_at, node) for at, node in told.reports]
    seen = Seen(real, followed_from(witness, real.began_at), reports, kubelets.figures.pulls)
    followed, *others = (in_step(seen, more, tmp_path, namespace) for more in ({}, SMALLER, WITHOUT, UNGATED))
    causes, admissions = Counter(followed.outcome.users.values()), followed.admission_counts
    say(f"in step: users {dict(causes)}, placeholders {dict(followed.outcome.placeholders)}")
    ages = [round(age, 2) for age in sorted(followed.ages)]
    say(f"the webhook's choices: {dict(admissions)}; facts older by {ages} s")
    for name, other in zip(("a smaller set", "no set", "no gate"), others, strict=True):
        say(f"with {name}: users {dict(Counter(other.outcome.users.values()))}, choices {dict(other.admission_counts)}")
    alone = simulate(seen, tmp_path, namespace)
    there = {one.number: one.node for one in alone.bindings if one.kind == USER and one.number is not None}
    share = sum(there.get(number) == node for number, node in real.nodes.items()) / LAUNCHES
    apart = (Counter(there.values()) - Counter(real.nodes.values())).total()
    say(f"alone: {share:.1%} on the same node; {apart} more on some nodes and fewer on others")
    say(f"pulls for users: {seen.pulls}, simulated {alone.measures.result.cold}")
    say(f"pre-empted: {real.preempted}, simulated {len(alone.preempted)}")
    assert followed.outcome.users.keys() == followed.admissions.keys() == real.nodes.keys() == set(range(LAUNCHES))
    # Nothing that isn't named, but for what a machine that stalls may hide.
    assert causes[UNEXPLAINED] <= LAUNCHES * 0.02
    assert causes[SAME] + causes[TIE] + causes[VICTIM] >= LAUNCHES * 0.9
    assert admissions[UNEXPLAINED] <= LAUNCHES * 0.02
    assert admissions[SAME] >= LAUNCHES * 0.85
    assert followed.outcome.placeholders[UNEXPLAINED] <= 10
    # The causes don't explain everything: other values are found out.
    smaller, without, ungated = (one.admission_counts[UNEXPLAINED] for one in others)
    assert smaller >= LAUNCHES * 0.05
    assert without >= LAUNCHES * 0.5
    assert ungated >= LAUNCHES * 0.4
    assert Counter(others[1].outcome.users.values())[UNEXPLAINED] >= LAUNCHES * 0.1
    assert Counter(others[2].outcome.users.values())[UNEXPLAINED] >= 5
    # Left alone, what counts in the end; which user is where hangs on the first difference.
    assert apart <= LAUNCHES * 0.15
    assert alone.measures.result.cold == pytest.approx(seen.pulls, rel=0.3)
