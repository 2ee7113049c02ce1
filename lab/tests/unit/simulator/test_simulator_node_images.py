"""The kubelet's machine: what it pulls when, what is on the disk, what it collects and what it
reports.
"""

import math
from dataclasses import replace
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.tests.told import Story, Thing, stories
from roost_lab.simulator.engine.node_images import Image, Images, NodeImages, PullFigures
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.traces.chance import Chance

# One family, so that what is shared is known: 640 MB of base in every image.
WORLD = Assumptions(base_families=1, node_disk_bytes=10 * 10**9)
BASE = 640_000_000
GB = 10**9


def images(world: Assumptions = WORLD, **sizes: int) -> Images:
    """A catalogue in which these images have these sizes on disk."""
    found = Images(world, Chance(1))
    for name, size in sizes.items():
        found.get(name, size)
    return found


def node(
    world: Assumptions = WORLD, figures: PullFigures | None = None, **sizes: int
) -> NodeImages:
    return NodeImages(images(world, **sizes), world, 0.0, figures)


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
    assert median(abs(math.log(size / 1.6e9)) for size in sizes) == pytest.approx(
        0.5 * 0.6745, rel=0.06
    )


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
    assert (smaller.disk_bytes, sum(layer.disk_bytes for layer in smaller.layers[1:])) == (
        GB,
        GB - BASE,
    )


class Told:
    """A node, and what a story's lines do on it and expect of it; µs don't matter."""

    def __init__(self, story: Story) -> None:
        world = {
            key: value
            for thing in story.things
            if thing.kind == "world"
            for key, value in thing.named.items()
        }
        sizes = {
            thing.plain[0]: int(thing.plain[1]) for thing in story.things if thing.kind == "image"
        }
        self.figures, self.finished = PullFigures(), dict[str, float]()
        self.machine = node(replace(WORLD, **world), self.figures, **sizes)

    def moment(self, said: float | str) -> float:
        name, _, after = str(said).partition("+")
        return self.finished[name] + float(after) if after else float(said)

    def tell(self, thing: Thing) -> None:
        kind, (name, *plain), expected = thing.kind, thing.plain or ("",), thing.named
        if kind == "pull":
            pull = self.machine.pull(name, float(plain[0]), in_background="background" in plain)
            self.finished[name] = pull.finish
            found = {
                "begin": pull.begin,
                "finish": pull.finish,
                "bytes": pull.bytes,
                "cold": pull.is_cold,
            }
            assert {key: found[key] for key in expected} == pytest.approx(
                expected, abs=2e-3, rel=2e-9
            ), thing
        elif kind == "has":
            assert self.machine.has(name, self.moment(plain[0])) == (plain[1] == "yes"), thing
        elif kind in ("use", "release"):
            getattr(self.machine, kind)(name, float(plain[0]))
        elif kind in ("collect", "settle"):
            assert getattr(self.machine, kind)(self.moment(name)) == plain, thing
        elif kind == "collects":
            assert self.machine.next_collection(float(name)) == plain[0], thing
        elif kind == "disk":
            assert self.machine.disk_bytes == name, thing
        elif kind == "counted":
            assert {key: getattr(self.figures, key) for key in expected} == expected, thing


@stories("node-images", "world image pull has use release collect settle collects disk counted")
def test_a_node_pulls_and_collects_images_in_their_turn(story: Story) -> None:
    told = Told(story)
    for thing in story.things:
        if thing.kind not in ("world", "image"):
            told.tell(thing)


def test_the_largest_images_are_reported_and_the_list_is_one_object_while_they_are_the_same() -> (
    None
):
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
    st.sampled_from(["pull", "use", "release", "collect", "settle"]),
    st.sampled_from(NAMES),
    st.floats(0, 200),
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
        assert list(machine.status_images(now).items()) == [
            (one.name, one.compressed_bytes) for one in expected
        ]
    machine.settle(math.inf)
    layers = {
        layer.key: layer.disk_bytes
        for name in machine.names(now)
        for layer in catalogue.get(name).layers
    }
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
