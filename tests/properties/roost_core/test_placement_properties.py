"""What must always hold of rings, bounds and sets of nodes."""

from hashlib import blake2b

from hypothesis import given
from hypothesis import strategies as st

from roost_core.objects.node import Node
from roost_core.placement.labels import KARPENTER_POOL_LABEL
from roost_core.placement.nodes import Nodes
from tests.builders import node
from tests.properties import strategies as draw_from
from webhook.rendezvous import rank_nodes

names = st.text(min_size=1, max_size=12)


def binderhubs_order(key: str, buckets: set[str]) -> list[str]:
    """BinderHub's rule as its documentation of sticky builds gives it."""

    def score(bucket: str) -> tuple[int, str]:
        digest = blake2b(f"{key}-{bucket}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big"), bucket

    return sorted(buckets, key=score, reverse=True)


@given(key=st.text(), nodes=st.sets(names))
def test_the_order_is_always_binderhubs(key: str, nodes: set[str]) -> None:
    assert rank_nodes(key, nodes) == binderhubs_order(key, nodes)


@given(key=st.text(), nodes=st.sets(names, min_size=1), data=st.data())
def test_losing_a_node_moves_only_what_lived_there(
    key: str, nodes: set[str], data: st.DataObject
) -> None:
    lost = data.draw(st.sampled_from(sorted(nodes)))
    assert rank_nodes(key, nodes - {lost}) == [
        name for name in rank_nodes(key, nodes) if name != lost
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
