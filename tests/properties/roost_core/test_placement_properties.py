"""What must always hold of rings, bounds and sets of nodes."""

from hypothesis import given
from hypothesis import strategies as st

from roost_core.objects.node import Node
from roost_core.placement.labels import KARPENTER_POOL_LABEL
from roost_core.placement.nodes import Nodes
from tests.binderhub_ring import rank_nodes
from tests.builders import node
from tests.properties import strategies as draw_from
from webhook.rendezvous import best_nodes, encode_name

names = st.text(min_size=1, max_size=12)


def whole_order(key: str, nodes: set[str]) -> list[str]:
    return best_nodes(key, map(encode_name, nodes), len(nodes))


@given(key=st.text(), nodes=st.sets(names, max_size=80), count=st.integers(0, 5))
def test_the_order_is_always_binderhubs(key: str, nodes: set[str], count: int) -> None:
    expected = rank_nodes(key, nodes)
    assert whole_order(key, nodes) == expected
    assert best_nodes(key, map(encode_name, nodes), count) == expected[:count]


@given(key=st.text(), nodes=st.sets(names, min_size=1), data=st.data())
def test_losing_a_node_moves_only_what_lived_there(
    key: str, nodes: set[str], data: st.DataObject
) -> None:
    lost = data.draw(st.sampled_from(sorted(nodes)))
    assert whole_order(key, nodes - {lost}) == [
        name for name in whole_order(key, nodes) if name != lost
    ]


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
