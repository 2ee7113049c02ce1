"""Cluster Autoscaler's expanders, one test a rule; and Karpenter, which takes the cheapest machine that fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from roost_core.scheduler.state import ClusterState
from roost_lab.simulator.engine.cluster_autoscaler import ClusterAutoscaler
from roost_lab.simulator.engine.expander import Option, choose
from roost_lab.simulator.engine.karpenter import Karpenter
from roost_lab.simulator.engine.node_groups import Fleet, NodeGroup
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.setup.pools import Expander, Pool, Pools
from roost_lab.simulator.setup.pools_file import with_pools
from tests.unit.scheduling_builders import node, pod

if TYPE_CHECKING:
    from roost_core.objects.pod import Pod

NONE: dict[str, float] = {}
GIB = 2**30
# Cores, price, priority.
SMALL, LARGE, DEAR = (2, 1.0, 1), (8, 3.0, 5), (2, 9.0, None)


def group(name: str, cores: int, price: float, priority: int | None, most: int = 10) -> NodeGroup:
    assumed = Assumptions(
        node_cpu_millicores=1000 * cores, node_memory_bytes=4 * cores * GIB, min_nodes=0, max_nodes=most
    )
    return NodeGroup(pool=name, assumed=assumed, labels={}, price=price, priority=priority)


GROUPS = [group("small", *SMALL), group("large", *LARGE), group("dear", *DEAR)]


def user(name: str, cpu: str = "1", memory: str = "4Gi") -> Pod:
    return pod(name, requests={"cpu": cpu, "memory": memory})


def fleet() -> Fleet:
    templates = [
        node(f"template-{one.pool}", cpu=str(cores), memory=f"{4 * cores}Gi")
        for one, (cores, _, _) in zip(GROUPS, (SMALL, LARGE, DEAR), strict=True)
    ]
    return Fleet(GROUPS, templates)


def world(expander: Expander) -> Assumptions:
    pools = tuple(
        Pool(name=one.pool, cpu_millicores=1, memory_bytes=1, boot_seconds=1.0, boot_sigma=0.0, max_nodes=10)
        for one in GROUPS
    )
    return with_pools(Assumptions(), Pools(file="pools.yaml", pools=pools, expander=expander))


def chosen(expander: Expander, users: int, now: float = 0.0) -> list[str]:
    """The pools of the nodes that Cluster Autoscaler requests."""
    waiting = [user(f"u{number}") for number in range(users)]
    decision = ClusterAutoscaler(world(expander), fleet()).look(ClusterState(), waiting, NONE, now)
    return [GROUPS[place].pool for place in decision.groups]


def test_cluster_autoscaler_gives_all_new_nodes_of_a_run_to_one_group() -> None:
    assert chosen(Expander.PRIORITY, 1) == ["large"]
    assert chosen(Expander.PRIORITY, 17) == ["large"] * 3
    # Eight users fill one large node or four small ones: none wastes anything, so one is drawn.
    drawn = [chosen(Expander.LEAST_WASTE, 8, 10.0 * step) for step in range(20)]
    assert {tuple(one) for one in drawn} == {("large",), ("small",) * 4, ("dear",) * 4}


def test_least_waste_leaves_the_least_of_cpu_and_memory() -> None:
    # One user leaves seven eighths of a large node, and half of the others.
    assert {chosen(Expander.LEAST_WASTE, 1, 10.0 * step)[0] for step in range(20)} == {"small", "dear"}


def options(*counts: tuple[int, int, int]) -> list[Option]:
    """(place of the group, nodes, pods of one core and 4 GiB)."""
    return [Option(place, number, tuple(user(f"u{index}") for index in range(pods))) for place, number, pods in counts]


def best(expander: Expander, *counts: tuple[int, int, int], now: float = 0.0) -> str:
    found = choose(options(*counts), GROUPS, expander, 0, now)
    return "" if found is None else GROUPS[found.place].pool


def test_most_pods_takes_the_group_that_takes_most() -> None:
    assert best(Expander.MOST_PODS, (0, 3, 6), (1, 1, 8), (2, 2, 4)) == "large"
    assert best(Expander.MOST_PODS, (0, 3, 9), (1, 1, 8)) == "small"


def test_priority_takes_groups_without_one_last() -> None:
    assert best(Expander.PRIORITY, (0, 1, 1), (2, 1, 1)) == "small"
    assert best(Expander.PRIORITY, (2, 1, 1)) == "dear"


def test_price_weighs_what_nodes_cost_against_what_the_pods_are_worth() -> None:
    assert best(Expander.PRICE, (0, 1, 2), (2, 1, 2)) == "small"
    # Half-empty nodes are dear.
    assert best(Expander.PRICE, (0, 1, 1), (1, 1, 1)) == "small"


def test_random_draws_among_all_by_the_moment() -> None:
    drawn = {best(Expander.RANDOM, (0, 1, 1), (1, 1, 1), (2, 1, 1), now=10.0 * step) for step in range(40)}
    assert drawn == {"small", "large", "dear"}
    assert best(Expander.RANDOM) == ""


def test_only_groups_with_room_left_and_without_a_back_off_are_options() -> None:
    small, large = group("small", 2, 1.0, 5, most=1), group("large", 8, 3.0, 1)
    templates = fleet().templates[:2]
    both = Fleet((small, large), templates, {"n1": 0})
    there = ClusterState([node("n1", cpu="0", pods=0)])
    scaler = ClusterAutoscaler(world(Expander.PRIORITY), both)
    assert scaler.look(there, [user("u")], NONE, 0.0).groups == (1,)
    # A node of the large group never came: it backs off for five minutes, and nothing else has room.
    both.places["asked"] = 1
    late = scaler.look(there, [user("u")], {"asked": 0.0}, 900.0)
    assert (late.request, late.give_up) == (0, ("asked",))
    assert scaler.look(there, [user("u")], NONE, 1190.0).request == 0
    assert scaler.look(there, [user("u")], NONE, 1200.0).groups == (1,)


@pytest.mark.parametrize(("requests", "pools"), [([("1", "4Gi")], ["small"]), ([("4", "4Gi")], ["large"])])
def test_karpenter_takes_the_cheapest_machine_that_fits(requests: list[Any], pools: list[str]) -> None:
    waiting = [user(f"u{index}", *amounts) for index, amounts in enumerate(requests)]
    found = Karpenter(Assumptions(), fleet()).look(ClusterState(), waiting, NONE, 0.0)
    assert [GROUPS[place].pool for place in found.groups] == pools


def test_karpenter_puts_pods_together_before_it_chooses_the_machine() -> None:
    waiting = [user(f"u{index}") for index in range(9)]
    found = Karpenter(Assumptions(), fleet()).look(ClusterState(), waiting, NONE, 0.0)
    # Eight fill a large node; the ninth needs no more than a small one.
    assert [GROUPS[place].pool for place in found.groups] == ["large", "small"]
