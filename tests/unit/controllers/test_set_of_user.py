"""For which of the sets that learn a user counts, on a node that all of them can use."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.headroom.set_of_user import SetOfUser
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
    set_of_user = SetOfUser(sets, Snapshot(RELEASE, NAMESPACE, {"n": NODE}, {}, {}))
    return [learner.name for learner in sets if set_of_user.counts_for(USER, learner.name)]


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


def test_conditions_of_the_selector_and_on_a_nodes_fields_count_as_others() -> None:
    by_selector = replace(learner("selector"), rules=NodeRules(node_selector=(("pool", "user"),)))
    by_label = learner("label", (IN_POOL,))
    on_field = Requirement("metadata.name", "In", frozenset({"n"}))
    by_field = replace(
        learner("field"), rules=NodeRules(required_node_terms=(NodeTerm((), (on_field,)),))
    )
    equal = (by_selector, by_label, by_field)
    for first in equal:
        assert counted_for(first, *(one for one in equal if one is not first)) == [first.name]
    both = replace(by_field, rules=by_field.rules._replace(node_selector=(("pool", "user"),)))
    label_and_field = replace(
        by_field,
        name="two",
        rules=NodeRules(required_node_terms=(NodeTerm((HAS_GPU,), (on_field,)),)),
    )
    for stricter in (both, label_and_field):
        assert counted_for(by_selector, by_label, stricter) == [stricter.name]
    assert counted_for(both, label_and_field) == [both.name]
    assert counted_for(label_and_field, both) == [label_and_field.name]


def nearest(sets: list[PlaceholderSet], requests: tuple[tuple[str, int], ...]) -> list[str]:
    """For which of the sets a user counts that requests so much."""
    set_of_user = SetOfUser(sets, Snapshot(RELEASE, NAMESPACE, {"n": NODE}, {}, {}))
    pod = Pod(NAMESPACE, "user", node_name="n", spec=PodSpec(requests=requests))
    return [one.name for one in sets if set_of_user.counts_for(pod, one.name)]


def sized(name: str, **requests: str) -> PlaceholderSet:
    return replace(learner(name, (IN_POOL,)), requests=requests)


def test_a_user_that_requests_nothing_is_as_near_to_each_size() -> None:
    sizes = [sized("large", cpu="4", memory="4Gi"), sized("small", cpu="100m", memory="1Gi")]
    for requests, counted in (
        ((), "large"),
        ((("cpu", 100),), "small"),
        ((("cpu", 3000),), "large"),
        ((("memory", 2**30),), "small"),
        ((("memory", 2**32),), "large"),
    ):
        assert nearest(sizes, requests) == [counted]


def test_what_placeholders_do_not_request_makes_no_user_large() -> None:
    one = (("cpu", 100), ("memory", 2**30))
    assert nearest([sized("wide", cpu="1", memory="2Gi"), sized("bare", memory="1Gi")], one) == [
        "bare"
    ]
    assert nearest([sized("wide", cpu="200m", memory="2Gi"), sized("bare", cpu="100m")], one) == [
        "bare"
    ]
