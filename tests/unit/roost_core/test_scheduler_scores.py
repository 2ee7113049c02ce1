"""The worked examples of kube-scheduler's arithmetic, each with the numbers computed by hand."""

from collections.abc import Sequence
from typing import Any

import pytest

from roost_core.objects.node import Node, read_node
from roost_core.objects.pod import Pod
from roost_core.objects.selectors import Requirement
from roost_core.scheduler.filters import Cycle
from roost_core.scheduler.plugins import NEWEST_MINOR
from roost_core.scheduler.profile import Profile, default_profile
from roost_core.scheduler.scores import SCORERS, Chosen, ScoreTable
from roost_core.scheduler.state import ClusterState
from roost_core.scheduler.surroundings import Surroundings
from tests.scheduling import score_nodes
from tests.unit.scheduling_builders import GIB, MIB, ZONE, arguments, node, pod, profile

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

    def test_between_two_points_a_falling_curve_is_rounded_up(self) -> None:
        shape = [{"utilization": 0, "score": 10}, {"utilization": 30, "score": 0}]
        ratio = {"requestedToCapacityRatio": {"shape": shape}, "resources": [{"name": "cpu"}]}
        using = profile(**arguments("NodeResourcesFit", scoringStrategy={"type": "RequestedToCapacityRatio", **ratio}))
        # 100 - 1000 / 30, cut towards zero: 100 - 33.
        assert scores("NodeResourcesFit", pod("p", requests={"cpu": "100m"}), [node("a", cpu="1")], (), using) == [67]


class TestBalance:
    def test_a_pod_that_tips_the_balance_scores_below_75(self) -> None:
        nodes = [node("a", cpu="3900m", memory="8Gi")]
        comes = pod("comes", requests={"cpu": "500m"})
        assert scores("NodeResourcesBalancedAllocation", comes, nodes) == [71]
        assert scores("NodeResourcesBalancedAllocation", comes, nodes, (), default_profile(35)) == [93]


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


class TestSpread:
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


def test_a_node_without_any_room_told_scores_nothing() -> None:
    bare = read_node({"metadata": {"name": "a"}})
    assert scores("NodeResourcesFit", pod("p"), [bare]) == [0]
