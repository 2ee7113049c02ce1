"""What the gate reports: node conditions, Events and metrics about pulls that fail."""

from dataclasses import replace
from typing import Any

import pytest

from roost.controllers.contract.actions import Notice, Planned
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
def test_a_pull_that_fails_is_told_in_one_sentence_with_its_cause_and_counted(
    reason: str, message: str, cause: str, words: str
) -> None:
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
