"""Cluster Autoscaler by the rules of its FAQ, and Karpenter by those of its documentation, one test a rule."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost_core.objects.node import Node
from roost_core.objects.pod import Pod
from roost_core.scheduler.state import ClusterState
from roost_lab.simulator.engine.autoscaler import NodeScaler, ScalingDecision
from roost_lab.simulator.engine.cluster_autoscaler import EMPTY_AT_ONCE, ClusterAutoscaler, plan_scale_up
from roost_lab.simulator.engine.karpenter import Karpenter
from roost_lab.simulator.engine.scaling import make_node_scaler
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler
from tests.unit.scheduling_builders import HOSTNAME, node, pod

# Four pods of one CPU fill a node.
WORLD = Assumptions(min_nodes=0, max_nodes=10)
TEMPLATE = node("template", labels={"purpose": "user"})
STARTUP = "startup-taint.cluster-autoscaler.kubernetes.io/hub=:NoSchedule"
NONE: dict[str, float] = {}


def user(name: str, *, on: str = "", cpu: str = "1", **more: Any) -> Pod:
    """A user's pod: nothing owns it."""
    return pod(name, on=on, requests={"cpu": cpu}, **more)


def placeholder(name: str, *, on: str = "", cpu: str = "1", priority: int = -10, **more: Any) -> Pod:
    """A placeholder of a StatefulSet."""
    return pod(name, on=on, requests={"cpu": cpu}, priority=priority, metadata={**owned("StatefulSet"), **more})


def daemon(name: str, on: str = "", cpu: str = "1") -> Pod:
    return pod(name, on=on, requests={"cpu": cpu}, metadata=owned("DaemonSet"))


def owned(kind: str) -> dict[str, Any]:
    return {"ownerReferences": [{"kind": kind, "name": "x", "uid": "x", "controller": True}]}


def full(name: str) -> list[Pod]:
    return [user(f"{name}-{number}", on=name) for number in range(4)]


def scale_up(
    nodes: Iterable[Node], pods: Iterable[Pod], waiting: Iterable[Pod], template: Node = TEMPLATE, **more: int
) -> int:
    """New nodes of the only group."""
    state, booting = ClusterState(nodes, pods), more.get("booting", 0)
    allowed = more.get("max_nodes", 10) - len(state.rows) - booting
    return plan_scale_up(state, waiting, template, booting=booting, allowed=allowed)


def requires(label: str) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": label, "operator": "Exists"}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def prefers(label: str) -> dict[str, Any]:
    term = {"weight": 100, "preference": {"matchExpressions": [{"key": label, "operator": "Exists"}]}}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


def avoids(component: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"component": component}}, "topologyKey": HOSTNAME}
    preferred = [{"weight": 1, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def users(count: int, cpu: str = "1", **more: Any) -> list[Pod]:
    return [user(f"w{cpu}-{number}", cpu=cpu, **more) for number in range(count)]


NOMINATED = {"nominatedNodeName": "a"}
MAKING = user("w", cpu="2", status=NOMINATED)
SEVERAL = [placeholder(f"s{number}", on="a") for number in range(4)]
CORDONED_A = [node("a", cordoned=True), node("b")]
GATED = users(5, affinity=requires("images-pulled.hub"))
# What is said -> nodes, their pods, those who wait, more, new nodes.
SCALE_UPS: dict[str, tuple[list[Node], list[Pod], list[Pod], dict[str, int], int]] = {
    "pods that fit nowhere are packed onto as few nodes as take them": ([], [], users(9), {}, 3),
    "the largest pods are packed first": ([], [], [*users(2), *users(2, "3")], {}, 2),
    "a pod that fits on a node that is there asks for none": ([node("a")], full("a")[:3], users(1), {}, 0),
    "one more than fits there asks for one": ([node("a")], full("a")[:3], users(2), {}, 1),
    "nodes on their way count before more are asked for": ([], [], users(8), {"booting": 1}, 1),
    "enough are on their way": ([], [], users(8), {"booting": 2}, 0),
    "a node under its startup taint counts as on its way": ([node("a", taints=[STARTUP])], [], users(1), {}, 0),
    "a node under another taint is no room": ([node("a", taints=["other=:NoSchedule"])], [], users(1), {}, 1),
    "a required label that no template carries": ([], [], GATED, {}, 0),
    "a required label that the template carries": ([], [], [*GATED, *users(1, affinity=requires("purpose"))], {}, 1),
    "preferred terms count for nothing": ([], [], users(1, affinity=prefers("images-pulled.hub")), {}, 1),
    "nor do a placeholder's": ([node("a")], [], [placeholder("w")], {}, 0),
    "a pod that waits for a pre-emption": ([node("a")], SEVERAL, users(1, status=NOMINATED), {}, 0),
    "room made for one, and what is left": ([node("a")], [*full("a")[:1], MAKING], [MAKING, *users(1)], {}, 0),
    "room made for one isn't there for another": ([node("a")], [*full("a")[:1], MAKING], [MAKING, *users(2)], {}, 1),
    "priority below the cut-off": ([], [], [placeholder("w", priority=-11)], {}, 0),
    "priority at the cut-off": ([], [], [placeholder("w", priority=-10)], {}, 1),
    "pods of daemon sets": ([], [], [daemon("w")], {}, 0),
    "never more than the group may have": ([node("a")], full("a"), users(40), {"max_nodes": 5}, 4),
    "those on their way included": ([node("a")], full("a"), users(40), {"max_nodes": 5, "booting": 3}, 1),
    "none beyond": ([node("a")], full("a"), users(40), {"max_nodes": 1}, 0),
    "a pod larger than any node asks for none": ([], [], [user("w", cpu="5"), user("w2")], {}, 1),
    "a cordoned node is no room": (CORDONED_A, full("b"), users(1), {}, 1),
    "but counts among those the group may have": (CORDONED_A, full("b"), users(1), {"max_nodes": 2}, 0),
}


@pytest.mark.parametrize("case", SCALE_UPS)
def test_as_many_nodes_are_asked_for_as_the_rules_say(case: str) -> None:
    nodes, pods, waiting, more, expected = SCALE_UPS[case]
    assert scale_up(nodes, pods, waiting, TEMPLATE, **more) == expected


def test_a_startup_taint_of_the_template_keeps_no_pod_off() -> None:
    assert scale_up([], [], [user("w")], template=node("template", taints=[STARTUP])) == 1


def scaler(world: Assumptions = WORLD) -> ClusterAutoscaler:
    return ClusterAutoscaler(world, TEMPLATE)


def play(
    machine: NodeScaler,
    state: ClusterState,
    until: float,
    *,
    since: float = 0.0,
    waiting: Iterable[Pod] = (),
    step: float | None = None,
) -> list[tuple[float, ScalingDecision]]:
    """Look when the machine says, or every `step` seconds, and do what it says; what it did, and when."""
    told, now = [], since
    while now <= until:
        looked = machine.look(state, list(waiting), NONE, now)
        for name in looked.remove:
            state.remove_node(name)
        if looked.remove or looked.request or looked.give_up:
            told.append((now, looked))
        if step is None and looked.look_again is None:
            break
        now = now + step if step is not None else looked.look_again or until + 1
    return told


def test_the_loop_turns_every_ten_seconds_from_its_start_on() -> None:
    machine = ClusterAutoscaler(WORLD, TEMPLATE, 3.0)
    assert machine.turn_after(3.0, pods_wait=True) == 3.0
    assert machine.turn_after(3.1, pods_wait=True) == 13.0
    assert machine.turn_after(13.0, pods_wait=False) == 13.0


def test_an_empty_node_goes_when_it_was_unneeded_for_ten_minutes() -> None:
    assert play(scaler(), ClusterState([node("a")]), 10_000) == [(600.0, ScalingDecision(0, ("a",), (), None))]


def test_the_group_keeps_its_least_number_of_nodes_and_is_not_looked_at_for_nothing() -> None:
    state = ClusterState([node("a"), node("b")])
    machine = scaler(replace(WORLD, min_nodes=1))
    assert [looked.remove for _, looked in play(machine, state, 10_000)] == [("a",)]
    assert machine.look(state, [], NONE, 20_000.0).look_again is None


def test_a_node_that_was_needed_in_between_begins_to_wait_anew() -> None:
    state, machine = ClusterState([node("a")]), scaler()
    assert machine.look(state, [], NONE, 0.0).look_again == 600.0
    state.add_pod(user("u", on="a"))
    machine.look(state, [], NONE, 300.0)
    state.remove_pod("hub/u")
    assert machine.look(state, [], NONE, 310.0).look_again == 910.0
    assert machine.look(state, [], NONE, 600.0).remove == ()
    assert machine.look(state, [], NONE, 910.0).remove == ("a",)


def test_nothing_goes_for_ten_minutes_after_a_scale_up() -> None:
    state, machine = ClusterState([node("a"), node("b")], full("b")), scaler()
    machine.look(state, [], NONE, 0.0)
    asked = machine.look(state, [user(f"w{number}", cpu="4") for number in range(2)], NONE, 590.0)
    assert (asked.request, asked.remove, asked.look_again) == (1, (), 600.0)
    assert machine.look(state, [], NONE, 600.0) == ScalingDecision(0, (), (), 1190.0)
    assert machine.look(state, [], NONE, 1180.0).remove == ()
    assert machine.look(state, [], NONE, 1190.0).remove == ("a",)


def safe_to_evict(said: str) -> dict[str, Any]:
    return {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": said}}


A_AND_B = [node("a"), node("b")]
ON_B = user("u", on="b")
HALF = [placeholder("s1", on="a"), placeholder("s2", on="a")]
HEAVY = pod("s", on="a", requests={"memory": "9Gi"}, metadata=owned("StatefulSet"))
# What is said -> pods of the nodes a, b (and c, if one is there), which go.
SCALE_DOWNS: dict[str, tuple[list[Pod], list[str]]] = {
    "a user holds a node for nothing would make the pod anew": ([user("v", on="a", cpu="100m"), ON_B], []),
    "but not one that is safe to evict": ([user("s", on="a", metadata=safe_to_evict("true")), ON_B], ["a"]),
    "what is not safe holds, whoever owns it": ([placeholder("s", on="a", **safe_to_evict("false")), ON_B], []),
    "pods of daemon sets hold no node and make it no less empty": ([daemon("d", "a"), *full("b")], ["a"]),
    "a node that is asked for by half stays": ([*HALF, ON_B], []),
    "one that is asked for by less goes": ([*HALF[:1], ON_B], ["a"]),
    "memory counts as cpu does": ([HEAVY, ON_B], []),
    "movable pods hold a node while they fit nowhere else": ([placeholder("s", on="a"), *full("b")], []),
    "low priority blocks nothing": ([placeholder("s", on="a", cpu="3", priority=-11), *full("b")], ["a"]),
    "not two that could take each other's pods": ([placeholder("s", on="a"), placeholder("t", on="b")], ["a"]),
    # c has room for one of the two.
    "nor to a node that goes": ([placeholder("s", on="a"), placeholder("t", on="b"), *full("c")[:3]], ["a"]),
}


@pytest.mark.parametrize("case", SCALE_DOWNS)
def test_those_nodes_go_that_the_rules_say(case: str) -> None:
    pods, gone = SCALE_DOWNS[case]
    nodes = [node(name) for name in sorted({"a", "b", *(one.node_name for one in pods)})]
    assert [looked.remove for _, looked in play(scaler(), ClusterState(nodes, pods), 10_000)] == [
        (one,) for one in gone
    ]


def test_empty_nodes_go_ten_at_once_and_others_one_at_a_time() -> None:
    state = ClusterState([node(f"n{number:02}") for number in range(14)])
    told = play(scaler(replace(WORLD, max_nodes=30)), state, 10_000)
    assert [(now, len(looked.remove)) for now, looked in told] == [(600.0, EMPTY_AT_ONCE), (610.0, 4)]
    nodes = [node(name) for name in ("a", "b", "c")] + [node("big", cpu="20")]
    moved = [placeholder(name, on=name) for name in ("a", "b", "c")]
    told = play(scaler(), ClusterState(nodes, [*moved, user("u", on="big", cpu="15")]), 10_000)
    assert [(now, looked.remove) for now, looked in told] == [(600.0, ("a",)), (610.0, ("b",)), (620.0, ("c",))]


def test_a_node_that_never_comes_is_given_up_after_a_quarter_of_an_hour_and_the_group_rests() -> None:
    machine, state, waiting = scaler(), ClusterState(), [user("w")]
    assert machine.look(state, waiting, NONE, 0.0).request == 1
    booting = {"n": 0.0}
    assert machine.look(state, waiting, booting, 890.0) == ScalingDecision(0, (), (), 900.0)
    assert machine.look(state, waiting, booting, 900.0) == ScalingDecision(0, (), ("n",), 1200.0)
    assert machine.look(state, waiting, NONE, 1200.0).request == 1
    again = machine.look(state, waiting, {"n": 1200.0}, 2100.0)
    assert again == ScalingDecision(0, (), ("n",), 2700.0)


@pytest.mark.parametrize(("least", "gone"), [(0, [("b",)]), (1, [])])
def test_who_drains_a_node_takes_it_away_and_the_least_number_is_kept_without_it(
    least: int, gone: list[tuple[str]]
) -> None:
    told = play(scaler(replace(WORLD, min_nodes=least)), ClusterState(CORDONED_A), 10_000)
    assert [looked.remove for _, looked in told] == gone


def test_too_many_nodes_long_under_their_startup_taint_stop_everything() -> None:
    tainted = [node(f"t{number}", taints=[STARTUP]) for number in range(4)]
    waiting = [user(f"w{number}") for number in range(30)]
    old = [replace(one, created=100.0) for one in tainted]
    assert scaler().look(ClusterState([*tainted, node("a")]), waiting, NONE, 899.0).request > 0
    assert scaler().look(ClusterState([*old, node("a")]), waiting, NONE, 1001.0) == ScalingDecision(0, (), (), 1020.0)
    # Three are always allowed, and so are few among many.
    assert scaler().look(ClusterState([*old[:3], node("a")]), waiting, NONE, 1001.0).request > 0


def karpenter(world: Assumptions = WORLD) -> Karpenter:
    return Karpenter(replace(world, autoscaler=Autoscaler.KARPENTER), TEMPLATE)


def test_karpenter_gathers_pods_for_a_second_and_asks_for_as_many_nodes_as_take_them() -> None:
    machine = karpenter()
    assert machine.turn_after(3.0, pods_wait=True) == 4.0
    assert machine.look(ClusterState(), [user(f"w{number}") for number in range(9)], NONE, 4.0).request == 3
    assert machine.look(ClusterState(), [user(f"w{number}") for number in range(9)], {"n": 4.0}, 5.0).request == 2


NEAR = user("u", on="a", labels={"component": "user"})


def shy(**more: Any) -> Pod:
    """A placeholder that prefers to be away from users."""
    return pod("s", requests={"cpu": "1"}, metadata=owned("StatefulSet"), affinity=avoids("user"), **more)


# What is said -> nodes, their pods, those who wait, new nodes.
KARPENTER_UPS: dict[str, tuple[list[Node], list[Pod], list[Pod], int]] = {
    "no node that would not help": ([], [], [user("w", affinity=requires("images-pulled.hub"))], 0),
    "none beyond the limit": ([], [], [user(f"w{number}", cpu="4") for number in range(20)], 10),
    "there is no cut-off": ([], [], [placeholder("s", priority=-50)], 1),
    "a preference that a new node meets gets one": ([node("a")], [], [user("w", affinity=prefers("purpose"))], 1),
    "one that none meets is given up": ([node("a")], [], [user("w", affinity=prefers("images-pulled.hub"))], 0),
    "a preferred anti-affinity gets a new node, too": ([node("a")], [NEAR], [shy()], 1),
    "which others beside it don't": ([node("a")], [NEAR], [placeholder("s")], 0),
}


@pytest.mark.parametrize("case", KARPENTER_UPS)
def test_karpenter_asks_for_as_many_nodes_as_its_rules_say(case: str) -> None:
    nodes, pods, waiting, expected = KARPENTER_UPS[case]
    assert karpenter().look(ClusterState(nodes, pods), waiting, NONE, 0.0).request == expected


def test_an_empty_node_goes_after_consolidate_after_and_a_second_look() -> None:
    state, machine = ClusterState([node("a")]), karpenter()
    machine.pods_changed("a", 100.0)
    assert machine.look(state, [], NONE, 110.0) == ScalingDecision(0, (), (), 150.0)
    machine.pods_changed("a", 120.0)
    assert machine.look(state, [], NONE, 150.0).remove == ()
    assert machine.look(state, [], NONE, 170.0).remove == ("a",)


def test_the_node_with_the_fewest_pods_is_moved_first_and_one_at_a_time() -> None:
    nodes = [node("a"), node("b"), node("big", cpu="20")]
    pods = [placeholder("s1", on="a"), placeholder("s2", on="a"), placeholder("t", on="b"), user("u", on="big")]
    looked = karpenter().look(ClusterState(nodes, pods), [], NONE, 1000.0)
    assert looked == ScalingDecision(0, ("b",), (), 1010.0)


@pytest.mark.parametrize(("rows", "goes"), [(10, 1), (11, 2), (20, 2), (21, 3), (40, 4), (60, 4)])
def test_several_nodes_go_together_where_the_budget_allows_it_and_their_pods_fit(rows: int, goes: int) -> None:
    # Five nodes have a placeholder each; users hold the others, and leave room for four.
    movable = [f"m{number}" for number in range(5)]
    held = [f"h{number:02}" for number in range(rows - 5)]
    users = [user(f"u-{name}", on=name, cpu="4") for name in held[1:]]
    pods = [*users, user("free", on=held[0], cpu="10m"), *(placeholder(name, on=name, cpu="990m") for name in movable)]
    looked = karpenter().look(ClusterState([node(name) for name in (*movable, *held)], pods), [], NONE, 1000.0)
    assert looked.remove == tuple(movable[:goes])


def test_of_several_nodes_with_pods_the_empty_ones_go_first_and_alone() -> None:
    rows = [node(f"n{number:02}") for number in range(21)]
    pods = [placeholder("s", on="n00", cpu="10m"), placeholder("t", on="n01", cpu="10m")]
    pods += [user(f"u{number}", on=f"n{number:02}", cpu="10m") for number in range(3, 21)]
    state, machine = ClusterState(rows, pods), karpenter()
    assert machine.look(state, [], NONE, 1000.0).remove == ("n02",)
    state.remove_node("n02")
    assert machine.look(state, [], NONE, 1010.0).remove == ("n00", "n01")


def test_a_node_under_its_startup_taint_is_not_consolidated() -> None:
    state = ClusterState([node("a", taints=[STARTUP])])
    assert karpenter().look(state, [], NONE, 1000.0) == ScalingDecision()


A_AND_BIG = [node("a"), node("big", cpu="20")]
ON_BIG = user("u", on="big", labels={"component": "user"})
KEPT = placeholder("s", on="a", annotations={"karpenter.sh/do-not-disrupt": "true"})
# What is said -> nodes, their pods, which go.
KARPENTER_DOWNS: dict[str, tuple[list[Node], list[Pod], tuple[str, ...]]] = {
    "a user holds a node": (A_AND_B, [user(name, on=name, cpu="10m") for name in "ab"], ()),
    "as do-not-disrupt does": (A_AND_B, [KEPT, user("v", on="b")], ()),
    "no share in use keeps a node whose pods fit elsewhere": (A_AND_BIG, [*SEVERAL, ON_BIG], ("a",)),
    "they have to fit": (A_AND_B, [*SEVERAL, ON_B], ()),
    "preferred anti-affinity stops consolidation": (A_AND_BIG, [ON_BIG, shy(on="a")], ()),
    "which others beside it don't": (A_AND_BIG, [ON_BIG, placeholder("s", on="a")], ("a",)),
}


@pytest.mark.parametrize("case", KARPENTER_DOWNS)
def test_karpenter_takes_those_nodes_away_that_its_rules_say(case: str) -> None:
    nodes, pods, gone = KARPENTER_DOWNS[case]
    assert karpenter().look(ClusterState(nodes, pods), [], NONE, 1000.0).remove == gone


def test_nodes_that_drain_use_up_karpenters_budget_and_are_not_its_own_to_take() -> None:
    def removed(drained: int, nodes: int, least: int = 0) -> int:
        names = [f"n{number:02}" for number in range(nodes)]
        state = ClusterState([node(name, cordoned=index < drained) for index, name in enumerate(names)])
        looked = karpenter(replace(WORLD, min_nodes=least)).look(state, [], NONE, 1000.0)
        assert not set(looked.remove) & set(names[:drained])
        return len(looked.remove)

    assert [removed(drained, 25) for drained in range(5)] == [3, 2, 1, 0, 0]
    # The least number of nodes is one of those that stay.
    assert [removed(1, 25, least) for least in (22, 23, 24)] == [2, 1, 0]
    waiting, rows = [user("w")], [node("a", cordoned=True)]
    assert karpenter().look(ClusterState(rows), waiting, NONE, 0.0).request == 1
    assert karpenter(replace(WORLD, max_nodes=1)).look(ClusterState(rows), waiting, NONE, 0.0).request == 0


def test_karpenter_gives_up_what_never_came() -> None:
    assert karpenter().look(ClusterState(), [], {"n": 0.0}, 900.0).give_up == ("n",)


@given(
    sizes=st.lists(st.integers(1, 5), max_size=30),
    booting=st.integers(0, 3),
    room=st.integers(0, 6),
    rows=st.integers(0, 3),
)
def test_new_nodes_are_enough_and_none_is_idle(sizes: list[int], booting: int, room: int, rows: int) -> None:
    waiting = [user(f"w{number}", cpu=str(size)) for number, size in enumerate(sizes)]
    nodes = [node(f"n{number}") for number in range(rows)]
    asked = scale_up(nodes, [], waiting, booting=booting, max_nodes=rows + booting + room)
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
        changes = sorted((moment, f"n{index}", f"hub/u{number}") for number, (index, moment) in enumerate(ends))
        told: list[tuple[float, tuple[str, ...]]] = []
        again: float | None = 0.0
        for tick in range(0, 6000, 10):
            news = [one for one in changes if tick - 10 < one[0] <= tick]
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
