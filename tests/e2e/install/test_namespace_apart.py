"""Roost in a namespace apart from the hub's, where nobody but administrators may create pods."""

import pytest

from roost_core.placement.labels import POLICY_REVISION_ANNOTATION
from tests.e2e.pods import pod
from tests.harness.controlplane import ControlPlane
from tests.stack import Stack

pytestmark = pytest.mark.e2e


def test_the_hubs_users_and_builds_are_placed_from_there_and_nobody_elses(
    control_plane: ControlPlane, namespace: str
) -> None:
    hub = control_plane.create_namespace()
    there = {"match": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": hub}}}}
    values = {"podClasses": {"user": there, "build": there}}
    with Stack(control_plane, namespace, values, scheduler=False) as stack:
        for component, profile in (("singleuser-server", "user"), ("binderhub-build", "build")):
            body = pod(f"{component}-1", component)
            placed = control_plane.create_pod(body, hub)
            assert POLICY_REVISION_ANNOTATION in placed["metadata"]["annotations"]
            assert placed["spec"]["schedulerName"] == stack.scheduler_name(profile)
            not_its = control_plane.create_pod(body, namespace)
            assert not_its["spec"]["schedulerName"] == "default-scheduler"
