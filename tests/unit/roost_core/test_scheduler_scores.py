"""The worked examples of kube-scheduler's arithmetic, each with the numbers computed by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from roost_core.objects.node import read_node
from roost_core.objects.selectors import Requirement
from roost_core.scheduler.filters import Cycle
from roost_core.scheduler.plugins import NEWEST_MINOR
from roost_core.scheduler.profile import default_profile
from roost_core.scheduler.scores import SCORERS, Chosen, ScoreTable, pick
from roost_core.scheduler.state import ClusterState
from roost_core.scheduler.surroundings import Surroundings
from tests.scheduling import score_nodes
from tests.unit.scheduling_builders import GIB, HOSTNAME, MIB, ZONE, app, arguments, node, pod, preferred, profile, term

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roost_core.objects.node import Node
    from roost_core.objects.pod import Pod
    from roost_core.scheduler.profile import Profile

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def scores(
    plugin: str,
    incoming: Pod,
    nodes: Sequence[Node],
    pods: Sequence[Pod] = (),
    using: Profile | None = None,
    *,
    surroundings: Surroundings | None = None,
) -> list[int] | None:
    state = ClusterState(nodes, pods, surroundings or Surroundings())
    chosen = Chosen(state, [state.places[one.name] for one in nodes])
    found = SCORERS[plugin](Cycle(incoming, state, using or default_profile(NEWEST_MINOR)), chosen, 1)
    return None if found is None else ScoreTable(chosen, {plugin: found}).points[plugin]


class TestFit:
    NODE = node("a", cpu="3900m", memory="8Gi")
    THERE = pod("there", on="a")
    COMES = pod("comes", requests={"cpu": "500m"})

    @pytest.mark.parametrize(
        ("strategy", "expected"),
        [
            ({"type": "LeastAllocated"}, 89),
            ({"type": "MostAllocated"}, 9),
            (
                {
                    "type": "RequestedToCapacityRatio",
                    "requestedToCapacityRatio": {
                        "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
                    },
                },
                10,
            ),
        ],
    )
    def test_containers_without_requests_count_100m_and_200_mib(self, strategy: dict[str, Any], expected: int) -> None:
        using = profile(**arguments("NodeResourcesFit", scoringStrategy=strategy))
        assert scores("NodeResourcesFit", self.COMES, [self.NODE], [self.THERE], using) == [expected]

    def test_falling_curves_truncate_towards_zero_and_resources_scoring_nothing_leave_the_mean(self) -> None:
        shape = [{"utilization": 0, "score": 10}, {"utilization": 85, "score": 10}, {"utilization": 100, "score": 0}]
        strategy = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}}
        using = profile(**arguments("NodeResourcesFit", scoringStrategy=strategy))
        there = pod("there", on="a", requests={"cpu": "3", "memory": "4Gi"})
        nodes = [node("a", cpu="4", memory="8Gi")]
        # CPU 4 of 4: 100 % gives 0 and goes; memory 4.5 of 8 GiB: 56 % gives 100.
        full = pod("full", requests={"cpu": "1", "memory": "512Mi"})
        assert scores("NodeResourcesFit", full, nodes, [there], using) == [100]
        # CPU 92 %: 100 - 700/15 = 100 - 46; with memory's 100 that is 77.
        most = pod("most", requests={"cpu": "700m", "memory": "512Mi"})
        assert scores("NodeResourcesFit", most, nodes, [there], using) == [77]

    def test_between_two_points_a_falling_curve_is_rounded_up(self) -> None:
        shape = [{"utilization": 0, "score": 10}, {"utilization": 30, "score": 0}]
        ratio = {"requestedToCapacityRatio": {"shape": shape}, "resources": [{"name": "cpu"}]}
        using = profile(**arguments("NodeResourcesFit", scoringStrategy={"type": "RequestedToCapacityRatio", **ratio}))
        # 100 - 1000 / 30, cut towards zero: 100 - 33.
        assert scores("NodeResourcesFit", pod("p", requests={"cpu": "100m"}), [node("a", cpu="1")], (), using) == [67]

    def test_an_extended_resource_that_is_not_asked_for_stays_out_of_the_mean(self) -> None:
        resources = [{"name": "cpu"}, {"name": "example.com/gpu"}]
        using = profile(
            **arguments("NodeResourcesFit", scoringStrategy={"type": "MostAllocated", "resources": resources})
        )
        nodes = [node("a", cpu="1", extra={"example.com/gpu": "4"})]
        assert scores("NodeResourcesFit", pod("p", requests={"cpu": "500m"}), nodes, (), using) == [50]
        both = pod("p", requests={"cpu": "500m", "example.com/gpu": "1"})
        assert scores("NodeResourcesFit", both, nodes, (), using) == [37]


class TestBalance:
    def test_a_pod_that_tips_the_balance_scores_below_75(self) -> None:
        nodes = [node("a", cpu="3900m", memory="8Gi")]
        comes = pod("comes", requests={"cpu": "500m"})
        assert scores("NodeResourcesBalancedAllocation", comes, nodes) == [71]
        assert scores("NodeResourcesBalancedAllocation", comes, nodes, (), default_profile(35)) == [93]

    def test_a_pod_that_restores_it_scores_above(self) -> None:
        there = pod("there", on="a", requests={"cpu": "1", "memory": "4Gi"})
        nodes = [node("a", cpu="4", memory="8Gi")]
        assert scores("NodeResourcesBalancedAllocation", pod("p", requests={"cpu": "1"}), nodes, [there]) == [81]

    def test_a_pod_that_asks_for_nothing_is_not_scored(self) -> None:
        assert scores("NodeResourcesBalancedAllocation", pod("p"), [node("a")]) is None


class TestImages:
    @pytest.mark.parametrize(
        ("size", "holders", "nodes", "expected"),
        [
            (2 * GIB, 1, 20, 8),
            (2 * GIB, 1, 4, 50),
            (2 * GIB, 19, 20, 100),
            (500 * MIB, 1, 20, 0),
            (500 * MIB, 2, 4, 23),
        ],
    )
    def test_rare_images_count_little(self, size: int, holders: int, nodes: int, expected: int) -> None:
        cluster = [node(f"n{index}", images={"image:1": size} if index < holders else {}) for index in range(nodes)]
        found = scores("ImageLocality", pod("p"), cluster)
        assert found is not None
        assert found[0] == expected
        assert found[-1] == (0 if holders < nodes else expected)

    def test_the_same_image_twice_counts_twice(self) -> None:
        cluster = [node(f"n{index}", images={"image:1": 500 * MIB} if index < 2 else {}) for index in range(4)]
        found = scores("ImageLocality", pod("p", images=["image:1", "image:1"]), cluster)
        assert found is not None
        assert found[0] == 24

    @pytest.mark.parametrize(
        ("written", "reported", "is_found"),
        [
            ("nginx", "nginx:latest", True),
            ("nginx:1", "docker.io/library/nginx:1", False),
            ("registry:5000/lab", "registry:5000/lab:latest", True),
            ("lab@sha256:1", "lab@sha256:1", True),
            ("lab:1@sha256:1", "lab@sha256:1", False),
        ],
    )
    def test_names_are_compared_as_they_are(self, written: str, reported: str, is_found: bool) -> None:
        found = scores("ImageLocality", pod("p", image=written), [node("a", images={reported: 2 * GIB}), node("b")])
        assert found is not None
        assert (found[0] > 0) == is_found

    def test_image_volumes_count_from_1_36_on(self) -> None:
        nodes = [node("a", images={"model:1": 2 * GIB})]
        comes = pod("p", volumes=[{"name": "v", "image": {"reference": "model:1"}}])
        assert scores("ImageLocality", comes, nodes, (), default_profile(36)) == [100]
        assert scores("ImageLocality", comes, nodes, (), default_profile(35)) == [0]

    def test_image_volumes_widen_the_range_from_1_37_on(self) -> None:
        nodes = [node("a", images={"model:1": 1000 * MIB})]
        comes = pod("p", volumes=[{"name": "v", "image": {"reference": "model:1"}}])
        assert scores("ImageLocality", comes, nodes, (), default_profile(36)) == [100]
        # (1000 - 23) of (2000 - 23) MB: the container's own image is the other half.
        assert scores("ImageLocality", comes, nodes, (), default_profile(37)) == [49]

    def test_the_first_report_of_a_size_counts_until_nobody_has_the_image(self) -> None:
        state = ClusterState([node("a", images={"i:1": 5}), node("b", images={"i:1": 7})])
        assert state.images["i:1"].size_bytes == 5
        state.set_node(node("a"))
        assert state.images["i:1"].size_bytes == 5
        state.set_node(node("b", images={"i:1": 9}))
        assert state.images["i:1"].size_bytes == 9

    def test_with_stale_images_a_node_keeps_the_count_it_saw_until_it_changes_itself(self) -> None:
        others = [node(f"n{index}") for index in range(2, 4)]
        holder = node("n0", images={"image:1": 500 * MIB})
        state = ClusterState([holder, node("n1"), *others], stale_images=True)

        def seen() -> list[int]:
            table = score_nodes(pod("p"), ["n0", "n1"], state, default_profile(NEWEST_MINOR))
            return table.points["ImageLocality"]

        assert seen() == [10, 0]
        state.set_node(node("n1", images={"image:1": 500 * MIB}))
        assert seen() == [10, 23]
        state.set_node(node("n0", images={"image:1": 500 * MIB}, labels={"touched": "yes"}))
        assert seen() == [23, 23]


def test_preferred_node_terms_are_measured_by_the_best_node_that_fits() -> None:
    def wants(weight: int, name: str) -> dict[str, Any]:
        expression = {"key": name, "operator": "Exists"}
        return {"weight": weight, "preference": {"matchExpressions": [expression]}}

    nodes = [node("a", labels={"x": "1", "y": "1"}), node("b", labels={"z": "1"}), node("c")]
    comes = pod("p", affinity={"nodeAffinity": {PREFERRED: [wants(90, "x"), wants(40, "y"), wants(45, "z")]}})
    assert scores("NodeAffinity", comes, nodes) == [100, 34, 0]
    assert scores("NodeAffinity", comes, nodes[1:]) == [100, 0]
    assert scores("NodeAffinity", comes, nodes[2:]) == [0]
    assert scores("NodeAffinity", pod("p"), nodes) is None


def test_the_more_soft_taints_are_not_tolerated_the_worse() -> None:
    soft = [f"{key}=1:PreferNoSchedule" for key in "abc"]
    nodes = [node("a"), node("b", taints=soft[:1]), node("c", taints=soft)]
    assert scores("TaintToleration", pod("p"), nodes) == [100, 67, 0]
    tolerant = pod(
        "p", tolerations=[{"key": "a", "operator": "Exists", "effect": "NoSchedule"}, {"key": "b", "value": "1"}]
    )
    assert scores("TaintToleration", tolerant, nodes) == [100, 50, 0]


class TestOtherPods:
    NODES = (node("a"), node("b"), node("c"))

    def test_weights_are_stretched_between_the_worst_and_the_best_node(self) -> None:
        there = [pod("x", on="a", labels={"app": "x"}), pod("y", on="b", labels={"app": "y"})]
        wishes = {
            "podAffinity": {PREFERRED: [preferred(50, selector=app("x"))]},
            "podAntiAffinity": {PREFERRED: [preferred(30, selector=app("y"))]},
        }
        assert scores("InterPodAffinity", pod("p", affinity=wishes), self.NODES, there) == [100, 0, 37]

    def test_terms_of_both_sides_add_up_and_required_affinity_of_those_there_counts_too(self) -> None:
        wishes = {"podAffinity": {PREFERRED: [preferred(3, selector=app("u"))]}}
        hard = {"podAffinity": {REQUIRED: [term(app("u"))]}}
        there = [pod("v", on="a", labels={"app": "u"}, affinity=wishes), pod("w", on="b", affinity=hard)]
        comes = pod("p", labels={"app": "u"}, affinity=wishes)
        # 3 + 3 on a, 1 on b.
        assert scores("InterPodAffinity", comes, self.NODES, there) == [100, 16, 0]

    def test_pods_of_other_namespaces_count_only_where_a_term_says_so(self) -> None:
        there = [pod("x", on="a", labels={"app": "x"}, namespace="other")]
        around = Surroundings(namespaces={"other": {"team": "red"}, "hub": {}})

        def found(**more: Any) -> list[int] | None:
            wishes = {"podAffinity": {PREFERRED: [preferred(1, selector=app("x"), **more)]}}
            return scores("InterPodAffinity", pod("p", affinity=wishes), self.NODES, there, surroundings=around)

        assert found() is None
        assert found(namespaces=["other"]) == [100, 0, 0]
        assert found(namespaceSelector={}) == [100, 0, 0]
        assert found(namespaceSelector={"matchLabels": {"team": "red"}}) == [100, 0, 0]
        assert found(namespaceSelector={"matchLabels": {"team": "blue"}}) is None

    def test_without_own_wishes_those_of_others_can_be_ignored(self) -> None:
        using = profile(**arguments("InterPodAffinity", ignorePreferredTermsOfExistingPods=True))
        wishes = {"podAffinity": {PREFERRED: [preferred(1, selector=app("u"))]}}
        there = [pod("v", on="a", affinity=wishes)]
        assert scores("InterPodAffinity", pod("p", labels={"app": "u"}), self.NODES, there) == [100, 0, 0]
        assert scores("InterPodAffinity", pod("p", labels={"app": "u"}), self.NODES, there, using) is None


class TestSpread:
    def test_fewer_matching_pods_are_better(self) -> None:
        there = [
            pod(f"{name}{index}", on=name, labels={"app": "x"})
            for name, n in (("b", 1), ("c", 3))
            for index in range(n)
        ]
        constraint = {
            "topologyKey": HOSTNAME,
            "maxSkew": 1,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": app("x"),
        }
        comes = pod("p", topologySpreadConstraints=[constraint])
        assert scores("PodTopologySpread", comes, [node("a"), node("b"), node("c")], there) == [100, 60, 0]

    def test_by_default_replicas_of_a_set_spread_over_nodes_and_zones(self) -> None:
        nodes = [node("a", labels={ZONE: "z1"}), node("b", labels={ZONE: "z1"}), node("c", labels={ZONE: "z2"})]
        there = [pod(f"x{index}", on=name, labels={"app": "x"}) for index, name in enumerate("aac")]
        owner = {"kind": "StatefulSet", "name": "set", "uid": "u", "controller": True}
        comes = pod("p", labels={"app": "x"}, metadata={"ownerReferences": [owner]})
        selector = frozenset({Requirement("app", "In", frozenset({"x"}))})
        around = Surroundings(controllers={("StatefulSet", "hub", "set"): selector})
        assert scores("PodTopologySpread", comes, nodes, there, surroundings=around) == [75, 100, 100]
        assert scores("PodTopologySpread", comes, nodes, there) is None
        by_service = Surroundings(services={"hub": ({"app": "x"},)})
        assert scores("PodTopologySpread", pod("p", labels={"app": "x"}), nodes, there, surroundings=by_service) == [
            75,
            100,
            100,
        ]

    def test_pods_that_are_being_deleted_do_not_count(self) -> None:
        leaving = {"deletionTimestamp": "2026-11-21T17:50:29Z"}
        there = [pod("x", on="a", labels={"app": "x"}, metadata=leaving)]
        constraint = {
            "topologyKey": HOSTNAME,
            "maxSkew": 1,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": app("x"),
        }
        comes = pod("p", topologySpreadConstraints=[constraint])
        assert scores("PodTopologySpread", comes, [node("a"), node("b")], there) == [100, 100]


@pytest.mark.parametrize(
    ("totals", "expected"),
    [([5, 3, 10, 10], 3), ([1], 0), ([2, 2], 0), ([1, 2, 3], 2), ([7, 7, 7, 7, 7], 0), ([0, 9, 9], 1)],
)
def test_of_equal_nodes_the_root_of_the_heap_is_taken(totals: list[int], expected: int) -> None:
    assert pick(totals) == expected


def test_a_table_holds_weighted_points_and_their_sums() -> None:
    state = ClusterState([node("a", taints=["a=1:PreferNoSchedule"]), node("b")])
    table = score_nodes(pod("p"), ["a", "b"], state, default_profile(NEWEST_MINOR))
    assert table.points["TaintToleration"] == [0, 300]
    for name, points, total in table.rows():
        assert total == sum(points.values())
        assert name in state.rows
    assert table.best == ("b",)


def test_a_node_without_any_room_told_scores_nothing() -> None:
    bare = read_node({"metadata": {"name": "a"}})
    assert scores("NodeResourcesFit", pod("p"), [bare]) == [0]
