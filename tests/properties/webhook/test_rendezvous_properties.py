"""What must always hold of the order of a repository's nodes."""

from hypothesis import given
from hypothesis import strategies as st

from tests.binderhub_ring import rank_nodes
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
