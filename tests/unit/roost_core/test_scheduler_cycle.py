"""The scheduler's model as far as tests/e2e/scheduler doesn't draw it: profiles, cycles, state."""

from dataclasses import replace
from typing import Any

import pytest
import yaml

from roost_core.objects.node import read_node
from roost_core.objects.pod import Pod
from roost_core.objects.selectors import Requirement
from roost_core.scheduler.cycle import NO_NODES, as_note, feasible_wanted, schedule
from roost_core.scheduler.plugins import NEWEST_MINOR
from roost_core.scheduler.preemption import preempt
from roost_core.scheduler.profile import Profile, ProfileError, default_profile, read_profiles
from roost_core.scheduler.state import ClusterState
from roost_core.scheduler.surroundings import DisruptionBudget, Surroundings
from tests.recorded_data import rows
from tests.scheduling import filter_nodes, score_nodes
from tests.unit.generator.linted import table
from tests.unit.scheduling_builders import HOSTNAME, ZONE, arguments, node, pod, profile

DEFAULT = default_profile(NEWEST_MINOR)


def why(incoming: Pod, state: ClusterState, using: Profile = DEFAULT) -> dict[str, tuple[str, ...]]:
    found = filter_nodes(incoming, state, using)
    return {name: verdict.reasons if verdict else () for name, verdict in found.items()}


class TestFilters:
    def test_a_profile_may_ask_another_order(self) -> None:
        state = ClusterState([node("n", taints=["a=1:NoSchedule"], cpu="1")])
        enabled = [{"name": "NodeResourcesFit"}, {"name": "NodeAffinity"}]
        using = profile(plugins={"filter": {"enabled": enabled}})
        greedy = pod("p", requests={"cpu": "2"}, nodeSelector={"pool": "user"})
        assert why(greedy, state, using) == {"n": ("Insufficient cpu",)}
        assert why(pod("q", nodeSelector={"pool": "user"}), state, using)["n"][0].startswith(
            "node(s) didn't match"
        )

    def test_what_a_device_class_maps_is_asked_of_nodes_that_list_it_alone(self) -> None:
        state = ClusterState([node("a"), node("b", extra={"example.com/gpu": "1"})])
        wants = pod("p", requests={"example.com/gpu": "2"})
        lacking = ("Insufficient example.com/gpu",)
        assert why(wants, state) == {"a": lacking, "b": lacking}
        state.surroundings = Surroundings(claimable=frozenset({"example.com/gpu"}))
        assert why(wants, state) == {"a": (), "b": lacking}

    @pytest.mark.parametrize(
        ("minor", "taint", "pointless"),
        [(33, " {a: 1}", "No preemption victims"), (34, "(s)", "Preemption is not")],
    )
    def test_words_of_older_minors_are_their_own(
        self, minor: int, taint: str, pointless: str
    ) -> None:
        state = ClusterState([node("a", taints=["a=1:NoSchedule"]), node("b", cpu="1")])
        said = schedule(pod("p", requests={"cpu": "2"}), state, default_profile(minor)).message
        assert f"1 Insufficient cpu, 1 node(s) had untolerated taint{taint}. " in said
        assert said.count(f"1 {pointless}" if minor == 33 else f"2 {pointless}") == 1


class TestCycles:
    def test_without_nodes_kube_scheduler_says_so(self) -> None:
        assert schedule(pod("p"), ClusterState(), DEFAULT).message == NO_NODES

    def test_the_nominated_node_is_taken_when_it_fits_whatever_others_are_worth(self) -> None:
        state = ClusterState([node("a", taints=["x=1:PreferNoSchedule"]), node("b")])
        waiting = pod("p", status={"nominatedNodeName": "a"})
        assert schedule(waiting, state, DEFAULT).node == "a"
        assert schedule(pod("p"), state, DEFAULT).node == "b"

    def test_an_event_holds_1024_characters_of_it(self) -> None:
        resources = {f"example.com/{index:03d}-{'x' * 40}": "1" for index in range(30)}
        decision = schedule(pod("p", requests=resources), ClusterState([node("a")]), DEFAULT)
        assert len(decision.message) > 1024
        assert len(as_note(decision.message)) == 1024
        assert as_note(decision.message).endswith(b" ...")

    @pytest.mark.parametrize(
        ("nodes", "percent", "expected"),
        [
            (99, 10, 99),
            (100, 0, 100),
            (200, 0, 100),
            (1000, 0, 420),
            (6000, 0, 300),
            (1000, 100, 1000),
            (500, 30, 150),
        ],
    )
    def test_in_large_clusters_only_a_share_is_looked_for(
        self, nodes: int, percent: int, expected: int
    ) -> None:
        assert (
            feasible_wanted(nodes, replace(DEFAULT, percentage_of_nodes_to_score=percent))
            == expected
        )


def test_a_node_without_any_room_told_scores_nothing() -> None:
    table = score_nodes(
        pod("p"), ["a"], ClusterState([read_node({"metadata": {"name": "a"}})]), DEFAULT
    )
    assert table.points["NodeResourcesFit"] == [0]


@pytest.mark.parametrize(
    ("size", "holders", "nodes", "expected"),
    [(2048, 1, 20, 8), (2048, 1, 4, 50), (2048, 19, 20, 100), (500, 1, 20, 0), (500, 2, 4, 23)],
)
def test_where_counts_of_images_are_fresh_rare_images_count_little(
    size: int, holders: int, nodes: int, expected: int
) -> None:
    images = {"image:1": size * 2**20}
    state = ClusterState(
        [node(f"n{index}", images=images if index < holders else {}) for index in range(nodes)]
    )
    points = score_nodes(pod("p"), state.rows, state, DEFAULT).points["ImageLocality"]
    assert (points[0], points[-1]) == (expected, 0)


def test_the_first_report_of_a_size_counts_until_nobody_has_the_image() -> None:
    state = ClusterState([node("a", images={"i:1": 5}), node("b", images={"i:1": 7})])
    state.set_node(node("a"))
    assert state.images["i:1"].size_bytes == 5
    state.set_node(node("b", images={"i:1": 9}))
    assert state.images["i:1"].size_bytes == 9


def test_a_budget_protects_better_than_priority() -> None:
    budget = DisruptionBudget("hub", frozenset({Requirement("app", "In", frozenset({"x"}))}))
    protected = pod("x", on="a", priority=-10, requests={"cpu": "1"}, labels={"app": "x"})
    pods = [protected, pod("z", on="b", priority=-5, requests={"cpu": "1"})]
    for budgets, victims_node in (
        ((), "a"),
        ((budget,), "b"),
        ((replace(budget, disruptions_allowed=1),), "a"),
        ((replace(budget, disrupted_pods=frozenset({"x"})),), "a"),
    ):
        state = ClusterState(
            [node(name, cpu="1") for name in "ab"], pods, Surroundings(budgets=budgets)
        )
        found, _ = preempt(pod("p", requests={"cpu": "1"}), state, DEFAULT)
        assert found is not None
        assert (found.node, found.equals) == (victims_node, ())


class TestStates:
    def test_a_pod_that_finished_takes_no_room(self) -> None:
        state = ClusterState([node("a")], [pod("x", on="a", requests={"cpu": "1"})])
        assert state.rows["a"].requested == {"cpu": 1000}
        state.add_pod(pod("x", on="a", requests={"cpu": "1"}, status={"phase": "Succeeded"}))
        assert (state.rows["a"].requested, state.get_pod("hub/x")) == ({}, None)

    def test_a_question_without_a_pod_leaves_it_where_it_was_even_when_it_fails(self) -> None:
        placeholder = pod("placeholder", on="a", requests={"cpu": "1"})
        state = ClusterState([node("a", cpu="1"), node("b", cpu="1")], [placeholder])
        with state.without(placeholder.key, "hub/unknown"):
            assert schedule(replace(placeholder, node_name=""), state, DEFAULT).node in ("a", "b")
        with pytest.raises(RuntimeError), state.without(placeholder.key):
            raise RuntimeError
        assert state.get_pod(placeholder.key) is placeholder
        assert state.rows["a"].requested == {"cpu": 1000}

    def test_another_zone_changes_the_order_only_when_a_node_comes_or_goes(self) -> None:
        state = ClusterState([node(name, labels={ZONE: zone}) for name, zone in ("a1", "b1", "c2")])
        orders = ["".join(row.name for row in state.ordered)]
        for changed in (node("a", labels={ZONE: "2"}), node("d", labels={HOSTNAME: "d"})):
            state.set_node(changed)
            orders.append("".join(row.name for row in state.ordered))
        assert orders == ["acb", "acb", "bcda"]


def scores(**plugins: Any) -> list[tuple[str, int]]:
    return list(profile(plugins=plugins).scores)


def test_a_plugin_named_under_score_gets_that_weight_and_comes_first() -> None:
    found = scores(
        score={
            "enabled": [
                {"name": "ImageLocality", "weight": 9},
                {"name": "NodeAffinity", "weight": 5},
            ]
        }
    )
    assert found[:3] == [("ImageLocality", 9), ("NodeAffinity", 5), ("TaintToleration", 3)]
    assert len(found) == len(scores())


@pytest.mark.parametrize(("plugins", "plugin", "weight"), rows("scorer-weights"))
def test_a_scorers_weight_is_what_kube_scheduler_makes_of_it(
    plugins: str, plugin: str, weight: int | None
) -> None:
    assert dict(scores(**yaml.safe_load(plugins))).get(plugin) == weight


def test_a_star_leaves_only_what_is_enabled_beside_it() -> None:
    only = {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeAffinity", "weight": 2}]}
    assert scores(score=only) == [("NodeAffinity", 2)]


def test_plugins_arguments_take_the_place_of_the_defaults() -> None:
    strategy = {
        "type": "MostAllocated",
        "resources": [{"name": "cpu", "weight": 3}, {"name": "memory"}],
    }
    found = profile(**arguments("NodeResourcesFit", scoringStrategy=strategy))
    assert found.fit.resources == (("cpu", 3), ("memory", 1))
    assert profile(**arguments("PodTopologySpread", defaultingType="List")).default_spread == ()


def test_the_profiles_own_percentage_stands_over_the_global_one() -> None:
    profiles = [{"schedulerName": "a", "percentageOfNodesToScore": 70}, {"schedulerName": "b"}]
    body = {"percentageOfNodesToScore": 30, "profiles": profiles}
    found = read_profiles(body, NEWEST_MINOR)
    assert (found["a"].percentage_of_nodes_to_score, found["b"].percentage_of_nodes_to_score) == (
        70,
        30,
    )


@pytest.mark.parametrize(("body", "word"), table("profiles-unknown"))
def test_what_the_model_can_not_run_is_named(body: str, word: str) -> None:
    with pytest.raises(ProfileError, match=word):
        read_profiles(yaml.safe_load(body), NEWEST_MINOR)


def test_older_minors_than_those_known_are_refused_and_newer_ones_taken_for_the_newest() -> None:
    with pytest.raises(ProfileError, match=r"1\.32"):
        read_profiles({}, 32)
    assert read_profiles({}, 40)["default-scheduler"].minor == NEWEST_MINOR
