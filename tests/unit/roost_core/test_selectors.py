"""Nodes, selectors and taints: what a node must be for a pod to be bound to it, and nodes that
leave.
"""

from typing import Any

import pytest
import yaml

from roost.controllers.popular_images.node_disks import read_disk
from roost_core.objects import selectors
from roost_core.objects.node import Node, node_admits, read_node
from tests.builders import expression
from tests.popular_builders import popular_settings
from tests.recorded_data import rows

LABELS = {"zone": "a", "size": "8"}


MET = """
zone In [a, b] | absent NotIn [a] | zone NotIn [b] | zone Exists null | absent DoesNotExist null
size Gt ["7"] | size Lt ["9"]
"""
UNMET = """
zone In [b] | absent In [a] | zone NotIn [a] | absent Exists null | zone DoesNotExist null
size Gt ["8"] | absent Lt ["9"] | zone Gt ["1"] | size Gt ["1_0"]
size Lt ["9", "10"] | zone Near [a] | zone In a
"""


@pytest.mark.parametrize(("rows", "matches"), [(MET, True), (UNMET, False)])
def test_operators_mean_what_kubernetes_says(rows: str, matches: bool) -> None:
    for row in rows.strip().replace("\n", " | ").split(" | "):
        key, operator, values = row.split(" ", 2)
        read = selectors.read_requirement(
            {"key": key, "operator": operator, "values": yaml.safe_load(values)}
        )
        assert (read is not None and selectors.requirement_matches(*read, LABELS)) is matches, row


def matches(term: object, name: str, labels: dict[str, str]) -> bool:
    read = selectors.read_node_term(term)
    return read is not None and selectors.node_term_matches(read, name, labels)


def test_a_term_needs_all_its_expressions_and_fields() -> None:
    fields = [expression("metadata.name", "node-1")]
    term = {"matchExpressions": [expression("zone", "a")], "matchFields": fields}
    assert matches(term, "node-1", LABELS)
    assert not matches(term, "node-2", LABELS)
    assert not matches(term, "node-1", {})


@pytest.mark.parametrize("term", rows("roost_core/terms-of-nothing"))
def test_a_term_that_is_empty_or_cant_be_read_matches_nothing(term: object) -> None:
    assert not matches(term, "node-1", LABELS)


def test_a_field_may_exclude_a_node() -> None:
    term = {"matchFields": [expression("metadata.name", "node-1", operator="NotIn")]}
    assert not matches(term, "node-1", LABELS)
    assert matches(term, "node-2", LABELS)


def test_an_empty_label_selector_matches_all_and_an_unreadable_one_is_none() -> None:
    everything = selectors.read_label_selector({})
    assert everything is not None
    assert selectors.selector_matches(everything, {})
    assert selectors.read_label_selector({"matchLabels": ["zone"]}) is None
    assert selectors.read_label_selector(None) is None


def test_match_labels_and_the_equal_expression_are_the_same_rule() -> None:
    assert selectors.read_label_selector(
        {"matchLabels": {"zone": "a"}}
    ) == selectors.read_label_selector({"matchExpressions": [expression("zone", "a")]})
    assert selectors.read_label_selector(
        {"matchExpressions": [expression("zone", "a", "b")]}
    ) == frozenset({selectors.Requirement("zone", "In", frozenset({"b", "a"}))})


TAINT = selectors.Taint("dedicated", "user", "NoSchedule")


@pytest.mark.parametrize(("toleration", "covers"), rows("roost_core/tolerations"))
def test_tolerations_cover_what_kubernetes_says(toleration: str, covers: bool) -> None:
    assert (
        selectors.tolerates(selectors.read_tolerations([yaml.safe_load(toleration)]), TAINT)
        is covers
    )


def test_a_soft_taint_keeps_nobody_off() -> None:
    assert selectors.untolerated([selectors.Taint("leaving", "", "PreferNoSchedule")], []) is None
    assert selectors.untolerated(
        [selectors.Taint("leaving", "", "NoExecute")], []
    ) == selectors.Taint("leaving", "", "NoExecute")


def rules(
    selector: dict[str, str] | None = None,
    terms: list[object] | None = None,
    tolerations: tuple[object, ...] = (),
) -> selectors.NodeRules:
    return selectors.read_node_rules(selector or {}, terms, tolerations)


def test_terms_are_ored_and_an_empty_list_of_them_matches_nothing() -> None:
    in_a, in_b = ({"matchExpressions": [expression("zone", zone)]} for zone in "ab")
    here = Node("node-1", {"zone": "b"})
    assert node_admits(rules(terms=[in_a, in_b]), here)
    assert not node_admits(rules(terms=[in_a, {}]), here)
    assert not node_admits(rules(terms=[]), here)
    assert node_admits(rules(), here)


def test_the_node_selector_counts_beside_the_terms() -> None:
    in_b = {"matchExpressions": [expression("zone", "b")]}
    assert not node_admits(rules({"pool": "gpu"}, [in_b]), Node("node-1", {"zone": "b"}))


@pytest.mark.parametrize(
    "node", [Node("node-1", unschedulable=True), Node("node-1", taints=(TAINT,))]
)
def test_a_cordoned_or_tainted_node_admits_only_pods_that_tolerate_it(node: Node) -> None:
    assert not node_admits(rules(), node)
    assert node_admits(rules(tolerations=({"operator": "Exists"},)), node)


READY = {"conditions": [{"type": "Ready", "status": "True"}]}
TOLERATES_ALL = selectors.NodeRules(tolerations=(selectors.Toleration("", "Exists", "", ""),))


def body(taint: str = "", **metadata: str) -> dict[str, Any]:
    taints = [{"key": taint, "effect": "NoSchedule"}] if taint else []
    return {"metadata": {"name": "n", **metadata}, "spec": {"taints": taints}, "status": READY}


@pytest.mark.parametrize(("taint", "metadata", "leaves"), rows("roost_core/nodes-that-leave"))
def test_webhook_and_controllers_plan_nothing_on_a_node_that_leaves(
    taint: str, metadata: Any, leaves: bool
) -> None:
    node = read_node(body(taint, **metadata))
    assert node.leaving is leaves
    assert node.unschedulable is False
    # As the webhook asks: may the ring, the warm set and the gate's holders name it?
    assert node.is_usable is not leaves
    # As the controllers ask: may anything be pulled to it?
    view = read_disk(node, popular_settings())
    assert (view.closed == "leaving") is (leaves or "DeletionCandidate" in taint)


def test_a_node_that_leaves_admits_whom_a_cordon_lets_through() -> None:
    leaving = read_node(body(deletionTimestamp="2026-11-21T17:50:29Z"))
    assert not node_admits(selectors.NodeRules(), leaving)
    assert node_admits(TOLERATES_ALL, leaving)
