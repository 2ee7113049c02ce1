"""One cycle: which nodes fit and why others don't, in kube-scheduler's words; who is pre-empted; what a state keeps."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from roost_core.objects.pod import Pod
from roost_core.objects.selectors import Requirement
from roost_core.scheduler.cycle import NO_NODES, feasible_wanted, schedule
from roost_core.scheduler.plugins import NEWEST_MINOR
from roost_core.scheduler.preemption import NEVER, WAITING, Nomination, preempt
from roost_core.scheduler.profile import Profile, default_profile
from roost_core.scheduler.state import ClusterState
from roost_core.scheduler.surroundings import DisruptionBudget, Surroundings
from tests.scheduling import filter_nodes
from tests.unit.scheduling_builders import HOSTNAME, ZONE, arguments, node, pod, profile

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
DEFAULT = default_profile(NEWEST_MINOR)


def why(incoming: Pod, state: ClusterState, using: Profile = DEFAULT) -> dict[str, tuple[str, ...]]:
    found = filter_nodes(incoming, state, using)
    return {name: verdict.reasons if verdict else () for name, verdict in found.items()}


def named(*names: str, operator: str = "In") -> dict[str, Any]:
    fields = [{"key": "metadata.name", "operator": operator, "values": [name]} for name in names]
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": fields}]}}}


class TestFilters:
    def test_a_profile_may_ask_another_order(self) -> None:
        state = ClusterState([node("n", taints=["a=1:NoSchedule"], cpu="1")])
        enabled = [{"name": "NodeResourcesFit"}, {"name": "NodeAffinity"}]
        using = profile(plugins={"filter": {"enabled": enabled}})
        greedy = pod("p", requests={"cpu": "2"}, nodeSelector={"pool": "user"})
        assert why(greedy, state, using) == {"n": ("Insufficient cpu",)}
        assert why(pod("q", nodeSelector={"pool": "user"}), state, using)["n"][0].startswith("node(s) didn't match")

    def test_all_that_is_lacking_is_said_and_more_than_the_node_has_can_not_be_helped(self) -> None:
        state = ClusterState([node("a", cpu="2", memory="4Gi", pods=1)], [pod("x", on="a", requests={"cpu": "1"})])
        found = filter_nodes(
            pod("p", requests={"cpu": "1500m", "memory": "5Gi", "example.com/gpu": "1"}), state, DEFAULT
        )
        rejection = found["a"]
        assert rejection is not None
        assert rejection.reasons == (
            "Too many pods",
            "Insufficient cpu",
            "Insufficient example.com/gpu",
            "Insufficient memory",
        )
        assert rejection.unresolvable
        can_be_helped = filter_nodes(pod("p", requests={"cpu": "1500m"}), state, DEFAULT)["a"]
        assert can_be_helped is not None
        assert not can_be_helped.unresolvable

    def test_ignored_resources_are_not_asked_for(self) -> None:
        state = ClusterState([node("a")])
        wants = pod("p", requests={"example.com/gpu": "1", "other.org/fpga": "1"})
        assert why(wants, state)["a"] == ("Insufficient example.com/gpu", "Insufficient other.org/fpga")
        using = profile(
            **arguments("NodeResourcesFit", ignoredResources=["example.com/gpu"], ignoredResourceGroups=["other.org"])
        )
        assert why(wants, state, using) == {"a": ()}

    def test_pods_of_a_daemon_set_are_about_their_node_only(self) -> None:
        state = ClusterState([node(name) for name in "abc"])
        assert schedule(pod("p", affinity=named("b")), state, DEFAULT).node == "b"
        lost = schedule(pod("p", affinity=named("x")), state, DEFAULT)
        assert lost.message.startswith("0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NodeAffinity].")
        conflict = schedule(pod("p", affinity=named("a", "b")), state, DEFAULT)
        assert conflict.message == "0/3 nodes are available: pod affinity terms conflict. not found"


class TestCycles:
    def test_without_nodes_kube_scheduler_says_so(self) -> None:
        assert schedule(pod("p"), ClusterState(), DEFAULT).message == NO_NODES

    def test_a_lone_node_is_taken_without_a_table(self) -> None:
        decision = schedule(pod("p"), ClusterState([node("a"), node("b", cordoned=True)]), DEFAULT)
        assert (decision.node, decision.table) == ("a", None)
        assert decision.reasons == {"node(s) were unschedulable": 1}

    def test_the_nominated_node_is_taken_when_it_fits_whatever_others_are_worth(self) -> None:
        state = ClusterState([node("a", taints=["x=1:PreferNoSchedule"]), node("b")])
        waiting = pod("p", status={"nominatedNodeName": "a"})
        assert schedule(waiting, state, DEFAULT).node == "a"
        assert schedule(pod("p"), state, DEFAULT).node == "b"

    def test_until_1_36_claims_are_spoken_of_where_there_are_none(self) -> None:
        state = ClusterState([node("small", cpu="1")])
        assert schedule(pod("p", requests={"cpu": "2"}), state, default_profile(36)).message == (
            "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate,"
            " preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        )

    def test_an_event_holds_1024_characters_of_it(self) -> None:
        resources = {f"example.com/{index:03d}-{'x' * 40}": "1" for index in range(30)}
        decision = schedule(pod("p", requests=resources), ClusterState([node("a")]), DEFAULT)
        assert len(decision.message) > 1024
        assert len(decision.note) == 1024
        assert decision.note.endswith(" ...")

    @pytest.mark.parametrize(
        ("nodes", "percent", "expected"),
        [(99, 10, 99), (100, 0, 100), (200, 0, 100), (1000, 0, 420), (6000, 0, 300), (1000, 100, 1000), (500, 30, 150)],
    )
    def test_in_large_clusters_only_a_share_is_looked_for(self, nodes: int, percent: int, expected: int) -> None:
        assert feasible_wanted(nodes, replace(DEFAULT, percentage_of_nodes_to_score=percent)) == expected

    def test_the_search_goes_on_where_it_ended(self) -> None:
        state = ClusterState([node(f"n{index:03d}") for index in range(120)])
        first = schedule(pod("p"), state, replace(DEFAULT, percentage_of_nodes_to_score=1))
        assert first.table is not None
        assert first.table.nodes == tuple(f"n{index:03d}" for index in range(100))
        second = schedule(pod("p"), state, replace(DEFAULT, percentage_of_nodes_to_score=1), start=first.next_start)
        assert second.table is not None
        assert second.table.nodes[:2] == ("n100", "n101")
        assert second.table.nodes[-1] == "n079"


class TestPreemption:
    def test_the_fewest_and_least_important_go_and_those_who_can_stay_stay(self) -> None:
        there = [
            pod("a-two", on="a", requests={"cpu": "2"}, priority=-10),
            pod("a-one", on="a", requests={"cpu": "1"}, priority=-10),
            pod("b-two", on="b", requests={"cpu": "2"}, priority=-5),
            pod("b-one", on="b", requests={"cpu": "1"}, priority=-5),
        ]
        state = ClusterState([node("a", cpu="3"), node("b", cpu="3")], there)
        found, _ = preempt(pod("p", requests={"cpu": "1"}), state, DEFAULT)
        assert found is not None
        assert (found.node, [one.name for one in found.victims]) == ("a", ["a-one"])
        decision = schedule(pod("p", requests={"cpu": "1"}), state, DEFAULT)
        assert decision.nomination == found
        failed = "0/2 nodes are available: 2 Insufficient cpu."
        told = "preemption: found a potential placement for pod on node a, preempting 1 victims"
        assert decision.message == f"{failed} {told}"
        assert schedule(pod("p", requests={"cpu": "1"}), state, default_profile(36)).message == failed

    def candidates(self, *pods: Pod, budgets: Iterable[DisruptionBudget] = ()) -> Nomination:
        names = sorted({one.node_name for one in pods})
        state = ClusterState([node(name, cpu="1") for name in names], pods, Surroundings(budgets=tuple(budgets)))
        found, _ = preempt(pod("p", requests={"cpu": "1"}), state, DEFAULT)
        assert found is not None
        return found

    def placeholder(self, name: str, on: str, priority: int, cpu: str = "1", **more: Any) -> Pod:
        return pod(name, on=on, priority=priority, requests={"cpu": cpu}, **more)

    def chosen(self, *pods: Pod, budgets: Iterable[DisruptionBudget] = ()) -> str:
        found = self.candidates(*pods, budgets=budgets)
        assert not found.equals
        return found.node

    def test_a_budget_protects_better_than_priority(self) -> None:
        budget = DisruptionBudget("hub", frozenset({Requirement("app", "In", frozenset({"x"}))}))
        pods = [self.placeholder("x", "a", -10, labels={"app": "x"}), self.placeholder("z", "b", -5)]
        assert self.chosen(*pods) == "a"
        assert self.chosen(*pods, budgets=[budget]) == "b"
        assert self.chosen(*pods, budgets=[replace(budget, disruptions_allowed=1)]) == "a"
        assert self.chosen(*pods, budgets=[replace(budget, disrupted_pods=frozenset({"x"}))]) == "a"

    def test_of_nodes_just_as_good_all_are_named(self) -> None:
        found = self.candidates(self.placeholder("x", "b", -10), self.placeholder("y", "a", -10))
        assert (found.node, found.equals) == ("a", ("b",))

    def test_nobody_goes_for_a_pod_that_never_pre_empts_or_still_waits_for_victims(self) -> None:
        victim = self.placeholder("x", "a", -10)
        state = ClusterState([node("a", cpu="1")], [victim])
        meek = pod("p", requests={"cpu": "1"}, preemptionPolicy="Never")
        assert preempt(meek, state, DEFAULT) == (None, NEVER)
        state.add_pod(replace(victim, leaving=True, preempted=True))
        waiting = pod("p", requests={"cpu": "1"}, status={"nominatedNodeName": "a"})
        assert preempt(waiting, state, DEFAULT) == (None, WAITING)

    def test_when_nothing_helps_the_dry_runs_are_told(self) -> None:
        equal = self.placeholder("x", "a", 0)
        state = ClusterState([node("a", cpu="1"), node("b", cordoned=True)], [equal])
        assert preempt(pod("p", requests={"cpu": "1"}), state, DEFAULT) == (
            None,
            (
                "0/2 nodes are available: 1 No preemption victims found for incoming pod,"
                " 1 Preemption is not helpful for scheduling."
            ),
        )


class TestStates:
    def test_a_pod_that_finished_takes_no_room(self) -> None:
        state = ClusterState([node("a")], [pod("x", on="a", requests={"cpu": "1"})])
        assert state.rows["a"].requested == {"cpu": 1000}
        state.add_pod(pod("x", on="a", requests={"cpu": "1"}, status={"phase": "Succeeded"}))
        assert state.rows["a"].requested == {}
        assert state.get_pod("hub/x") is None

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
        state = ClusterState(
            [node("a", labels={ZONE: "1"}), node("b", labels={ZONE: "1"}), node("c", labels={ZONE: "2"})]
        )
        assert [row.name for row in state.ordered] == ["a", "c", "b"]
        state.set_node(node("a", labels={ZONE: "2"}))
        assert [row.name for row in state.ordered] == ["a", "c", "b"]
        state.set_node(node("d", labels={HOSTNAME: "d"}))
        assert [row.name for row in state.ordered] == ["b", "c", "d", "a"]
