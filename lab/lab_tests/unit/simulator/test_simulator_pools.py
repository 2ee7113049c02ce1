"""Replays with several pools: who goes where, what it costs, and what an interruption takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lab_tests.small_worlds import (
    USER_BYTES,
    WatchedWorld,
    attempt,
    comparable,
    in_order,
    play,
    policy,
    with_placeholders,
)
from roost_core.objects.selectors import Taint
from roost_lab.simulator.engine.costs import (
    BY_HUB,
    BY_IMAGE,
    BY_POOL,
    BY_USE,
    IDLE,
    PLACEHOLDERS,
    USERS,
    dominant_share,
)
from roost_lab.simulator.engine.node_groups import ZONE_LABEL
from roost_lab.simulator.reporting.context import ReportContext
from roost_lab.simulator.reporting.terminal import to_text
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler
from roost_lab.simulator.setup.pools import Pool, Pools, UserProfile
from roost_lab.simulator.setup.pools_file import with_pools
from roost_lab.simulator.sweep.summary import WorldSetting, summarise

HOUR = 3600.0
GPU = "nvidia.com/gpu"


class SpotWorld(WatchedWorld):
    """Nodes may be taken away with their users."""

    def remove_node(self, node: Any) -> None:
        self.removed.append((self.now, node.name))
        super(WatchedWorld, self).remove_node(node)


def pool(name: str, room: int = 4, **more: Any) -> Pool:
    """A pool of nodes with room for `room` users."""
    standard: dict[str, Any] = {
        "cpu_millicores": 4000,
        "memory_bytes": room * USER_BYTES,
        "boot_seconds": 100.0,
        "boot_sigma": 0.0,
        "price": 1.0,
    }
    return Pool(name=name, **{**standard, **more})


def world(*pools: Pool, autoscaler: Autoscaler = Autoscaler.CLUSTER_AUTOSCALER, **more: Any) -> Assumptions:
    assumed = Assumptions(autoscaler=autoscaler, base_families=1, shared_share=0.0, quota_per_repository=0)
    return with_pools(assumed, Pools(file="pools.yaml", pools=pools, **more))


def profile(name: str, **more: Any) -> UserProfile:
    return UserProfile(name=name, **more)


PLAIN = pool("plain", min_nodes=1)
GPUS = pool(
    "gpus", labels=(("gpu", "t4"),), taints=(Taint(GPU, "present", "NoSchedule"),), resources=((GPU, 1),), price=3.0
)
ON_GPU = profile(
    "GPU", node_selector=(("gpu", "t4"),), tolerations=((GPU, "Exists", "", "NoSchedule"),), resources=((GPU, 1),)
)


def pools_of(played: WatchedWorld) -> dict[int, str]:
    """Attempt -> label of its node, "t4" or "" ."""
    places = {one.number: played.nodes[one.node] for one in played.bindings if one.number is not None}
    return {number: node.state.labels.get("gpu", "") for number, node in places.items() if number is not None}


@pytest.mark.parametrize("autoscaler", [Autoscaler.CLUSTER_AUTOSCALER, Autoscaler.KARPENTER])
def test_users_come_to_the_pool_of_their_profile(autoscaler: Autoscaler) -> None:
    assumed = world(PLAIN, GPUS, autoscaler=autoscaler, profiles=(profile("plain", share=3.0), ON_GPU))
    result, played = play(in_order(*((60.0 * number, "a") for number in range(40))), policy("z2jh"), assumed)
    where = pools_of(played)
    assert result.started == 40
    on_gpus = {number for number, label in where.items() if label == "t4"}
    # A quarter of forty, drawn.
    assert 4 <= len(on_gpus) <= 16
    # One GPU a node: no two of them share one.
    nodes = [one.node for one in played.bindings if one.number in on_gpus]
    assert len(set(nodes)) == len(nodes)
    assert all(played.fleet.pool_of(name) == "gpus" for name in nodes)
    other, _ = play(in_order(*((60.0 * number, "a") for number in range(40))), policy("z2jh"), assumed)
    assert comparable(result) == comparable(other)


def test_costs_are_those_of_the_nodes_and_their_parts_add_up() -> None:
    # Two of four places for two hours, on a node that is there all the time.
    said = [attempt(0, 0.0, "a", stays=2 * HOUR), attempt(1, 0.0, "b", stays=2 * HOUR), attempt(2, 10 * HOUR, "a")]
    result, _ = play(said, policy("kube-default"), world(replace(PLAIN, price=0.5, max_nodes=1)))
    costs = result.costs
    assert sum(costs[BY_USE].values()) == pytest.approx(0.5 * 10) == pytest.approx(result.node_hours * 0.5)
    assert costs[BY_USE][USERS] == pytest.approx(0.5 * 2 * 2 / 4, rel=0.05)
    assert costs[BY_USE][IDLE] == pytest.approx(5 - costs[BY_USE][USERS])
    assert costs[BY_POOL] == {"plain": pytest.approx(5)}
    assert (
        sum(costs[BY_IMAGE].values())
        == pytest.approx(costs[BY_USE][USERS])
        == pytest.approx(sum(costs[BY_HUB].values()))
    )
    assert costs[BY_IMAGE]["a"] == pytest.approx(costs[BY_IMAGE]["b"], rel=0.05)
    assert list(costs[BY_HUB]) == ["binder"]


def test_placeholders_have_their_part() -> None:
    said = in_order((0.0, "a"), (HOUR, "a"))
    result, _ = play(said, with_placeholders("z2jh", 2), world(replace(PLAIN, max_nodes=1)))
    assert result.costs[BY_USE][PLACEHOLDERS] == pytest.approx(0.5, rel=0.05)


def test_without_pools_nothing_has_a_price() -> None:
    result, _ = play(in_order((0.0, "a")), policy("z2jh"), Assumptions())
    assert result.costs == {}


def test_a_pods_share_is_its_greatest() -> None:
    node = {"cpu": 4000, "memory": 1000, GPU: 2}
    assert dominant_share({"cpu": 1000, "memory": 500}, node) == 0.5
    assert dominant_share({"cpu": 1000, GPU: 2}, node) == 1.0
    assert dominant_share({}, node) == 0.0


def test_users_with_a_volume_return_to_its_zone() -> None:
    zoned = pool("plain", zones=("b", "c"), min_nodes=2, max_nodes=40)
    said = in_order(*((60.0 * number, "a") for number in range(40)), stays=20 * HOUR)
    result, played = play(said, policy("z2jh"), world(zoned, claims_share=1.0))
    assert result.started == 40
    zones = [played.nodes[name].state.labels[ZONE_LABEL] for name in played.users_nodes()]
    wanted = [
        played.sim_pods[one.pod].state.spec.required_node_terms for one in played.bindings if one.number is not None
    ]
    assert [next(iter(terms[0].expressions[0].values)) for terms in wanted if terms] == zones
    assert 8 <= zones.count("b") <= 32
    # Without volumes nobody is held to a zone, and the packing scheduler needs fewer nodes.
    free, open_world = play(said, policy("z2jh"), world(zoned, claims_share=0.0))
    assert free.nodes_created <= result.nodes_created
    pods = [open_world.sim_pods[one.pod] for one in open_world.bindings if one.number is not None]
    assert all(pod.state.spec.required_node_terms is None for pod in pods)


def test_an_interrupted_nodes_users_lose_their_pods_and_are_counted() -> None:
    spot = replace(PLAIN, interruptions_per_hour=0.5)
    said = in_order(*((600.0 * number, "a") for number in range(100)), stays=2 * HOUR)
    result, played = play(said, policy("z2jh"), world(spot), make=SpotWorld)
    assert result.nodes_interrupted > 3
    assert result.users_interrupted > 3
    # Everybody started, if only to lose the server later; and nobody runs on a node that is gone.
    assert result.started + result.given_up == 100
    assert all(pod.node is None or pod.node.name in played.nodes for pod in played.sim_pods.values())
    calm, _ = play(said, policy("z2jh"), world(PLAIN))
    assert (calm.nodes_interrupted, calm.users_interrupted) == (0, 0)


def test_each_pool_keeps_its_least_and_its_most() -> None:
    small = pool("small", room=1, min_nodes=2, max_nodes=3)
    said = in_order(*((1.0, "a") for _ in range(10)), (2 * HOUR, "a"))
    _, played = play(said, policy("z2jh"), world(small, pool("large", room=2, max_nodes=2)))
    created = [played.fleet.groups[played.fleet.place_of(f"node-{number}")].pool for number in (1, 2)]
    assert created == ["small", "small"]
    assert played.measures.result.peak_nodes == 5


def test_the_terminal_shows_costs_by_pool_hub_and_the_costliest_images() -> None:
    said = [attempt(number, 60.0 * number, f"image-{number}") for number in range(8)]
    assumed = world(replace(PLAIN, max_nodes=3), currency="EUR")
    result, _ = play([*said, attempt(8, 3 * HOUR, "last")], policy("z2jh"), assumed)
    text = to_text(summarise([result], [WorldSetting({}, assumed)]), ReportContext({}, "a trace", None, "1"), 120)
    assert "cost, EUR" in text
    assert "users of hub    binder" in text
    assert text.count("users of image  image-") == 5
    without, _ = play(said, policy("z2jh"), Assumptions())
    plain = summarise([without], [WorldSetting({}, Assumptions())])
    assert "cost" not in to_text(plain, ReportContext({}, "a trace", None, "1"), 120)
