"""A day of a cluster in which everything happens: users come and go, nodes join, flap, are drained, go.

The real loop, planner, applier and budget run on a clock that the test moves; kube-scheduler's model places pods. What
is checked is what operators were promised: the budget at every minute, no user ever touched, no move in vain.
"""

import random
from typing import Final

import pytest

from roost_core.objects.selectors import Taint
from tests.mover_world import PULLED, START, MoverWorld, most_within_a_minute

DAY: Final = 86_400.0
BOOT_SECONDS: Final = 120.0
PULL_SECONDS: Final = 60.0
EMPTY_SECONDS: Final = 600.0
MAX_NODES: Final = 12
EVICTIONS_PER_MINUTE: Final = 3
GOING: Final = Taint("ToBeDeletedByClusterAutoscaler", "", "NoSchedule")


class Day:
    """The world's own doings, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.world = MoverWorld(placeholders=12, evictionsPerMinute=EVICTIONS_PER_MINUTE)
        self.booting = 0
        self.joined = 0
        self.users = 0
        self.flaps = 0
        self.drains = 0
        self.empty_since: dict[str, float] = {}
        # Moments at which a node stopped being usable: an eviction just before may go wrong.
        self.upsets: list[float] = []

    def run(self) -> None:
        world = self.world
        for _ in range(2):
            self.join()
        world.fill_placeholders()
        self.next_user()
        self.autoscale()
        self.upset()
        self.change_leader()
        world.run(DAY)

    # Users: a day's curve, sessions of three quarters of an hour

    def next_user(self) -> None:
        hour = (self.world.now - START) / 3600.0
        per_hour = 10 + 60 * max(0.0, 1 - abs(hour - 13) / 8)
        self.world.at(self.draw.expovariate(per_hour / 3600.0), self.user_comes)

    def user_comes(self) -> None:
        self.users += 1
        name = f"user-{self.users}"
        self.world.add_user(name)
        self.world.at(self.draw.lognormvariate(7.9, 0.6), lambda: self.user_goes(name))
        self.next_user()

    def user_goes(self, name: str) -> None:
        if f"jhub/{name}" in self.world.pods:
            self.world.remove_pod(f"jhub/{name}")

    # An autoscaler: a pending pod brings a node, a node without users goes

    def autoscale(self) -> None:
        world = self.world
        self.world.at(10, self.autoscale)
        pending = [pod for pod in world.pods.values() if not pod.node_name and world.now - pod.created > 15]
        if pending and self.booting * 10 < len(pending) and len(world.nodes) + self.booting < MAX_NODES:
            self.booting += 1
            world.at(BOOT_SECONDS, self.join_booted)
        for name, node in list(world.nodes.items()):
            is_wanted = world.count_users(name) or GOING in node.taints or len(world.nodes) <= 2
            if is_wanted or world.count_placeholders(name) > 4:
                self.empty_since.pop(name, None)
            elif world.now - self.empty_since.setdefault(name, world.now) > EMPTY_SECONDS:
                self.leave(name)

    def join_booted(self) -> None:
        self.booting -= 1
        self.join()

    def join(self) -> None:
        self.joined += 1
        name = f"node-{self.joined}"
        self.world.add_node(name, imaged=False)
        self.world.at(PULL_SECONDS, lambda: self.imaged(name))

    def imaged(self, name: str) -> None:
        if name in self.world.nodes:
            self.world.change_node(name, labels={PULLED: "true"})

    def leave(self, name: str) -> None:
        self.drains += 1
        self.upsets.append(self.world.now)
        taints = self.world.nodes[name].taints
        self.world.change_node(name, taints=(*taints, GOING))
        self.world.at(20, lambda: self.world.remove_node(name))

    # Nodes that flap, and people who drain

    def upset(self) -> None:
        self.world.at(self.draw.expovariate(1 / 400.0), self.upset)
        if not self.world.nodes:
            return
        # The newest node is where moves go: it has its share.
        name = self.draw.choice([*self.world.nodes, *self.world.marked()])
        if GOING in self.world.nodes[name].taints or not self.world.nodes[name].ready:
            return
        self.upsets.append(self.world.now)
        if self.draw.random() < 0.75:
            self.flaps += 1
            self.world.change_node(name, ready=False)
            self.world.at(self.draw.uniform(5, 200), lambda: self.recover(name))
        else:
            self.world.change_node(name, cordoned=True)
            self.world.at(self.draw.uniform(60, 1200), lambda: self.uncordon(name))

    def recover(self, name: str) -> None:
        if name in self.world.nodes:
            self.world.change_node(name, ready=True)

    def uncordon(self, name: str) -> None:
        if name in self.world.nodes:
            self.world.change_node(name, cordoned=False)

    def change_leader(self) -> None:
        self.world.at(self.draw.uniform(3, 6) * 3600, self.change_leader)
        self.world.start_leader()
        # As the loop does when it begins to lead.
        self.world.applier.evictions.spend_all()


@pytest.mark.parametrize("seed", [1, 2])
def test_in_a_day_of_trouble_the_mover_keeps_its_budget_touches_no_user_and_moves_nothing_in_vain(seed: int) -> None:
    day = Day(seed)
    day.run()
    world = day.world
    # The day was worth living.
    assert day.users > 500
    assert day.flaps > 50
    assert day.joined > 10
    assert day.drains > 5
    assert len(world.evictions) > 50
    # The promises.
    assert most_within_a_minute([eviction.at for eviction in world.evictions]) <= EVICTIONS_PER_MINUTE
    assert world.touched_users == 0
    returned = [eviction for eviction in world.evictions if eviction.landed == eviction.source]
    assert not returned
    # Where one went elsewhere, the node it was meant for was lost in the seconds between.
    for eviction in world.evictions:
        if eviction.landed not in (eviction.marked, ""):
            assert any(eviction.at <= moment <= eviction.landed_at for moment in day.upsets), eviction
