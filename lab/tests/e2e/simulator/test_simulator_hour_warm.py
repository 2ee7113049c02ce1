"""One hour of a real trace on the real control plane and in the simulator: the same pods on the
same nodes?

With warm sets and the image gate, as they are by default.

The real webhook learns from the API server which node holds which image, and the real controllers
label nodes that are pulling. Nodes are objects: the harness has them pull as the simulator's
kubelets do, and writes what a kubelet would. Pullers bring the images of half of the launches; the
largest node joins when the others are full, and is closed to users of those images until they are
there.

So the webhook's choices are compared, the facts that it has at that moment, and what kube-scheduler
makes of them. Seen on a machine with a load of four on each core, in three runs: of 240 users 225,
218 and 222 the same, 11, 12 and 12 victims of equal rank, 3, 8 and 4 the moment of a deletion, 1, 2
and 1 by facts a moment old, none unexplained. Of the webhook's choices 233, 222 and 227 the same,
7, 16 and 11 by facts at most 0.34 s older, 0, 2 and 2 unexplained.
"""

from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from lab.tests.e2e.simulator.hour_in_step import (
    SAME,
    TIE,
    UNEXPLAINED,
    VICTIM,
    in_step,
    simulate,
    unexplained,
)
from lab.tests.e2e.simulator.played_hour import LAUNCHES, play
from roost_lab.simulator.engine.pods import USER
from tests.harness.talk import say

pytestmark = pytest.mark.e2e

# Values that must be found out: a set that lacks a whole node, none, and no gate.
SMALLER: Final = {"podClasses": {"user": {"warm": {"spare": "-100%"}}}}
WITHOUT: Final = {"podClasses": {"user": {"warm": None}}}
UNGATED: Final = {"imageGate": {"mode": "off"}}


def test_with_warm_sets_and_the_gate_launches_land_where_the_simulator_says(tmp_path: Path) -> None:
    seen = play()
    real = seen.real
    followed, *others = (in_step(seen, more, tmp_path) for more in ({}, SMALLER, WITHOUT, UNGATED))
    causes, admissions = Counter(followed.outcome.users.values()), followed.admission_counts
    say(f"in step: users {dict(causes)}, placeholders {dict(followed.outcome.placeholders)}")
    ages = [round(age, 2) for age in sorted(followed.ages)]
    say(f"the webhook's choices: {dict(admissions)}; facts older by {ages} s")
    for name, other in zip(("a smaller set", "no set", "no gate"), others, strict=True):
        say(
            f"with {name}: users {dict(Counter(other.outcome.users.values()))}, choices"
            f" {dict(other.admission_counts)}"
        )
    alone = simulate(seen, tmp_path)
    there = {
        binding.number: binding.node
        for binding in alone.bindings
        if binding.kind == USER and binding.number is not None
    }
    share = sum(there.get(number) == node for number, node in real.nodes.items()) / LAUNCHES
    apart = (Counter(there.values()) - Counter(real.nodes.values())).total()
    say(f"alone: {share:.1%} on the same node; {apart} more on some nodes and fewer on others")
    say(f"pulls for users: {seen.pulls}, simulated {alone.measures.result.cold}")
    say(f"pre-empted: {real.preempted}, simulated {len(alone.preempted)}")
    assert (
        followed.outcome.users.keys()
        == followed.admissions.keys()
        == real.nodes.keys()
        == set(range(LAUNCHES))
    )
    # Nothing that isn't named, but for what a machine that stalls may hide.
    assert len(real.stalled) <= LAUNCHES * 0.3
    assert len(unexplained(followed.outcome.users, real)) <= LAUNCHES * 0.02
    assert causes[SAME] + causes[TIE] + causes[VICTIM] >= LAUNCHES * 0.9
    assert len(unexplained(followed.admissions, real)) <= LAUNCHES * 0.02
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
