"""The image gate's plan, on worlds of a few nodes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from roost.controllers.contract.actions import ChangeNode, Done, Notice, Outcome, SetCondition
from roost.controllers.image_gate.facts import LIST_LAG_SECONDS, LISTED_IMAGES
from roost.controllers.image_gate.node_labels import LEFT_SET_SECONDS
from roost.controllers.image_gate.node_reports import NO_PULLER_SECONDS
from roost.controllers.image_gate.plan import NODES_PER_FAULT, STALE_NOTICE_SECONDS, GateMemory, note_image_gate
from roost.controllers.image_gate.settings import PullerPods, read_gate
from roost_core.placement.labels import images_condition, pulled_label, startup_taint
from roost_core.placement.selectors import Taint
from roost_core.placement.settings import GateMode
from roost_core.placement.settings_reader import Reader
from roost_core.scheduler.objects import ContainerState
from roost_core.scheduler.pod_reader import read_pod_state
from tests.gate_world import GPU, NAMESPACE, OTHER, RELEASE, SCIPY, GateWorld, gate_settings, label
from tests.recorded_data import PODS

DIGEST = "sha256:" + "ab" * 32
STARTUP = Taint(startup_taint(RELEASE, NAMESPACE), "", "NoSchedule")
NOT_FOUND = f'rpc error: code = NotFound desc = failed to pull and unpack image "{SCIPY}": {SCIPY}: not found'
REFUSED = (
    f'Back-off pulling image "{SCIPY}": ErrImagePull: failed to do request: Head "https://quay.io/v2/": '
    "dial tcp 127.0.0.1:40404: connect: connection refused"
)
DENIED = (
    f'failed to pull and unpack image "{SCIPY}": pull access denied, repository does not exist or may require '
    "authorization: server message: insufficient_scope: authorization failed"
)
FOREIGN_LABELS = {
    pulled_label("hub2", NAMESPACE, SCIPY): "true",
    pulled_label(RELEASE, "jhub2", SCIPY): "true",
    pulled_label("a." + RELEASE, NAMESPACE, SCIPY): "true",
    "images-pulled.example.org/scipy": "true",
    "pool": "user",
}
DOCUMENT = {
    "release": RELEASE,
    "namespace": NAMESPACE,
    "gate": {
        "mode": "startupTaint",
        "pullDeadlineSeconds": 90,
        "openAfterSeconds": 7,
        "hasPuller": False,
        "nodeCondition": True,
        "pullerPods": "zeroToJupyterHub",
        "pullers": [{"name": "p", "nodeSelector": {"pool": "user"}, "images": [SCIPY, GPU]}],
    },
    "puller": {"tolerations": [{"key": "a", "operator": "Exists"}]},
}


def world(*images: str, mode: GateMode = GateMode.PREFER, **settings: Any) -> GateWorld:
    """A world whose labels say "true" or nothing; what requireLabel adds to that is in test_image_gate_marks.py."""
    return GateWorld(gate_settings(*(images or (SCIPY,)), mode=mode, **settings))


class TestEvidence:
    @pytest.mark.parametrize(
        ("reference", "listed"),
        [
            (SCIPY, SCIPY),
            ("jupyter/base-notebook", "docker.io/jupyter/base-notebook:latest"),
            ("busybox:1.37", "docker.io/library/busybox:1.37"),
            ("busybox:1.37", "busybox:1.37"),
            (f"quay.io/me/image@{DIGEST}", f"quay.io/me/image@{DIGEST}"),
            (f"quay.io/me/image:v1@{DIGEST}", f"quay.io/me/image@{DIGEST}"),
        ],
    )
    def test_an_image_in_the_nodes_own_list_is_there_however_it_is_spelt(self, reference: str, listed: str) -> None:
        w = world(reference)
        w.add_node(images=[OTHER, listed])
        w.turn()
        assert w.labels() == {label(reference): "true"}

    def test_another_tag_or_digest_of_the_repository_is_another_image(self) -> None:
        w = world(SCIPY)
        w.add_node(images=[OTHER, SCIPY + "a", SCIPY.replace(":", "-old:"), f"{SCIPY.partition(':')[0]}@{DIGEST}"])
        assert w.changes() == []

    def test_a_pulled_event_labels_the_node_while_its_list_lags_behind(self) -> None:
        w = world(SCIPY, GPU)
        w.add_node()
        puller = w.puller()
        assert w.changes() == []
        w.pulled_event(puller, SCIPY)
        w.turn()
        assert w.labels() == {label(SCIPY): "true"}

    @pytest.mark.parametrize(
        "state",
        [
            {"running": True},
            {"terminated": True, "image_id": DIGEST},
            {"waiting_reason": "CrashLoopBackOff"},
            {"waiting_reason": "RunContainerError"},
            {"waiting_reason": "CreateContainerError"},
        ],
    )
    def test_a_container_that_got_beyond_its_pull_shows_that_the_image_is_there(self, state: dict[str, Any]) -> None:
        w = world()
        w.add_node()
        puller = w.puller()
        w.turn()
        w.say(puller, SCIPY, **state)
        w.turn()
        assert w.labels() == {label(SCIPY): "true"}

    def test_a_pod_that_was_evicted_while_it_pulled_shows_nothing(self) -> None:
        w = world()
        w.add_node()
        puller = w.puller()
        w.turn()
        # As kubelets write it: a container that never began has ended all the same.
        w.say(puller, SCIPY, terminated=True)
        w.turn()
        assert w.labels() == {}
        w.say(puller, SCIPY, terminated=True, image_id=DIGEST)
        w.pods[puller] = replace(w.pods[puller], phase="Failed")
        w.turn()
        assert w.labels() == {}

    @pytest.mark.parametrize("reason", ["", "ContainerCreating", "PodInitializing", "ErrImagePull", "ImagePullBackOff"])
    def test_a_container_that_waits_for_its_image_shows_nothing(self, reason: str) -> None:
        w = world()
        w.add_node()
        puller = w.puller()
        w.turn()
        w.say(puller, SCIPY, waiting_reason=reason)
        w.turn()
        assert w.labels() == {}

    def test_what_is_said_of_a_pod_that_is_no_puller_counts_for_nothing(self) -> None:
        w = world()
        w.add_node()
        puller = w.puller()
        w.pods[puller] = replace(w.pods[puller], labels={})
        w.turn()
        w.pulled_event(puller, SCIPY)
        w.say(puller, SCIPY, running=True)
        assert w.changes() == []

    def test_a_puller_of_another_namespace_counts_for_nothing(self) -> None:
        w = world()
        w.add_node()
        puller = w.puller()
        w.pods[puller] = replace(w.pods[puller], namespace="elsewhere")
        w.turn()
        w.pulled_event(puller, SCIPY)
        assert w.changes() == []

    def test_an_event_of_an_earlier_pod_counts_for_nothing(self) -> None:
        w = world()
        w.add_node()
        w.pulled_event(w.puller(), SCIPY)
        w.pods.clear()
        w.puller()
        assert w.changes() == []


class TestLoss:
    def labelled(self, *images: str) -> GateWorld:
        """A node whose list has confirmed what its puller said."""
        w = world(*(images or (SCIPY,)))
        w.add_node()
        puller = w.puller()
        w.turn()
        for image in w.settings.images.values():
            w.pulled_event(puller, image.reference)
        w.turn()
        w.list_images(OTHER, *(image.reference for image in w.settings.images.values()))
        w.turn()
        return w

    def test_a_label_goes_at_once_when_the_list_that_showed_the_image_no_longer_does(self) -> None:
        w = self.labelled(SCIPY, GPU)
        w.list_images(OTHER, GPU)
        w.turn()
        assert w.labels() == {label(GPU): "true"}

    def test_it_does_not_come_back_by_what_was_said_before(self) -> None:
        w = self.labelled()
        w.list_images(OTHER)
        w.turn()
        (puller,) = w.pods
        w.say(puller, SCIPY, running=True)
        for _ in range(3):
            w.wait(30)
            w.turn()
        assert w.labels() == {}

    def test_it_comes_back_with_a_new_event(self) -> None:
        w = self.labelled()
        w.list_images(OTHER)
        w.turn()
        w.wait(60)
        w.pulled_event(next(iter(w.pods)), SCIPY)
        w.turn()
        assert w.labels() == {label(SCIPY): "true"}

    def test_a_list_that_never_showed_the_image_is_believed_when_it_can_no_longer_be_late(self) -> None:
        w = world()
        w.add_node()
        puller = w.puller()
        w.turn()
        w.pulled_event(puller, SCIPY)
        w.turn()
        w.wait(LIST_LAG_SECONDS - 1)
        planned = w.turn()
        assert w.labels() == {label(SCIPY): "true"}
        assert planned.wake_after_seconds == pytest.approx(1)
        w.wait(1)
        w.turn()
        assert w.labels() == {}

    def test_a_cut_list_proves_nothing_of_an_image_that_may_be_below_the_cut(self) -> None:
        w = self.labelled()
        w.list_images(*(f"quay.io/many/image:{n}" for n in range(LISTED_IMAGES)), mb=500)
        w.turn()
        assert w.labels() == {label(SCIPY): "true"}

    def test_a_cut_list_proves_the_absence_of_an_image_larger_than_its_smallest(self) -> None:
        w = self.labelled()
        w.list_images(*(f"quay.io/many/image:{n}" for n in range(LISTED_IMAGES)), mb=499)
        w.turn()
        assert w.labels() == {}

    def test_a_pull_that_fails_stands_against_an_image_of_which_the_list_says_nothing(self) -> None:
        w = self.labelled()
        w.list_images(*(f"quay.io/many/image:{n}" for n in range(LISTED_IMAGES)), mb=500)
        w.fail(next(iter(w.pods)), SCIPY, NOT_FOUND)
        w.turn()
        assert w.labels() == {}

    def test_an_empty_list_proves_nothing(self) -> None:
        w = self.labelled()
        w.list_images()
        w.turn()
        assert w.labels() == {label(SCIPY): "true"}

    def test_a_node_that_is_not_ready_keeps_its_labels_and_gets_none(self) -> None:
        w = self.labelled(SCIPY, GPU)
        w.list_images(OTHER)
        w.set_fact(ready=False, labels={label(GPU): "true"})
        w.turn()
        assert w.labels() == {label(GPU): "true"}

    def test_a_node_of_the_same_name_is_another_node(self) -> None:
        w = self.labelled()
        w.pods.clear()
        w.add_node(images=[])
        assert w.changes() == []


class TestNewLeader:
    def test_a_label_stays_until_the_list_can_no_longer_be_late(self) -> None:
        w = world()
        w.add_node(labels={label(SCIPY): "true"})
        w.new_leader()
        w.turn()
        w.wait(LIST_LAG_SECONDS - 1)
        w.turn()
        assert w.labels() == {label(SCIPY): "true"}
        w.wait(2)
        w.turn()
        assert w.labels() == {}

    def test_what_was_said_long_ago_stands_back_behind_the_list(self) -> None:
        w = world()
        w.add_node()
        puller = w.puller()
        w.pulled_event(puller, SCIPY, seconds_ago=1800)
        w.say(puller, SCIPY, running=True)
        assert w.changes() == []

    def test_what_was_said_just_now_counts_before_the_list_shows_it(self) -> None:
        w = world()
        w.add_node()
        w.pulled_event(w.puller(), SCIPY, seconds_ago=3)
        w.turn()
        assert w.labels() == {label(SCIPY): "true"}

    def test_a_running_container_counts_where_the_list_says_nothing(self) -> None:
        w = world()
        w.add_node(images=[f"quay.io/many/image:{n}" for n in range(LISTED_IMAGES)])
        w.say(w.puller(), SCIPY, running=True)
        w.turn()
        assert w.labels() == {label(SCIPY): "true"}

    def test_nothing_is_written_where_all_is_as_it_should_be(self) -> None:
        w = world()
        w.add_node(images=[OTHER, SCIPY], labels={label(SCIPY): "true"})
        w.new_leader()
        assert not w.turn().actions


class TestLabelsOfOthers:
    @pytest.mark.parametrize("mode", list(GateMode))
    def test_they_are_never_touched(self, mode: GateMode) -> None:
        w = world(mode=mode)
        w.add_node(images=[OTHER, SCIPY], labels={**FOREIGN_LABELS, label(GPU): "true"})
        for _ in range(3):
            w.turn()
            w.wait(LEFT_SET_SECONDS)
        assert FOREIGN_LABELS.items() <= w.labels().items()
        assert set(w.labels()) - set(FOREIGN_LABELS) == (set() if mode is GateMode.OFF else {label(SCIPY)})


class TestSet:
    def left(self) -> GateWorld:
        """The GPU image left the set; its label is still on the node."""
        w = world(SCIPY)
        w.add_node(images=[OTHER, SCIPY, GPU], labels={label(SCIPY): "true", label(GPU): "true"})
        return w

    def test_the_label_of_an_image_that_left_the_set_goes_when_no_webhook_can_still_require_it(self) -> None:
        w = self.left()
        w.turn()
        w.wait(LEFT_SET_SECONDS - 1)
        w.turn()
        assert label(GPU) in w.labels()
        w.wait(1)
        w.turn()
        assert w.labels() == {label(SCIPY): "true"}

    def test_it_stays_while_a_pending_pod_requires_it(self) -> None:
        w = self.left()
        pod = w.pending_user(GPU)
        w.turn()
        w.wait(LEFT_SET_SECONDS + 1)
        w.turn()
        assert label(GPU) in w.labels()
        w.pods[pod] = replace(w.pods[pod], node_name="a")
        w.turn()
        assert label(GPU) not in w.labels()

    def test_it_goes_although_a_pod_requires_it_when_the_image_left_the_node(self) -> None:
        w = self.left()
        w.pending_user(GPU)
        w.turn()
        w.wait(LEFT_SET_SECONDS + 1)
        w.list_images(OTHER, SCIPY)
        w.turn()
        assert w.labels() == {label(SCIPY): "true"}

    def test_an_image_belongs_on_the_nodes_that_its_group_selects(self) -> None:
        w = world(groups={"puller": ({}, [SCIPY]), "puller-gpu": ({"pool": "gpu"}, [GPU])})
        w.add_node("cpu", images=[OTHER, SCIPY, GPU])
        w.add_node("gpu", images=[OTHER, SCIPY, GPU], labels={"pool": "gpu"})
        w.turn()
        assert set(w.labels("cpu")) == {label(SCIPY)}
        assert set(w.labels("gpu")) == {"pool", label(SCIPY), label(GPU)}

    def test_mode_off_takes_all_labels_of_the_release_away(self) -> None:
        w = world(mode=GateMode.OFF)
        w.add_node(images=[OTHER, SCIPY], labels={label(SCIPY): "true"})
        w.turn()
        w.wait(LEFT_SET_SECONDS)
        w.turn()
        assert w.labels() == {}


class TestStartupTaint:
    @pytest.mark.parametrize("mode", [GateMode.STARTUP_TAINT, GateMode.REQUIRE_LABEL, GateMode.PREFER])
    def test_it_is_lifted_with_the_last_label(self, mode: GateMode) -> None:
        w = world(SCIPY, GPU, mode=mode)
        w.add_node(taints=[STARTUP, Taint("other", "", "NoSchedule")])
        puller = w.puller()
        w.pulled_event(puller, SCIPY)
        w.turn()
        assert STARTUP in w.nodes["a"].fact.taints
        w.pulled_event(puller, GPU)
        (change,) = [action for action in w.turn().actions if isinstance(action, ChangeNode)]
        assert set(change.set_labels) == {label(GPU)}
        assert w.nodes["a"].fact.taints == (Taint("other", "", "NoSchedule"),)
        (notice,) = w.notices()
        assert (notice.kind, notice.name, notice.warning) == ("Node", "a", False)

    def test_it_is_lifted_at_the_deadline_with_a_warning_and_a_gauge_and_never_comes_back(self) -> None:
        w = world(mode=GateMode.STARTUP_TAINT, pull_deadline_seconds=300)
        w.add_node(taints=[STARTUP])
        puller = w.puller()
        assert w.turn().wake_after_seconds == pytest.approx(300)
        w.wait(299)
        assert not [action for action in w.turn().actions if isinstance(action, ChangeNode)]
        w.wait(1)
        w.turn()
        assert w.nodes["a"].fact.taints == ()
        planned = w.turn()
        (notice,) = [action for action in planned.actions if isinstance(action, Notice)]
        assert notice.warning
        assert "deadline of 300 s" in notice.message
        assert SCIPY in notice.message
        assert planned.gauges["gate_nodes_opened_without_images"] == {(): 1.0}
        w.pulled_event(puller, SCIPY)
        w.turn()
        planned = w.turn()
        assert planned.gauges["gate_nodes_opened_without_images"] == {(): 0.0}
        assert w.nodes["a"].fact.taints == ()

    @pytest.mark.parametrize("outcome", [Outcome.HELD_BACK, Outcome.FAILED])
    def test_an_event_that_could_not_be_told_is_told_later(self, outcome: Outcome) -> None:
        w = world(mode=GateMode.STARTUP_TAINT)
        w.add_node(taints=[STARTUP], images=[OTHER, SCIPY])
        w.turn()
        for _ in range(3):
            (notice,) = w.plan().actions
            w.memory = note_image_gate(w.memory, [Done(notice, outcome)], w.now)
        assert w.notices() == [notice]
        assert w.notices() == []

    def test_an_event_that_nobody_takes_is_given_up_when_it_would_have_expired(self) -> None:
        w = world(mode=GateMode.STARTUP_TAINT)
        w.add_node(taints=[STARTUP], images=[OTHER, SCIPY])
        w.turn()
        times = 0
        while notices := w.plan().actions:
            w.memory = note_image_gate(w.memory, [Done(one, Outcome.FAILED) for one in notices], w.now)
            w.wait(300)
            times += 1
            assert times < 100
        assert times == STALE_NOTICE_SECONDS / 300 + 1

    def test_a_node_where_no_puller_may_go_is_told_to_lack_its_images_when_it_opens(self) -> None:
        w = world(mode=GateMode.STARTUP_TAINT, pull_deadline_seconds=300)
        w.add_node(taints=[STARTUP, Taint("gpu", "", "NoSchedule")])
        w.turn()
        w.wait(300)
        w.turn()
        assert w.nodes["a"].fact.taints == (Taint("gpu", "", "NoSchedule"),)
        planned = w.turn()
        (notice,) = [action for action in planned.actions if isinstance(action, Notice)]
        assert (notice.reason, notice.warning) == ("OpenedWithoutImages", True)
        assert f"still lacks {SCIPY}, as taint gpu keeps the puller away" in notice.message
        # Nobody is waited for there, so nothing is to be alarmed at for good.
        assert planned.gauges["gate_nodes_opened_without_images"] == {(): 0.0}

    def test_a_node_that_opened_late_is_counted_again_after_a_while_of_not_being_ready(self) -> None:
        w = world(mode=GateMode.STARTUP_TAINT, pull_deadline_seconds=300)
        w.add_node(taints=[STARTUP])
        w.turn()
        w.wait(300)
        w.turn()
        shown = []
        for ready in (True, False, True):
            w.set_fact(ready=ready)
            shown.append(w.turn().gauges["gate_nodes_opened_without_images"][()])
        assert shown == [1.0, 0.0, 1.0]

    def test_the_deadline_counts_from_when_the_node_became_ready(self) -> None:
        w = world(mode=GateMode.STARTUP_TAINT, pull_deadline_seconds=300)
        w.add_node(taints=[STARTUP], ready=False)
        w.turn()
        w.wait(1000)
        w.turn()
        w.set_fact(ready=True)
        w.wait(200)
        w.turn()
        assert STARTUP in w.nodes["a"].fact.taints
        w.wait(100)
        w.turn()
        assert w.nodes["a"].fact.taints == ()

    def test_a_jump_of_the_clock_does_not_move_the_deadline(self) -> None:
        w = world(mode=GateMode.STARTUP_TAINT, pull_deadline_seconds=300)
        w.add_node(taints=[STARTUP])
        w.puller()
        w.turn()
        w.wall += 86400
        w.turn()
        assert STARTUP in w.nodes["a"].fact.taints

    def test_a_node_that_no_group_selects_is_opened_at_once(self) -> None:
        w = world(mode=GateMode.STARTUP_TAINT, groups={"puller-gpu": ({"pool": "gpu"}, [GPU])})
        w.add_node(taints=[STARTUP], ready=False)
        w.turn()
        assert w.nodes["a"].fact.taints == ()

    def test_it_waits_for_the_images_of_all_groups_that_select_the_node(self) -> None:
        w = world(mode=GateMode.STARTUP_TAINT, groups={"puller": ({}, [SCIPY]), "puller-gpu": ({"pool": "gpu"}, [GPU])})
        w.add_node(taints=[STARTUP], labels={"pool": "gpu"}, images=[OTHER, SCIPY])
        w.turn()
        assert STARTUP in w.nodes["a"].fact.taints
        w.list_images(OTHER, SCIPY, GPU)
        w.turn()
        assert w.nodes["a"].fact.taints == ()

    def test_mode_off_lifts_it(self) -> None:
        w = world(mode=GateMode.OFF)
        w.add_node(taints=[STARTUP])
        w.turn()
        assert w.nodes["a"].fact.taints == ()
        (notice,) = w.notices()
        assert (notice.reason, notice.warning) == ("StartupTaintLifted", False)


class TestCondition:
    TYPE = images_condition(RELEASE, NAMESPACE)

    def test_it_says_whether_all_images_are_there_and_is_written_on_change_only(self) -> None:
        w = world(SCIPY, GPU, node_condition=True)
        w.add_node()
        puller = w.puller()
        (condition,) = w.turn().actions
        assert isinstance(condition, SetCondition)
        assert (condition.type, condition.status, condition.is_transition) == (self.TYPE, "False", True)
        assert condition.message == f"0 of 2 images are there; missing: {SCIPY}, {GPU}"
        assert not w.turn().actions
        w.pulled_event(puller, SCIPY)
        _, condition = w.turn().actions
        assert isinstance(condition, SetCondition)
        assert (condition.status, condition.is_transition) == ("False", False)
        w.pulled_event(puller, GPU)
        _, condition = w.turn().actions
        assert isinstance(condition, SetCondition)
        assert (condition.status, condition.is_transition) == ("True", True)
        w.new_leader()
        assert not w.turn().actions

    def test_nobody_asked_so_nothing_is_written(self) -> None:
        w = world()
        w.add_node()
        w.puller()
        assert not w.turn().actions

    @pytest.mark.parametrize("ready", [True, False])
    @pytest.mark.parametrize("mode", [GateMode.PREFER, GateMode.OFF])
    def test_switched_off_it_goes_once_and_nothing_else_does(self, mode: GateMode, ready: bool) -> None:
        w = world(mode=mode)
        w.add_node(ready=ready)
        others = w.nodes["a"].conditions
        other_hub = images_condition(RELEASE, "elsewhere")
        w.nodes["a"] = replace(w.nodes["a"], conditions={**others, self.TYPE: "True", other_hub: "True"})
        (condition,) = w.turn().actions
        assert isinstance(condition, SetCondition)
        assert (condition.node, condition.type, condition.status) == ("a", self.TYPE, None)
        assert w.nodes["a"].conditions == {**others, other_hub: "True"}
        assert not w.turn().actions

    def test_it_is_true_where_no_image_belongs(self) -> None:
        w = world(groups={}, node_condition=True)
        w.add_node()
        (condition,) = w.turn().actions
        assert isinstance(condition, SetCondition)
        assert condition.status == "True"


class TestFaults:
    @pytest.mark.parametrize(
        ("reason", "message", "cause", "words"),
        [
            ("ErrImagePull", NOT_FOUND, "missing", "no such image"),
            (
                "ImagePullBackOff",
                REFUSED,
                "registry",
                "does not answer",
            ),
            (
                "ErrImagePull",
                DENIED,
                "credentials",
                "imagePullSecrets",
            ),
            ("ErrImagePull", "unexpected status from HEAD request: 401 Unauthorized", "credentials", "credentials"),
            ("ErrImagePull", "429 Too Many Requests - toomanyrequests: limit", "throttled", "limits"),
            (
                "ErrImagePull",
                "tls: failed to verify: x509: certificate signed by unknown",
                "certificate",
                "certificate",
            ),
            ("ErrImagePull", "write /var/lib/x: no space left on device", "disk", "disk is full"),
            ("InvalidImageName", "couldn't parse image name", "name", "not a valid image name"),
            ("ErrImagePull", "something nobody has ever read", "other", "puller's pod"),
        ],
    )
    def test_a_pull_that_fails_is_told_in_one_sentence_with_its_cause_and_counted(
        self, reason: str, message: str, cause: str, words: str
    ) -> None:
        w = world()
        w.add_node()
        puller = w.puller()
        w.fail(puller, SCIPY, message, reason)
        planned = w.plan()
        (notice,) = [action for action in planned.actions if isinstance(action, Notice)]
        assert (notice.kind, notice.name, notice.warning) == ("Pod", w.pods[puller].name, True)
        assert f"Image {SCIPY} can't be pulled to node a" in notice.message
        assert words in notice.message
        assert notice.message.count(". ") == 0
        assert planned.gauges["gate_pull_faults"] == {(cause,): 1.0}

    def test_a_fault_that_many_nodes_have_is_told_of_some_and_counted_of_all(self) -> None:
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

    def test_other_images_are_not_held_up(self) -> None:
        w = world(SCIPY, GPU)
        w.add_node()
        puller = w.puller()
        w.turn()
        w.fail(puller, SCIPY, NOT_FOUND)
        w.pulled_event(puller, GPU)
        w.turn()
        assert w.labels() == {label(GPU): "true"}

    def test_a_fault_is_over_when_the_image_is_there(self) -> None:
        w = world()
        w.add_node()
        puller = w.puller()
        w.fail(puller, SCIPY, NOT_FOUND)
        w.turn()
        w.pulled_event(puller, SCIPY)
        w.turn()
        planned = w.turn()
        assert not [action for action in planned.actions if isinstance(action, Notice)]
        assert planned.gauges["gate_pull_faults"] == {}
        assert planned.gauges["gate_images_missing"] == {(SCIPY,): 0.0}
        assert planned.gauges["gate_images_held"] == {(SCIPY,): 1.0}

    def test_the_pullers_own_image_is_named_when_that_is_what_fails(self) -> None:
        w = world()
        w.add_node()
        w.fail(w.puller(), SCIPY, f'failed to pull and unpack image "{OTHER}": dial tcp: connection refused')
        (notice,) = w.notices()
        assert notice.message.startswith(f"The puller's own image {OTHER} can't be pulled")

    def test_an_init_container_that_fails_holds_up_every_image_of_the_pod(self) -> None:
        w = world(SCIPY, GPU)
        w.add_node()
        puller = w.puller()
        init = ContainerState(
            image="quay.io/jupyterhub/roost:1",
            name="pause",
            init=True,
            waiting_reason="ErrImagePull",
            waiting_message='failed to pull image "quay.io/jupyterhub/roost:1": not found',
        )
        w.pods[puller] = replace(w.pods[puller], containers=(*w.pods[puller].containers, init))
        planned = w.plan()
        (notice,) = [action for action in planned.actions if isinstance(action, Notice)]
        assert "quay.io/jupyterhub/roost:1" in notice.message
        assert planned.gauges["gate_pull_faults"] == {("missing",): 2.0}

    def test_a_node_without_a_puller_pod_is_told_after_a_while(self) -> None:
        w = world()
        w.add_node()
        assert w.notices() == []
        w.wait(NO_PULLER_SECONDS)
        (notice,) = w.notices()
        assert (notice.kind, notice.reason) == ("Node", "NoPullerPod")

    def test_a_node_where_no_puller_may_go_waits_for_nothing(self) -> None:
        w = world()
        w.add_node(taints=[Taint("node-role.kubernetes.io/control-plane", "", "NoSchedule")])
        w.turn()
        w.wait(NO_PULLER_SECONDS)
        planned = w.turn()
        assert not planned.actions
        assert planned.gauges["gate_nodes_waiting"] == {(): 0.0}
        w.list_images(OTHER, SCIPY)
        w.turn()
        assert w.labels() == {label(SCIPY): "true"}

    def test_how_long_the_oldest_node_waits_is_shown_from_its_pullers_creation_on(self) -> None:
        w = world()
        w.add_node()
        w.puller()
        w.wait(1000)
        w.new_leader()
        assert w.turn().gauges["gate_oldest_wait_seconds"] == {(): pytest.approx(1000.0)}
        w.wait(60)
        assert w.turn().gauges["gate_oldest_wait_seconds"] == {(): pytest.approx(1060.0)}


class TestOrder:
    def test_what_unlocks_comes_first_then_what_is_taken_away_then_conditions_then_events(self) -> None:
        w = world(SCIPY, GPU, node_condition=True)
        w.add_node("loses", images=[OTHER, SCIPY, GPU], labels={label(SCIPY): "true", label(GPU): "true"})
        w.turn()
        w.list_images(OTHER, GPU, node="loses")
        w.add_node("gains", images=[OTHER, SCIPY])
        w.fail(w.puller("gains"), GPU, NOT_FOUND)
        actions = w.plan().actions
        assert [type(action).__name__ for action in actions] == [
            "ChangeNode",
            "ChangeNode",
            "SetCondition",
            "SetCondition",
            "Notice",
        ]
        first, second = actions[:2]
        assert isinstance(first, ChangeNode)
        assert isinstance(second, ChangeNode)
        assert (first.node, second.node) == ("gains", "loses")

    def test_a_write_that_has_not_come_back_yet_is_not_repeated_at_once(self) -> None:
        w = world()
        w.add_node(images=[OTHER, SCIPY])
        nodes = dict(w.nodes)
        w.turn()
        w.nodes = nodes
        assert w.changes() == []
        w.wait(10)
        assert len(w.changes()) == 1

    def test_a_write_that_failed_is_asked_for_again(self) -> None:
        w = world()
        w.add_node(images=[OTHER, SCIPY])
        assert len(w.changes()) == 1
        assert len(w.changes()) == 1


class TestZeroToJupyterHub:
    def pods(self, name: str) -> dict[str, Any]:
        body: dict[str, Any] = json.loads((PODS / name).read_text())
        body["metadata"] |= {"namespace": NAMESPACE, "name": "puller-1", "uid": "uid-1"}
        body["spec"]["nodeName"] = "a"
        return body

    @pytest.mark.parametrize("fixture", ["z2jh-continuous-image-puller.json", "z2jh-hook-image-puller.json"])
    def test_its_init_containers_tell_image_by_image(self, fixture: str) -> None:
        body = self.pods(fixture)
        inits = body["spec"]["initContainers"]
        images = [one["image"] for one in inits]
        w = world(*images, puller_pods=PullerPods.ZERO_TO_JUPYTERHUB)
        w.add_node()
        waiting = {"imageID": "", "state": {"waiting": {"reason": "PodInitializing"}}}

        def pulled(image: str) -> dict[str, Any]:
            return {"imageID": f"{image}@{DIGEST}", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}

        w.turn()
        for come in range(len(images) + 1):
            body["status"] = {
                "initContainerStatuses": [
                    {"name": one["name"], "image": one["image"], **(pulled(one["image"]) if n < come else waiting)}
                    for n, one in enumerate(inits)
                ]
            }
            w.pods[f"{NAMESPACE}/puller-1"] = read_pod_state(body, keep_containers=True)
            w.turn()
            assert set(w.labels()) == {label(image) for image in images[:come]}

    def test_roosts_own_pullers_are_not_asked(self) -> None:
        w = world(puller_pods=PullerPods.ZERO_TO_JUPYTERHUB)
        w.add_node()
        puller = w.puller()
        w.turn()
        w.pulled_event(puller, SCIPY)
        assert w.changes() == []


class TestSettings:
    def test_they_are_read_as_rendered(self) -> None:
        read = Reader()
        found = read_gate(read, DOCUMENT)
        assert read.faults == []
        assert found.mode is GateMode.STARTUP_TAINT
        assert found.puller_pods is PullerPods.ZERO_TO_JUPYTERHUB
        assert (found.pull_deadline_seconds, found.open_after_seconds, found.has_puller) == (90, 7, False)
        assert [image.reference for image in found.pullers[0].images] == [SCIPY, GPU]
        assert found.tolerations == ({"key": "a", "operator": "Exists"},)

    def test_all_faults_come_at_once(self) -> None:
        read = Reader()
        gate = {"mode": "perhaps", "pullDeadlineSeconds": -1, "pullers": [{"images": [1]}], "pullerPods": "x"}
        read_gate(read, {**DOCUMENT, "gate": gate})
        assert {fault.key for fault in read.faults} == {
            "gate.mode",
            "gate.pullDeadlineSeconds",
            "gate.openAfterSeconds",
            "gate.hasPuller",
            "gate.nodeCondition",
            "gate.pullerPods",
            "gate.pullers[0].images[0]",
        }


def test_a_node_of_which_nothing_is_new_is_not_looked_at_again() -> None:
    w = world()
    w.add_node(images=[OTHER, SCIPY], labels={label(SCIPY): "true"})
    w.turn()
    first = w.memory.nodes["a"]
    w.turn()
    assert w.memory.nodes["a"] is first
    assert w.memory != GateMemory()
