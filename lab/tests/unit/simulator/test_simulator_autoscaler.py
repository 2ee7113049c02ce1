"""Cluster Autoscaler by the rules of its FAQ, and Karpenter by those of its documentation."""

from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.tests.told import Story, Thing, stories
from roost_core.objects.node import HOSTNAME_LABEL, Node
from roost_core.objects.pod import Pod
from roost_core.scheduler.state import ClusterState
from roost_lab.simulator.engine.cluster_autoscaler import ClusterAutoscaler, plan_scale_up
from roost_lab.simulator.engine.group_template import CopiedTemplate
from roost_lab.simulator.engine.karpenter import Karpenter
from roost_lab.simulator.engine.node_scaler import ScalingDecision
from roost_lab.simulator.engine.scaling import make_node_scaler
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler
from tests.unit.scheduling_builders import node, pod

# Four pods of one CPU fill a node.
WORLD = Assumptions(min_nodes=0, max_nodes=10)
TEMPLATE = node("template", labels={"purpose": "user"})
TAINTS = {"startup": "startup-taint.cluster-autoscaler.kubernetes.io/hub=:NoSchedule"}
# Of an image; controllers write it.
KEY = "images-pulled.roost.hub.jupyter.org/hub-image"
NOW = 10_000.0
OWNERS = {"placeholder": "StatefulSet", "daemon": "DaemonSet"}
NONE: dict[str, float] = {}
# Longer than anything that waits does.
HOURS = 10_000.0


def made(
    kind: str, name: str, *, on: str = "", cpu: str | int = 1, memory: str = "0", **more: Any
) -> Pod:
    """A pod of a user, whom nothing makes anew; a placeholder of a StatefulSet; or one of a
    DaemonSet.
    """
    owner = {"kind": OWNERS.get(kind), "name": "x", "uid": "x", "controller": True}
    annotations = {
        "cluster-autoscaler.kubernetes.io/safe-to-evict": str(more.get("safe", "")).lower(),
        "karpenter.sh/do-not-disrupt": str(more.get("kept", "")).lower(),
    }
    exists = {
        label: [{"key": more.get(label), "operator": "Exists"}] for label in ("requires", "prefers")
    }
    affinity: dict[str, Any] = {}
    if "wants" in more:
        operator, *values = more["wants"].split()
        expression = {"key": KEY, "operator": operator, **({"values": values} if values else {})}
        wanted = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": wanted}
    if "requires" in more:
        terms = {"nodeSelectorTerms": [{"matchExpressions": exists["requires"]}]}
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    if "prefers" in more:
        preferred = [{"weight": 100, "preference": {"matchExpressions": exists["prefers"]}}]
        affinity["nodeAffinity"] = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    if "avoids" in more:
        term = {
            "labelSelector": {"matchLabels": {"component": more["avoids"]}},
            "topologyKey": HOSTNAME_LABEL,
        }
        away = [{"weight": 1, "podAffinityTerm": term}]
        affinity["podAntiAffinity"] = {"preferredDuringSchedulingIgnoredDuringExecution": away}
    return pod(
        name,
        on=on,
        requests={"cpu": str(cpu), "memory": memory},
        labels={"component": kind},
        priority=more.get("priority", 0 if kind == "user" else -10),
        metadata={
            "annotations": {key: said for key, said in annotations.items() if said},
            "ownerReferences": [owner] if kind in OWNERS else [],
        },
        status={"nominatedNodeName": more["nominated"]} if "nominated" in more else {},
        affinity=affinity,
    )


def user(name: str, **more: Any) -> Pod:
    return made("user", name, **more)


def placeholder(name: str, **more: Any) -> Pod:
    return made("placeholder", name, **more)


def told_node(
    name: str,
    *,
    labels: str = "",
    taints: str = "",
    created: float = 0.0,
    ready: float | str = 0.0,
    **how: Any,
) -> Node:
    """taints: one, or that of `TAINTS`. ready: since when, or never."""
    said = dict(word.split("=") for word in labels.split())
    texts: dict[str, Any] = {
        key: value if isinstance(value, bool) else str(value) for key, value in how.items()
    }
    made = node(name, labels=said, taints=[TAINTS.get(taints, taints)] if taints else [], **texts)
    return replace(made, created=created, ready_since=None if ready == "never" else float(ready))


class Told:
    """A cluster and its autoscaler, and what a story's lines do to them."""

    def __init__(self, story: Story) -> None:
        self.world = replace(
            WORLD,
            **{
                key: it
                for thing in story.things
                if thing.kind == "world"
                for key, it in thing.named.items()
            },
        )
        template = {
            key: it
            for thing in story.things
            if thing.kind == "template"
            for key, it in thing.named.items()
        }
        cloud = told_node("template", **{"labels": "purpose=user", **template})
        self.machine = make_node_scaler(
            replace(self.world, autoscaler=Autoscaler(story.about)), cloud, 0.0
        )
        self.state = ClusterState()
        self.waiting: list[Pod] = []
        self.booting: dict[str, float] = {}
        self.numbers = count()

    def tell(self, thing: Thing) -> None:
        kind, plain, named = thing
        if kind == "node":
            for name in plain:
                self.state.set_node(told_node(name, **named))
        elif kind == "booting":
            self.booting |= dict.fromkeys(map(str, plain), float(named.get("since", 0)))
        elif kind == "full":
            self.pods([user(f"{plain[0]}-{number}", on=plain[0]) for number in range(4)])
        elif kind == "users":
            names = [f"u-{next(self.numbers)}" for _ in range(plain[0])]
            self.pods([user(name, **named) for name in names])
        elif kind in ("user", "placeholder", "daemon"):
            making = named.pop("making", False)
            self.pods([made(kind, name, **named) for name in plain], making=making)
        elif kind == "left":
            self.state.remove_node(plain[0])
        elif kind == "gone":
            self.gone(plain)
        elif kind == "changed":
            self.machine.pods_changed(plain[0], float(plain[1]))
        elif kind == "look":
            self.look(float(plain[0]), **named)
        elif kind == "removes":
            self.removes(plain)

    def pods(self, pods: list[Pod], *, making: bool = False) -> None:
        """making: room is being made for them, which the state knows."""
        for one in pods:
            if one.node_name or making:
                self.state.add_pod(one)
            if not one.node_name:
                self.waiting.append(one)

    def gone(self, names: tuple[str, ...]) -> None:
        self.waiting = [one for one in self.waiting if one.name not in names]
        for name in names:
            if self.state.get_pod(f"hub/{name}") is not None:
                self.state.remove_pod(f"hub/{name}")

    def look(
        self, at: float, *, request: int = 0, remove: str = "", give_up: str = "", again: Any = None
    ) -> None:
        found = self._look(at)
        names = [tuple(filter(None, text.split(","))) for text in (remove, give_up)]
        assert (found.request, found.remove, found.give_up) == (request, *names), at
        if again is not None:
            assert found.look_again == (None if again == "never" else again), at

    def removes(self, names: tuple[str, ...]) -> None:
        found, now = [], 0.0
        while now <= HOURS:
            looked = self._look(now)
            found += [looked.remove] if looked.remove else []
            if looked.look_again is None:
                break
            now = looked.look_again
        assert found == [(name,) for name in names]

    def _look(self, at: float) -> ScalingDecision:
        """Do what it says."""
        looked = self.machine.look(self.state, list(self.waiting), dict(self.booting), at)
        for name in looked.remove:
            self.state.remove_node(name)
        for name in looked.give_up:
            del self.booting[name]
        return looked


@stories(
    "scaling",
    "world template node booting full users user placeholder daemon left gone changed look removes",
)
def test_nodes_come_and_go_by_the_rules(story: Story) -> None:
    told = Told(story)
    for thing in story.things:
        told.tell(thing)


def test_the_loop_turns_every_ten_seconds_and_karpenter_gathers_pods_for_a_second() -> None:
    machine = ClusterAutoscaler(WORLD, TEMPLATE, 3.0)
    assert machine.turn_after(3.0, pods_wait=True) == 3.0
    assert machine.turn_after(3.1, pods_wait=True) == 13.0
    assert machine.turn_after(13.0, pods_wait=False) == 13.0
    assert karpenter().turn_after(3.0, pods_wait=True) == 4.0


def karpenter(world: Assumptions = WORLD) -> Karpenter:
    return Karpenter(replace(world, autoscaler=Autoscaler.KARPENTER), TEMPLATE)


@pytest.mark.parametrize(("rows", "goes"), [(10, 1), (11, 2), (20, 2), (21, 3), (40, 4), (60, 4)])
def test_several_nodes_go_together_where_the_budget_allows_it_and_their_pods_fit(
    rows: int, goes: int
) -> None:
    # Five nodes have a placeholder each; users hold the others, and leave room for four.
    movable = [f"m{number}" for number in range(5)]
    held = [f"h{number:02}" for number in range(rows - 5)]
    users = [user(f"u-{name}", on=name, cpu="4") for name in held[1:]]
    pods = [
        *users,
        user("free", on=held[0], cpu="10m"),
        *(placeholder(name, on=name, cpu="990m") for name in movable),
    ]
    looked = karpenter().look(
        ClusterState([node(name) for name in (*movable, *held)], pods), [], NONE, 1000.0
    )
    assert looked.remove == tuple(movable[:goes])


def test_of_several_nodes_with_pods_the_empty_ones_go_first_and_alone() -> None:
    rows = [node(f"n{number:02}") for number in range(21)]
    pods = [placeholder("s", on="n00", cpu="10m"), placeholder("t", on="n01", cpu="10m")]
    pods += [user(f"u{number}", on=f"n{number:02}", cpu="10m") for number in range(3, 21)]
    state, machine = ClusterState(rows, pods), karpenter()
    assert machine.look(state, [], NONE, 1000.0).remove == ("n02",)
    state.remove_node("n02")
    assert machine.look(state, [], NONE, 1010.0).remove == ("n00", "n01")


def test_a_copy_has_another_name_and_no_taints_that_pass() -> None:
    taints = ["node.kubernetes.io/disk-pressure=:NoSchedule", "hub=user:NoSchedule"]
    there = replace(node("a", labels={"pool": "user", KEY: "true"}, taints=taints), ready_since=0.0)
    found = CopiedTemplate(TEMPLATE).find(ClusterState([there]), NOW)
    assert (found.name, found.labels) == (
        "template",
        {"pool": "user", KEY: "true", HOSTNAME_LABEL: "template"},
    )
    assert [taint.key for taint in found.taints] == ["hub"]


def test_each_turn_copies_another_of_unlike_nodes_and_a_pod_waits_for_one_that_helps_it() -> None:
    nodes = [
        told_node(name, labels=f"{KEY}={text}") for name, text in (("a", "true"), ("b", "pulling"))
    ]
    state = ClusterState(nodes, [user(f"on-{one.name}", on=one.name, cpu=3) for one in nodes])
    template = CopiedTemplate(TEMPLATE)
    found = {template.find(state, NOW + 10 * turn).labels[KEY] for turn in range(20)}
    assert found == {"true", "pulling"}
    scaler = ClusterAutoscaler(WORLD, TEMPLATE, NOW)
    moment, turns = NOW, 0
    while not (
        looked := scaler.look(state, [user("w", cpu=3, wants="NotIn pulling")], {}, moment)
    ).request:
        assert looked.look_again == moment + WORLD.autoscaler_loop_seconds
        moment, turns = looked.look_again, turns + 1
        assert turns < 20


@given(
    sizes=st.lists(st.integers(1, 5), max_size=30),
    booting=st.integers(0, 3),
    room=st.integers(0, 6),
    rows=st.integers(0, 3),
)
def test_new_nodes_are_enough_and_none_is_idle(
    sizes: list[int], booting: int, room: int, rows: int
) -> None:
    waiting = [user(f"w{number}", cpu=str(size)) for number, size in enumerate(sizes)]
    nodes = [node(f"n{number}") for number in range(rows)]
    asked = plan_scale_up(ClusterState(nodes), waiting, TEMPLATE, booting=booting, allowed=room)
    fitting = [size for size in sizes if size <= 4]
    assert 0 <= asked <= min(room, len(fitting))
    if asked < room:
        assert sum(fitting) <= 4 * (asked + booting + rows)


@given(
    ends=st.lists(st.tuples(st.integers(0, 3), st.floats(0, 3000)), max_size=12),
    kind=st.sampled_from([Autoscaler.CLUSTER_AUTOSCALER, Autoscaler.KARPENTER]),
    least=st.integers(0, 2),
)
@pytest.mark.slow
def test_looking_when_told_takes_the_same_nodes_away_at_the_same_moments_as_looking_always(
    ends: list[tuple[int, float]], kind: Autoscaler, least: int
) -> None:
    """Users leave nodes at these moments; nothing else happens."""
    world = replace(WORLD, autoscaler=kind, min_nodes=least)

    def run(always: bool) -> list[tuple[float, tuple[str, ...]]]:
        state = ClusterState([node(f"n{number}") for number in range(4)])
        for number, (index, _) in enumerate(ends):
            state.add_pod(user(f"u{number}", on=f"n{index}", cpu="100m"))
        machine = make_node_scaler(world, TEMPLATE, 0.0)
        changes = sorted(
            (moment, f"n{index}", f"hub/u{number}") for number, (index, moment) in enumerate(ends)
        )
        told: list[tuple[float, tuple[str, ...]]] = []
        again: float | None = 0.0
        for tick in range(0, 6000, 10):
            news = [change for change in changes if tick - 10 < change[0] <= tick]
            for moment, name, key in news:
                state.remove_pod(key)
                machine.pods_changed(name, moment)
            if always or news or (again is not None and again <= tick):
                looked = machine.look(state, [], NONE, float(tick))
                again = looked.look_again
                for name in looked.remove:
                    state.remove_node(name)
                if looked.remove:
                    told.append((float(tick), looked.remove))
        return told

    assert run(False) == run(True)
