"""Changes of a running install, through server-side apply as Helm 4 and GitOps tools do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.together.test_promises import pod
from tests.harness.waiting import wait_until
from tests.stack import Stack

if TYPE_CHECKING:
    from tests.harness.controlplane import ControlPlane

pytestmark = pytest.mark.e2e

WORKER = {"match": {"labels": {"component": "dask-worker"}}, "profile": "user"}


def test_a_class_comes_and_goes_by_values_alone(control_plane: ControlPlane, namespace: str) -> None:
    """The controllers own caBundle in every entry of the configuration, which must not keep an entry that goes."""
    with Stack(control_plane, namespace, {"placeholders": []}, scheduler=False, controllers=True) as stack:
        scheduler_name = stack.scheduler_name("user")
        assert stack.create_pod(pod("before", "dask-worker"))["spec"]["schedulerName"] == "default-scheduler"

        stack.apply({"podClasses": {"worker": WORKER}})

        def scheduler_of_worker() -> str:
            body = pod("ignored", "dask-worker")
            body["metadata"] = {"generateName": "worker-", "labels": {"component": "dask-worker"}}
            return str(stack.create_pod(body)["spec"]["schedulerName"])

        wait_until(lambda: scheduler_of_worker() == scheduler_name, 30, "the webhook to place the new class")
        stack.apply({"podClasses": {}})
        wait_until(lambda: scheduler_of_worker() == "default-scheduler", 30, "the class to be forgotten")
        assert stack.create_pod(pod("user", "singleuser-server"))["spec"]["schedulerName"] == scheduler_name
