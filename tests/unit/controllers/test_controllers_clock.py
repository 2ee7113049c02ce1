"""Clocks that jump: budgets, repeats, pace and nodes' ages rest on the clock that doesn't."""

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.controllers.contract.actions import EvictPod, Planned
from roost.controllers.contract.snapshot import Moment, Sight, Snapshot, see
from roost.controllers.runtime.budget import MinuteBudget
from roost.controllers.runtime.loop import LEASE_LOOK_SECONDS, MINOR_SETTLE_SECONDS
from roost_core.objects.node import Node
from tests.unit.controllers.test_controllers_loop import FakeClient, World, planner_of

EVICTIONS_PER_MINUTE = 3


def evict_everything(_snapshot: Snapshot, memory: int, _now: Moment) -> Planned[int]:
    actions = [
        EvictPod(namespace="hub", name=f"placeholder-{index}", uid=str(index), why="a test")
        for index in range(9)
    ]
    return Planned(actions=actions, memory=memory, wake_after_seconds=0.0)


@given(
    steps=st.lists(
        st.tuples(st.floats(0.0, 40.0), st.floats(-1e9, 1e9), st.booleans()),
        min_size=1,
        max_size=60,
    )
)
def test_whatever_clock_and_lead_do_no_minute_exceeds_the_budget(
    steps: Sequence[tuple[float, float, bool]],
) -> None:
    times: list[float] = []
    wall = [1.8e9]
    world = World(
        FakeClient(lambda _verb, _path: times.append(world.now)), evictions=EVICTIONS_PER_MINUTE
    )
    loop = world.loop(planner_of("m", evict_everything), wall=lambda: wall[0])
    for seconds, jump, is_leader in steps:
        world.now += seconds
        wall[0] += jump
        world.leads = is_leader
        loop.turn()
    for start in times:
        assert sum(start <= moment < start + 60.0 for moment in times) <= EVICTIONS_PER_MINUTE


def test_a_budget_of_nothing_is_never_worth_waiting_for() -> None:
    budget = MinuteBudget(0, lambda: 1000.0)
    budget.spend_all()
    assert not budget.take()
    assert budget.seconds_until_next() == float("inf")


@given(st.integers(min_value=1, max_value=5))
def test_waiting_as_long_as_it_says_is_enough(per_minute: int) -> None:
    now = [1000.0]
    budget = MinuteBudget(per_minute, lambda: now[0])
    while budget.take():
        now[0] += 1.0
    now[0] += budget.seconds_until_next()
    assert budget.take()


class Turns:
    """A loop in a thread whose plans are counted."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.world = World()
        self.stop = threading.Event()

        def plan(_snapshot: Snapshot, memory: int, _now: Moment) -> Planned[int]:
            self.times.append(time.monotonic())
            return Planned(actions=(), memory=memory)

        self.loop = self.world.loop(planner_of("m", plan), steady=time.monotonic, wall=time.time)
        self._thread = threading.Thread(target=self.loop.run, args=(self.stop,))

    def __enter__(self) -> "Turns":
        self._thread.start()
        self.wait_for(1)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.loop.wake()
        self._thread.join()

    def wait_for(self, count: int) -> None:
        deadline = time.monotonic() + 20
        while len(self.times) < count:
            assert time.monotonic() < deadline, f"{len(self.times)} plans, expected {count}"
            time.sleep(0.01)


def test_news_are_planned_for_at_once_and_minor_news_a_little_later() -> None:
    with Turns() as turns:
        time.sleep(0.5)
        before = time.monotonic()
        turns.loop.wake()
        turns.wait_for(2)
        assert turns.times[1] - before < MINOR_SETTLE_SECONDS
        for _ in range(5):
            turns.loop.wake_later()
        turns.wait_for(3)
        assert turns.times[2] - turns.times[1] >= MINOR_SETTLE_SECONDS
        time.sleep(2 * MINOR_SETTLE_SECONDS)
        assert len(turns.times) == 3, "minor news were planned for twice"


def test_a_lost_lease_is_seen_by_a_leader_at_rest() -> None:
    with Turns() as turns:
        turns.world.leads = False
        time.sleep(3 * LEASE_LOOK_SECONDS)
        count = len(turns.times)
        turns.world.leads = True
        turns.wait_for(count + 1)


WALL = 1_800_000_000.0


def node(skew: float, *, ready: bool = True) -> Node:
    """A node that came and got ready just now, by clocks that are ahead of ours by `skew`."""
    return Node(name="a", uid="a", created=WALL + skew, ready_since=WALL + skew if ready else None)


@pytest.mark.parametrize("skew", [-3600.0, -60.0, 0.0, 60.0, 3600.0])
def test_what_a_program_sees_come_is_as_old_as_its_own_clock_says(skew: float) -> None:
    joined = see(node(skew, ready=False), None, Moment(WALL, 100.0), 0.0)
    assert (joined.created, joined.ready_since) == (100.0, None)
    # Meanwhile our clock jumped, too.
    ready = see(node(skew), joined, Moment(WALL + 7200, 130.0), 0.0)
    later = see(node(skew), ready, Moment(WALL - 7200, 160.0), 0.0)
    assert ready == later == Sight("a", 100.0, 130.0, WALL + skew)


def test_what_was_there_at_the_start_is_as_old_as_its_timestamps_say_but_not_of_the_future() -> (
    None
):
    now = Moment(WALL, 100.0)
    assert see(node(-60.0), None, now, math.inf) == Sight("a", 40.0, 40.0, WALL - 60)
    assert see(node(60.0), None, now, math.inf) == Sight("a", 100.0, 100.0, WALL + 60)
    assert Snapshot("hub", "hub").sight_of(node(-60.0), now).created == 40.0


def test_a_node_that_gets_ready_again_or_is_another_machine_counts_anew() -> None:
    first = see(node(0.0), None, Moment(WALL, 100.0), 0.0)
    again = see(replace(node(0.0), ready_since=WALL + 50), first, Moment(WALL + 51, 151.0), 0.0)
    assert (again.created, again.ready_since) == (100.0, 151.0)
    assert see(node(0.0, ready=False), again, Moment(WALL + 60, 160.0), 0.0).ready_since is None
    assert see(replace(node(0.0), uid="b"), again, Moment(WALL + 60, 160.0), 0.0).created == 160.0
