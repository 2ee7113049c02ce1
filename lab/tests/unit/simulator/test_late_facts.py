"""Late facts: the webhook sees what was, not what is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from roost_lab.simulator.engine.late_facts import LateFacts


class Maker:
    """Notes whether pods are told as starting."""

    warm_classes = ("user",)
    homes = ()
    counts_for_others = False

    def __init__(self) -> None:
        self.told: list[bool] = []

    def warm_pod(self, _state: object, *, is_starting: bool) -> None:
        self.told.append(is_starting)


def test_a_pod_that_is_ready_by_now_is_still_told_as_starting() -> None:
    maker, now = Maker(), [0.0]
    pod: Any = SimpleNamespace(key="hub/a", state=SimpleNamespace(node_name="n1"), ready_at=None)
    facts = LateFacts(
        cast("Any", SimpleNamespace(webhook=None, namespace="hub")), cast("Any", maker), {}, 5.0, lambda: now[0]
    )
    facts.tell_pod(pod)
    now[0] = 3.0
    pod.ready_at = 3.0
    facts.tell_pod(pod)
    now[0] = 5.0
    facts.current()
    assert maker.told == [True]
    now[0] = 8.0
    facts.current()
    assert maker.told == [True, False]
