"""The ring: BinderHub's order, few moves, and cheap answers while nodes come and go."""

from hashlib import blake2b

import pytest

from roost_core.placement.rendezvous import rank_nodes

SIX = [f"node-{index}" for index in range(6)]


@pytest.mark.parametrize(
    ("key", "order"),
    [
        ("https://github.com/jupyterlab/jupyterlab-demo", "5 4 3 1 2 0"),
        ("https://github.com/ipython/ipython-in-depth", "2 3 5 4 0 1"),
        ("10.5281/zenodo.3242074", "5 1 3 2 0 4"),
        ("repo", "5 3 2 0 4 1"),
    ],
)
def test_the_order_is_binderhubs(key: str, order: str) -> None:
    assert rank_nodes(key, SIX) == [f"node-{index}" for index in order.split()]


def test_the_score_is_binderhubs() -> None:
    digest = blake2b(b"https://github.com/binder-examples/requirements-node-a", digest_size=8).digest()
    assert int.from_bytes(digest, "big") == 17567118816211417644


def test_a_key_and_a_node_that_hash_alike_are_told_apart_by_the_nodes_name() -> None:
    # "a" + "b-c" and "a-b" + "c" are the same bytes: each key still has one order, the same in every process.
    assert rank_nodes("a", ["b-c", "z"]) == rank_nodes("a", ["z", "b-c"])


def test_repositories_that_differ_in_case_or_git_suffix_are_different_keys_as_they_are_to_binderhub() -> None:
    def orders(*keys: str) -> set[tuple[str, ...]]:
        return {tuple(rank_nodes(key, SIX)) for key in keys}

    url = "https://github.com/Binder-Examples/Requirements"
    assert len(orders(url, url.lower(), f"{url}.git")) == 3


def test_a_third_node_takes_about_a_third_of_the_keys_evenly_and_moves_no_others() -> None:
    keys = [f"https://github.com/org/repo-{index}" for index in range(3000)]
    before = {key: rank_nodes(key, ["node-a", "node-b"])[0] for key in keys}
    after = {key: rank_nodes(key, ["node-a", "node-b", "node-c"])[0] for key in keys}
    moved = [key for key in keys if before[key] != after[key]]
    assert all(after[key] == "node-c" for key in moved)
    assert 0.31 <= len(moved) / len(keys) <= 0.36
