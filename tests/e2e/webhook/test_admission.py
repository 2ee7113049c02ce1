"""What the real API server stores for each kind of pod: as sent, plus what the rules add, and
nothing else.
"""

import copy
import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import POLICY_REVISION_ANNOTATION, STRICT_SUFFIX, pulled_label
from tests.e2e.spawned import spawned_pod
from tests.harness.api import ApiError
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.waiting import wait_until
from tests.recorded_data import LEFT_ALONE, PODS
from tests.stack import Stack, Webhook

pytestmark = pytest.mark.e2e

IMAGE = "quay.io/jupyterhub/k8s-singleuser-sample:4.4.0"
RELEASE = "hub"


@pytest.fixture(scope="module")
def stack(control_plane: ControlPlane) -> Iterator[Stack]:
    """A hub whose user image is on node-1, builders on two nodes; without a scheduler pods stay as
    they were stored.
    """
    name = control_plane.create_namespace()
    values = {
        "singleuser": {
            "image": {"name": IMAGE.rpartition(":")[0], "tag": IMAGE.rpartition(":")[2]}
        },
        "replaceSchedulers": [
            f"{name}-user-scheduler" for name in ("hub", "binder", "jupyterhub", "prod")
        ],
        "placeholders": [],
    }
    recorded = [json.loads(path.read_text())["spec"] for path in PODS.glob("*.json")]
    for priority_class in {
        spec["priorityClassName"] for spec in recorded if spec.get("priorityClassName")
    }:
        metadata = {"name": priority_class}
        manifest = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": metadata,
            "value": 0,
        }
        control_plane.api.apply(manifest)
    with (
        FakeNodes(control_plane.api) as nodes,
        Stack(control_plane, name, values, scheduler=False) as running,
    ):
        pool = {"mybinder.org/pool-type": "users"}
        nodes.create("node-1", labels={**pool, pulled_label(RELEASE, name, IMAGE): "true"})
        nodes.create("node-2", labels=pool)
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        webhook = running.webhooks[0]
        # Without a builder the ring holds both nodes: that of the first builder is waited for.
        for size, node in enumerate(("node-1", "node-2"), start=1):
            running.create_pod(builder(node))
            path = f"/api/v1/namespaces/{name}/pods/dind-{node}/status"
            control_plane.api.patch(path, {"status": status})
            wait_until(
                functools.partial(is_ring_of, webhook, size), 30, f"builders on {size} nodes"
            )
        yield running
    control_plane.api.delete(f"/api/v1/namespaces/{name}")


def is_ring_of(webhook: Webhook, size: int) -> bool:
    return webhook.metric("roost_webhook_ring_nodes") == size


@pytest.fixture(scope="module")
def elsewhere(control_plane: ControlPlane) -> str:
    """A namespace that Roost doesn't look at: what the API server itself makes of a pod."""
    return control_plane.create_namespace()


def builder(node: str) -> JSONObject:
    return {
        "metadata": {
            "name": f"dind-{node}",
            "labels": {"app": "binder", "component": "image-builder"},
        },
        "spec": {"nodeName": node, "containers": [{"name": "dind", "image": "docker:dind"}]},
    }


def dry_run(control_plane: ControlPlane, body: Mapping[str, Any], namespace: str) -> JSONObject:
    body = copy.deepcopy(dict(body))
    body["metadata"].pop("namespace", None)
    body["metadata"].pop("ownerReferences", None)
    # Accounts, secrets and the like of the fixture's cluster aren't here; placement has no use for
    # them.
    body["spec"].pop("serviceAccountName", None)
    body["spec"].pop("serviceAccount", None)
    # The API server works these out from the class; a client may not send them.
    body["spec"].pop("priority", None)
    body["spec"].pop("preemptionPolicy", None)
    path = f"/api/v1/namespaces/{namespace}/pods"
    manifest = {"apiVersion": "v1", "kind": "Pod", **body}
    return control_plane.api.request(
        "POST", path, manifest, {"dryRun": "All", "fieldValidation": "Strict"}
    )


def changes(before: object, after: object, path: str = "") -> dict[str, tuple[object, object]]:
    """Where two JSON documents differ: path -> (before, after). Lists are compared whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        found: dict[str, tuple[object, object]] = {}
        for key in before.keys() | after.keys():
            found |= changes(before.get(key), after.get(key), f"{path}/{key}")
        return found
    return {} if before == after else {path: (before, after)}


IGNORED = (
    *(
        f"/metadata/{key}"
        for key in (
            "uid",
            "creationTimestamp",
            "managedFields",
            "namespace",
            "name",
            "generateName",
        )
    ),
    *(f"/spec/{key}" for key in ("volumes", "containers", "initContainers")),
)


def placed(
    control_plane: ControlPlane, stack: Stack, elsewhere: str, body: Mapping[str, Any]
) -> dict[str, tuple[object, object]]:
    """What Roost changed of a pod; fails when a second pass changes anything more."""
    plain = dry_run(control_plane, body, elsewhere)
    stored = dry_run(control_plane, body, stack.namespace)
    again = copy.deepcopy(stored)
    for key in ("uid", "creationTimestamp", "managedFields", "generateName", "resourceVersion"):
        again["metadata"].pop(key, None)
    again.pop("status", None)
    twice = dry_run(control_plane, again, stack.namespace)
    second = {path for path in changes(stored, twice) if not path.startswith(IGNORED)}
    assert not second, f"a second pass changed {second}"
    found = {
        path: change
        for path, change in changes(plain, stored).items()
        if not path.startswith(IGNORED)
    }
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(stored["spec"].get(kind, [])):
            for path, change in changes(plain["spec"][kind][index], container).items():
                if path != "/volumeMounts":  # the service account's token has a random name
                    found[f"/spec/{kind}/{index}{path}"] = change
    return found


@pytest.mark.parametrize("path", sorted(PODS.glob("*.json")), ids=lambda path: path.stem)
def test_a_recorded_pod_is_stored_as_sent_but_for_what_its_class_gets(
    path: Path, control_plane: ControlPlane, stack: Stack, elsewhere: str
) -> None:
    found = placed(control_plane, stack, elsewhere, json.loads(path.read_text()))
    if path.stem.startswith(LEFT_ALONE):
        assert found == {}
        return
    pod_class = next(one for one in ("build", "placeholder", "user") if f"-{one}" in path.stem)
    # What its author says about other pods decides before packing does.
    profile = stack.scheduler_name(pod_class) + STRICT_SUFFIX * (
        path.stem == "z2jh-user-extra-pod-anti-affinity"
    )
    assert found.pop("/spec/schedulerName")[1] == profile
    # A build gets requests.
    requests = (
        ("/spec/containers", "/spec/initContainers", "/status/qosClass")
        if pod_class == "build"
        else ()
    )
    own = ("/metadata/annotations", "/spec/affinity", *requests)
    assert [one for one in found if not one.startswith(own)] == []
    assert any(one.startswith("/metadata/annotations") for one in found)
    if pod_class == "user":
        for one, (before, after) in found.items():
            assert not one.startswith("/spec/affinity") or keeps(before, after), (before, after)


def keeps(before: object, after: object) -> bool:
    """Whether everything that stood before stands after, lists in any order."""
    if before is None:
        return True
    if isinstance(before, dict):
        return isinstance(after, dict) and all(
            keeps(value, after.get(key)) for key, value in before.items()
        )
    if isinstance(before, list):
        return isinstance(after, list) and all(
            any(keeps(item, other) for other in after) for item in before
        )
    return before == after


def test_700_kilobytes_of_environment_pass(
    control_plane: ControlPlane, stack: Stack, elsewhere: str
) -> None:
    environment = {f"VARIABLE_{number}": "x" * 200 for number in range(3000)}
    body = spawned_pod("ada", control_plane.kubeconfig, image=IMAGE, environment=environment)
    assert "/spec/schedulerName" in placed(control_plane, stack, elsewhere, body)


@pytest.mark.parametrize("room_bytes", [0, 11, 1000])
def test_a_patch_that_would_be_refused_in_spite_of_ignore_is_not_sent(
    room_bytes: int, control_plane: ControlPlane, stack: Stack
) -> None:
    """One byte too many, and the API server refuses a patched pod in spite of failurePolicy
    Ignore.
    """
    body = spawned_pod("ada", control_plane.kubeconfig, image=IMAGE)
    there = body["metadata"].setdefault("annotations", {})
    used_bytes = sum(len(key) + len(value) for key, value in there.items()) + len("notes")
    there["notes"] = "x" * (256 * 1024 - used_bytes - room_bytes)
    stored = dry_run(control_plane, body, stack.namespace)
    assert stored["spec"]["schedulerName"] == stack.scheduler_name("user")
    assert (POLICY_REVISION_ANNOTATION in stored["metadata"]["annotations"]) is (room_bytes == 1000)


def test_a_pod_that_roost_may_not_fill_up_is_refused_a_byte_later(
    control_plane: ControlPlane, stack: Stack
) -> None:
    """The limit that the rule above keeps to is the API server's own."""
    body = spawned_pod("ada", control_plane.kubeconfig, image=IMAGE)
    body["metadata"]["annotations"] = {"notes": "x" * (256 * 1024 - len("notes") + 1)}
    with pytest.raises(ApiError) as refused:
        dry_run(control_plane, body, stack.namespace)
    assert refused.value.status == 422


def test_a_post_that_is_repeated_is_placed_alike_and_conflicts_as_it_would_without_roost(
    control_plane: ControlPlane, stack: Stack
) -> None:
    body = spawned_pod("repeated", control_plane.kubeconfig, image=IMAGE)
    first = stack.create_pod(body)
    with pytest.raises(ApiError) as refused:
        stack.create_pod(body)
    assert refused.value.status == 409
    control_plane.api.delete(
        f"/api/v1/namespaces/{stack.namespace}/pods/repeated", gracePeriodSeconds=0
    )
    control_plane.api.delete(
        f"/api/v1/namespaces/{stack.namespace}/pods/{first['metadata']['name']}",
        gracePeriodSeconds=0,
    )
    second = stack.create_pod(body)
    assert {
        path
        for path in changes(first["spec"], second["spec"])
        if not path.startswith(("/volumes", "/containers"))
    } == set()
