"""Nodes that join while users wait: closed no longer than those have waited, or an autoscaler adds more and more."""

from __future__ import annotations

import pytest

from controllers.plans.image_gate_waiting import Openings, plan_openings
from placement.labels import PULLED_LABEL_PREFIX, PULLING
from placement.nodes import NodeFact
from placement.scheduling.objects import NodeState, NodeTerm, PodSpec, PodState
from placement.selectors import Requirement
from tests.gate_world import SCIPY, label

NOW = 1_800_000_000.0
GATE = Requirement(label(SCIPY), "NotIn", frozenset({PULLING}))


def openings(*, waits: float, node_age: float) -> Openings:
    """One user who waits, one node that pulls; seconds."""
    fact = NodeFact(name="new", labels={label(SCIPY): PULLING}, taints=(), ready=True)
    node = NodeState(fact=fact, uid="new", created=NOW - node_age, ready_since=NOW - node_age, allocatable={"pods": 9})
    spec = PodSpec(required_node_terms=(NodeTerm((GATE,), ()),))
    user = PodState("hub", "ada", uid="ada", spec=spec, unschedulable_since=NOW - waits)
    return plan_openings(
        {"new": node},
        {user.key: user},
        {"new": frozenset({label(SCIPY)})},
        (),
        prefix=PULLED_LABEL_PREFIX,
        open_after_seconds=10.0,
        now=NOW,
    )


@pytest.mark.parametrize("node_age", [0.0, 1.0, 300.0])
def test_a_node_that_joins_for_a_user_who_has_waited_is_opened_at_once(node_age: float) -> None:
    assert openings(waits=60.0, node_age=node_age).labels == {"new": {label(SCIPY)}}


def test_a_user_who_has_just_come_waits_a_while_for_a_node_that_may_get_free() -> None:
    found = openings(waits=4.0, node_age=300.0)
    assert found.labels == {}
    assert found.wait_seconds == 6.0
