"""The webhook killed, frozen and restarted while pods are created: all come, whole, and what was missed is counted."""

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from roost_core.placement.labels import POLICY_REVISION_ANNOTATION
from tests.builders import user_pod
from tests.harness.controlplane import ControlPlane
from tests.harness.waiting import wait_until
from tests.stack import Stack

pytestmark = pytest.mark.e2e

PODS = 2000
USERS = "component=singleuser-server"
TIMEOUT_SECONDS = 1
# The API server may ask twice (reinvocation); the rest is its own work on a busy machine.
BOUND_SECONDS = 2 * TIMEOUT_SECONDS + 3
Object = dict[str, Any]


def is_placed(pod: Object) -> bool:
    return POLICY_REVISION_ANNOTATION in (pod["metadata"].get("annotations") or {})


def test_every_creation_succeeds_while_the_webhook_is_killed_frozen_and_restarted(
    control_plane: ControlPlane, namespace: str
) -> None:
    values = {"webhook": {"failurePolicy": "Ignore", "timeoutSeconds": TIMEOUT_SECONDS}}
    numbers, durations, failures = itertools.count(), [], []
    finished = threading.Event()

    with Stack(control_plane, namespace, values, scheduler=False) as stack:

        def create(_: int) -> None:
            name, start = f"jupyter-{next(numbers)}", time.monotonic()
            pod = user_pod("image")
            pod["metadata"] |= {"name": name, "namespace": namespace}
            try:
                control_plane.api.create(pod, namespace)
            except Exception as error:  # noqa: BLE001 (each is a pod that a user didn't get)
                failures.append(f"{name}: {error}")
            durations.append(time.monotonic() - start)

        def create_all() -> None:
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(create, range(PODS)))
            finished.set()

        creator = threading.Thread(target=create_all)
        creator.start()

        def wait_for(created: int) -> None:
            wait_until(lambda: len(durations) >= created, 120, f"{created} pods")

        wait_for(200)
        stack.webhooks[-1].process.kill()
        wait_for(500)
        stack.start_webhook().wait_ready()
        wait_for(len(durations) + 200)
        stack.webhooks[-1].process.freeze()
        time.sleep(3 * TIMEOUT_SECONDS)
        stack.webhooks[-1].process.resume()
        wait_for(len(durations) + 200)
        stack.webhooks[-1].process.freeze()
        time.sleep(TIMEOUT_SECONDS)
        stack.webhooks[-1].process.kill()
        webhook = stack.start_webhook()
        webhook.wait_ready()
        creator.join()
        assert failures == []
        assert len(durations) == PODS
        assert max(durations) < BOUND_SECONDS

        pods = control_plane.api.list(f"/api/v1/namespaces/{namespace}/pods", labelSelector=USERS)
        assert len(pods) == PODS
        placed = [pod for pod in pods if is_placed(pod)]
        unplaced = [pod for pod in pods if not is_placed(pod)]
        assert len(placed) > PODS // 10
        assert len(unplaced) > 100
        scheduler = stack.scheduler_name("user")
        for pod in placed:
            assert pod["spec"]["schedulerName"] == scheduler
            assert "podAffinity" in pod["spec"]["affinity"]
        for pod in unplaced:
            assert pod["spec"]["schedulerName"] == "default-scheduler"
            assert "affinity" not in pod["spec"]

        def counted() -> bool:
            return webhook.metric("roost_webhook_unplaced_pods", **{"class": "user"}) == len(unplaced)

        wait_until(counted, 20, f"{len(unplaced)} unplaced pods", explain=lambda: webhook.get("/metrics")[1])
        assert webhook.metric("roost_webhook_unplaced_pods_seen_total", **{"class": "user"}) == len(unplaced)

        control_plane.api.delete(f"/api/v1/namespaces/{namespace}/pods", labelSelector=USERS, gracePeriodSeconds=0)

        def is_empty() -> bool:
            return webhook.metric("roost_webhook_unplaced_pods", **{"class": "user"}) == 0

        wait_until(is_empty, 30, "an empty gauge")
        assert webhook.metric("roost_webhook_unplaced_pods_seen_total", **{"class": "user"}) == len(unplaced)
