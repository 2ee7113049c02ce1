"""Labels of several nodes are written at the same time, within the same budgets and in the same order."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from roost.controllers.contract.actions import ChangeNode, Outcome
from roost.controllers.runtime.apply import Applier, Helpers
from roost.controllers.runtime.budget import MinuteBudget
from roost.controllers.runtime.events import EventWriter
from roost_core.kube.client import ApiError
from tests.unit.controllers.test_controllers_loop import FakeClient, evict

if TYPE_CHECKING:
    from collections.abc import Callable

    from roost.controllers.contract.actions import Action
    from tests.unit.controllers.test_controllers_loop import Object

COUNT = 4
WAIT_SECONDS = 10.0


def change(node: str, *, taint: str = "") -> ChangeNode:
    taints = frozenset({taint} if taint else ())
    return ChangeNode(
        node=node, uid="u", set_labels={"a": "b"}, remove_labels=frozenset(), remove_taints=taints, why="a test"
    )


def applier(client: Any, *, writes: int = 100, leads: Callable[[], bool] = lambda: True) -> Applier:
    return Applier(
        client,
        "hub",
        writes=MinuteBudget(writes, time.monotonic),
        evictions=MinuteBudget(9, time.monotonic),
        events=EventWriter(client, "me"),
        may_write=leads,
        helpers=Helpers(COUNT),
    )


def test_labels_of_four_nodes_are_written_at_the_same_time() -> None:
    meeting = threading.Barrier(COUNT)

    def meet(_verb: str, _path: str) -> None:
        meeting.wait(WAIT_SECONDS)

    done = applier(FakeClient(meet)).apply([change(f"node-{number}") for number in range(2 * COUNT)])
    assert [each.outcome for each in done] == [Outcome.DONE] * (2 * COUNT)
    assert [each.action for each in done] == [change(f"node-{number}") for number in range(2 * COUNT)]


def test_the_budget_and_the_lease_hold_for_them_all_the_same() -> None:
    client = FakeClient()
    done = applier(client, writes=6).apply([change(f"node-{number}") for number in range(10)])
    assert [each.outcome for each in done] == [Outcome.DONE] * 6 + [Outcome.HELD_BACK] * 4
    assert len(client.requests) == 6

    client = FakeClient()
    done = applier(client, leads=lambda: len(client.requests) < COUNT).apply(
        [change(f"node-{number}") for number in range(10)]
    )
    assert [each.outcome for each in done] == [Outcome.DONE] * COUNT + [Outcome.HELD_BACK] * 6


def test_one_that_fails_rests_and_the_others_are_done() -> None:
    def refuse_one(_verb: str, path: str) -> None:
        if path.endswith("/node-1"):
            raise ApiError(403, "forbidden")

    client = FakeClient(refuse_one)
    writer = applier(client)
    changes = [change(f"node-{number}") for number in range(3)]
    assert [each.outcome for each in writer.apply(changes)] == [Outcome.DONE, Outcome.FAILED, Outcome.DONE]
    assert [each.outcome for each in writer.apply(changes)] == [Outcome.DONE, Outcome.HELD_BACK, Outcome.DONE]


def test_a_fault_of_ours_is_raised_once_all_have_ended() -> None:
    ended: list[str] = []

    def fail_one(_verb: str, path: str) -> None:
        if path.endswith("/node-0"):
            raise TypeError("a bug")
        time.sleep(0.1)
        ended.append(path)

    with pytest.raises(TypeError, match="a bug"):
        applier(FakeClient(fail_one)).apply([change(f"node-{number}") for number in range(3)])
    assert len(ended) == 2


def test_what_isnt_a_nodes_labels_or_is_for_the_same_node_waits_for_those_before_it() -> None:
    running: set[str] = set()
    together: list[set[str]] = []
    lock = threading.Lock()

    def note(verb: str, path: str) -> Object | None:
        with lock:
            running.add(f"{verb} {path}")
            together.append({*running})
        time.sleep(0.05)
        with lock:
            running.discard(f"{verb} {path}")
        return {"metadata": {"uid": "u", "resourceVersion": "1"}, "spec": {}}

    actions: list[Action] = [change("a"), change("a"), evict("placeholder-0"), change("b", taint="t"), change("c")]
    done = applier(FakeClient(note)).apply(actions)
    assert [each.outcome for each in done] == [Outcome.DONE] * 5
    assert {len(each) for each in together} == {1}


def test_a_request_without_an_answer_does_not_hold_up_the_end_of_the_process() -> None:
    code = (
        "import threading; from roost.controllers.runtime.apply import Helpers\n"
        "hangs = threading.Event()\n"
        "def hang():\n    hangs.set(); threading.Event().wait()\n"
        "Helpers(4).submit(hang); hangs.wait()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=WAIT_SECONDS)
