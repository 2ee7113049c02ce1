"""Which images the gate takes for present, and what it reports of pulls that fail: conditions, Events and metrics."""

from dataclasses import replace
from typing import Any

import pytest

from roost.controllers.contract.actions import Notice, Planned
from roost.controllers.image_gate.facts import LISTED_IMAGES
from roost.controllers.image_gate.node_reports import NO_PULLER_SECONDS
from roost.controllers.image_gate.plan import NODES_PER_FAULT
from roost_core.objects.pod import ContainerState, PodSpec
from roost_core.objects.selectors import Taint
from roost_core.placement.beliefs import LIST_LAGS
from tests.gate_world import GPU, OTHER, SCIPY, GateWorld, label, world

NOT_FOUND = f'rpc error: code = NotFound desc = failed to pull and unpack image "{SCIPY}": {SCIPY}: not found'


REFUSED = (
    f'Back-off pulling image "{SCIPY}": ErrImagePull: failed to do request: Head "https://quay.io/v2/": '
    "dial tcp 127.0.0.1:40404: connect: connection refused"
)


DENIED = (
    f'failed to pull and unpack image "{SCIPY}": pull access denied, repository does not exist or may require '
    "authorization: server message: insufficient_scope: authorization failed"
)


def told_and_planned(w: GateWorld) -> tuple[Notice, Planned[Any]]:
    """The one Event of a plan, and the plan."""
    planned = w.plan()
    (notice,) = [action for action in planned.actions if isinstance(action, Notice)]
    return notice, planned


@pytest.mark.parametrize(
    ("reason", "message", "cause", "words"),
    [
        ("ErrImagePull", NOT_FOUND, "missing", "no such image"),
        ("ImagePullBackOff", REFUSED, "registry", "does not answer"),
        ("ErrImagePull", DENIED, "credentials", "imagePullSecrets"),
        ("ErrImagePull", "unexpected status from HEAD request: 401 Unauthorized", "credentials", "credentials"),
        ("ErrImagePull", "429 Too Many Requests - toomanyrequests: limit", "throttled", "limits"),
        ("ErrImagePull", "tls: failed to verify: x509: certificate signed by unknown", "certificate", "certificate"),
        ("ErrImagePull", "write /var/lib/x: no space left on device", "disk", "disk is full"),
        ("InvalidImageName", "couldn't parse image name", "name", "not a valid image name"),
        ("ErrImagePull", "something nobody has ever read", "other", "puller's pod"),
    ],
)
def test_a_failed_pull_is_told_with_its_cause_and_counted(reason: str, message: str, cause: str, words: str) -> None:
    w = world()
    puller = w.add_pulling()
    w.fail(puller, SCIPY, message, reason)
    notice, planned = told_and_planned(w)
    assert (notice.kind, notice.name, notice.warning) == ("Pod", w.pods[puller].name, True)
    assert f"Image {SCIPY} can't be pulled to node a" in notice.message
    assert words in notice.message
    assert notice.message.count(". ") == 0
    assert planned.gauges["gate_pull_faults"] == {(cause,): 1.0}


@pytest.mark.parametrize(
    "spec",
    [
        PodSpec(images=("proxy.example.org/a/b:1",)),
        PodSpec(images=(OTHER,), volume_images=("proxy.example.org/a/b:1",)),
    ],
)
def test_an_image_that_admission_renamed_is_not_held_and_the_event_names_both(spec: PodSpec) -> None:
    w = world()
    puller = w.add_pulling()
    w.turn()
    pod = w.pods[puller]
    ran = replace(pod.containers[0], image=spec.images[0], running=True, waiting_reason="")
    w.pods[puller] = replace(pod, spec=spec, containers=(ran,))
    planned = w.turn()
    (notice,) = [action for action in planned.actions if isinstance(action, Notice)]
    assert f"Image {SCIPY} can't be pulled" in notice.message
    assert "admission changed the puller's image to proxy.example.org/a/b:1" in notice.message
    assert w.labels_next() == {}
    assert planned.gauges["gate_pull_faults"] == {("renamed",): 1.0}
    # The same pod with the image that was asked for.
    w.pods[puller] = replace(w.pods[puller], spec=PodSpec(images=(SCIPY,)), containers=(ran,))
    assert w.labels_next() == {label(SCIPY): "true"}
    # What the node held before, it holds: nothing failed.
    w.list_images()
    w.pods[puller] = replace(pod, spec=spec, containers=(ran,))
    w.turn()
    assert w.labels_next(after=LIST_LAGS.age_seconds + 1) == {label(SCIPY): "true"}


def test_a_fault_that_many_nodes_have_is_told_of_some_and_counted_of_all() -> None:
    w = world(SCIPY, GPU)
    for number in range(20):
        w.add_node(f"node-{number}")
        puller = w.puller(f"node-{number}")
        w.fail(puller, SCIPY, NOT_FOUND)
        w.fail(puller, GPU, "connection refused")
    planned = w.plan()
    notices = [action for action in planned.actions if isinstance(action, Notice)]
    assert len(notices) == 2 * NODES_PER_FAULT
    assert planned.gauges["gate_pull_faults"] == {("missing",): 20.0, ("registry",): 20.0}
    assert [action for action in w.plan().actions if isinstance(action, Notice)] == notices


def test_a_fault_is_over_when_the_image_is_there_and_holds_up_no_other() -> None:
    w = world(SCIPY, GPU)
    puller = w.add_pulling()
    w.fail(puller, SCIPY, NOT_FOUND)
    w.turn()
    w.pulled_event(puller, GPU)
    assert w.labels_next() == {label(GPU): "true"}
    w.pulled_event(puller, SCIPY)
    w.turn()
    planned = w.turn()
    assert not [action for action in planned.actions if isinstance(action, Notice)]
    assert planned.gauges["gate_pull_faults"] == {}
    assert planned.gauges["gate_images_missing"] == {(SCIPY,): 0.0, (GPU,): 0.0}
    assert planned.gauges["gate_images_held"] == {(SCIPY,): 1.0, (GPU,): 1.0}


def test_the_pullers_own_image_is_named_when_that_is_what_fails_and_holds_up_every_image_of_the_pod() -> None:
    w = world()
    w.add_node()
    w.fail(w.puller(), SCIPY, f'failed to pull and unpack image "{OTHER}": dial tcp: connection refused')
    notice, _ = told_and_planned(w)
    assert notice.message.startswith(f"The puller's own image {OTHER} can't be pulled")
    w = world(SCIPY, GPU)
    puller = w.add_pulling()
    message = 'failed to pull image "quay.io/jupyterhub/roost:1": not found'
    init = ContainerState(
        image="quay.io/jupyterhub/roost:1",
        name="pause",
        init=True,
        waiting_reason="ErrImagePull",
        waiting_message=message,
    )
    w.pods[puller] = replace(w.pods[puller], containers=(*w.pods[puller].containers, init))
    notice, planned = told_and_planned(w)
    assert "quay.io/jupyterhub/roost:1" in notice.message
    assert planned.gauges["gate_pull_faults"] == {("missing",): 2.0}


def test_a_node_without_a_puller_pod_is_told_after_a_while() -> None:
    w = world()
    w.add_node()
    assert w.notices() == []
    w.wait(NO_PULLER_SECONDS)
    (notice,) = w.notices()
    assert (notice.kind, notice.reason) == ("Node", "NoPullerPod")


def test_a_node_where_no_puller_may_go_waits_for_nothing() -> None:
    w = world()
    w.add_node(taints=[Taint("node-role.kubernetes.io/control-plane", "", "NoSchedule")])
    w.turn()
    planned = w.turn(after=NO_PULLER_SECONDS)
    assert not planned.actions
    assert planned.gauges["gate_nodes_waiting"] == {(): 0.0}
    w.list_images(OTHER, SCIPY)
    assert w.labels_next() == {label(SCIPY): "true"}


def test_how_long_the_oldest_node_waits_is_shown_from_its_pullers_creation_on() -> None:
    w = world()
    w.add_pulling()
    w.wait(1000)
    w.new_leader()
    assert w.turn().gauges["gate_oldest_wait_seconds"] == {(): pytest.approx(1000.0)}
    assert w.turn(after=60).gauges["gate_oldest_wait_seconds"] == {(): pytest.approx(1060.0)}


DIGEST = "sha256:" + "ab" * 32
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
def test_an_image_in_the_nodes_list_is_there_however_spelt(reference: str, listed: str, is_there: bool) -> None:
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
def test_a_container_beyond_its_pull_shows_that_the_image_is_there(state: dict[str, Any], is_there: bool) -> None:
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
def test_a_cut_list_only_disproves_larger_images_than_it_has(images: list[str], mb: int, is_held: bool) -> None:
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
def test_a_new_leaders_beliefs(images: list[str], seconds_ago: float | None, is_running: bool, is_there: bool) -> None:
    w = world()
    puller = w.add_pulling(images=images)
    if seconds_ago is not None:
        w.pulled_event(puller, SCIPY, seconds_ago=seconds_ago)
    if is_running:
        w.say(puller, SCIPY, running=True)
    assert w.labels_next() == (HELD if is_there else {})
