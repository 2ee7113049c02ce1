"""Which images the gate takes for present, from lists, Events and statuses."""

from dataclasses import replace
from typing import Any

import pytest

from roost.controllers.image_gate.facts import LISTED_IMAGES
from roost_core.placement.beliefs import LIST_LAGS
from tests.gate_world import GPU, OTHER, SCIPY, GateWorld, label, world

DIGEST = "sha256:" + "ab" * 32
NOT_FOUND = f'rpc error: code = NotFound desc = failed to pull and unpack image "{SCIPY}": {SCIPY}: not found'
HELD = {label(SCIPY): "true"}
FULL_LIST = [f"quay.io/many/image:{n}" for n in range(LISTED_IMAGES)]


@pytest.mark.parametrize(
    ("reference", "listed", "is_there"),
    [
        (SCIPY, SCIPY, True),
        ("jupyter/base-notebook", "docker.io/jupyter/base-notebook:latest", True),
        ("busybox:1.37", "docker.io/library/busybox:1.37", True),
        ("busybox:1.37", "busybox:1.37", True),
        (f"quay.io/me/image@{DIGEST}", f"quay.io/me/image@{DIGEST}", True),
        (f"quay.io/me/image:v1@{DIGEST}", f"quay.io/me/image@{DIGEST}", True),
        # Another tag or digest of the repository is another image.
        (SCIPY, SCIPY + "a", False),
        (SCIPY, SCIPY.replace(":", "-old:"), False),
        (SCIPY, f"{SCIPY.partition(':')[0]}@{DIGEST}", False),
    ],
)
def test_an_image_in_the_nodes_own_list_is_there_however_it_is_spelt(
    reference: str, listed: str, is_there: bool
) -> None:
    w = world(reference)
    w.add_node(images=[OTHER, listed])
    assert w.labels_next() == ({label(reference): "true"} if is_there else {})


def test_a_pulled_event_labels_the_node_while_its_list_lags_behind_unless_it_is_of_an_earlier_pod() -> None:
    w = world(SCIPY, GPU)
    puller = w.add_pulling()
    assert w.changes() == []
    w.pulled_event(puller, SCIPY)
    assert w.labels_next() == HELD
    w = world()
    w.pulled_event(w.add_pulling(), SCIPY)
    w.pods.clear()
    w.puller()
    assert w.changes() == []


@pytest.mark.parametrize(
    ("state", "is_there"),
    [
        ({"running": True}, True),
        ({"terminated": True, "image_id": DIGEST}, True),
        # As kubelets write it of a pod that was evicted: a container that never began has ended all the same.
        ({"terminated": True}, False),
        ({"waiting_reason": "CrashLoopBackOff"}, True),
        ({"waiting_reason": "RunContainerError"}, True),
        ({"waiting_reason": "CreateContainerError"}, True),
        *(
            ({"waiting_reason": reason}, False)
            for reason in ("", "ContainerCreating", "PodInitializing", "ErrImagePull", "ImagePullBackOff")
        ),
    ],
)
def test_a_container_that_got_beyond_its_pull_shows_that_the_image_is_there(
    state: dict[str, Any], is_there: bool
) -> None:
    w = world()
    puller = w.add_pulling()
    w.turn()
    w.say(puller, SCIPY, **state)
    assert w.labels_next() == (HELD if is_there else {})


@pytest.mark.parametrize("changes", [{"labels": {}}, {"namespace": "elsewhere"}, {"phase": "Failed"}])
def test_what_is_said_of_another_pod_or_of_one_that_failed_counts_for_nothing(changes: dict[str, Any]) -> None:
    w = world()
    puller = w.add_pulling()
    w.turn()
    if "phase" not in changes:
        w.pulled_event(puller, SCIPY)
    w.say(puller, SCIPY, terminated=True, image_id=DIGEST)
    w.pods[puller] = replace(w.pods[puller], **changes)
    assert w.changes() == []


def labelled(*images: str) -> GateWorld:
    """A node whose list has confirmed what its puller said."""
    w = world(*(images or (SCIPY,)))
    puller = w.add_pulling()
    w.turn()
    for image in w.settings.images.values():
        w.pulled_event(puller, image.reference)
    w.turn()
    w.list_images(OTHER, *(image.reference for image in w.settings.images.values()))
    w.turn()
    return w


def test_a_label_goes_with_the_list_that_showed_the_image_and_comes_back_with_a_new_event_alone() -> None:
    w = labelled(SCIPY, GPU)
    w.list_images(OTHER, GPU)
    assert w.labels_next() == {label(GPU): "true"}
    (puller,) = w.pods
    w.say(puller, SCIPY, running=True)
    for _ in range(3):
        assert w.labels_next(after=30) == {label(GPU): "true"}
    w.pulled_event(puller, SCIPY)
    assert w.labels_next() == {**HELD, label(GPU): "true"}


def test_a_list_that_never_showed_the_image_is_believed_when_it_can_no_longer_be_late() -> None:
    w = world()
    puller = w.add_pulling()
    w.turn()
    w.pulled_event(puller, SCIPY)
    w.turn()
    planned = w.turn(after=LIST_LAGS.age_seconds - 1)
    assert w.labels() == HELD
    assert planned.wake_after_seconds == pytest.approx(1)
    assert w.labels_next(after=1) == {}


@pytest.mark.parametrize(
    ("images", "mb", "is_held"), [(FULL_LIST, 500, True), (FULL_LIST, 499, False), ([], 500, True)]
)
def test_a_cut_list_proves_only_the_absence_of_an_image_larger_than_its_smallest_and_an_empty_one_nothing(
    images: list[str], mb: int, is_held: bool
) -> None:
    w = labelled()
    w.list_images(*images, mb=mb)
    assert w.labels_next() == (HELD if is_held else {})
    # A pull that fails stands against an image of which the list says nothing.
    w.fail(next(iter(w.pods)), SCIPY, NOT_FOUND)
    assert w.labels_next() == {}


def test_a_node_that_is_not_ready_keeps_its_labels_and_gets_none() -> None:
    w = labelled(SCIPY, GPU)
    w.list_images(OTHER)
    w.set_fact(ready=False, labels={label(GPU): "true"})
    assert w.labels_next() == {label(GPU): "true"}


def test_a_new_leader_keeps_a_label_until_the_list_can_no_longer_be_late() -> None:
    w = world()
    w.add_node(labels=HELD)
    w.new_leader()
    w.turn()
    assert w.labels_next(after=LIST_LAGS.age_seconds - 1) == HELD
    assert w.labels_next(after=2) == {}


@pytest.mark.parametrize(
    ("images", "seconds_ago", "is_running", "is_there"),
    [([OTHER], 1800, True, False), ([OTHER], 3, False, True), (FULL_LIST, None, True, True)],
    ids=["said long ago", "said just now", "of which the list says nothing"],
)
def test_what_a_new_leader_believes_without_the_list(
    images: list[str], seconds_ago: float | None, is_running: bool, is_there: bool
) -> None:
    w = world()
    puller = w.add_pulling(images=images)
    if seconds_ago is not None:
        w.pulled_event(puller, SCIPY, seconds_ago=seconds_ago)
    if is_running:
        w.say(puller, SCIPY, running=True)
    assert w.labels_next() == (HELD if is_there else {})
