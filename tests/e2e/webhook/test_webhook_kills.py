"""The webhook killed, frozen and restarted while pods are created: all come, whole, and what was
missed is counted.
"""

import time

import pytest

from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import POLICY_REVISION_ANNOTATION
from tests.builders import user_pod
from tests.e2e.storm import Storm
from tests.harness.controlplane import ControlPlane
from tests.harness.waiting import wait_until
from tests.stack import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.alone]

USERS = "component=singleuser-server"
# As rendered.
TIMEOUT_SECONDS = 2
# The API server may ask twice (reinvocation); the rest is its own work on a busy machine.
BOUND_SECONDS = 2 * TIMEOUT_SECONDS + 3


def is_placed(pod: JSONObject) -> bool:
    return POLICY_REVISION_ANNOTATION in (pod["metadata"].get("annotations") or {})


def test_every_creation_succeeds_while_the_webhook_is_killed_frozen_and_restarted(
    control_plane: ControlPlane, namespace: str
) -> None:
    values = {"webhook": {"failurePolicy": "Ignore"}}
    body = user_pod("image")
    del body["metadata"]["namespace"]
    with Stack(control_plane, namespace, values, scheduler=False) as stack:
        with Storm(control_plane, namespace, body=body, threads=8, pause_seconds=0.001) as storm:
            storm.wait_for_more(200)
            stack.webhooks[-1].process.kill()
            storm.wait_for_more(300)
            stack.start_webhook().wait_ready()
            storm.wait_for_more(200)
            stack.webhooks[-1].process.freeze()
            time.sleep(3 * TIMEOUT_SECONDS)
            stack.webhooks[-1].process.resume()
            storm.wait_for_more(200)
            stack.webhooks[-1].process.freeze()
            time.sleep(TIMEOUT_SECONDS)
            stack.webhooks[-1].process.kill()
            webhook = stack.start_webhook()
            webhook.wait_ready()
            storm.wait_for_more(200)
        assert storm.refused == []
        assert storm.slowest_seconds < BOUND_SECONDS

        pods = control_plane.api.list(f"/api/v1/namespaces/{namespace}/pods", labelSelector=USERS)
        assert len(pods) == len(storm.pods)
        placed = [pod for pod in pods if is_placed(pod)]
        unplaced = [pod for pod in pods if not is_placed(pod)]
        assert len(placed) > 200
        assert len(unplaced) > 100
        scheduler = stack.scheduler_name("user")
        for pod in placed:
            assert pod["spec"]["schedulerName"] == scheduler
            assert "podAffinity" in pod["spec"]["affinity"]
        for pod in unplaced:
            assert pod["spec"]["schedulerName"] == "default-scheduler"
            assert "affinity" not in pod["spec"]

        def counted() -> bool:
            return webhook.metric("roost_webhook_unplaced_pods", **{"class": "user"}) == len(
                unplaced
            )

        wait_until(
            counted,
            20,
            f"{len(unplaced)} unplaced pods",
            explain=lambda: webhook.get("/metrics")[1],
        )
        assert webhook.metric("roost_webhook_unplaced_pods_seen_total", **{"class": "user"}) == len(
            unplaced
        )

        control_plane.api.delete(
            f"/api/v1/namespaces/{namespace}/pods", labelSelector=USERS, gracePeriodSeconds=0
        )

        def is_empty() -> bool:
            return webhook.metric("roost_webhook_unplaced_pods", **{"class": "user"}) == 0

        wait_until(is_empty, 30, "an empty gauge")
        assert webhook.metric("roost_webhook_unplaced_pods_seen_total", **{"class": "user"}) == len(
            unplaced
        )
