"""A day in which everything happens, troubles that pass, and the mover's model of the scheduler.

The real loop, planner, applier and budget run on a clock that the test moves; kube-scheduler's
model places pods. What is checked is what operators were promised: the budget at every minute, no
user ever touched, no move in vain.
"""

import random
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.placeholder_mover.scheduler_model import Prediction, SchedulerModel
from roost_core.objects.node import Node
from roost_core.objects.pod import Pod, PodSpec
from roost_core.objects.selectors import Taint
from roost_core.scheduler.plugins import NEWEST_MINOR
from roost_core.scheduler.profile import default_profile
from roost_core.scheduler.state import ClusterState
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
        self.world.at(self.draw.lognormvariate(7.9, 0.6), lambda: self.go(f"jhub/{name}"))
        self.next_user()

    def go(self, pod: str) -> None:
        if pod in self.world.pods:
            self.world.remove_pod(pod)

    def change(self, seconds: float, name: str, **changes: Any) -> None:
        """Later, if the node is still there."""
        self.world.at(
            seconds,
            lambda: self.world.change_node(name, **changes) if name in self.world.nodes else None,
        )

    # An autoscaler: a pending pod brings a node, a node without users goes

    def autoscale(self) -> None:
        world = self.world
        self.world.at(10, self.autoscale)
        pending = [
            pod for pod in world.pods.values() if not pod.node_name and world.now - pod.created > 15
        ]
        if (
            pending
            and self.booting * 10 < len(pending)
            and len(world.nodes) + self.booting < MAX_NODES
        ):
            self.booting += 1
            world.at(BOOT_SECONDS, self.join)
        for name, node in list(world.nodes.items()):
            is_wanted = world.count_users(name) or GOING in node.taints or len(world.nodes) <= 2
            if is_wanted or world.count_placeholders(name) > 4:
                self.empty_since.pop(name, None)
            elif world.now - self.empty_since.setdefault(name, world.now) > EMPTY_SECONDS:
                self.leave(name)

    def join(self) -> None:
        self.booting = max(0, self.booting - 1)
        self.joined += 1
        name = f"node-{self.joined}"
        self.world.add_node(name, imaged=False)
        self.change(PULL_SECONDS, name, labels={PULLED: "true"})

    def leave(self, name: str) -> None:
        self.drains += 1
        self.upsets.append(self.world.now)
        taints = self.world.nodes[name].taints
        self.world.change_node(name, taints=(*taints, GOING))
        self.world.at(20, lambda: self.world.remove_node(name))

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
            self.change(self.draw.uniform(5, 200), name, ready=True)
        else:
            self.world.change_node(name, cordoned=True)
            self.change(self.draw.uniform(60, 1200), name, cordoned=False)

    def change_leader(self) -> None:
        self.world.at(self.draw.uniform(3, 6) * 3600, self.change_leader)
        self.world.start_leader()
        # As the loop does when it begins to lead.
        self.world.applier.evictions.spend_all()


@pytest.mark.parametrize("seed", [1, 2])
def test_in_a_day_of_trouble_the_mover_keeps_its_budget_touches_no_user_and_moves_nothing_in_vain(
    seed: int,
) -> None:
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
    assert (
        most_within_a_minute([eviction.at for eviction in world.evictions]) <= EVICTIONS_PER_MINUTE
    )
    assert world.touched_users == 0
    returned = [eviction for eviction in world.evictions if eviction.landed == eviction.source]
    assert not returned
    # Where one went elsewhere, the node it was meant for was lost in the seconds between.
    for eviction in world.evictions:
        if eviction.landed not in (eviction.marked, ""):
            assert any(eviction.at <= moment <= eviction.landed_at for moment in day.upsets), (
                eviction
            )


# keepMarkSeconds + flapSeconds of the values: what takes longer is worth a move.
PATIENCE_SECONDS: Final = 600
FLAP_SECONDS: Final = 300
_AUTOSCALER: Final = Taint("DeletionCandidateOfClusterAutoscaler", "1", "PreferNoSchedule")
_PRESSURE: Final = Taint("node.kubernetes.io/memory-pressure", "", "NoSchedule")
_DEDICATED: Final = Taint("somebody.else/dedicated", "", "NoSchedule")
# What befalls a node, what ends it, and how long it may last at most.
TROUBLES: Final[dict[str, tuple[dict[str, Any], dict[str, Any], int]]] = {
    "cordon": ({"cordoned": True}, {"cordoned": False}, PATIENCE_SECONDS - 30),
    "pressure": ({"taints": (_PRESSURE,)}, {"taints": ()}, PATIENCE_SECONDS - 30),
    "candidate": ({"taints": (_AUTOSCALER,)}, {"taints": ()}, PATIENCE_SECONDS - 30),
    "dedicated": ({"taints": (_DEDICATED,)}, {"taints": ()}, PATIENCE_SECONDS - 30),
    # It counts as flapping for a while after.
    "not ready": ({"ready": False}, {"ready": True}, PATIENCE_SECONDS - FLAP_SECONDS - 30),
}
TROUBLE = st.sampled_from(sorted(TROUBLES)).flatmap(
    lambda kind: st.tuples(st.just(kind), st.integers(1, TROUBLES[kind][2]))
)
STEP = st.tuples(
    st.sampled_from(["marked", "old", "join"]), TROUBLE, st.integers(FLAP_SECONDS + 30, 2400)
)


@settings(max_examples=20, deadline=None)
@given(steps=st.lists(STEP, min_size=1, max_size=8))
def test_no_placeholder_goes_back_for_what_soon_passes(
    steps: list[tuple[str, tuple[str, int], int]],
) -> None:
    world = MoverWorld(placeholders=5)
    world.add_node("old")
    world.fill_placeholders()
    world.run(3600)
    world.add_node("new")
    world.run(3600)
    assert world.count_placeholders("new") == 5
    joined = 0
    for where, (kind, seconds), quiet_seconds in steps:
        befalls, passes, _ = TROUBLES[kind]
        if where == "join":
            joined += 1
            name = f"joined-{joined}"
            world.add_node(name)
        else:
            (name,) = ["old"] if where == "old" else world.marked()
        world.change_node(name, **befalls)
        world.run(seconds)
        world.change_node(name, **passes)
        world.run(quiet_seconds)
    assert returns(world) == 0
    # Only nodes that join give a reason to move.
    assert len(world.evictions) <= 5 * (1 + joined)


def returns(world: MoverWorld) -> int:
    """How often a placeholder, by its ordinal, was evicted to another node and then evicted
    back.
    """
    before: dict[str, str] = {}
    found = 0
    for eviction in world.evictions:
        found += eviction.landed != "" and before.get(eviction.pod) == eviction.landed
        before[eviction.pod] = eviction.source
    return found


NAMES = ["a", "b", "c"]
NODE = st.builds(
    lambda cpu, cordoned: (cpu, cordoned), st.sampled_from([1000, 2000, 4000]), st.booleans()
)
POD = st.tuples(
    st.sampled_from(["", *NAMES, "unknown"]), st.sampled_from([0, 500, 1000]), st.booleans()
)
CLUSTER = st.tuples(
    st.dictionaries(st.sampled_from(NAMES), NODE),
    st.dictionaries(st.sampled_from([f"p{i}" for i in range(6)]), POD),
)


def _snapshot(
    cluster: tuple[dict[str, tuple[int, bool]], dict[str, tuple[str, int, bool]]],
) -> Snapshot:
    nodes = {
        name: Node(
            name,
            {"kubernetes.io/hostname": name},
            unschedulable=cordoned,
            allocatable={"cpu": cpu, "memory": 2**34, "pods": 5},
        )
        for name, (cpu, cordoned) in cluster[0].items()
    }
    pods = {
        f"n/{name}": Pod(
            "n",
            name,
            node_name=node,
            nominated_node="a" if nominated and not node else "",
            phase="Succeeded" if nominated and node else "Running",
            spec=PodSpec(requests=(("cpu", cpu),)),
        )
        for name, (node, cpu, nominated) in cluster[1].items()
    }
    return Snapshot("hub", "n", nodes, pods)


def _rows(state: ClusterState) -> object:
    return {
        name: (row.node, dict(row.pods), dict(row.nominated), dict(row.requested), dict(row.scored))
        for name, row in state.rows.items()
    }


@settings(max_examples=150, deadline=None)
@given(clusters=st.lists(CLUSTER, min_size=1, max_size=5), data=st.data())
def test_after_any_history_the_model_is_the_one_that_the_snapshot_alone_gives(
    clusters: list[tuple[dict[str, tuple[int, bool]], dict[str, tuple[str, int, bool]]]],
    data: st.DataObject,
) -> None:
    model, profile = SchedulerModel(), default_profile(NEWEST_MINOR)
    for cluster in clusters:
        snapshot = _snapshot(cluster)
        model.follow(snapshot)
        fresh = ClusterState(snapshot.nodes.values(), snapshot.pods.values())
        assert _rows(model._state) == _rows(fresh)
        bound = [
            pod
            for pod in snapshot.pods.values()
            if pod.node_name in snapshot.nodes and not pod.is_finished
        ]
        for pod in bound:
            if data.draw(st.booleans()):
                answer = model.try_move(pod, "b", profile)
                assert answer is not Prediction.TARGET or "b" in snapshot.nodes
        if data.draw(st.booleans()):
            model.undo()
            assert _rows(model._state) == _rows(fresh)


def test_each_move_is_in_the_model_before_the_next_is_asked_for() -> None:
    snapshot = _snapshot(
        ({"a": (4000, False), "b": (1000, False)}, {f"p{i}": ("a", 500, False) for i in range(4)})
    )
    model, profile = SchedulerModel(), default_profile(NEWEST_MINOR)
    snapshot = replace(
        snapshot,
        nodes={**snapshot.nodes, "a": replace(snapshot.nodes["a"], labels={}, unschedulable=True)},
    )
    model.follow(snapshot)
    answers = [model.try_move(pod, "b", profile) for pod in snapshot.pods.values()]
    assert answers == [
        Prediction.TARGET,
        Prediction.TARGET,
        Prediction.REJECTED,
        Prediction.REJECTED,
    ]
