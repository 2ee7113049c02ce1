"""Which placeholder sets of a release use the same nodes."""

from dataclasses import replace
from typing import Any

import pytest

from roost_core.objects.selectors import NodeRules, NodeTerm, Requirement, Toleration
from roost_core.release.placeholder_sets import PlaceholderSet, others_on_same_nodes

ONE = NodeTerm((Requirement("zone", "In", frozenset({"a"})),), ())
OTHER = NodeTerm((Requirement("zone", "In", frozenset({"b"})),), ())
SPOT = Toleration("spot", "Exists", "", "")
TRIAL = Toleration("trial", "Exists", "", "")
RULES = NodeRules((("pool", "user"),), (ONE, OTHER), (SPOT, TRIAL))
SMALL = PlaceholderSet(
    name="small",
    stateful_set="small",
    label="small",
    rules=RULES,
    replicas=0,
    requests={"cpu": "100m", "memory": "1Gi"},
)
LARGE = replace(SMALL, name="large", requests={"cpu": "1", "memory": "8Gi"})


@pytest.mark.parametrize(
    ("changes", "are_same"),
    [
        ({}, True),
        # Neither order nor repetition matters.
        ({"rules": RULES._replace(required_node_terms=(OTHER, ONE, ONE))}, True),
        ({"rules": RULES._replace(tolerations=(TRIAL, SPOT))}, True),
        ({"rules": RULES._replace(required_node_terms=(ONE,))}, False),
        ({"rules": RULES._replace(required_node_terms=None)}, False),
        ({"rules": RULES._replace(tolerations=(SPOT,))}, False),
        ({"rules": RULES._replace(node_selector=())}, False),
        ({"requests": {"cpu": "1", "nvidia.com/gpu": 1}}, False),
        ({"requests": {}}, True),
        ({"requests": {"cpu": "1", "nvidia.com/gpu": 0}}, True),
    ],
)
def test_sets_use_the_same_nodes_by_their_rules_and_devices(
    changes: dict[str, Any], *, are_same: bool
) -> None:
    other = replace(LARGE, **changes)
    for mine, its in ((SMALL, other), (other, SMALL)):
        assert others_on_same_nodes(mine, (SMALL, other)) == ((its,) if are_same else ())


def test_no_term_and_no_terms_at_all_are_different() -> None:
    free = replace(SMALL, rules=NodeRules())
    nowhere = replace(LARGE, rules=NodeRules(required_node_terms=()))
    assert others_on_same_nodes(free, (free, nowhere)) == ()
