"""Six hubs' loops in one thread: one with a storm of writes, five with a few."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from roost.controllers import served_hubs
from roost.controllers.contract.actions import ChangeNode, EvictPod, Planned
from roost.controllers.contract.planner import MemoryPlanner
from roost.controllers.contract.snapshot import Moment, Snapshot
from roost.controllers.runtime.apply import Applier
from roost.controllers.runtime.budget import WINDOW_SECONDS, WRITES_PER_MINUTE
from roost.controllers.runtime.events import EventWriter
from roost.controllers.runtime.fair_shares import WRITES_PER_MINUTE_OF_ALL, FairShares
from roost.controllers.runtime.loop import Loop
from roost.controllers.runtime.metrics import Metrics
from roost.controllers.served_hubs import Budgets, ServedHubs, Surroundings
from tests.unit.controllers.test_controllers_loop import FakeClient

if TYPE_CHECKING:
    import pytest

EVICTIONS_OF_ALL: Final = 20
CYCLE_SECONDS: Final = 5.0
# Of a plan.
MOST_AT_ONCE: Final = 700


class Hub:
    """Acts until its work is done: changes of nodes, or evictions."""

    def __init__(self, world: World, *, evictions_per_minute: int) -> None:
        self.client = FakeClient()
        api: Any = self.client
        self.writes = world.writes.share(WRITES_PER_MINUTE)
        self.evictions = world.evictions.share(evictions_per_minute)
        self.changes = self.evicted = 0
        applier = Applier(
            api,
            "hub",
            writes=self.writes,
            evictions=self.evictions,
            events=EventWriter(api, "me", world.clock),
            may_write=lambda: True,
            clock=world.clock,
        )
        self.is_synced = True
        self.loop = Loop(
            [MemoryPlanner("worker", self._plan, 0)],
            lambda: Snapshot("hub", "hub"),
            applier,
            Metrics("test", of_process=False),
            is_leader=lambda: True,
            is_synced=lambda: self.is_synced,
            wall=world.clock,
            steady=world.clock,
        )

    def done(self, verb: str) -> int:
        return sum(1 for each, _, _ in self.client.requests if each == verb)

    def _plan(self, _snapshot: Snapshot, memory: int, _now: Moment) -> Planned[int]:
        changed, evicted = self.done("PATCH"), self.done("POST")
        names = [f"n{index}" for index in range(changed, min(self.changes, changed + MOST_AT_ONCE))]
        pods = [f"p{index}" for index in range(evicted, min(self.evicted, evicted + MOST_AT_ONCE))]
        actions = [ChangeNode(node=name, uid="u", set_labels={"a": "b"}, why="a test") for name in names]
        evictions = [EvictPod(namespace="hub", name=name, uid="u", why="a test") for name in pods]
        return Planned(actions=[*actions, *evictions], memory=memory)


class World:
    def __init__(self, *, noisy: int, quiet: int) -> None:
        self.now = 0.0
        self.writes = FairShares(WRITES_PER_MINUTE_OF_ALL, self.clock)
        self.evictions = FairShares(EVICTIONS_OF_ALL, self.clock)
        # Every hub may evict as many as all together.
        self.hubs = [Hub(self, evictions_per_minute=60) for _ in range(noisy + quiet)]
        self.noisy, self.quiet = self.hubs[:noisy], self.hubs[noisy:]
        # New leaders wait for a minute before they evict.
        self.cycles(1)
        self.now += WINDOW_SECONDS + 1

    def clock(self) -> float:
        return self.now

    def cycles(self, count: int) -> None:
        for _ in range(count):
            self.writes.divide([hub.writes for hub in self.hubs], len(self.hubs))
            self.evictions.divide([hub.evictions for hub in self.hubs], len(self.hubs))
            for hub in self.hubs:
                hub.loop.turn()
            self.now += CYCLE_SECONDS


def test_one_hubs_storm_leaves_room_for_five_quiet_ones_at_once() -> None:
    world = World(noisy=1, quiet=5)
    (storm,) = world.noisy
    storm.changes, storm.evicted = 10_000, 1_000
    world.cycles(3)
    assert storm.done("PATCH") == WRITES_PER_MINUTE, "what it has when it is alone"
    assert storm.done("POST") == 0, "its writes come before its evictions"
    for hub in world.quiet:
        hub.changes, hub.evicted = 100, 1
    world.cycles(1)
    assert [(hub.done("PATCH"), hub.done("POST")) for hub in world.quiet] == [(100, 1)] * 5


def test_a_storm_of_evictions_leaves_room_for_five_quiet_hubs_at_once_and_gets_what_they_leave() -> None:
    world = World(noisy=1, quiet=5)
    (storm,) = world.noisy
    storm.evicted = 1_000
    world.cycles(3)
    assert storm.done("POST") == EVICTIONS_OF_ALL * 3 // 4
    for hub in world.quiet:
        hub.evicted = 1
    world.cycles(1)
    assert [hub.done("POST") for hub in world.quiet] == [1] * 5
    assert sum(hub.done("POST") for hub in world.hubs) == EVICTIONS_OF_ALL
    # They want their equal share: they have it within the minute, and the storm goes on beside them.
    for hub in world.quiet:
        hub.evicted += EVICTIONS_OF_ALL // 6
    world.cycles(int(WINDOW_SECONDS / CYCLE_SECONDS) + 2)
    assert [hub.done("POST") for hub in world.quiet] == [1 + EVICTIONS_OF_ALL // 6] * 5
    assert storm.done("POST") > EVICTIONS_OF_ALL * 3 // 4


def test_storms_of_all_hubs_stay_within_the_total_and_are_even() -> None:
    world = World(noisy=6, quiet=0)
    for hub in world.hubs:
        hub.changes = 100_000
    minutes = 5
    world.cycles(int(minutes * WINDOW_SECONDS / CYCLE_SECONDS))
    done = [hub.done("PATCH") for hub in world.hubs]
    assert sum(done) <= WRITES_PER_MINUTE_OF_ALL * minutes
    assert sum(done) > WRITES_PER_MINUTE_OF_ALL * (minutes - 1)
    assert min(done) > 0.6 * WRITES_PER_MINUTE_OF_ALL * minutes / 6


def test_nothing_is_kept_for_a_hub_whose_watches_failed_while_it_waited() -> None:
    world = World(noisy=2, quiet=0)
    first, second = world.hubs
    first.evicted = second.evicted = 1_000
    world.cycles(1)
    assert second.evictions.wanted
    second.is_synced = False
    world.cycles(1)
    assert not second.evictions.wanted


class Served:
    """A hub whose Lease this replica may hold."""

    def __init__(self, shared: Surroundings, *, is_leader: bool) -> None:
        self.budgets = Budgets(shared.writes.share(WRITES_PER_MINUTE), shared.evictions.share(5))
        self.is_leader = is_leader
        self.could_take: list[int] = []

    def turn(self) -> float:
        self.could_take.append(self.budgets.evictions.left)
        while self.budgets.evictions.take():
            pass
        return 1.0


def test_the_totals_are_divided_among_the_hubs_that_this_replica_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_hubs, "HubFeed", lambda *_args, **_options: None)
    writes, evictions = FairShares(WRITES_PER_MINUTE_OF_ALL, lambda: 0.0), FairShares(9, lambda: 0.0)
    nothing: Any = None
    shared = Surroundings(
        nothing,
        nothing,
        Metrics("test"),
        identity="me",
        central=("roost", "roost-system"),
        minor=37,
        scheduler_configuration=None,
        scope_of=nothing,
        writes=writes,
        evictions=evictions,
        own=Budgets(writes.share(WRITES_PER_MINUTE), evictions.share(5)),
    )
    hubs: Any = ServedHubs(shared)
    leading = {"a": Served(shared, is_leader=True), "b": Served(shared, is_leader=True)}
    hubs._hubs = {**leading, "c": Served(shared, is_leader=False)}
    assert hubs.turns() == 1.0
    # Two of four, the central release's own work being one.
    assert (writes.per_minute, evictions.per_minute) == (WRITES_PER_MINUTE_OF_ALL // 2, 5)
    # The first one leaves a quarter of the five to the second.
    assert [hub.could_take for hub in leading.values()] == [[5], [1]]
