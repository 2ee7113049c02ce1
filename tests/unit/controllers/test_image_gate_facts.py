"""Which images the gate takes for present, from lists, Events and statuses."""

from dataclasses import replace
from typing import Any

import pytest

from roost.controllers.image_gate.facts import LISTED_IMAGES
from roost_core.placement.beliefs import LIST_LAGS
from tests.gate_world import GPU, OTHER, SCIPY, GateWorld, label, world

DIGEST = "sha256:" + "ab" * 32


NOT_FOUND = f'rpc error: code = NotFound desc = failed to pull and unpack image "{SCIPY}": {SCIPY}: not found'


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
        assert w.labels_next() == {label(reference): "true"}

    def test_another_tag_or_digest_of_the_repository_is_another_image(self) -> None:
        w = world(SCIPY)
        w.add_node(images=[OTHER, SCIPY + "a", SCIPY.replace(":", "-old:"), f"{SCIPY.partition(':')[0]}@{DIGEST}"])
        assert w.changes() == []

    def test_a_pulled_event_labels_the_node_while_its_list_lags_behind(self) -> None:
        w = world(SCIPY, GPU)
        puller = w.add_pulling()
        assert w.changes() == []
        w.pulled_event(puller, SCIPY)
        assert w.labels_next() == {label(SCIPY): "true"}

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
        puller = w.add_pulling()
        w.turn()
        w.say(puller, SCIPY, **state)
        assert w.labels_next() == {label(SCIPY): "true"}

    def test_a_pod_that_was_evicted_while_it_pulled_shows_nothing(self) -> None:
        w = world()
        puller = w.add_pulling()
        w.turn()
        # As kubelets write it: a container that never began has ended all the same.
        w.say(puller, SCIPY, terminated=True)
        assert w.labels_next() == {}
        w.say(puller, SCIPY, terminated=True, image_id=DIGEST)
        w.pods[puller] = replace(w.pods[puller], phase="Failed")
        assert w.labels_next() == {}

    @pytest.mark.parametrize("reason", ["", "ContainerCreating", "PodInitializing", "ErrImagePull", "ImagePullBackOff"])
    def test_a_container_that_waits_for_its_image_shows_nothing(self, reason: str) -> None:
        w = world()
        puller = w.add_pulling()
        w.turn()
        w.say(puller, SCIPY, waiting_reason=reason)
        assert w.labels_next() == {}

    @pytest.mark.parametrize("changes", [{"labels": {}}, {"namespace": "elsewhere"}])
    def test_what_is_said_of_another_pod_counts_for_nothing(self, changes: dict[str, Any]) -> None:
        w = world()
        puller = w.add_pulling()
        w.pods[puller] = replace(w.pods[puller], **changes)
        w.turn()
        w.pulled_event(puller, SCIPY)
        w.say(puller, SCIPY, running=True)
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
        puller = w.add_pulling()
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
        assert w.labels_next() == {label(GPU): "true"}

    def test_it_does_not_come_back_by_what_was_said_before(self) -> None:
        w = self.labelled()
        w.list_images(OTHER)
        w.turn()
        (puller,) = w.pods
        w.say(puller, SCIPY, running=True)
        for _ in range(3):
            w.turn(after=30)
        assert w.labels() == {}

    def test_it_comes_back_with_a_new_event(self) -> None:
        w = self.labelled()
        w.list_images(OTHER)
        w.turn()
        w.wait(60)
        w.pulled_event(next(iter(w.pods)), SCIPY)
        assert w.labels_next() == {label(SCIPY): "true"}

    def test_a_list_that_never_showed_the_image_is_believed_when_it_can_no_longer_be_late(self) -> None:
        w = world()
        puller = w.add_pulling()
        w.turn()
        w.pulled_event(puller, SCIPY)
        w.turn()
        planned = w.turn(after=LIST_LAGS.age_seconds - 1)
        assert w.labels() == {label(SCIPY): "true"}
        assert planned.wake_after_seconds == pytest.approx(1)
        assert w.labels_next(after=1) == {}

    @pytest.mark.parametrize(("mb", "labels"), [(500, {label(SCIPY): "true"}), (499, {})])
    def test_a_cut_list_proves_only_the_absence_of_an_image_larger_than_its_smallest(
        self, mb: int, labels: dict[str, str]
    ) -> None:
        w = self.labelled()
        w.list_images(*(f"quay.io/many/image:{n}" for n in range(LISTED_IMAGES)), mb=mb)
        assert w.labels_next() == labels

    def test_a_pull_that_fails_stands_against_an_image_of_which_the_list_says_nothing(self) -> None:
        w = self.labelled()
        w.list_images(*(f"quay.io/many/image:{n}" for n in range(LISTED_IMAGES)), mb=500)
        w.fail(next(iter(w.pods)), SCIPY, NOT_FOUND)
        assert w.labels_next() == {}

    def test_an_empty_list_proves_nothing(self) -> None:
        w = self.labelled()
        w.list_images()
        assert w.labels_next() == {label(SCIPY): "true"}

    def test_a_node_that_is_not_ready_keeps_its_labels_and_gets_none(self) -> None:
        w = self.labelled(SCIPY, GPU)
        w.list_images(OTHER)
        w.set_fact(ready=False, labels={label(GPU): "true"})
        assert w.labels_next() == {label(GPU): "true"}


class TestNewLeader:
    def test_a_label_stays_until_the_list_can_no_longer_be_late(self) -> None:
        w = world()
        w.add_node(labels={label(SCIPY): "true"})
        w.new_leader()
        w.turn()
        assert w.labels_next(after=LIST_LAGS.age_seconds - 1) == {label(SCIPY): "true"}
        assert w.labels_next(after=2) == {}

    def test_what_was_said_long_ago_stands_back_behind_the_list(self) -> None:
        w = world()
        puller = w.add_pulling()
        w.pulled_event(puller, SCIPY, seconds_ago=1800)
        w.say(puller, SCIPY, running=True)
        assert w.changes() == []

    def test_what_was_said_just_now_counts_before_the_list_shows_it(self) -> None:
        w = world()
        w.add_node()
        w.pulled_event(w.puller(), SCIPY, seconds_ago=3)
        assert w.labels_next() == {label(SCIPY): "true"}

    def test_a_running_container_counts_where_the_list_says_nothing(self) -> None:
        w = world()
        w.add_node(images=[f"quay.io/many/image:{n}" for n in range(LISTED_IMAGES)])
        w.say(w.puller(), SCIPY, running=True)
        assert w.labels_next() == {label(SCIPY): "true"}
