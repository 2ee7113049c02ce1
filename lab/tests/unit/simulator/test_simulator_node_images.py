"""The kubelet's machine: what it pulls when, what is on the disk, what it collects and what it reports."""

import math
from dataclasses import replace
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost_lab.simulator.engine.node_images import Image, Images, NodeImages, Pull, PullFigures
from roost_lab.simulator.setup.assumptions import PULLS, Assumptions
from roost_lab.traces.chance import Chance

# One family, so that what is shared is known: 640 MB of base in every image.
WORLD = Assumptions(base_families=1, node_disk_bytes=10 * 10**9)
BASE = 640_000_000
GB = 10**9
RATE = PULLS["middle"][1]


def images(world: Assumptions = WORLD, **sizes: int) -> Images:
    """A catalogue in which these images have these sizes on disk."""
    found = Images(world, Chance(1))
    for name, size in sizes.items():
        found.get(name, size)
    return found


def node(world: Assumptions = WORLD, figures: PullFigures | None = None, **sizes: int) -> NodeImages:
    return NodeImages(images(world, **sizes), world, 0.0, figures)


def seconds(disk_bytes: int) -> float:
    """How long a pull of so many bytes takes, on disk, with its overhead."""
    return int(disk_bytes / 2.8) / RATE + 1


def test_sizes_belong_to_the_name_and_the_seed_not_to_the_order_of_asking() -> None:
    one, other = Images(WORLD, Chance(7)), Images(WORLD, Chance(7))
    names = [f"image-{number}" for number in range(50)]
    sizes = {name: one.get(name).disk_bytes for name in names}
    assert {name: other.get(name).disk_bytes for name in reversed(names)} == sizes
    assert Images(WORLD, Chance(8)).get("image-0").disk_bytes != sizes["image-0"]


def test_sizes_are_log_normal_about_the_assumed_median() -> None:
    catalogue = Images(replace(WORLD, base_families=4), Chance(3))
    sizes = [catalogue.get(f"image-{number}").disk_bytes for number in range(4000)]
    assert median(sizes) == pytest.approx(1.6e9, rel=0.03)
    assert median(abs(math.log(size / 1.6e9)) for size in sizes) == pytest.approx(0.5 * 0.6745, rel=0.06)


BUILT = replace(WORLD, base_families=4)


def kinds(image: Image) -> list[str]:
    """The first words of its layers' keys; its own name for the last."""
    return [layer.key.partition(" ")[0] for layer in image.layers]


def test_an_image_is_base_environment_and_files_if_it_is_large_enough_for_them() -> None:
    catalogue = images(BUILT, large=2 * GB, least=BASE)
    large = catalogue.get("large")
    assert kinds(large) == ["base", "environment", "large"]
    rest = 2 * GB - BASE
    expected = [BASE, int(rest * 0.9), rest - int(rest * 0.9)]
    assert [layer.disk_bytes for layer in large.layers] == expected
    assert kinds(catalogue.get("least")) == ["environment", "least"]


def test_a_push_changes_files_only_or_the_environment_too_as_often_as_assumed() -> None:
    catalogue = Images(BUILT, Chance(3))
    kept = 0
    before = catalogue.get("r/a:0")
    for number in range(1, 401):
        image = catalogue.get(f"r/a:{number}")
        if image.layers[:-1] == before.layers[:-1]:
            kept += 1
            assert image.disk_bytes == before.disk_bytes
        else:
            assert image.layers[-2].key == f"environment r/a:{number}"
        assert image.layers[-1].key == f"r/a:{number}"
        before = image
    assert 160 < kept < 240
    assert catalogue.get("r/b:1").layers[-2].key == "environment r/b:1"


def test_a_commit_whose_size_the_trace_knows_has_that_size() -> None:
    catalogue = Images(replace(WORLD, build_changed_share=0.0), Chance(1))
    catalogue.get("a:1", 2 * GB)
    kept = 2 * GB - int((2 * GB - BASE) * 0.1)
    larger, smaller = catalogue.get("a:2", 3 * GB), catalogue.get("a:3", 1 * GB)
    assert larger.disk_bytes == 3 * GB
    assert larger.layers[-1].disk_bytes == pytest.approx(3 * GB - kept, abs=1)
    # It can't hold that environment.
    assert (smaller.disk_bytes, sum(layer.disk_bytes for layer in smaller.layers[1:])) == (GB, GB - BASE)


def test_a_lazy_pull_holds_a_container_up_for_its_first_part_and_fetches_all() -> None:
    machine = node(replace(WORLD, lazy_share=1.0, lazy_fraction=0.25), a=2 * GB, b=2 * GB)
    pull = machine.pull("a", 0.0)
    assert pull.finish == pytest.approx(0.25 * (seconds(2 * GB) - 1) + 1, abs=1e-3)
    assert pull.bytes == pytest.approx(2 * GB / 2.8, abs=2)
    assert machine.pull("b", 0.0).begin == pull.finish
    assert machine.has("a", pull.finish)
    assert machine.disk_bytes == 2 * GB


def test_a_pull_lasts_as_long_as_its_slower_half_and_a_second() -> None:
    pull = node(a=2 * GB).pull("a", 100.0)
    assert (pull.begin, pull.is_cold) == (100.0, True)
    assert pull.finish == pytest.approx(100.0 + seconds(2 * GB), abs=1e-3)
    assert pull.bytes == pytest.approx(2 * GB / 2.8, abs=2)


def test_an_image_is_there_from_its_finish_on() -> None:
    machine = node(a=2 * GB)
    finish = machine.pull("a", 0.0).finish
    assert not machine.has("a", math.nextafter(finish, 0.0))
    assert machine.has("a", finish)
    assert machine.has("a")


def test_layers_that_are_there_or_on_their_way_are_not_fetched_again() -> None:
    machine = node(a=2 * GB, b=1 * GB, c=1 * GB)
    machine.pull("a", 0.0)
    on_its_way = machine.pull("b", 1.0)
    there = machine.pull("c", 1000.0)
    assert on_its_way.bytes == there.bytes == pytest.approx((GB - BASE) / 2.8, abs=1)
    assert machine.settle(2000.0) == ["c"]
    assert machine.disk_bytes == 4 * GB - 2 * BASE


def test_a_second_pod_that_wants_an_image_on_its_way_takes_its_turn_and_is_quick() -> None:
    figures = PullFigures()
    machine = node(figures=figures, a=2 * GB, b=1 * GB)
    machine.pull("a", 0.0)
    between = machine.pull("b", 0.0)
    assert machine.pull("a", 0.0) == Pull(between.finish, between.finish + 1, 0, False)
    assert figures.pulls == 2


def test_pulls_in_the_background_stand_in_the_same_queue_and_are_counted_apart() -> None:
    figures = PullFigures()
    machine = node(figures=figures, a=2 * GB, b=1 * GB)
    background = machine.pull("a", 0.0, in_background=True)
    assert machine.pull("b", 0.0).begin == background.finish
    assert (figures.pulls, figures.background_pulls, figures.background_bytes) == (1, 1, background.bytes)


def test_parallel_pulls_share_the_network_and_unpack_each_for_itself() -> None:
    world = replace(WORLD, parallel_pulls=2)
    machine = node(world, a=4 * GB, b=2 * GB + BASE, c=1 * GB)
    first, second, third = (machine.pull(name, 0.0) for name in "abc")
    assert (first.begin, second.begin) == (0.0, 0.0)
    # 60 MB/s for two are still more than 25 of unpacking.
    assert second.finish == pytest.approx(seconds(2 * GB), abs=1e-3)
    assert third.begin == second.finish
    slow = node(replace(world, pulls="slow"), a=4 * GB, b=2 * GB + BASE)
    slow.pull("a", 0.0)
    assert slow.pull("b", 0.0).finish == pytest.approx(2 * GB / 2.8 / 5e6 + 1, abs=1e-3)


def test_the_next_collection_is_the_first_look_after_the_image_that_fills_the_disk() -> None:
    machine = node(a=4 * GB, b=4 * GB, c=3 * GB)
    for name in "abc":
        pull = machine.pull(name, 0.0)
    assert 120 < pull.finish < 300
    assert (machine.next_collection(1.0), machine.next_collection(300.0)) == (300.0, 600.0)


def test_unused_images_go_by_last_use_until_the_runtimes_sizes_make_up_for_the_low_mark() -> None:
    figures = PullFigures()
    machine = node(figures=figures, a=3 * GB, b=3 * GB, c=3 * GB, d=3 * GB)
    for name in "abcd":
        machine.pull(name, 0.0)
    machine.use("a", 1000.0)
    machine.use("b", 1001.0)
    machine.release("b", 1002.0)
    assert machine.disk_bytes == 12 * GB - 3 * BASE
    # 2.08 GB are too many; c and d count 1.07 each, as compressed, though each frees 2.36.
    assert machine.collect(2000.0) == ["c", "d"]
    assert machine.disk_bytes == 6 * GB - BASE
    assert not machine.has("c")
    assert figures.collected == 2


def test_the_disk_is_brought_down_to_the_low_mark() -> None:
    world = replace(WORLD, compression_ratio=1.0)
    machine = NodeImages(images(world, a=1_200_000_000, b=3 * GB, c=3 * GB, d=4_220_000_000), world)
    for name in "abcd":
        machine.pull(name, 0.0)
    # 1.5 GB over the low mark, 1.0 over the high one.
    assert machine.collect(2000.0) == ["a", "b"]


def test_images_in_use_and_images_just_come_stay_however_full_the_disk_is() -> None:
    machine = node(a=6 * GB, b=6 * GB)
    machine.pull("a", 0.0)
    machine.use("a", 500.0)
    finish = machine.pull("b", 600.0).finish
    assert machine.collect(finish + 119.0) == []
    assert machine.collect(finish + 120.0) == ["b"]
    machine.release("a", finish + 130.0)
    assert machine.collect(finish + 200.0) == []


def test_an_image_pulled_again_after_its_collection_is_counted_once() -> None:
    figures = PullFigures()
    machine = node(figures=figures, a=9 * GB)
    machine.pull("a", 0.0)
    assert machine.collect(5000.0) == ["a"]
    assert machine.disk_bytes == 0
    machine.pull("a", 5000.0)
    machine.pull("a", 5001.0)
    assert (figures.collected_then_pulled, figures.greatest_disk_bytes) == (1, 9 * GB)


def test_the_largest_images_are_reported_and_the_list_is_one_object_while_they_are_the_same() -> None:
    machine = node(replace(WORLD, status_images=2), a=3 * GB, b=2 * GB, c=1 * GB, d=4 * GB)
    for name in "ab":
        machine.pull(name, 0.0)
    before = machine.status_images(1000.0)
    assert list(before) == ["a", "b"]
    machine.pull("c", 1000.0)
    assert machine.status_images(2000.0) is before
    machine.pull("d", 2000.0)
    assert list(machine.status_images(3000.0)) == ["d", "a"]
    assert before == {
        "a": int((3 * GB - BASE) / 2.8) + int(BASE / 2.8),
        "b": int((2 * GB - BASE) / 2.8) + int(BASE / 2.8),
    }


NAMES = [f"image-{number // 2}:{number % 2}" for number in range(12)]
STEP = st.tuples(
    st.sampled_from(["pull", "use", "release", "collect", "settle"]), st.sampled_from(NAMES), st.floats(0, 200)
)


@given(
    steps=st.lists(STEP, max_size=60),
    parallel=st.integers(0, 3),
    listed=st.sampled_from([-1, 0, 1, 3, 50]),
    families=st.integers(1, 3),
)
def test_whatever_happens_the_disk_holds_each_layer_once_and_the_list_is_that_of_the_largest(
    steps: list[tuple[str, str, float]], parallel: int, listed: int, families: int
) -> None:
    world = replace(WORLD, parallel_pulls=parallel, status_images=listed, base_families=families)
    catalogue = Images(world, Chance(5))
    machine = NodeImages(catalogue, world)
    now, users = 0.0, dict.fromkeys(NAMES, 0)
    for action, name, later in steps:
        now += later
        if action == "pull":
            pull = machine.pull(name, now)
            assert now <= pull.begin <= pull.finish
        elif action == "use":
            machine.use(name, now)
            users[name] += 1
        elif action == "release" and users[name]:
            machine.release(name, now)
            users[name] -= 1
        elif action == "collect":
            gone = machine.collect(now)
            assert not any(users[one] for one in gone)
            assert machine.count == 0 or not set(gone) & set(machine.names(now))
        next_look = machine.next_collection(now)
        assert next_look is None or next_look > now
        held = [catalogue.get(one) for one in machine.names(now)]
        largest = sorted(held, key=lambda image: (-image.compressed_bytes, image.name))
        expected = largest if listed < 0 else largest[:listed]
        assert list(machine.status_images(now).items()) == [(one.name, one.compressed_bytes) for one in expected]
    machine.settle(math.inf)
    layers = {layer.key: layer.disk_bytes for name in machine.names(now) for layer in catalogue.get(name).layers}
    assert machine.disk_bytes == sum(layers.values())


@given(asked=st.lists(st.tuples(st.sampled_from(NAMES), st.floats(0, 50)), min_size=1, max_size=40))
def test_serial_pulls_never_overlap(asked: list[tuple[str, float]]) -> None:
    machine = NodeImages(Images(WORLD, Chance(5)), replace(WORLD, node_disk_bytes=0))
    now, free = 0.0, 0.0
    for name, later in asked:
        now += later
        pull = machine.pull(name, now)
        if pull.finish > now:
            assert pull.begin == max(now, free)
            free = pull.finish
