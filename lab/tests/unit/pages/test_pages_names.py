import pytest

from roost_lab.pages.names import shorten


def test_nodes_of_eks_lose_the_domain_that_all_have() -> None:
    nodes = [f"ip-10-0-{number}.eu-west-1.compute.internal" for number in ("1-17", "1-203", "33-4")]
    assert list(shorten(nodes, 26).values()) == ["ip-10-0-1-17…", "ip-10-0-1-203…", "ip-10-0-33-4…"]
    assert list(shorten(nodes, 8).values()) == ["…1-17…", "…1-203…", "…33-4…"]


def test_nodes_of_gke_lose_the_cluster_that_all_but_a_virtual_node_have_and_then_their_middle() -> None:
    ends = ("user-pool-1a2b3c4d-abcd", "user-pool-1a2b3c4d-x1z9", "core-pool-99aa88bb-qq0q")
    nodes = [*(f"gke-prod-cluster-{end}" for end in ends), "virtual-kubelet"]
    assert list(shorten(nodes, 44).values()) == nodes
    assert list(shorten(nodes, 26).values()) == [*(f"…{end}" for end in ends), "virtual-kubelet"]
    assert list(shorten(nodes, 14).values()) == ["…use…3c4d-abcd", "…use…3c4d-x1z9", "…cor…88bb-qq0q", "virt…l-kubelet"]


def test_images_become_their_last_part_unless_another_has_it_and_digests_their_first_digits() -> None:
    names = [
        "r.example.org/a/base:1",
        "r.example.org/b/base:1",
        "ghcr.io/c/other:1",
        "quay.io/d/r2d-g5b:" + "0a1b" * 10,
    ]
    short = shorten(names, 26)
    assert list(short.values()) == [*names[:2], "other:1", "r2d-g5b:0a1b0a…"]


def test_names_that_differ_in_their_middle_alone_are_cut_around_it() -> None:
    assert list(shorten([f"{'x' * 30}{number}{'y' * 30}" for number in (1, 2)], 12).values()) == [
        "…x1yyyyyyyy…",
        "…x2yyyyyyyy…",
    ]


def test_names_of_which_one_begins_with_the_other_stay_two() -> None:
    assert list(shorten(["x" * 90, "x" * 91], 10).values()) == ["…" + "x" * 9, "…" + "x" * 7 + "~2"]


def test_a_length_that_tells_nothing_apart_is_refused() -> None:
    with pytest.raises(ValueError, match="found 7, expected at least 8"):
        shorten(["a"], 7)
