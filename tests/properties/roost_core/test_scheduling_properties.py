"""What must hold of the scheduler model for any cluster: order means nothing, every edit can be
undone, pods fit.
"""

import contextlib
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from roost_core.objects.fields import MalformedObjectError
from roost_core.objects.node import Node, read_node
from roost_core.objects.pod import Pod, PodSpec
from roost_core.objects.pod_reader import read_pod
from roost_core.objects.selectors import Requirement
from roost_core.scheduler.cycle import feasible_wanted, schedule
from roost_core.scheduler.filters import Cycle
from roost_core.scheduler.plugins import NEWEST_MINOR, OLDEST_MINOR
from roost_core.scheduler.profile import Profile, default_profile, read_profiles
from roost_core.scheduler.scores import pick
from roost_core.scheduler.state import ClusterState
from roost_core.scheduler.surroundings import DisruptionBudget, Surroundings
from tests.e2e.scheduler_clusters import IMAGES, PRIORITIES, Drawing
from tests.recorded_data import object_of
from tests.scheduling import filter_nodes, score_nodes
from tests.unit.scheduling_builders import HOSTNAME, node, pod

SEEDS = st.integers(0, 2**32)
PROFILES: tuple[Profile, ...] = (
    default_profile(NEWEST_MINOR),
    default_profile(OLDEST_MINOR),
    *read_profiles(object_of("scheduler-pack"), NEWEST_MINOR).values(),
)


class Cluster:
    """Nodes and pods of a seed, as the readers give them."""

    def __init__(self, seed: int, most_nodes: int = 12) -> None:
        self.drawing = Drawing(seed)
        self.drawing.node_names = self.drawing.node_names[: 2 + seed % most_nodes]
        self.nodes = [self.node(name) for name in self.drawing.node_names]
        self.around = Surroundings(
            namespaces=self.drawing.namespaces,
            budgets=(
                DisruptionBudget(
                    "world-one", frozenset({Requirement("app", "In", frozenset({"a"}))}), 1
                ),
            ),
            services={"world-one": ({"app": "a"},)},
        )
        self._specs: dict[PodSpec, PodSpec] = {}
        self._number = 0
        self.pods = [
            self.pod(on=name)
            for name in self.drawing.node_names
            for _ in range(self.drawing.number(0, 4))
        ]

    def node(self, name: str) -> Node:
        body = self.drawing.node(name)
        # One size everywhere: the first report of several would count.
        images = {image: IMAGES[image] for image in body.get("images", ())}
        given = {key: body[key] for key in ("cpu", "memory", "pods")}
        more = {
            "taints": body.get("taints", ()),
            "images": images,
            "extra": body.get("extra_resources"),
        }
        labels = {HOSTNAME: name, **body["labels"]}
        return node(name, labels=labels, cordoned=self.drawing.hinders(0.1), **given, **more)

    def pod(self, *, on: str = "") -> Pod:
        self._number += 1
        body = self.drawing.pod(f"p{self._number}", "any")
        priorities = {name: value for name, value, _ in PRIORITIES}
        body["spec"] |= {
            "nodeName": on,
            "priority": priorities.get(body["spec"].get("priorityClassName"), 0),
        }
        body["status"] = {
            "startTime": f"2026-01-01T00:{self._number // 60 % 60:02d}:{self._number % 60:02d}Z"
            if on
            else None
        }
        if self.drawing.happens(0.1):
            body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return read_pod(body, specs=self._specs)

    def state(self) -> ClusterState:
        return ClusterState(self.nodes, self.pods, self.around)

    def profile(self) -> Profile:
        found: Profile = self.drawing.one(PROFILES)
        return found


def contents(state: ClusterState) -> Any:
    """All that a state says, but for the order in which it was told."""
    rows = {
        name: (row.node, row.requested, row.scored, row.ports, row.pods, row.nominated)
        for name, row in state.rows.items()
    }
    images = {name: (use.size_bytes, use.holders) for name, use in state.images.items()}
    return rows, images, state.terms


def answer(pod: Pod, state: ClusterState, profile: Profile) -> Any:
    """A decision without what ties and order may change."""
    decision = schedule(pod, state, profile)
    table = (
        {name: (points, total) for name, points, total in decision.table.rows()}
        if decision.table
        else None
    )
    nomination = decision.nomination
    chosen = {nomination.node, *nomination.equals} if nomination else set()
    return decision.rejections, table, decision.message, decision.node is None, chosen


@given(SEEDS)
@settings(max_examples=60)
def test_the_order_in_which_nodes_and_pods_are_told_means_nothing(seed: int) -> None:
    cluster = Cluster(seed)
    profile, comes = cluster.profile(), cluster.pod()
    backwards = ClusterState(cluster.nodes[::-1], cluster.pods[::-1], cluster.around)
    pods_first = ClusterState((), cluster.pods, cluster.around)
    for one in cluster.nodes:
        pods_first.set_node(one)
    expected = answer(comes, cluster.state(), profile)
    assert answer(comes, backwards, profile) == expected
    assert answer(comes, pods_first, profile) == expected


@given(SEEDS)
@settings(max_examples=60)
def test_a_state_that_was_edited_and_asked_equals_one_made_anew(seed: int) -> None:
    cluster = Cluster(seed)
    drawing, state = cluster.drawing, cluster.state()
    nodes = {one.name: one for one in cluster.nodes}
    pods = {one.key: one for one in cluster.pods}
    for _ in range(12):
        what = drawing.one(["add", "add", "remove", "change", "node", "forget", "nominate", "ask"])
        if what == "add":
            comes = cluster.pod(on=drawing.one(drawing.node_names))
            pods[comes.key] = comes
            state.add_pod(comes)
        elif what == "nominate":
            comes = replace(cluster.pod(), nominated_node=drawing.one(drawing.node_names))
            pods[comes.key] = comes
            state.add_pod(comes)
        elif what == "remove" and pods:
            key = drawing.one(sorted(pods))
            del pods[key]
            state.remove_pod(key)
        elif what == "change" and pods:
            key = drawing.one(sorted(pods))
            pods[key] = replace(pods[key], leaving=True, labels=drawing.labels())
            state.add_pod(pods[key])
        elif what == "node":
            changed = cluster.node(drawing.one(drawing.node_names))
            nodes[changed.name] = changed
            state.set_node(changed)
        elif what == "forget" and len(nodes) > 1:
            name = drawing.one(sorted(nodes))
            del nodes[name]
            state.remove_node(name)
        else:
            schedule(cluster.pod(), state, cluster.profile())
    anew = ClusterState(nodes.values(), pods.values(), cluster.around)
    assert contents(state) == contents(anew)
    for _ in range(3):
        profile, comes = cluster.profile(), cluster.pod()
        assert answer(comes, state, profile) == answer(comes, anew, profile)


@given(SEEDS)
@settings(max_examples=60)
def test_questions_and_a_pod_that_comes_and_goes_leave_a_state_as_it_was(seed: int) -> None:
    cluster = Cluster(seed)
    state, before = cluster.state(), contents(cluster.state())
    profile = cluster.profile()
    for one in cluster.pods[:5]:
        with state.without(one.key):
            schedule(replace(one, node_name=""), state, profile)
    schedule(cluster.pod(), state, profile)
    assert contents(state) == before
    comes = cluster.pod(on=cluster.drawing.one(cluster.drawing.node_names))
    state.add_pod(comes)
    assert state.remove_pod(comes.key) is comes
    assert contents(state) == before


@given(SEEDS)
@settings(max_examples=100)
def test_a_decision_is_what_filters_and_scores_say(seed: int) -> None:
    cluster = Cluster(seed)
    state, profile, comes = cluster.state(), cluster.profile(), cluster.pod()
    decision = schedule(comes, state, profile)
    verdicts = filter_nodes(comes, state, profile)
    feasible = [name for name, verdict in verdicts.items() if verdict is None]
    assert (decision.node is None) == (not feasible)
    if decision.table is not None:
        assert list(decision.table.nodes) == feasible
        assert decision.node in decision.table.best
        assert decision.table == score_nodes(comes, feasible, state, profile)
        for plugin, points in decision.table.points.items():
            assert all(0 <= point <= 100 * dict(profile.scores)[plugin] for point in points)
    if decision.node is None:
        assert decision.message.startswith(f"0/{len(cluster.nodes)} nodes are available: ")
    else:
        assert decision.message == ""


@given(SEEDS)
@settings(max_examples=150)
def test_when_the_victims_are_gone_the_pod_fits_and_all_were_less_important(seed: int) -> None:
    # A multiple of the moods' number: the crowded one.
    cluster = Cluster(seed // 3 * 3 + 2)
    state, profile, comes = cluster.state(), cluster.profile(), cluster.pod()
    if (nomination := schedule(comes, state, profile).nomination) is None:
        return
    assert nomination.victims
    assert all(victim.priority < comes.priority for victim in nomination.victims)
    with state.without(*(victim.key for victim in nomination.victims)):
        assert (
            Cycle(comes, state, profile).check_with_nominated(state.rows[nomination.node]) is None
        )


def root_of_the_heap(totals: list[int]) -> int:
    """Make the heap, as kube-scheduler does, and look at its root."""
    heap = list(range(len(totals)))
    for start in range(len(heap) // 2 - 1, -1, -1):
        parent = start
        while (child := 2 * parent + 1) < len(heap):
            if child + 1 < len(heap) and totals[heap[child + 1]] > totals[heap[child]]:
                child += 1
            if totals[heap[child]] <= totals[heap[parent]]:
                break
            heap[parent], heap[child] = heap[child], heap[parent]
            parent = child
    return heap[0]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=70))
def test_the_pick_is_the_root_of_the_heap(totals: list[int]) -> None:
    assert pick(totals) == root_of_the_heap(totals)


@given(st.data(), st.sampled_from([0, 50, 100]), st.integers(100, 260))
@settings(max_examples=60, deadline=None)
def test_of_many_nodes_as_many_are_looked_at_as_in_a_walk_from_the_start(
    data: st.DataObject, percent: int, number: int
) -> None:
    closed = data.draw(st.sets(st.integers(0, number - 1), max_size=number))
    nodes = [node(f"n{place}", cordoned=place in closed) for place in range(number)]
    state, profile = (
        ClusterState(nodes),
        replace(default_profile(NEWEST_MINOR), percentage_of_nodes_to_score=percent),
    )
    start = 0
    for turn in range(3):
        comes = pod(f"p{turn}")
        wanted = feasible_wanted(number, profile)
        fits: list[str] = []
        looked_at = 0
        for step in range(number):
            place = (start + step) % number
            if place not in closed and len(fits) == wanted:
                break
            looked_at += 1
            if place not in closed:
                fits.append(f"n{place}")
        decision = schedule(comes, state, profile, start=start)
        assert len(decision.rejections) == looked_at - len(fits)
        if decision.table is not None:
            assert list(decision.table.nodes) == fits
        start = (start + looked_at) % number
        assert decision.next_start == start
        changed = data.draw(st.integers(0, number - 1))
        closed ^= {changed}
        state.set_node(node(f"n{changed}", cordoned=changed in closed))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
ODD = JSON | st.sampled_from(
    [{"a": 1}, [None], [[]], [{}], {"": None}, "1e999999999", -1, 1e308, True]
)


def everywhere(body: Any) -> list[tuple[Any, Any]]:
    """Each place in a JSON value: the object or list that holds it, and under what."""
    if isinstance(body, dict):
        places = list(body.items())
    elif isinstance(body, list):
        places = list(enumerate(body))
    else:
        return []
    return [(body, key) for key, _ in places] + [
        place for _, value in places for place in everywhere(value)
    ]


def whole_pod(seed: int) -> Any:
    """A pod with all that the readers look at."""
    body = Drawing(seed).pod("p", "any")
    body["metadata"] |= {
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "annotations": {"a.hub.jupyter.org/b": "c"},
    }
    more = object_of("pod-with-all")
    body["spec"] |= more["spec"]
    body["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {}).update(more["affinity"])
    return {**body, "status": more["status"]}


@given(SEEDS, st.integers(0), ODD)
@settings(max_examples=500)
def test_the_readers_raise_one_error_each_whatever_stands_in_an_object(
    seed: int, place: int, odd: Any
) -> None:
    for whole, read in (
        (whole_pod(seed % 50), lambda body: read_pod(body, keep_containers=True)),
        (object_of("node-with-all"), read_node),
    ):
        places = everywhere(whole)
        parent, key = places[place % len(places)]
        parent[key] = odd
        with contextlib.suppress(MalformedObjectError):
            read(whole)


@given(JSON)
def test_the_readers_raise_one_error_each_for_what_is_no_object_at_all(body: Any) -> None:
    for read in (read_pod, read_node):
        with contextlib.suppress(MalformedObjectError):
            read(body)
