"""What headroom sees of a set's nodes: whose each is, who uses it or waits for it, what is left."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.headroom.pool_view import PoolView, is_of_set, see_pool, waits_for_set
from roost.controllers.headroom.settings import HeadroomSettings
from roost_core.objects.node import Node
from roost_core.objects.pod import Owner, Pod, PodSpec
from roost_core.objects.selectors import NodeRules, Taint, Toleration
from roost_core.placement.labels import PLACEHOLDER_SET_LABEL
from roost_core.release.placeholder_sets import PlaceholderSet
from tests.builders import NAMESPACE, RELEASE, settings

GIB: Final = 2**30
POOL: Final = (("pool", "user"),)
RULES: Final = NodeRules(node_selector=POOL)
SET: Final = PlaceholderSet(
    name="default",
    stateful_set="s",
    label="s",
    rules=RULES,
    replicas=0,
    requests={"cpu": "1", "memory": "1Gi"},
)
SETTINGS: Final = HeadroomSettings(
    is_user=lambda pod, _namespaces: pod.labels.get("is") == "user",
    users_namespaces=lambda _namespaces: None,
)
ROOM: Final = {"cpu": 10_000, "memory": 20 * GIB, "pods": 30}


def node(name: str, allocatable: Mapping[str, int] | None = None, **more: Any) -> Node:
    return Node(name, dict(POOL), allocatable=ROOM if allocatable is None else allocatable, **more)


def pod(name: str, on: str, kind: str = "user", cpu: int = 1000, **more: Any) -> Pod:
    """A pod that selects the set's nodes.

    kind: a user, a build, an agent that each node has, or a placeholder of the set or another.
    """
    labels = {"is": kind}
    if kind in ("default", "another"):
        labels = {PLACEHOLDER_SET_LABEL: kind}
    given: dict[str, Any] = {"phase": "Running" if on else "Pending", **more}
    if kind == "agent":
        given["owner"] = Owner("DaemonSet", "agent", "uid-agent")
    spec = PodSpec(requests=(("cpu", cpu), ("memory", GIB)), node_selector=POOL)
    return Pod(NAMESPACE, name, labels=labels, node_name=on, spec=spec, **given)


def see(nodes: list[Node], *pods: Pod, last: PoolView | None = None, **more: Any) -> PoolView:
    there = {one.name: one for one in nodes}
    snapshot = Snapshot(RELEASE, NAMESPACE, there, {one.key: one for one in pods})
    return see_pool(SET, snapshot, SETTINGS, last, **more)


@pytest.mark.parametrize(
    ("kinds", "is_whose"),
    [
        ([], "empty"),
        (["agent"], "empty"),
        (["default"], "kept_by_learning"),
        (["default", "agent"], "kept_by_learning"),
        (["another"], "of_others"),
        (["build"], "of_others"),
        (["build", "agent"], "of_others"),
        (["user"], ""),
        (["user", "default"], ""),
        (["user", "build"], ""),
        (["user", "another"], ""),
        (["default", "build"], ""),
        (["default", "another"], ""),
        (["user", "default", "another"], ""),
    ],
)
def test_a_node_is_nobodys_the_placeholders_or_others_by_the_pods_that_keep_it(
    kinds: list[str], is_whose: str
) -> None:
    pods = [pod(kind, "n", kind) for kind in kinds]
    seen = see([node("n")], *pods)
    found = {
        name for name in ("empty", "kept_by_learning", "of_others") if "n" in getattr(seen, name)
    }
    assert found == ({is_whose} if is_whose else set())


def test_who_takes_another_sets_seat_keeps_the_node_and_is_none_of_this_sets_users() -> None:
    theirs = pod("theirs", "n")
    waits = pod("waits", "")
    seen = see([node("n")], theirs, waits, takes_seat=lambda _pod, _name: False)
    assert (set(seen.users), seen.level, set(seen.of_others)) == (set(), 0, {"n"})
    # There is room beside them, as beside other users.
    assert (seen.room, seen.spare) == (9, 0)
    asked: list[tuple[str, str]] = []

    def takes_seat(one: Pod, name: str) -> bool:
        asked.append((one.name, name))
        return True

    seen = see([node("n")], theirs, pod("build", "n", "build"), takes_seat=takes_seat)
    assert set(seen.users) == {theirs.key}
    assert asked == [("theirs", "default")]


def of_another_hub(name: str, on: str, kind: str = "user", cpu: int = 1000) -> Pod:
    return replace(pod(name, on, kind, cpu), namespace="biology")


def is_neighbour(one: Pod) -> bool:
    return one.namespace == "biology" and one.labels.get("is") == "user"


SHARING: Final = replace(SETTINGS, is_neighbour=is_neighbour, shares_nodes=True)


def see_shared(*pods: Pod) -> PoolView:
    snapshot = Snapshot(RELEASE, NAMESPACE, {"n": node("n")}, {one.key: one for one in pods})
    settings = replace(SHARING, is_user=lambda one, _: one.namespace == NAMESPACE)
    return see_pool(SET, snapshot, settings, None)


def test_of_hubs_that_share_nodes_users_and_placeholders_keep_them_and_take_shares() -> None:
    theirs = of_another_hub("theirs", "n", cpu=2000)
    waits = of_another_hub("waits", "")
    seat = of_another_hub("seat", "n", "default", cpu=3000)
    seen = see_shared(theirs, waits, seat)
    assert not seen.users
    assert {key: user.size for key, user in seen.neighbours.items()} == {
        theirs.key: 2.0,
        waits.key: 1.0,
    }
    assert (seen.level, seen.placeholders) == (0, 0)
    assert seen.placeholders_of_neighbours == pytest.approx(3)
    assert not seen.empty | seen.kept_by_learning | seen.of_others
    # An empty node has room for ten, and this one, beside their user, for eight.
    assert (seen.per_node, seen.room, seen.spare) == (10, 8, 0)
    # Theirs: 2 + 1 + 3; ours: a user of 1 and a placeholder.
    seen = see_shared(theirs, waits, seat, pod("ours", "n"), pod("seat", "n", "default"))
    assert seen.share == pytest.approx(2 / 8)
    assert see_shared().share is None
    # A node that only their placeholders keep is one that placeholders keep.
    assert see_shared(seat).kept_by_learning == {"n"}
    assert see_shared(of_another_hub("build", "n", "build")).of_others == {"n"}


def test_a_user_of_another_hub_is_a_neighbour_if_the_release_shares_its_pools() -> None:
    server = {"component": "singleuser-server", "app": "jupyterhub"}
    theirs = Pod("biology", "a", labels=server)
    shared = settings(sharedPools={"namespaceSelector": {}})
    assert shared.is_neighbours(theirs)
    # The hub's own user, and what is no user.
    assert not shared.is_neighbours(replace(theirs, namespace=NAMESPACE))
    assert not shared.is_neighbours(Pod("biology", "a", labels={"component": "hub"}))
    assert not settings().is_neighbours(theirs)


def test_of_a_hub_that_shares_no_nodes_neither_users_nor_placeholders_count() -> None:
    theirs = [of_another_hub("seat", "n", "default"), of_another_hub("build", "n", "build")]
    for pods in (theirs[:1], theirs):
        seen = see([node("n")], *pods)
        assert seen.of_others == {"n"}
        assert not seen.kept_by_learning
        assert seen.placeholders == 0
        assert (seen.neighbours, seen.placeholders_of_neighbours, seen.share) == ({}, 0, None)


@pytest.mark.parametrize(
    ("one", "counts"),
    [
        (pod("a", "n"), True),
        (pod("a", "n", leaving=True), False),
        (pod("a", "n", phase="Succeeded"), False),
        (pod("a", "elsewhere"), False),
        (pod("a", "n", "build"), False),
        (pod("a", ""), True),
        (pod("a", "", "build"), False),
        (pod("a", "", leaving=True), False),
    ],
)
def test_users_are_on_a_node_of_the_set_or_wait_for_one(one: Pod, *, counts: bool) -> None:
    assert (one.key in see([node("n")], one).users) == counts


def test_of_a_user_it_is_seen_since_when_it_waits_and_whether_it_runs() -> None:
    waits = pod("waits", "", unschedulable_since=7.0, created=5.0)
    untried = pod("untried", "")
    # What no node had room for before it came here is over.
    pulls = pod("pulls", "n", phase="Pending", unschedulable_since=7.0)
    seen = see([node("n")], waits, untried, pulls, pod("runs", "n", cpu=4000))
    assert {key.partition("/")[2]: user[1:] for key, user in seen.users.items()} == {
        "waits": (1.0, "", 7.0, False),
        "untried": (1.0, "", None, False),
        "pulls": (1.0, "n", None, False),
        "runs": (4.0, "n", None, True),
    }
    assert seen.users[waits.key].created == 5.0
    assert seen.level == 7.0


def test_placeholders_that_wait_are_the_sets_own_and_were_tried() -> None:
    seen = see(
        [node("n")],
        pod("tried", "", "default", unschedulable_since=3.0),
        pod("untried", "", "default"),
        pod("other", "", "another", unschedulable_since=4.0),
        pod("sits", "n", "default", unschedulable_since=5.0),
        pod("user", "", unschedulable_since=6.0),
    )
    assert seen.waiting_since == (3.0, 6.0)


@pytest.mark.parametrize(
    ("nodes", "cpu", "waits"),
    [([node("n")], 10_000, True), ([node("n")], 10_001, False), ([], 10_001, True)],
)
def test_who_is_larger_than_an_empty_node_waits_for_none(
    nodes: list[Node], cpu: int, *, waits: bool
) -> None:
    large = pod("large", "", cpu=cpu, unschedulable_since=6.0)
    assert see(nodes, large).waiting_since == ((6.0,) if waits else ())


@pytest.mark.parametrize(
    ("allocatable", "more", "kinds", "expected"),
    [
        # Beside users, on other nodes, on an empty one.
        (ROOM, {}, [], (0, 10, 10)),
        (ROOM, {}, ["user"], (9, 0, 10)),
        # Placeholders give their place to others.
        (ROOM, {}, ["default", "another"], (0, 10, 10)),
        (ROOM, {}, ["default", "user"], (9, 0, 10)),
        # Builds take room of users, and of empty nodes.
        (ROOM, {}, ["build"], (0, 9, 9)),
        (ROOM, {}, ["build", "user"], (8, 0, 9)),
        # What runs out first: memory, places for pods, CPU.
        ({**ROOM, "memory": 3 * GIB}, {}, ["user"], (2, 0, 3)),
        ({**ROOM, "pods": 4}, {}, ["user", "build"], (2, 0, 3)),
        ({**ROOM, "cpu": 999}, {}, [], (0, 0, 0)),
        # Overfull, and without what placeholders ask for.
        ({**ROOM, "cpu": 1000}, {}, ["build", "user"], (0, 0, 0)),
        ({"memory": 20 * GIB, "pods": 30}, {}, [], (0, 0, 0)),
        ({"cpu": 10_000, "memory": 20 * GIB}, {}, [], (0, 0, 0)),
        (ROOM, {"unschedulable": True}, ["user"], (0, 0, 0)),
        (ROOM, {"ready": False}, [], (0, 0, 0)),
    ],
)
def test_room_is_counted_in_placeholders_by_what_runs_out_first(
    allocatable: Mapping[str, int],
    more: Mapping[str, Any],
    kinds: list[str],
    expected: tuple[int, int, int],
) -> None:
    seen = see([node("n", allocatable, **more)], *(pod(kind, "n", kind) for kind in kinds))
    assert (seen.room, seen.spare, seen.per_node) == expected


def test_room_of_all_nodes_is_added_and_the_roomiest_says_how_many_fit_one() -> None:
    small = node("small", {**ROOM, "cpu": 4000})
    seen = see([node("n"), small, node("m")], pod("user", "small"), pod("more", "m"))
    assert (seen.room, seen.spare, seen.per_node) == (3 + 9, 10, 10)


def test_sizes_are_reckoned_by_the_largest_node_that_was_ever_seen() -> None:
    # A user takes a fifth of the node's memory, and a placeholder a tenth of its CPU.
    first = see([node("n", {"cpu": 10_000, "memory": 5 * GIB, "pods": 9}), node("m", {"cpu": 1})])
    assert first.roomiest == (10_000, 5 * GIB)
    waits = Pod(
        NAMESPACE,
        "waits",
        labels={"is": "user"},
        spec=PodSpec(requests=(("cpu", 1000), ("memory", 2 * GIB)), node_selector=POOL),
    )
    # While there is none, the last one counts; a node that doesn't say what it has is none.
    for nodes in ([], [node("bare", {})], [node("half", {"cpu": 10_000})]):
        later = see(nodes, waits, last=first)
        assert (later.roomiest, later.level) == ((10_000, 5 * GIB), 2.0)
    unknown = see([], waits)
    assert (unknown.roomiest, unknown.level) == ((0, 0), 2.0)


@pytest.mark.parametrize(
    ("requests", "size"), [({"cpu": "1"}, 5.0), ({"memory": "1Gi"}, 10.0), ({}, 1.0)]
)
def test_a_user_is_measured_by_the_share_of_a_node_that_both_take(
    requests: dict[str, str], size: float
) -> None:
    user = Pod(
        NAMESPACE,
        "user",
        labels={"is": "user"},
        node_name="n",
        spec=PodSpec(requests=(("cpu", 1000), ("memory", 10 * GIB))),
    )
    snapshot = Snapshot(RELEASE, NAMESPACE, {"n": node("n")}, {user.key: user})
    seen = see_pool(replace(SET, requests=requests), snapshot, SETTINGS, None)
    assert seen.level == size


def taint(key: str) -> Taint:
    return Taint(key, "", "NoSchedule")


@pytest.mark.parametrize(
    ("labels", "taints", "is_own"),
    [
        (dict(POOL), (), True),
        ({"pool": "gpu"}, (), False),
        (dict(POOL), ("team",), True),
        (dict(POOL), ("other",), False),
        ({"pool": "gpu"}, ("team",), False),
        # These tell of a node's state, not of whose it is.
        (dict(POOL), ("node.kubernetes.io/not-ready", "team"), True),
        (dict(POOL), ("node.cloudprovider.kubernetes.io/shutdown",), True),
        (dict(POOL), ("ToBeDeletedByClusterAutoscaler",), True),
        (dict(POOL), ("ToBeDeletedByClusterAutoscaler", "other"), False),
    ],
)
def test_a_node_is_the_sets_by_its_labels_and_the_taints_that_last(
    labels: dict[str, str], taints: tuple[str, ...], *, is_own: bool
) -> None:
    rules = NodeRules(node_selector=POOL, tolerations=(Toleration("team", "Exists", "", ""),))
    there = Node("n", labels, tuple(taint(key) for key in taints))
    assert is_of_set(rules, there) == is_own


@pytest.mark.parametrize(
    ("selector", "nodes", "waits"),
    [
        # Without a node, by what both select.
        (POOL, [], True),
        ((*POOL, ("disk", "ssd")), [], True),
        ((), [], False),
        ((("disk", "ssd"),), [], False),
        # A node of the set has all that the pod selects.
        ((), [node("n")], True),
        (POOL, [node("n")], True),
        ((*POOL, ("disk", "ssd")), [node("n")], False),
        ((("pool", "gpu"),), [node("n")], False),
        ((("disk", "ssd"),), [node("n"), Node("m", {"disk": "ssd"})], True),
    ],
)
def test_a_pod_waits_for_a_set_whose_nodes_it_selects(
    selector: tuple[tuple[str, str], ...], nodes: list[Node], *, waits: bool
) -> None:
    spec = PodSpec(node_selector=selector)
    assert waits_for_set(spec, SET, {one.name: one for one in nodes}) == waits
