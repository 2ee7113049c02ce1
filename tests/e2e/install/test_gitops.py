"""Argo CD and Flux see no difference between the manifests and the cluster, also after Roost's own writes.

Flux asks the API server by a server-side apply that it doesn't carry out; Argo CD compares each field that a manifest
sets with the one that is stored. Both are done here against the real API server.
"""

from __future__ import annotations

import copy
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from generator.render.manifests import render
from generator.values.files import parse_values
from generator.values.release import Release
from roost_core.placement.labels import attract_label, pulled_label, startup_taint
from tests.harness.binaries import ensure_binary
from tests.stack import REPOSITORY, Stack

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.harness.api import Api
    from tests.harness.controlplane import ControlPlane
    from tests.harness.nodes import FakeNodes

pytestmark = pytest.mark.e2e

VALUES = """
singleuser: {image: {name: quay.io/a/b, tag: "1"}}
recorder: {enabled: true}
webhook: {resources: {requests: {cpu: 100m, memory: 128Mi}}}
placeholders:
  - {name: fixed, replicas: 2}
  - name: timed
    replicas: 1
    windows: [{name: day, replicas: 4, timeZone: UTC, start: "0 8 * * 1-5", end: "0 18 * * 1-5"}]
"""
# What the API server writes by itself.
_OWN = ("managedFields", "resourceVersion", "generation", "creationTimestamp", "uid")


@pytest.fixture
def applied(control_plane: ControlPlane, namespace: str) -> Iterator[list[Any]]:
    """The manifests as Flux applies them."""
    bodies: list[Any] = [
        manifest.body
        for manifest in render(
            parse_values(VALUES.encode(), "values.yaml").values, Release("hub", namespace, f"v{control_plane.minor}.0")
        )
    ]
    for body in bodies:
        control_plane.api.apply(body, namespace, manager="helm-controller")
    yield bodies
    for body in bodies:
        control_plane.api.delete(control_plane.api.path_of(body, namespace))


def bare(body: Mapping[str, Any]) -> dict[str, Any]:
    stripped = copy.deepcopy(dict(body))
    stripped.pop("status", None)
    for key in _OWN:
        stripped["metadata"].pop(key, None)
    return stripped


def flux_differences(api: Api, bodies: list[Any], namespace: str) -> list[str]:
    """Objects that a further server-side apply would change."""
    return [
        body["metadata"]["name"]
        for body in bodies
        if bare(api.get(api.path_of(body, namespace)))
        != bare(api.apply(body, namespace, manager="helm-controller", dryRun="All"))
    ]


def lost(wanted: object, stored: object, path: str) -> Iterator[str]:
    """Fields of a manifest that are stored otherwise."""
    if isinstance(wanted, dict):
        for key, value in wanted.items():
            yield from lost(value, stored.get(key) if isinstance(stored, dict) else None, f"{path}.{key}")
    elif isinstance(wanted, list):
        if not isinstance(stored, list) or len(stored) != len(wanted):
            yield path
        else:
            for index, value in enumerate(wanted):
                yield from lost(value, stored[index], f"{path}[{index}]")
    elif wanted != stored:
        yield f"{path}: {wanted!r}, stored {stored!r}"


def argo_differences(api: Api, bodies: list[Any], namespace: str) -> list[str]:
    return [
        difference
        for body in bodies
        for difference in lost(body, api.get(api.path_of(body, namespace)), body["metadata"]["name"])
        # An empty map and none are the same to both tools.
        if not difference.endswith(("{}, stored None", "[], stored None", "'', stored None"))
    ]


def test_no_tool_sees_a_difference_before_or_after_roosts_own_writes(
    control_plane: ControlPlane, namespace: str, applied: list[Any]
) -> None:
    api = control_plane.api
    assert flux_differences(api, applied, namespace) == []
    assert argo_differences(api, applied, namespace) == []
    # The controllers' leader: certificates, placeholders by the clock.
    (webhook,) = [body for body in applied if body["kind"] == "MutatingWebhookConfiguration"]
    entries = [{"name": one["name"], "clientConfig": {"caBundle": "TFM="}} for one in webhook["webhooks"]]
    api.patch(
        api.path_of(webhook),
        {"webhooks": entries},
        content_type="application/strategic-merge-patch+json",
        fieldManager="roost-webhook-ca",
    )
    (timed,) = [
        body for body in applied if body["kind"] == "StatefulSet" and body["metadata"]["name"].endswith("timed")
    ]
    path = f"{api.path_of(timed, namespace)}/scale"
    api.patch(path, {"spec": {"replicas": 4}}, fieldManager="roost-controllers")
    stored = api.get(api.path_of(webhook))
    assert {one["clientConfig"].get("caBundle") for one in stored["webhooks"]} == {"TFM="}
    assert api.get(api.path_of(timed, namespace))["spec"]["replicas"] == 4
    assert flux_differences(api, applied, namespace) == []
    assert argo_differences(api, applied, namespace) == []
    # And a change by hand is seen by both.
    api.patch(f"{path.replace('timed', 'fixed')}", {"spec": {"replicas": 9}}, fieldManager="somebody")
    assert flux_differences(api, applied, namespace) == ["hub-roost-placeholder-fixed"]
    assert len(argo_differences(api, applied, namespace)) == 1


def test_the_scheduler_makes_the_lease_that_argo_cd_leaves_out(control_plane: ControlPlane, namespace: str) -> None:
    values = {"scheduler": {"leaderElection": {"renderLease": False}}, "placeholders": []}
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/hub-roost-scheduler"
    with Stack(control_plane, namespace, values, webhook=False) as stack:
        assert not [body for body in stack.manifests if body["kind"] == "Lease"]
        # `Stack` returns when the scheduler leads.
        assert control_plane.api.get(lease)["spec"]["holderIdentity"]
    control_plane.api.delete(lease)


def test_nodes_can_be_cleaned_with_kubectl_alone(
    control_plane: ControlPlane, fake_nodes: FakeNodes, tmp_path: Path
) -> None:
    """As docs/uninstall.md says for when Roost's image can't be pulled."""
    text = (REPOSITORY / "docs" / "uninstall.md").read_text()
    section = text.partition("## Without Roost's image")[2]
    script = section.partition("```sh\n")[2].partition("```")[0].partition("# 2.")[2]
    assert "kubectl label" in script
    own = {pulled_label("hub", "hub", "a/b:1"): "true", attract_label("hub", "hub", "default"): "true"}
    other = {pulled_label("hub2", "hub", "a/b:1"): "true", "mine": "too"}
    taint = {"key": startup_taint("hub", "hub"), "effect": "NoSchedule"}
    kept = {"key": "mine", "effect": "NoSchedule"}
    fake_nodes.create("marked", cpu="4", memory="8Gi", labels={**own, **other}, taints=[taint, kept])
    fake_nodes.create("bare", cpu="4", memory="8Gi")
    (tmp_path / "kubectl").symlink_to(ensure_binary("kubectl", control_plane.minor))
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "KUBECONFIG": str(control_plane.kubeconfig)}
    done = subprocess.run(
        ["sh", "-eu", "-c", f"#{script}"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    node = control_plane.api.get("/api/v1/nodes/marked")
    assert not own.keys() & node["metadata"]["labels"].keys()
    assert other.items() <= node["metadata"]["labels"].items()
    assert [one["key"] for one in node["spec"]["taints"]] == ["mine"]
