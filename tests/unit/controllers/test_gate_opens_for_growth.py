"""Nodes that join while users wait: closed no longer than those have waited, or an autoscaler adds more and more."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from roost.controllers.contract.actions import ChangeNode, Planned
from roost.controllers.contract.snapshot import Moment, Snapshot
from roost.controllers.image_gate.plan import GateMemory, plan_image_gate
from roost.controllers.image_gate.waiting import STARTING_SECONDS, plan_openings
from roost_core.objects.node import Node
from roost_core.objects.pod import Pod, PodSpec
from roost_core.objects.selectors import NodeTerm, Requirement, Taint
from roost_core.placement.labels import OPENED, PULLED_LABEL_PREFIX, PULLING
from tests.gate_world import GPU, NAMESPACE, RELEASE, SCIPY, gate_settings, label, true_since

if TYPE_CHECKING:
    from collections.abc import Mapping

NOW = 1_800_000_000.0
GATE = Requirement(label(SCIPY), "NotIn", frozenset({PULLING}))


def openings(
    *, waits: float, node_age: float, taints: tuple[Taint, ...] = (), is_ready: bool = True
) -> tuple[Mapping[str, frozenset[str]], float | None]:
    """One user who waits, one node that pulls; seconds."""
    since = NOW - node_age if is_ready else None
    node = Node(
        name="new",
        labels={label(SCIPY): PULLING},
        taints=taints,
        ready=is_ready,
        uid="new",
        created=NOW - node_age,
        ready_since=since,
        allocatable={"pods": 9},
    )
    spec = PodSpec(required_node_terms=(NodeTerm((GATE,), ()),))
    user = Pod("hub", "ada", uid="ada", spec=spec, unschedulable_since=NOW - waits)
    return plan_openings(
        {"new": node},
        {user.key: user},
        {"new": frozenset({label(SCIPY)})},
        (),
        failing={},
        since=true_since([node], [user]),
        prefix=PULLED_LABEL_PREFIX,
        open_after_seconds=10.0,
        now=NOW,
    )


@pytest.mark.parametrize("node_age", [0.0, 1.0, 300.0])
def test_a_node_that_joins_for_a_user_who_has_waited_is_opened_at_once(node_age: float) -> None:
    assert openings(waits=60.0, node_age=node_age)[0] == {"new": {label(SCIPY)}}


def test_a_user_who_has_just_come_waits_a_while_for_a_node_that_may_get_free() -> None:
    assert openings(waits=4.0, node_age=300.0) == ({}, 6.0)


NOT_READY = Taint("node.kubernetes.io/not-ready", "", "NoSchedule")


@pytest.mark.parametrize(
    ("node_age", "taint", "is_opened"),
    [
        (0.0, NOT_READY, True),
        (60.0, NOT_READY, True),
        # It won't be ready soon, if ever.
        (STARTING_SECONDS, NOT_READY, False),
        # That one doesn't go when the node is ready.
        (0.0, Taint("nvidia.com/gpu", "", "NoSchedule"), False),
    ],
)
def test_a_node_that_registers_is_opened_before_it_is_ready_so_that_no_other_pods_pulls_come_first(
    node_age: float, taint: Taint, *, is_opened: bool
) -> None:
    found = openings(waits=60.0, node_age=node_age, taints=(taint,), is_ready=False)
    assert bool(found[0]) is is_opened


def test_those_whom_a_node_was_opened_for_before_it_is_ready_open_no_second_one_meanwhile() -> None:
    def node(name: str, value: str, *, is_ready: bool) -> Node:
        ready_since = NOW - 5 if is_ready else None
        return Node(
            name,
            {label(SCIPY): value},
            ready=is_ready,
            uid=name,
            created=NOW - 5,
            ready_since=ready_since,
            allocatable={"pods": 1},
        )

    def labels(*names: str) -> Mapping[str, frozenset[str]]:
        spec = PodSpec(required_node_terms=(NodeTerm((GATE,), ()),))
        users = [Pod("hub", name, uid=name, spec=spec, unschedulable_since=NOW - 60) for name in names]
        nodes = {"coming": node("coming", OPENED, is_ready=False), "other": node("other", PULLING, is_ready=True)}
        return plan_openings(
            nodes,
            {user.key: user for user in users},
            {"other": frozenset({label(SCIPY)})},
            (),
            failing={},
            since=true_since(nodes.values(), users),
            prefix=PULLED_LABEL_PREFIX,
            open_after_seconds=10.0,
            now=NOW,
        )[0]

    assert labels("ada") == {}
    assert labels("ada", "bob") == {"other": {label(SCIPY)}}


def test_a_node_is_marked_open_as_it_registers_while_a_user_waits_and_a_silent_one_is_left_alone() -> None:
    def planned(memory: GateMemory, node: Node) -> Planned[GateMemory]:
        spec = PodSpec(required_node_terms=(NodeTerm((GATE,), ()),))
        user = Pod("jhub", "ada", uid="ada", spec=spec, unschedulable_since=NOW - 60)
        snapshot = Snapshot(RELEASE, NAMESPACE, nodes={node.name: node}, pods={user.key: user})
        return plan_image_gate(snapshot, memory, gate_settings(SCIPY), Moment(NOW, 0.0))

    registered = Node("new", taints=(NOT_READY,), ready=False, uid="new", created=NOW, allocatable={"pods": 9})
    (change,) = planned(GateMemory(), registered).actions
    assert isinstance(change, ChangeNode)
    assert change.set_labels == {label(SCIPY): OPENED}
    # One that was ready and isn't: what it says may be old.
    ready = replace(registered, labels={label(SCIPY): PULLING}, taints=(), ready=True, ready_since=NOW - 1)
    memory = planned(GateMemory(), ready).memory
    silent = replace(ready, ready=False, taints=(NOT_READY,), ready_since=None)
    assert planned(memory, silent).actions == []


def test_users_of_several_images_on_one_node_each_have_theirs_opened() -> None:
    def user(name: str, *images: str) -> Pod:
        gate = [Requirement(label(image), "NotIn", frozenset({PULLING})) for image in images]
        spec = PodSpec(required_node_terms=(NodeTerm(tuple(gate), ()),))
        return Pod("hub", name, uid=name, spec=spec, unschedulable_since=NOW - 60)

    users = [user("ada", SCIPY), user("bob", GPU), user("eve", SCIPY)]
    labels = {label(SCIPY): PULLING, label(GPU): PULLING}
    node = Node("new", labels, uid="new", created=NOW, ready_since=NOW, allocatable={"pods": 2})
    found = plan_openings(
        {"new": node},
        {one.key: one for one in users},
        {"new": frozenset(labels)},
        (),
        failing={},
        since=true_since([node], users),
        prefix=PULLED_LABEL_PREFIX,
        open_after_seconds=10.0,
        now=NOW,
    )
    assert found[0] == {"new": frozenset(labels)}
