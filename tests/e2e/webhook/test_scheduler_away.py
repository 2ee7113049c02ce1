"""Roost's scheduler dies and comes back: users go on starting, by the cluster's own scheduler
meanwhile.
"""

from functools import partial

import pytest

from roost_core.objects.fields import JSONObject
from tests.e2e.pods import pod
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.scheduler import start_scheduler
from tests.harness.waiting import wait_until
from tests.stack import FAST_ELECTION, Stack, Webhook

pytestmark = pytest.mark.e2e


def _is_away(webhook: Webhook) -> bool:
    """Whether reviews take Roost's scheduler for away."""
    return webhook.metric("roost_webhook_part_away", part="scheduler") == 1


def test_a_scheduler_that_never_came_or_is_dead_is_not_named_and_a_new_one_is(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes, pod_keeper: PodKeeper
) -> None:
    fake_nodes.create("node-1")
    values: JSONObject = {"placeholders": []}
    with (
        Stack(
            control_plane,
            namespace,
            values,
            scheduler=False,
            webhook=False,
            leader_election=FAST_ELECTION,
        ) as stack,
        start_scheduler(control_plane) as own,
    ):
        own.wait_serving()
        webhook, ours = stack.start_webhook(), stack.scheduler_name("user")
        webhook.wait_ready()

        is_away = partial(_is_away, webhook)
        assert stack.create_pod(pod("early"))["spec"]["schedulerName"] == "default-scheduler"
        assert stack.wait_for_node("early") == "node-1"
        stack.start_scheduler().wait_leading()
        wait_until(lambda: not is_away(), 20, "the webhook to see the scheduler")
        assert stack.create_pod(pod("before"))["spec"]["schedulerName"] == ours
        stack.wait_for_node("before")

        stack.schedulers[0].kill()
        # A leader that is missed for a moment only is waited for.
        assert stack.create_pod(pod("stuck"))["spec"]["schedulerName"] == ours
        wait_until(is_away, 20, "the webhook to miss the scheduler")
        assert webhook.metric("roost_webhook_lease_age_seconds", part="scheduler") > 6
        assert stack.create_pod(pod("meanwhile"))["spec"]["schedulerName"] == "default-scheduler"
        assert stack.wait_for_node("meanwhile") == "node-1"
        counter = "roost_webhook_pods_left_to_cluster_scheduler_total"
        # A page of metrics is made anew a few times a second.
        wait_until(
            lambda: webhook.metric(counter, reason="stale", **{"class": "user"}) == 1,
            5,
            "the pod to be counted",
        )
        # Who was given to it keeps it: nobody can change a pod's scheduler.
        waiting = "roost_webhook_pods_waiting_for_scheduler"
        wait_until(
            lambda: webhook.metric(waiting, **{"class": "user"}) == 1,
            5,
            "the one that waits to be counted",
        )

        stack.start_scheduler().wait_leading()
        wait_until(lambda: not is_away(), 20, "the webhook to see the new scheduler")
        assert stack.create_pod(pod("after"))["spec"]["schedulerName"] == ours
        assert stack.wait_for_node("after") == stack.wait_for_node("stuck") == "node-1"
        for replica in stack.webhooks:
            assert not replica.process.log_lines("forbidden")


def test_a_new_profile_is_named_once_a_scheduler_that_has_it_leads(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes, pod_keeper: PodKeeper
) -> None:
    """An upgrade may bring a scheduler that can't start: the old one leads on, and doesn't know the
    profile.
    """
    fake_nodes.create("node-1")
    values: JSONObject = {"placeholders": []}
    with (
        Stack(
            control_plane,
            namespace,
            values,
            scheduler=False,
            webhook=False,
            leader_election=FAST_ELECTION,
        ) as stack,
        start_scheduler(control_plane),
    ):
        old = stack.start_scheduler(named=True)
        old.wait_leading()
        webhook = stack.start_webhook()
        webhook.wait_ready()
        assert stack.create_pod(pod("before"))["spec"]["schedulerName"] == stack.scheduler_name(
            "user"
        )

        is_away = partial(_is_away, webhook)
        scheduler = {"profiles": {"lab": {"strategy": "spread"}}}
        stack.apply({"scheduler": scheduler, "podClasses": {"user": {"profile": "lab"}}})
        wait_until(is_away, 20, "the webhook to see that the leader lacks the profile")
        assert stack.create_pod(pod("meanwhile"))["spec"]["schedulerName"] == "default-scheduler"
        assert stack.wait_for_node("meanwhile") == "node-1"

        new = stack.start_scheduler(named=True)
        old.kill()
        new.wait_leading(30)
        wait_until(lambda: not is_away(), 20, "the webhook to see the new leader")
        assert stack.create_pod(pod("after"))["spec"]["schedulerName"] == stack.scheduler_name(
            "lab"
        )
        assert stack.wait_for_node("after") == "node-1"
