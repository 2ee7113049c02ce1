"""The simulator against figures that others wrote down: a load test of mybinder.org, and what the warm set saves."""

from typing import Any

import pytest

from lab.tests.small_worlds import BEGIN, play, without_pullers
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler
from roost_lab.traces.attempt import Attempt
from roost_lab.traces.synthetic import synthetic_attempts
from tests.harness.talk import say

pytestmark = pytest.mark.slow

PER_NODE = 66


# The warm set


def test_the_warm_set_alone_saves_a_third_of_cold_starts_on_a_made_up_day_at_packings_node_hours() -> None:
    packed, warm = (
        play(synthetic_attempts(1, days=1.0), without_pullers(name), Assumptions())[0]
        for name in ("z2jh", "warm-alone")
    )
    say(f"cold {packed.cold} and {warm.cold}, node-hours {packed.node_hours:.1f} and {warm.node_hours:.1f}")
    assert warm.cold < 0.75 * packed.cold
    assert warm.node_hours < 1.03 * packed.node_hours


# A load test


# mybinder.org's load test of July 2018: two rounds of about a hundred clicks of one repository within ten seconds; how
# long each took, in seconds: the least, the quartiles, the most.
LOAD_TEST = (9, 100, 138, 179, 573)


def _load_test(name: str, pulls: str, nodes: int, image_bytes: float, *, full: bool = False) -> list[float]:
    """The same figures, simulated: a hundred launches of one new image within ten seconds.

    full: other users leave room for 25, and nodes may come.
    """
    more: dict[str, Any] = {
        "min_nodes": nodes,
        "max_nodes": nodes + 4 * full,
        "pulls": pulls,
        "start_timeout_seconds": 3000.0,
    }
    if not full:
        more["autoscaler"] = Autoscaler.NONE
    others = [
        Attempt(number, BEGIN - 3000 + number / 10, f"b{number % 40}", f"b{number % 40}", int(1.6e9), 100_000.0)
        for number in range((nodes * PER_NODE - 25) * full)
    ]
    test = [Attempt(1000 + number, BEGIN + number / 10, "new", "new", int(image_bytes)) for number in range(100)]
    result, world = play([*others, *test], without_pullers(name), Assumptions(**more))
    assert result.given_up == 0
    totals = sorted(world.hub.totals[one.number] for one in test)
    return [totals[min(99, int(share * 100))] for share in (0, 0.25, 0.5, 0.75, 1)]


def test_a_load_test_of_one_new_image_is_bracketed_and_packing_on_slow_nodes_comes_near() -> None:
    """What is near, and what is not.

    Quartiles: nearest are slow pulls, users packed and 2 GB, 15, 30 and 38 % below the measured ones; faster disks or
    users that are spread make all quicker than it was, a cluster with room for 25 makes it slower, for most then wait
    for a boot: what was measured lies between. The number of nodes matters only where users are spread: packed, a
    hundred fill two of them. Not met: the least with slow pulls (9 s: in the second round nodes had the image; one
    round is played), and the most (573 s: how full the cluster was isn't known, nor what the hub's queue, its proxy and
    failed tries cost, none of which is simulated).
    """
    found = {}
    for pulls in ("fast", "middle", "slow"):
        for gigabytes in (1, 2):
            for nodes in (4, 8):
                for name in ("z2jh", "kube-default"):
                    found[pulls, gigabytes, nodes, name, ""] = _load_test(name, pulls, nodes, gigabytes * 1e9)
                found[pulls, gigabytes, nodes, "z2jh", "full"] = _load_test(
                    "z2jh", pulls, nodes, gigabytes * 1e9, full=True
                )
    for setting, figures in found.items():
        say(f"{' '.join(map(str, setting))} {[round(one) for one in figures]}")
    for index in (1, 2, 3):
        assert min(one[index] for one in found.values()) < LOAD_TEST[index] < max(one[index] for one in found.values())
    near = found["slow", 2, 8, "z2jh", ""]
    assert found["slow", 2, 4, "z2jh", ""] == near
    assert [near[index] / LOAD_TEST[index] for index in (1, 2, 3)] == pytest.approx([0.85, 0.70, 0.62], abs=0.05)
    assert near[0] > LOAD_TEST[0]
    assert near[4] < LOAD_TEST[4]
