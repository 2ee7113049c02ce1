"""Nobody fares worse with Roost: drawn cases in the scheduler's model; and the judge notices when a mend is undone."""

from typing import Any

import pytest

from roost.controllers.contract.snapshot import Moment
from roost.controllers.image_gate import plan as gate
from tests.judge.cases import draw
from tests.judge.verdicts import try_case
from webhook.rules import require_images

pytestmark = pytest.mark.slow
CASES, CHUNK = 1000, 50


def verdicts(seeds: range) -> list[str]:
    """Who fared worse because of Roost, each with the command that plays the case again."""
    return [
        f"{victim}: python -m tests.judge --seed {seed} --verbose"
        for seed in seeds
        for victim in try_case(draw(seed)).victims
        if not victim.is_drift
    ]


@pytest.mark.parametrize("first", range(0, CASES, CHUNK))
def test_nobody_fares_worse(first: int) -> None:
    assert verdicts(range(first, first + CHUNK)) == []


def waits_by_the_clusters_clock(pods: Any, before: Any, now: Moment, at_most: float) -> dict[str, float]:
    del before, at_most
    waiting = [pod for pod in pods if pod.unschedulable_since is not None]
    return {pod.uid: now.steady - (now.wall - (pod.unschedulable_since or 0.0)) for pod in waiting}


@pytest.mark.parametrize(
    ("undone", "what", "seeds"),
    [
        ((require_images, "may_preempt", lambda _case: False), "deleted", range(10)),
        ((require_images, "_is_spread", lambda _case: False), "misplaced", range(40, 50)),
        ((gate, "find_since", waits_by_the_clusters_clock), "stranded", range(100, 110)),
    ],
    ids=["may-preempt", "spread", "clock"],
)
def test_a_mend_that_is_undone_has_victims(
    undone: tuple[Any, str, Any], what: str, seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*undone)
    assert any(f": {what}:" in verdict for verdict in verdicts(seeds))
