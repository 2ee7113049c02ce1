"""For which of the sets that learn a user counts, on a node that all of them can use."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.headroom.shared_pools import SharedPools
from roost_core.objects.node import Node
from roost_core.objects.pod import Pod, PodSpec
from roost_core.objects.selectors import NodeRules, NodeTerm, Requirement
from roost_core.release.placeholder_sets import PlaceholderSet
from tests.builders import NAMESPACE, RELEASE

NODE = Node("n", {"pool": "user", "gpu": "a100"}, uid="uid-n")
IN_POOL = Requirement("pool", "In", frozenset({"user"}))
HAS_GPU = Requirement("gpu", "Exists", frozenset())
USER = Pod(NAMESPACE, "user", node_name="n", spec=PodSpec(requests=(("cpu", 100),)))


def learner(name: str, *terms: tuple[Requirement, ...]) -> PlaceholderSet:
    """terms: OR-ed, as Kubernetes has them; the requirements of each are AND-ed."""
    rules = NodeRules(required_node_terms=tuple(NodeTerm(term, ()) for term in terms))
    return PlaceholderSet(
        name=name, stateful_set=name, label=name, rules=rules, replicas=0, requests={"cpu": "100m"}
    )


def counted_for(*sets: PlaceholderSet) -> list[str]:
    pools = SharedPools(sets, Snapshot(RELEASE, NAMESPACE, {"n": NODE}, {}, {}))
    return [learner.name for learner in sets if pools.counts_for(USER, learner.name)]


@given(st.integers(1, 5), st.booleans())
def test_a_user_counts_for_the_set_whose_nodes_meet_more_conditions(
    alternatives: int, is_first: bool
) -> None:
    """A set that accepts several kinds of nodes isn't stricter than one for a single kind."""
    others = [(Requirement("pool", "In", frozenset({f"p-{n}"})),) for n in range(alternatives)]
    wide = learner("wide", (IN_POOL,), *others)
    narrow = learner("narrow", (IN_POOL, HAS_GPU))
    sets = (wide, narrow) if is_first else (narrow, wide)
    assert counted_for(*sets) == ["narrow"]


def test_with_as_many_conditions_the_values_order_decides() -> None:
    first = learner("first", (HAS_GPU,))
    second = learner("second", (IN_POOL,), (HAS_GPU,))
    assert counted_for(first, second) == ["first"]
    assert counted_for(second, first) == ["second"]


def test_a_user_that_requests_nothing_is_as_near_to_each_size() -> None:
    sizes = [
        replace(learner(name, (IN_POOL,)), requests={"cpu": cpu, "memory": "1Gi"})
        for name, cpu in (("large", "4"), ("small", "100m"))
    ]
    pools = SharedPools(sizes, Snapshot(RELEASE, NAMESPACE, {"n": NODE}, {}, {}))
    for requests, counted in (
        ((), "large"),
        ((("cpu", 100),), "small"),
        ((("memory", 2**30),), "large"),
    ):
        pod = Pod(NAMESPACE, "user", node_name="n", spec=PodSpec(requests=requests))
        assert [one.name for one in sizes if pools.counts_for(pod, one.name)] == [counted]
