"""Which images the gate takes for present, what it writes on nodes and when, and what it says of
failed pulls.
"""

import json
from dataclasses import replace
from typing import Any

import pytest

from roost.controllers.contract.actions import ChangeNode, Done, Notice, Outcome, Planned
from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.image_gate.node_labels import LEFT_SET_SECONDS
from roost.controllers.image_gate.plan import NODES_PER_FAULT, STALE_NOTICE_SECONDS, note_image_gate
from roost.controllers.image_gate.pull_warnings import count_any
from roost.controllers.image_gate.puller_pods import NO_PULLER_SECONDS
from roost.controllers.image_gate.settings import PullerPods, read_gate
from roost_core.objects.node import Node, read_node
from roost_core.objects.pod import ContainerState, PodSpec
from roost_core.objects.pod_reader import read_pod
from roost_core.objects.selectors import Taint, Toleration
from roost_core.placement.beliefs import LIST_LAGS
from roost_core.placement.labels import (
    OWN_COMPONENT_LABEL,
    OWN_INSTANCE_LABEL,
    OWN_PART,
    OWN_PULLER,
    PART_OF_LABEL,
    startup_taint,
)
from roost_core.release.image_gate import GateMode, Puller
from roost_core.release.reader import Reader
from tests.gate_world import (
    GPU,
    MB,
    NAMESPACE,
    OTHER,
    RELEASE,
    SCIPY,
    GateWorld,
    gate_settings,
    label,
    world,
)
from tests.recorded_data import PODS, object_of, rows

DIGEST = "sha256:" + "ab" * 32


STARTUP = Taint(startup_taint(RELEASE, NAMESPACE), "", "NoSchedule")


NOT_FOUND = (
    f'rpc error: code = NotFound desc = failed to pull and unpack image "{SCIPY}": {SCIPY}: not'
    " found"
)


DOCUMENT = {"release": RELEASE, "namespace": NAMESPACE, **object_of("gate-of-a-release")}


def change_of(planned: Planned[Any]) -> list[ChangeNode]:
    return [action for action in planned.actions if isinstance(action, ChangeNode)]


def notice_of(planned: Planned[Any]) -> Notice:
    (notice,) = [action for action in planned.actions if isinstance(action, Notice)]
    return notice


def test_the_label_of_an_image_that_left_the_set_goes_when_no_webhook_can_still_require_it() -> (
    None
):
    both = {label(SCIPY): "true", label(GPU): "true"}
    w = world(SCIPY)
    w.add_node(images=[OTHER, SCIPY, GPU], labels=both)
    w.turn()
    assert w.labels_next(after=LEFT_SET_SECONDS - 1) == both
    pod = w.pending_user(GPU)
    assert w.labels_next(after=1) == both, "a pending pod requires it"
    w.pods[pod] = replace(w.pods[pod], node_name="a")
    assert w.labels_next() == {label(SCIPY): "true"}
    # It goes in spite of such a pod when the image left the node.
    w = world(SCIPY)
    w.add_node(images=[OTHER, SCIPY, GPU], labels=both)
    w.pending_user(GPU)
    w.turn()
    w.wait(LEFT_SET_SECONDS + 1)
    w.list_images(OTHER, SCIPY)
    assert w.labels_next() == {label(SCIPY): "true"}


def test_an_image_belongs_on_the_nodes_that_its_group_selects() -> None:
    w = world(groups={"puller": ({}, [SCIPY]), "puller-gpu": ({"pool": "gpu"}, [GPU])})
    w.add_node("cpu", images=[OTHER, SCIPY, GPU])
    w.add_node("gpu", images=[OTHER, SCIPY, GPU], labels={"pool": "gpu"})
    w.turn()
    assert set(w.labels("cpu")) == {label(SCIPY)}
    assert set(w.labels("gpu")) == {"pool", label(SCIPY), label(GPU)}


def test_mode_off_takes_all_labels_of_the_release_away_and_lifts_the_taint() -> None:
    w = world(mode=GateMode.OFF)
    w.add_node(images=[OTHER, SCIPY], labels={label(SCIPY): "true"}, taints=[STARTUP])
    w.turn()
    assert w.nodes["a"].taints == ()
    (notice,) = w.notices()
    assert (notice.reason, notice.warning) == ("StartupTaintLifted", False)
    assert w.labels_next(after=LEFT_SET_SECONDS) == {}


@pytest.mark.parametrize("mode", [GateMode.STARTUP_TAINT, GateMode.REQUIRE_LABEL, GateMode.PREFER])
def test_the_taint_is_lifted_with_the_last_label(mode: GateMode) -> None:
    w = world(SCIPY, GPU, mode=mode)
    puller = w.add_pulling(taints=[STARTUP, Taint("other", "", "NoSchedule")])
    w.pulled_event(puller, SCIPY)
    w.turn()
    assert STARTUP in w.nodes["a"].taints
    w.pulled_event(puller, GPU)
    (change,) = change_of(w.turn())
    assert set(change.set_labels) == {label(GPU)}
    assert w.nodes["a"].taints == (Taint("other", "", "NoSchedule"),)
    (notice,) = w.notices()
    assert (notice.kind, notice.name, notice.warning) == ("Node", "a", False)


def test_it_is_lifted_at_the_deadline_with_a_warning_and_a_gauge_and_never_comes_back() -> None:
    w = world(mode=GateMode.STARTUP_TAINT, pull_deadline_seconds=300)
    puller = w.add_pulling(taints=[STARTUP])
    assert w.turn().wake_after_seconds == pytest.approx(300)
    w.wait(299)
    # A jump of the clock doesn't move the deadline.
    w.wall += 86400
    assert not change_of(w.turn())
    w.turn(after=1)
    assert w.nodes["a"].taints == ()
    planned = w.turn()
    notice = notice_of(planned)
    assert notice.warning
    assert "deadline of 300 s" in notice.message
    assert SCIPY in notice.message
    assert planned.gauges["gate_nodes_opened_without_images"] == {(): 1.0}
    w.pulled_event(puller, SCIPY)
    w.turn()
    assert w.turn().gauges["gate_nodes_opened_without_images"] == {(): 0.0}
    assert w.nodes["a"].taints == ()


@pytest.mark.parametrize("outcome", [Outcome.HELD_BACK, Outcome.FAILED])
def test_an_event_that_could_not_be_told_is_told_later_until_it_would_have_expired(
    outcome: Outcome,
) -> None:
    w = world(mode=GateMode.STARTUP_TAINT)
    w.add_node(taints=[STARTUP], images=[OTHER, SCIPY])
    w.turn()
    times = 0
    while notices := w.plan().actions:
        w.memory = note_image_gate(w.memory, [Done(one, outcome) for one in notices], w.now)
        w.wait(300)
        times += 1
        assert times < 100
    assert times == STALE_NOTICE_SECONDS / 300 + 1
    w.set_taints(STARTUP)
    w.turn()
    (notice,) = w.plan().actions
    assert w.notices() == [notice]
    assert w.notices() == []


def test_a_node_where_no_puller_may_go_is_told_to_lack_its_images_when_it_opens() -> None:
    w = world(mode=GateMode.STARTUP_TAINT, pull_deadline_seconds=300)
    w.add_node(taints=[STARTUP, Taint("gpu", "", "NoSchedule")])
    w.turn()
    w.turn(after=300)
    assert w.nodes["a"].taints == (Taint("gpu", "", "NoSchedule"),)
    planned = w.turn()
    notice = notice_of(planned)
    assert (notice.reason, notice.warning) == ("OpenedWithoutImages", True)
    assert f"still lacks {SCIPY}, as taint gpu keeps the puller away" in notice.message
    # Nobody is waited for there, so nothing is to be alarmed at for good.
    assert planned.gauges["gate_nodes_opened_without_images"] == {(): 0.0}


def test_the_deadline_counts_from_when_the_node_became_ready() -> None:
    w = world(mode=GateMode.STARTUP_TAINT, pull_deadline_seconds=300)
    w.add_node(taints=[STARTUP], ready=False)
    w.turn()
    w.turn(after=1000)
    w.set_fact(ready=True)
    w.turn(after=200)
    assert STARTUP in w.nodes["a"].taints
    w.turn(after=100)
    assert w.nodes["a"].taints == ()


def test_it_waits_for_images_of_all_groups_that_select_the_node_and_for_none_of_no_group() -> None:
    w = world(
        mode=GateMode.STARTUP_TAINT,
        groups={"puller": ({}, [SCIPY]), "puller-gpu": ({"pool": "gpu"}, [GPU])},
    )
    w.add_node(taints=[STARTUP], labels={"pool": "gpu"}, images=[OTHER, SCIPY])
    w.turn()
    assert STARTUP in w.nodes["a"].taints
    w.list_images(OTHER, SCIPY, GPU)
    w.turn()
    assert w.nodes["a"].taints == ()
    w = world(mode=GateMode.STARTUP_TAINT, groups={"puller-gpu": ({"pool": "gpu"}, [GPU])})
    w.add_node(taints=[STARTUP], ready=False)
    w.turn()
    assert w.nodes["a"].taints == ()


def test_what_unlocks_comes_first_then_what_is_taken_away_then_events() -> None:
    w = world(SCIPY, GPU)
    w.add_node(
        "loses", images=[OTHER, SCIPY, GPU], labels={label(SCIPY): "true", label(GPU): "true"}
    )
    w.turn()
    w.list_images(OTHER, GPU, node="loses")
    w.add_node("gains", images=[OTHER, SCIPY])
    w.fail(w.puller("gains"), GPU, NOT_FOUND)
    actions = w.plan().actions
    assert [type(action).__name__ for action in actions] == ["ChangeNode", "ChangeNode", "Notice"]
    first, second = actions[:2]
    assert isinstance(first, ChangeNode)
    assert isinstance(second, ChangeNode)
    assert (first.node, second.node) == ("gains", "loses")


def test_a_taint_that_goes_unlocks_though_no_label_comes_with_it() -> None:
    w = world(groups={"puller": ({"pool": "users"}, [SCIPY])})
    w.add_node("loses", images=[OTHER, SCIPY], labels={"pool": "users", label(SCIPY): "true"})
    w.turn()
    w.list_images(OTHER, node="loses")
    w.add_node("opens", taints=[STARTUP])
    changes = change_of(w.plan())
    assert [(change.node, *change.remove_taints) for change in changes] == [
        ("opens", STARTUP.key),
        ("loses",),
    ]


def test_nodes_that_wait_are_counted_and_those_with_the_startup_taint_until_they_go() -> None:
    w = world(mode=GateMode.STARTUP_TAINT, pull_deadline_seconds=300)
    w.add_node("holds", images=[OTHER, SCIPY], taints=[Taint("other", "", "NoSchedule")])
    w.add_node("waits")
    w.add_node("starts", taints=[STARTUP])
    w.puller("waits")
    w.puller("starts")
    gauges = w.turn().gauges
    assert gauges["gate_nodes_tainted"] == {(): 1.0}
    w.set_taints(node="holds")
    gauges = w.turn(after=300).gauges
    assert gauges["gate_nodes_tainted"] == {(): 1.0}, "no other taint was counted"
    assert gauges["gate_nodes_waiting"] == {(): 2.0}
    assert gauges["gate_images_missing"] == {(SCIPY,): 2.0}
    assert gauges["gate_images_held"] == {(SCIPY,): 1.0}
    gauges = w.turn().gauges
    assert gauges["gate_nodes_tainted"] == {(): 0.0}
    assert gauges["gate_nodes_opened_without_images"] == {(): 1.0}
    del w.nodes["starts"]
    gauges = w.turn().gauges
    assert gauges["gate_nodes_waiting"] == {(): 1.0}
    assert gauges["gate_nodes_opened_without_images"] == {(): 0.0}


def test_a_write_that_has_not_come_back_yet_is_not_repeated_at_once_and_one_that_failed_is() -> (
    None
):
    w = world()
    w.add_node(images=[OTHER, SCIPY])
    assert [len(w.changes()), len(w.changes())] == [1, 1], "nothing was carried out"
    nodes = dict(w.nodes)
    w.turn()
    w.nodes = nodes
    assert w.changes() == []
    w.wait(10)
    assert len(w.changes()) == 1


@pytest.mark.parametrize("kind", ["continuous", "hook"])
def test_zero_to_jupyterhubs_init_containers_tell_image_by_image(kind: str) -> None:
    body: dict[str, Any] = json.loads((PODS / f"z2jh-{kind}-image-puller.json").read_text())
    body["metadata"] |= {"namespace": NAMESPACE, "name": "puller-1", "uid": "uid-1"}
    body["spec"]["nodeName"] = "a"
    inits = body["spec"]["initContainers"]
    images = [init["image"] for init in inits]
    w = world(*images, puller_pods=PullerPods.ZERO_TO_JUPYTERHUB)
    # Roost's own pullers are not asked.
    w.pulled_event(w.add_pulling(), images[0])
    waiting = {"imageID": "", "state": {"waiting": {"reason": "PodInitializing"}}}
    pulled = {
        "imageID": f"x@{DIGEST}",
        "state": {"terminated": {"exitCode": 0, "reason": "Completed"}},
    }
    w.turn()
    for come in range(len(images) + 1):
        statuses = [
            {"name": one["name"], "image": one["image"], **(pulled if n < come else waiting)}
            for n, one in enumerate(inits)
        ]
        body["status"] = {"initContainerStatuses": statuses}
        w.pods[f"{NAMESPACE}/puller-1"] = read_pod(body, keep_containers=True)
        assert set(w.labels_next()) == {label(image) for image in images[:come]}


def test_settings_are_read_as_rendered() -> None:
    read = Reader()
    found = read_gate(ReleaseDocument(read, DOCUMENT))
    assert read.faults == []
    assert (found.mode, found.puller_pods) == (
        GateMode.STARTUP_TAINT,
        PullerPods.ZERO_TO_JUPYTERHUB,
    )
    assert (found.pull_deadline_seconds, found.open_after_seconds, found.has_puller) == (
        90,
        7,
        False,
    )
    assert [image.reference for image in found.pullers[0].images] == [SCIPY, GPU]
    assert found.tolerations == (("a", "Exists", "", ""),)


def test_all_faults_of_the_settings_come_at_once() -> None:
    read = Reader()
    gate = {
        "mode": "perhaps",
        "pullDeadlineSeconds": "10m",
        "pullers": [{"images": [1]}],
        "pullerPods": "x",
    }
    read_gate(ReleaseDocument(read, {**DOCUMENT, "imageGate": gate}))
    keys = {"mode", "pullDeadlineSeconds", "openAfterSeconds", "pullerPods", "pullers[0].images[0]"}
    assert {fault.key for fault in read.faults} == {f"imageGate.{key}" for key in keys}


def told_and_planned(w: GateWorld) -> tuple[Notice, Planned[Any]]:
    """The one Event of a plan, and the plan."""
    planned = w.plan()
    (notice,) = [action for action in planned.actions if isinstance(action, Notice)]
    return notice, planned


@pytest.mark.parametrize(
    ("reason", "message", "cause", "words"), rows("controllers/gate-failed-pulls")
)
def test_a_failed_pull_is_told_with_its_cause_and_counted(
    reason: str, message: str, cause: str, words: str
) -> None:
    w = world()
    puller = w.add_pulling()
    w.fail(puller, SCIPY, message, reason)
    notice, planned = told_and_planned(w)
    assert (notice.kind, notice.name, notice.warning) == ("Pod", w.pods[puller].name, True)
    assert f"Image {SCIPY} can't be pulled to node a" in notice.message
    assert words in notice.message
    # Each sentence can be read once.
    assert all(len(sentence.split()) <= 20 for sentence in notice.message.split(". "))
    assert planned.gauges["gate_pull_faults"] == {(cause,): 1.0}


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        (GateMode.REQUIRE_LABEL, "Its users go to other nodes that hold it, if any"),
        (GateMode.PREFER, "Its users may still start on this node"),
        (
            GateMode.STARTUP_TAINT,
            "A new node stays closed until its images are there or its deadline has passed",
        ),
        (GateMode.OFF, "Its users may still start on this node"),
    ],
)
def test_a_failed_pull_tells_what_it_means_for_users_meanwhile(mode: GateMode, words: str) -> None:
    w = world(mode=mode)
    w.fail(w.add_pulling(), SCIPY, "401 Unauthorized", "ErrImagePull")
    notice, _ = told_and_planned(w)
    assert notice.message.endswith(f". {words}.")


@pytest.mark.parametrize(
    "spec",
    [
        PodSpec(images=("proxy.example.org/a/b:1",)),
        PodSpec(images=(OTHER,), volume_images=("proxy.example.org/a/b:1",)),
    ],
)
def test_an_image_that_admission_renamed_is_not_held_and_the_event_names_both(
    spec: PodSpec,
) -> None:
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


def test_the_pullers_own_image_is_named_when_it_fails_and_holds_up_the_pods_images() -> None:
    w = world()
    w.add_node()
    w.fail(
        w.puller(),
        SCIPY,
        f'failed to pull and unpack image "{OTHER}": dial tcp: connection refused',
    )
    notice, _ = told_and_planned(w)
    assert notice.message.startswith(f"The puller's own image {OTHER} can't be pulled")
    w = world(SCIPY, GPU)
    puller = w.add_pulling()
    image, fault = (
        "quay.io/jupyterhub/roost:1",
        'failed to pull image "quay.io/jupyterhub/roost:1": not found',
    )
    init = ContainerState(
        image, name="pause", init=True, waiting_reason="ErrImagePull", waiting_message=fault
    )
    w.pods[puller] = replace(w.pods[puller], containers=(*w.pods[puller].containers, init))
    notice, planned = told_and_planned(w)
    assert "quay.io/jupyterhub/roost:1" in notice.message
    assert planned.gauges["gate_pull_faults"] == {("missing",): 2.0}
    # The kubelet doesn't always name it.
    silent = replace(init, waiting_message="no route to host")
    w.pods[puller] = replace(w.pods[puller], containers=(*w.pods[puller].containers[:-1], silent))
    notice, _ = told_and_planned(w)
    assert f"own image {image} can't" in notice.message


@pytest.mark.parametrize("waiting", ["", "ErrImagePull"])
def test_a_sidecar_that_somebody_injects_into_the_puller_says_nothing_of_its_images(
    waiting: str,
) -> None:
    w = world()
    puller = w.add_pulling()
    sidecar = ContainerState(
        "registry.example.org/mesh:1", name="mesh", running=not waiting, waiting_reason=waiting
    )
    w.pods[puller] = replace(w.pods[puller], containers=(*w.pods[puller].containers, sidecar))
    assert w.notices() == []


def test_an_init_container_of_zero_to_jupyterhub_that_fails_names_the_image_that_it_runs() -> None:
    w = world(puller_pods=PullerPods.ZERO_TO_JUPYTERHUB)
    puller = w.add_pulling()
    init = ContainerState(
        SCIPY,
        name="image-pull-singleuser",
        init=True,
        waiting_reason="ErrImagePull",
        waiting_message="no route to host",
    )
    labels = {"component": "continuous-image-puller"}
    w.pods[puller] = replace(w.pods[puller], labels=labels, containers=(init,))
    notice, _ = told_and_planned(w)
    assert f"Image {SCIPY} can't be pulled" in notice.message


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


def test_a_puller_comes_to_nodes_by_its_own_tolerations_or_else_by_those_of_all() -> None:
    gpu = Taint("gpu", "", "NoSchedule")
    dedicated = Taint("hub.jupyter.org/dedicated", "user", "NoSchedule")
    settings = gate_settings(groups={"puller": ({}, [SCIPY]), "of-pool": ({"pool": "x"}, [GPU])})
    plain, of_pool = settings.pullers
    w = world()
    w.add_node()
    node = w.nodes["a"]
    in_pool = replace(node, labels={"pool": "x"})

    def keeps_off(of_node: Node, taint: Taint, *pullers: Puller) -> Taint | None:
        tainted = replace(of_node, taints=(taint,))
        return replace(settings, pullers=pullers).taint_against_pullers(tainted)

    assert keeps_off(node, gpu, plain) == gpu
    assert keeps_off(node, dedicated, plain) is None
    to_gpus = replace(plain, tolerations=(Toleration("gpu", "Exists", "", ""),))
    assert keeps_off(node, gpu, to_gpus) is None
    assert keeps_off(node, dedicated, to_gpus) == dedicated
    assert keeps_off(in_pool, gpu, of_pool, to_gpus) is None, "one of them comes"
    # Without a puller for the node, what all of them tolerate is what there is to go by.
    assert keeps_off(node, gpu, of_pool) == gpu
    assert keeps_off(node, dedicated, of_pool) is None


def test_how_long_the_oldest_node_waits_is_shown_from_its_pullers_creation_on() -> None:
    w = world()
    w.add_pulling()
    w.wait(1000)
    w.new_leader()
    assert w.turn().gauges["gate_oldest_wait_seconds"] == {(): pytest.approx(1000.0)}
    assert w.turn(after=60).gauges["gate_oldest_wait_seconds"] == {(): pytest.approx(1060.0)}


HELD = {label(SCIPY): "true"}
# A kubelet reports fifty images at most, unless it is told otherwise.
FULL_LIST = [f"quay.io/many/image:{n}" for n in range(50)]


@pytest.mark.parametrize(("reference", "listed", "is_there"), rows("controllers/gate-spellings"))
def test_an_image_in_the_nodes_list_is_there_however_spelt(
    reference: str, listed: str, is_there: bool
) -> None:
    w = world(reference)
    w.add_node(images=[OTHER, listed])
    assert w.labels_next() == ({label(reference): "true"} if is_there else {})


def test_a_pulled_event_labels_a_node_whose_list_lags_behind_unless_of_an_earlier_pod() -> None:
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


@pytest.mark.parametrize(("state", "is_there"), rows("controllers/gate-container-states"))
def test_a_container_beyond_its_pull_shows_that_the_image_is_there(
    state: dict[str, Any], is_there: bool
) -> None:
    w = world()
    puller = w.add_pulling()
    w.turn()
    w.say(puller, SCIPY, **state)
    assert w.labels_next() == (HELD if is_there else {})


@pytest.mark.parametrize(
    "changes",
    [
        {"labels": {}},
        {"labels": {OWN_INSTANCE_LABEL: RELEASE}},
        {
            "labels": {
                PART_OF_LABEL: OWN_PART,
                OWN_COMPONENT_LABEL: OWN_PULLER,
                OWN_INSTANCE_LABEL: "another-release",
            }
        },
        {"namespace": "elsewhere"},
        {"phase": "Failed"},
    ],
)
def test_what_is_said_of_another_pod_or_of_one_that_failed_counts_for_nothing(
    changes: dict[str, Any],
) -> None:
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


@pytest.mark.parametrize(
    ("images", "mb", "is_held"), [(FULL_LIST, 500, True), (FULL_LIST, 499, False), ([], 500, True)]
)
def test_a_cut_list_only_disproves_larger_images_than_it_has(
    images: list[str], mb: int, is_held: bool
) -> None:
    w = labelled()
    w.list_images(*images, mb=mb)
    assert w.labels_next() == (HELD if is_held else {})
    # A pull that fails stands against an image of which the list says nothing, unless the kubelet
    # asks the registry although the node holds it.
    puller = next(iter(w.pods))
    w.say(puller, SCIPY, waiting_reason="ErrImagePull", pulls_always=True)
    assert w.labels_next() == (HELD if is_held else {})
    w.fail(puller, SCIPY, NOT_FOUND)
    assert w.labels_next() == {}


def test_an_image_that_a_pod_reported_and_the_list_lacks_counts_as_gone_once_lists_have_come() -> (
    None
):
    w = world()
    puller = w.add_pulling()
    w.turn()
    w.pulled_event(puller, SCIPY)
    assert w.labels_next() == HELD
    assert w.plan().wake_after_seconds == pytest.approx(LIST_LAGS.age_seconds)
    assert w.labels_next(after=LIST_LAGS.age_seconds - 1) == HELD
    assert w.labels_next(after=1) == {}


def test_a_pullers_container_that_starts_anew_has_pulled_its_image_again() -> None:
    w = world()
    puller = w.add_pulling()
    w.say(puller, SCIPY, running=True)
    w.turn()
    w.list_images(OTHER, SCIPY)
    assert w.labels_next() == HELD
    w.list_images(OTHER)
    (change,) = change_of(w.plan())
    assert change.why == "1 image left the node"
    assert w.labels_next() == {}
    w.say(puller, SCIPY, waiting_reason="ContainerCreating")
    assert w.labels_next() == {}
    w.say(puller, SCIPY, running=True)
    (change,) = change_of(w.plan())
    assert change.why == "1 image is on the node"
    assert w.labels_next() == HELD


def test_of_several_things_their_number_is_said() -> None:
    counts = [count_any(range(number), "image is", "images are") for number in range(3)]
    assert counts == ["", "1 image is", "2 images are"]


def test_a_node_that_is_not_ready_keeps_its_labels_and_gets_none() -> None:
    w = labelled(SCIPY, GPU)
    w.list_images(OTHER)
    w.set_fact(ready=False, labels={label(GPU): "true"})
    assert w.labels_next() == {label(GPU): "true"}


@pytest.mark.parametrize(
    ("images", "seconds_ago", "is_running", "is_there"),
    [
        ([OTHER], 1800, True, False),
        ([OTHER], LIST_LAGS.age_seconds, False, False),
        ([OTHER], 3, False, True),
        (FULL_LIST, None, True, True),
    ],
    ids=[
        "said long ago",
        "as long ago as a list may lag",
        "said just now",
        "of which the list says nothing",
    ],
)
def test_a_new_leaders_beliefs(
    images: list[str], seconds_ago: float | None, is_running: bool, is_there: bool
) -> None:
    w = world()
    puller = w.add_pulling(images=images)
    if seconds_ago is not None:
        w.pulled_event(puller, SCIPY, seconds_ago=seconds_ago)
    if is_running:
        w.say(puller, SCIPY, running=True)
    assert w.labels_next() == (HELD if is_there else {})


def pulled_unseen(image: str, listed: list[list[str]], **facts: Any) -> tuple[GateWorld, set[str]]:
    """A node where the puller pulled an image, ten minutes on, with what its list shows: names of
    each image. Returns what was said, too.
    """
    w = world(image, mode=GateMode.REQUIRE_LABEL)
    puller = w.add_pulling(**facts)
    w.turn()
    w.wait(20)
    w.say(puller, image, running=True, ready=True, image_id=f"quay.io/x@{DIGEST}")
    images = [
        {"names": names, "sizeBytes": 1000 * MB + number} for number, names in enumerate(listed)
    ]
    read = read_node({"metadata": {"name": "a"}, "status": {"images": images}})
    w.set_fact(images=read.images, image_count=read.image_count)
    messages: set[str] = set()
    for seconds in (1, LIST_LAGS.age_seconds, 60, 200):
        planned = w.turn(seconds)
        messages |= {event.message for event in planned.actions if isinstance(event, Notice)}
    return w, messages


OF_ONE = [f"quay.io/me/lab@{DIGEST}", *(f"quay.io/me/lab:2026-{month}" for month in range(7, 11))]


@pytest.mark.parametrize("names", [OF_ONE, [*OF_ONE[1:], "quay.io/me/lab:x"]])
def test_a_name_beyond_the_five_that_kubelets_report_counts_as_there(names: list[str]) -> None:
    w, messages = pulled_unseen("quay.io/me/lab:fall", [[OTHER], names])
    assert (list(w.labels().values()), messages) == (["true"], set())
    # Four names are all of them.
    w, messages = pulled_unseen("quay.io/me/lab:fall", [[OTHER], names[:4]])
    assert list(w.labels().values()) == ["open"]
    assert "was removed from the node" in messages.pop()


def test_a_name_that_was_listed_and_is_now_beyond_five_counts_as_there() -> None:
    w = labelled("quay.io/me/lab:fall")
    names = dict.fromkeys(OF_ONE, 500 * MB)
    w.set_fact(images={**names, OTHER: 1}, image_count=2)
    assert list(w.labels_next(after=LIST_LAGS.age_seconds + 1).values()) == ["true"]
    assert list(w.labels_next(after=LIST_LAGS.age_seconds + 1).values()) == ["true"]
    # The five names are those of another image.
    w = labelled("quay.io/me/lab:fall")
    w.set_fact(images={**dict.fromkeys(OF_ONE, MB), OTHER: 1}, image_count=2)
    assert w.labels_next() == {}


@pytest.mark.parametrize("listed", ["quay.io/team/lab:1", "registry.example.org/lab:1", OTHER])
def test_a_name_without_a_registry_that_is_listed_elsewhere_is_there_and_told(listed: str) -> None:
    for runtime in ("", "cri-o://1.36.1"):
        w, messages = pulled_unseen("team/lab:1", [[listed], ["a/b:1"]], runtime_version=runtime)
        assert list(w.labels().values()) == ["true"]
        (message,) = messages
        assert message == (
            "Image team/lab:1 was pulled to node a and isn't listed under that name; name its"
            " registry in the values. Until then Roost can't tell when the image leaves the node."
        )


def test_a_name_without_a_registry_is_docker_hubs_for_containerd_and_once_it_was_listed_so() -> (
    None
):
    w, messages = pulled_unseen("team/lab:1", [[OTHER]], runtime_version="containerd://2.1.4")
    assert list(w.labels().values()) == ["open"]
    assert "was removed from the node" in messages.pop()
    w = labelled("team/lab:1")
    w.set_fact(runtime_version="cri-o://1.36.1")
    w.list_images(OTHER)
    assert w.labels_next() == {}
