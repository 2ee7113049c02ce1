"""What the image gate guarantees whatever kubelets say, and in whatever order."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from roost.controllers.contract.actions import ChangeNode, Notice
from roost.controllers.image_gate.node_labels import LEFT_SET_SECONDS
from roost_core.objects.selectors import Taint
from roost_core.placement.beliefs import LIST_LAGS
from roost_core.placement.labels import pulled_label, pulled_prefix, startup_taint
from roost_core.release.image_gate import GateMode
from tests.gate_world import GPU, NAMESPACE, OTHER, RELEASE, SCIPY, GateWorld, gate_settings, label

IMAGES = (SCIPY, GPU, "busybox:1.37")
LEFT = "quay.io/jupyter/left-the-set:1"
NODES = ("a", "b")
STARTUP = Taint(startup_taint(RELEASE, NAMESPACE), "", "NoSchedule")
PREFIX = pulled_prefix(RELEASE, NAMESPACE)
FOREIGN_TAINTS = (
    Taint(startup_taint("hub2", NAMESPACE), "", "NoSchedule"),
    Taint("example.org/gpu", "yes", "NoSchedule"),
)
OWN_LABELS = tuple(map(label, (*IMAGES, LEFT)))
FOREIGN_LABELS = (
    pulled_label("hub2", NAMESPACE, SCIPY),
    pulled_label(RELEASE, "jhub2", SCIPY),
    "pool",
    "images-pulled.example.org/x",
)
nodes = st.sampled_from(NODES)
images = st.sampled_from(IMAGES)

steps = st.one_of(
    st.tuples(st.just("event"), nodes, images),
    st.tuples(st.just("running"), nodes, images),
    st.tuples(
        st.just("fault"), nodes, images, st.sampled_from(["not found", "connection refused", "odd"])
    ),
    st.tuples(st.just("list"), nodes, st.lists(st.sampled_from((*IMAGES, OTHER)), unique=True)),
    st.tuples(st.just("ready"), nodes, st.booleans()),
    st.tuples(st.just("new puller"), nodes),
    st.tuples(st.just("new node"), nodes),
    st.tuples(
        st.just("wait"), st.sampled_from([0.0, 5.0, 31.0, LEFT_SET_SECONDS, LIST_LAGS.age_seconds])
    ),
    st.tuples(st.just("clock jumps"), st.sampled_from([-86400.0, 86400.0])),
    st.tuples(st.just("new leader")),
    st.tuples(st.just("pending"), st.sampled_from((*IMAGES, LEFT))),
    st.tuples(st.just("nobody pending")),
    st.tuples(st.just("turn")),
)
settings = st.builds(
    gate_settings,
    st.just(SCIPY),
    mode=st.sampled_from(list(GateMode)),
    groups=st.sampled_from(
        [
            {},
            {"puller": ({}, IMAGES)},
            {"puller": ({}, IMAGES[:1]), "puller-gpu": ({"pool": "gpu"}, IMAGES[1:])},
        ]
    ),
    pull_deadline_seconds=st.sampled_from([0, 60, 600]),
)
labels = st.dictionaries(
    st.sampled_from((*OWN_LABELS, *FOREIGN_LABELS)),
    st.sampled_from(["true", "false", "gpu", "pulling", "open"]),
    max_size=5,
)
worlds = st.tuples(
    settings, labels, st.lists(st.sampled_from((STARTUP, *FOREIGN_TAINTS)), unique=True)
)


def made(drawn: Any) -> GateWorld:
    gate, node_labels, taints = drawn
    world = GateWorld(gate)
    world.add_node("a", labels=node_labels, taints=taints)
    world.add_node("b", labels={"pool": "gpu"}, images=[OTHER, *IMAGES])
    world.puller("a", *IMAGES)
    world.puller("b", *IMAGES)
    return world


class Phrase:
    """What kubelets have said at any time of each node's images: all that a label may rest on."""

    def __init__(self, world: GateWorld) -> None:
        self.there = {
            (name, image) for name in NODES for image in IMAGES if image in world.nodes[name].images
        }
        # A leader that is new takes labels on trust.
        self.there |= {
            (name, image)
            for name in NODES
            for image in IMAGES
            if world.labels(name).get(label(image)) == "true"
        }


def do(world: GateWorld, step: Any, said: Phrase) -> None:
    kind, *rest = step
    pullers = {pod.node_name: key for key, pod in world.pods.items() if pod.containers}
    match kind:
        case "event" if rest[0] in pullers:
            world.pulled_event(pullers[rest[0]], rest[1])
            said.there.add((rest[0], rest[1]))
        case "running" if rest[0] in pullers:
            world.say(pullers[rest[0]], rest[1], running=True)
            said.there.add((rest[0], rest[1]))
        case "fault" if rest[0] in pullers:
            world.fail(pullers[rest[0]], rest[1], rest[2])
        case "list":
            world.list_images(*rest[1], node=rest[0])
            said.there |= {(rest[0], image) for image in rest[1]}
        case "ready":
            world.set_fact(rest[0], ready=rest[1])
        case "new puller":
            world.pods.pop(pullers.get(rest[0], ""), None)
            world.puller(rest[0], *IMAGES)
        case "new node":
            world.pods.pop(pullers.get(rest[0], ""), None)
            world.add_node(rest[0], labels={"pool": "gpu"})
            said.there -= {(rest[0], image) for image in IMAGES}
        case "wait":
            world.wait(rest[0])
        case "clock jumps":
            world.wall += rest[0]
        case "new leader":
            world.new_leader()
        case "pending":
            world.pending_user(rest[0])
        case "nobody pending":
            world.pods = {key: pod for key, pod in world.pods.items() if pod.containers}
        case "turn":
            world.turn()


def play(world: GateWorld, story: list[Any]) -> Phrase:
    said = Phrase(world)
    for step in story:
        do(world, step, said)
    return said


def settle(world: GateWorld) -> None:
    """Turn until a plan writes nothing."""
    for _ in range(4):
        if not [action for action in world.turn().actions if not isinstance(action, Notice)]:
            return
    raise AssertionError("it never comes to rest")


def taint_keeps_pullers_off(world: GateWorld, name: str) -> bool:
    return world.settings.taint_against_pullers(world.nodes[name]) is not None


@given(worlds, st.lists(steps, max_size=25))
def test_labels_follow_what_kubelets_said_and_nothing_of_others_is_written(
    drawn: Any, story: list[Any]
) -> None:
    world = made(drawn)
    allowed = {(name, label(image)) for name, image in play(world, story).there}
    for action in world.plan().actions:
        if isinstance(action, ChangeNode):
            assert all(
                key.startswith(PREFIX) for key in (*action.set_labels, *action.remove_labels)
            )
            assert action.remove_taints <= {STARTUP.key}
            assert action.uid == world.nodes[action.node].uid
            held = [key for key, value in action.set_labels.items() if value == "true"]
            assert all((action.node, key) in allowed for key in held)
            assert world.nodes[action.node].ready or set(action.set_labels.values()) <= {"pulling"}
            assert set(action.set_labels.values()) <= {"true", "pulling", "open"}
            assert world.settings.mode is GateMode.REQUIRE_LABEL or len(held) == len(
                action.set_labels
            )
        else:
            assert isinstance(action, Notice)
    # A plan that was carried out leaves nothing to do.
    world.turn()
    assert [action for action in world.turn().actions if not isinstance(action, Notice)] == []


@given(worlds, st.lists(steps, max_size=25), st.lists(st.sampled_from(IMAGES), unique=True))
def test_in_the_end_the_labels_are_what_the_list_says(
    drawn: Any, story: list[Any], there: list[str]
) -> None:
    world = made(drawn)
    play(world, story)
    world.pods = {}
    for name in NODES:
        # On others a list says nothing of names without a registry.
        world.set_fact(name, ready=True, runtime_version="containerd://2.1.4")
        world.list_images(OTHER, *there, node=name)
    for seconds in (0.0, LEFT_SET_SECONDS, LIST_LAGS.age_seconds, LIST_LAGS.age_seconds):
        world.wait(seconds)
        settle(world)
    for name in NODES:
        wanted = [image.reference for image in world.settings.images_for(world.nodes[name])]
        labelled = {
            key: value for key, value in world.labels(name).items() if key.startswith(PREFIX)
        }
        is_on = world.settings.mode is not GateMode.OFF
        held = {key for key, value in labelled.items() if value == "true"}
        assert held == {label(image) for image in wanted if image in there and is_on}
        # Without a puller nothing comes, so by now nothing is closed.
        closed_or_open = set(labelled) - held
        is_required = world.settings.mode is GateMode.REQUIRE_LABEL
        if not is_required or taint_keeps_pullers_off(world, name):
            # What was open stays so while a startup taint is there, which goes at any time.
            assert not closed_or_open or (
                is_required and set(world.nodes[name].taints) <= {STARTUP, FOREIGN_TAINTS[0]}
            )
            assert all(labelled[key] == "open" for key in closed_or_open)
        else:
            assert closed_or_open == {label(image) for image in wanted} - held
            assert all(labelled[key] == "open" for key in closed_or_open)


@given(
    worlds,
    st.permutations(
        [("event", "a", image) for image in IMAGES] + [("running", "a", i) for i in IMAGES]
    ),
)
def test_any_order_of_what_kubelets_say_comes_to_the_same(drawn: Any, order: list[Any]) -> None:
    world, other = made(drawn), made(drawn)
    world.turn()
    other.turn()
    play(world, [one for step in order for one in (step, ("turn",))])
    play(other, [one for step in reversed(order) for one in (step, ("turn",))])
    assert world.labels("a") == other.labels("a")
    assert world.nodes["a"].taints == other.nodes["a"].taints
