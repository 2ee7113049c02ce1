"""Costs add up, whatever the pools, the launches and the policy."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab_tests.properties.simulator.test_simulator_world_properties import traces
from lab_tests.small_worlds import USER_BYTES, comparable, with_placeholders
from roost_lab.simulator.engine.costs import BY_HUB, BY_IMAGE, BY_POOL, BY_USE, USERS
from roost_lab.simulator.engine.world import World
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler
from roost_lab.simulator.setup.pools import Expander, Pool, Pools, UserProfile
from roost_lab.simulator.setup.pools_file import with_pools

if TYPE_CHECKING:
    from roost_lab.traces.attempt import Attempt


@st.composite
def pools(draw: st.DrawFn) -> Pools:
    """Up to three pools, some of spot nodes in zones; profiles that need much CPU or much memory."""
    made = [
        Pool(
            name=f"pool-{number}",
            cpu_millicores=draw(st.sampled_from((1000, 4000))),
            memory_bytes=draw(st.integers(2, 6)) * USER_BYTES,
            boot_seconds=draw(st.sampled_from((30.0, 300.0))),
            boot_sigma=0.0,
            zones=draw(st.sampled_from(((), ("b",), ("b", "c")))),
            price=draw(st.sampled_from((0.0, 0.1, 2.5))),
            interruptions_per_hour=draw(st.sampled_from((0.0, 0.0, 2.0))),
            min_nodes=draw(st.integers(0, 2)),
            max_nodes=draw(st.integers(2, 6)),
            priority=draw(st.sampled_from((None, 1, 2))),
        )
        for number in range(draw(st.integers(1, 3)))
    ]
    greedy = UserProfile(name="cpu", cpu_millicores=900, memory_bytes=USER_BYTES // 4)
    profiles: Any = draw(st.sampled_from(((), (greedy, UserProfile(name="plain", share=2.0)))))
    return Pools(
        file="pools.yaml",
        pools=tuple(made),
        profiles=profiles,
        profile_lines=(0,) * len(profiles),
        expander=draw(st.sampled_from(list(Expander))),
        claims_share=draw(st.sampled_from((0.0, 0.5))) if any(pool.zones for pool in made) else 0.0,
    )


@settings(max_examples=60, deadline=None)
@given(
    attempts=traces(sizes=True),
    described=pools(),
    autoscaler=st.sampled_from(list(Autoscaler)),
    placeholders=st.integers(0, 3),
    hubs=st.booleans(),
)
def test_the_parts_of_the_costs_are_the_whole(
    attempts: list[Attempt], described: Pools, autoscaler: Autoscaler, placeholders: int, hubs: bool
) -> None:
    if hubs:
        attempts = [one._replace(hub="other" if one.number % 2 else "") for one in attempts]
    assumed = with_pools(Assumptions(autoscaler=autoscaler, quota_per_repository=0), described)
    world = World(with_placeholders("z2jh", placeholders), assumed, 1)
    result = world.play(attempts)
    costs = result.costs
    whole = sum(costs[BY_USE].values())
    assert all(cost >= -1e-9 for table in costs.values() for cost in table.values())
    assert sum(costs[BY_POOL].values()) == pytest.approx(whole, abs=1e-9)
    assert sum(costs[BY_HUB].values()) == pytest.approx(costs[BY_USE][USERS], abs=1e-9)
    assert sum(costs[BY_IMAGE].values()) == pytest.approx(costs[BY_USE][USERS], abs=1e-9)
    prices = {pool.price for pool in described.pools}
    if len(prices) == 1:
        assert whole == pytest.approx(prices.pop() * result.node_hours, abs=1e-9)
    assert min(prices or {0.0}) * result.node_hours <= whole + 1e-9
    # No pool has more nodes than it may.
    there = world.fleet.count_by_pool(world.nodes)
    assert all(there[pool.name] <= pool.max_nodes for pool in described.pools)


@settings(max_examples=10, deadline=None)
@given(attempts=traces(), described=pools())
def test_prices_change_no_placement_but_by_the_expander(attempts: list[Attempt], described: Pools) -> None:
    described = replace(described, expander=Expander.MOST_PODS)
    free = replace(described, pools=tuple(replace(pool, price=0.0) for pool in described.pools))
    results = [
        World(with_placeholders("z2jh", 1), with_pools(Assumptions(), one), 1).play(attempts)
        for one in (described, free)
    ]
    dear, cheap = ({**comparable(result), "costs": {}} for result in results)
    assert dear == cheap
