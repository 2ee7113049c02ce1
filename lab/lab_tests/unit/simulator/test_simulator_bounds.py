"""Bounds: what no policy can beat."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost_lab.simulator.engine.bounds import BOUNDS, BoundsMeter, WaitMeter
from roost_lab.simulator.engine.node_images import Image, Layer
from roost_lab.simulator.setup.assumptions import Assumptions


def test_node_hours_are_the_nodes_that_the_running_pods_fill_over_time() -> None:
    meter = BoundsMeter(pods_per_node=2, min_nodes=1, begin=0.0)
    # One node for an hour although nobody is there, one for the hour of two pods, two for that of three.
    meter.started("a", 3600.0)
    meter.started("a", 3600.0)
    meter.started("b", 7200.0)
    assert meter.close(10_800.0)["node_hours"] == pytest.approx(1 + 1 + 2)


def test_an_image_is_cold_once_for_each_node_that_its_pods_filled_at_once() -> None:
    meter = BoundsMeter(pods_per_node=2, min_nodes=0)
    for moment in range(5):
        meter.started("a", float(moment))
    for _ in range(5):
        meter.ended("a", 5.0)
    meter.started("a", 6.0)
    meter.started("b", 7.0)
    found = meter.close(8.0)
    assert (found["cold"], found["cold_compulsory"]) == (3 + 1, 2)


def layer(key: str, size: int = 10) -> Layer:
    return Layer(key, size, 2 * size)


def image(name: str, size: int = 10, base: int = 0) -> Image:
    return Image(name, (*((layer("base", base),) if base else ()), layer(name, size)))


def test_layers_are_fetched_once_in_the_cluster_or_once_in_each_nodes_life() -> None:
    meter = BoundsMeter(pods_per_node=1, min_nodes=0)
    for node in ("n1", "n2", "n1"):
        meter.needed(node, (layer("base"), layer("x")))
    meter.needed("n1", (layer("base"), layer("y")))
    found = meter.close(0.0)
    assert (found["registry_bytes"], found["cold_bytes"], found["node_bytes"]) == (30, 30, 50)
    # A node of the same name is another one.
    meter.node_left("n1", 100)
    meter.needed("n1", (layer("base"),))
    assert meter.close(0.0)["node_bytes"] == 60


def test_each_repositorys_first_build_is_cold() -> None:
    meter = BoundsMeter(pods_per_node=1, min_nodes=0)
    for repository in ("r", "r", "s", "r"):
        meter.built(repository)
    assert meter.close(0.0)["build_cache_hits"] == 2


def test_some_node_had_its_share_of_the_builds_there_were_by_then() -> None:
    meter = BoundsMeter(pods_per_node=1, min_nodes=0)
    # Five builds on two nodes: one had three. Three more on ten nodes change nothing.
    for nodes in (2, 2, 2, 2, 2, 10, 10, 10):
        meter.built("r", nodes)
    assert meter.close(0.0)["busiest_builder_share"] == 3 / 8


def test_images_beyond_what_a_disk_holds_at_once_had_to_go() -> None:
    meter = BoundsMeter(pods_per_node=1, min_nodes=0)
    # 20, 40, 60, 80 and 100 bytes on the disk; 130 hold the three smallest, and all of them again and again.
    for size in (10, 20, 30, 40, 50, 50, 40):
        meter.came("n1", image(f"i{size}", size, base=1))
    meter.came("n2", image("i50", 50))
    assert meter.counted(130)["images_collected"] == 2
    meter.node_left("n1", 130)
    assert meter.counted(130)["images_collected"] == 2
    assert meter.counted(400)["images_collected"] == 2
    assert "images_collected" not in meter.counted()


# Waits: 25 MB/s are unpacked, an image of 100 MB takes 4 s and one more; 1.35 s to bind and start.
MB = 10**6


def test_an_images_first_launch_waits_for_its_own_layers_and_so_does_who_comes_meanwhile() -> None:
    meter = WaitMeter(Assumptions())
    meter.asked(image("a", 100 * MB, base=500 * MB), 0.0)
    meter.asked(image("a", 100 * MB, base=500 * MB), 2.0)
    for moment in (5.0, 6.0):
        meter.asked(image("a", 100 * MB, base=500 * MB), moment)
    found = meter.counted(4)
    assert found["wait_mean"] == pytest.approx((6.35 + 4.35 + 2 * 1.35) / 4)
    assert found["wait_p50"] == pytest.approx(1.35)
    assert found["wait_p999"] == pytest.approx(6.35, rel=0.01)
    assert found["over_30"] == 0


def test_nobody_is_reckoned_to_wait_longer_than_their_last_try() -> None:
    meter = WaitMeter(Assumptions(start_timeout_seconds=20, retries=1))
    meter.asked(image("a", 10_000 * MB), 0.0)
    found = meter.counted(1)
    assert found["wait_p99"] == found["wait_mean"] == pytest.approx(40)
    assert (found["over_30"], found["over_60"]) == (1, 0)


def test_launches_whose_wait_is_not_told_are_taken_for_the_slowest() -> None:
    meter = WaitMeter(Assumptions())
    for index, size in enumerate((1000, 500, 0, 0)):
        meter.asked(image(f"i{index}", size * MB + 1), float(index))
    assert meter.counted(4)["wait_p999"] == pytest.approx(42.35, rel=0.01)
    # One was never up: it may have been the first.
    found = meter.counted(3)
    assert 21 < found["wait_p999"] <= 22.35
    assert (found["over_30"], meter.counted(4)["over_30"]) == (0, 0.25)
    # Another was pre-empted: its wait may have been none at all.
    assert meter.counted(3, 1)["wait_p999"] < 3
    assert meter.counted(0) == {}


def test_what_never_happened_has_no_bound() -> None:
    assert set(BoundsMeter(1, 0).close(0.0)) == {"node_hours", "peak_nodes", "cold", "cold_compulsory"}


def test_each_bound_is_said_once() -> None:
    assert len({bound.key for bound in BOUNDS}) == len(BOUNDS)
    assert all(bound.says.endswith(".") for bound in BOUNDS)


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
    assert found["cold"] == sum(needed.values())


def test_pods_with_sizes_of_their_own_count_by_memory() -> None:
    meter = BoundsMeter(pods_per_node=2, min_nodes=0, begin=0.0, node_bytes=100)
    for index in range(4):
        meter.started(f"image {index}", 0.0, 25)
    meter.started("image 0", 3600.0, 30)
    meter.ended("image 0", 7200.0, 30)
    assert meter.close(7200.0) == {"node_hours": 3.0, "peak_nodes": 2.0, "cold": 4.0, "cold_compulsory": 4.0}
