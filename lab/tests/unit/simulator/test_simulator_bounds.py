"""Bounds: what no policy can beat."""

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost_lab.simulator.engine.bounds import BoundsMeter


def test_each_repositorys_first_build_is_cold() -> None:
    meter = BoundsMeter(pods_per_node=1, min_nodes=0)
    for repository in ("r", "r", "s", "r"):
        meter.built(repository)
    assert meter.close(0.0)["build_cache_hits"] == 2


@given(
    stays=st.lists(st.tuples(st.integers(0, 50), st.integers(1, 30), st.sampled_from("abc")), max_size=40),
    per_node=st.integers(1, 4),
    least=st.integers(0, 3),
)
def test_the_meter_agrees_with_looking_at_every_second(
    stays: list[tuple[int, int, str]], per_node: int, least: int
) -> None:
    meter = BoundsMeter(per_node, least, begin=0.0)
    events = [(begin, 1, image) for begin, _, image in stays] + [
        (begin + length, 0, image) for begin, length, image in stays
    ]
    # Who leaves at a moment leaves before who comes at it.
    for moment, comes, image in sorted(events):
        (meter.started if comes else meter.ended)(image, float(moment))
    found = meter.close(100.0)
    there = [[image for begin, length, image in stays if begin <= second < begin + length] for second in range(100)]
    assert found["node_hours"] * 3600 == pytest.approx(sum(max(least, ceil(len(one) / per_node)) for one in there))
    assert found["peak_nodes"] == max(least, *(ceil(len(one) / per_node) for one in there))
    needed = {image: max(ceil(one.count(image) / per_node) for one in there) for image in {s[2] for s in stays}}
    assert (found["cold"], found["cold_compulsory"]) == (sum(needed.values()), len(needed))


def test_pods_with_sizes_of_their_own_count_by_memory() -> None:
    meter = BoundsMeter(pods_per_node=2, min_nodes=0, begin=0.0, node_bytes=100)
    for index in range(4):
        meter.started(f"image {index}", 0.0, 25)
    meter.started("image 0", 3600.0, 30)
    meter.ended("image 0", 7200.0, 30)
    assert meter.close(7200.0) == {"node_hours": 3.0, "peak_nodes": 2.0, "cold": 4.0, "cold_compulsory": 4.0}
