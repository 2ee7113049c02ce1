"""What must always hold of sets of nodes."""

from hypothesis import given
from hypothesis import strategies as st

from roost_core.objects.node import Node
from roost_core.placement.labels import KARPENTER_POOL_LABEL
from roost_core.placement.nodes import Nodes
from tests.builders import node
from tests.properties import strategies as draw_from

changes = st.lists(
    st.dictionaries(
        st.sampled_from(draw_from.NODE_NAMES),
        st.none()
        | st.tuples(st.lists(st.sampled_from(draw_from.IMAGES)), st.booleans(), st.booleans()),
    )
)


def drawn_node(name: str, images: list[str], ready: bool, is_of_karpenter: bool) -> Node:
    return node(
        name,
        *images,
        ready=ready,
        labels={KARPENTER_POOL_LABEL: "users"} if is_of_karpenter else {},
    )


@given(changes)
def test_nodes_changed_step_by_step_are_nodes_built_at_once(
    steps: list[dict[str, tuple[list[str], bool, bool] | None]],
) -> None:
    nodes, expected = Nodes(), dict[str, Node]()
    for step in steps:
        change = {
            name: None if new is None else drawn_node(name, *new) for name, new in step.items()
        }
        nodes = nodes.updated(change)
        for name, fact in change.items():
            expected.pop(name, None)
            if fact is not None:
                expected[name] = fact
        anew = Nodes(expected.values())
        assert (dict(nodes), nodes.names, dict(nodes.holders)) == (
            expected,
            anew.names,
            dict(anew.holders),
        )
        karpenters = sum(KARPENTER_POOL_LABEL in one.labels for one in expected.values())
        assert nodes.of_karpenter == anew.of_karpenter == karpenters
