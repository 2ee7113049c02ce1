"""What the real API server stores for each kind of pod: as sent, plus what the rules add, and nothing else."""

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from roost_core.placement.labels import (
    HOME_TARGET_ANNOTATION,
    POLICY_REVISION_ANNOTATION,
    WARM_TARGET_ANNOTATION,
    pulled_label,
)
from tests.e2e.spawned import spawned_pod
from tests.harness.api import ApiError
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.waiting import wait_until
from tests.recorded_data import PODS
from tests.stack import Stack

pytestmark = pytest.mark.e2e

IMAGE = "quay.io/jupyterhub/k8s-singleuser-sample:4.4.0"
RELEASE = "hub"
Object = dict[str, Any]
# Those that the recorded pods name.
PRIORITY_CLASSES = (
    "hub-default-priority",
    "hub-image-puller-priority",
    "hub-user-placeholder-priority",
    "jupyterhub-default-priority",
    "prod-default-priority",
)

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
# What breaks ties, for each class.
OFF_BUILDS = {
    "weight": 1,
    "podAffinityTerm": {
        "labelSelector": {"matchLabels": {"component": "binderhub-build"}},
        "topologyKey": "kubernetes.io/hostname",
    },
}


@pytest.fixture(scope="module")
def stack(control_plane: ControlPlane) -> Iterator[Stack]:
    """A hub whose user image is on node-1, builders on two nodes; without a scheduler pods stay as they were stored."""
    name = control_plane.create_namespace()
    values = {
        "singleuser": {"image": {"name": IMAGE.rpartition(":")[0], "tag": IMAGE.rpartition(":")[2]}},
        "replaceSchedulers": [f"{name}-user-scheduler" for name in ("hub", "binder", "jupyterhub", "prod")],
        "placeholders": [],
    }
    for priority_class in PRIORITY_CLASSES:
        metadata = {"name": priority_class}
        manifest = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": 0}
        control_plane.api.apply(manifest)
    with FakeNodes(control_plane.api) as nodes, Stack(control_plane, name, values, scheduler=False) as running:
        pool = {"mybinder.org/pool-type": "users"}
        nodes.create("node-1", labels={**pool, pulled_label(RELEASE, name, IMAGE): "true"})
        nodes.create("node-2", labels=pool)
        for node in ("node-1", "node-2"):
            running.create_pod(builder(node))
            mark_ready(control_plane, name, f"dind-{node}")
        webhook = running.webhooks[0]
        wait_until(lambda: webhook.metric("roost_webhook_ring_nodes") == 2, 30, "the ring to hold both nodes")
        yield running
    control_plane.api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="module")
def elsewhere(control_plane: ControlPlane) -> str:
    """A namespace that Roost doesn't look at: what the API server itself makes of a pod."""
    return control_plane.create_namespace()


def builder(node: str) -> Object:
    return {
        "metadata": {"name": f"dind-{node}", "labels": {"app": "binder", "component": "image-builder"}},
        "spec": {"nodeName": node, "containers": [{"name": "dind", "image": "docker:dind"}]},
    }


def mark_ready(control_plane: ControlPlane, namespace: str, name: str) -> None:
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/status"
    control_plane.api.patch(path, {"status": status})


def dry_run(control_plane: ControlPlane, body: Mapping[str, Any], namespace: str) -> Object:
    """What the API server would store."""
    body = copy.deepcopy(dict(body))
    body["metadata"].pop("namespace", None)
    body["metadata"].pop("ownerReferences", None)
    # Accounts, secrets and the like of the fixture's cluster aren't here; placement has no use for them.
    body["spec"].pop("serviceAccountName", None)
    body["spec"].pop("serviceAccount", None)
    # The API server works these out from the class; a client may not send them.
    body["spec"].pop("priority", None)
    body["spec"].pop("preemptionPolicy", None)
    path = f"/api/v1/namespaces/{namespace}/pods"
    manifest = {"apiVersion": "v1", "kind": "Pod", **body}
    return control_plane.api.request("POST", path, manifest, {"dryRun": "All", "fieldValidation": "Strict"})


def changes(before: object, after: object, path: str = "") -> dict[str, tuple[object, object]]:
    """Where two JSON documents differ: path -> (before, after). Lists are compared whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        found: dict[str, tuple[object, object]] = {}
        for key in before.keys() | after.keys():
            found |= changes(before.get(key), after.get(key), f"{path}/{key}")
        return found
    return {} if before == after else {path: (before, after)}


IGNORED = (
    "/metadata/uid",
    "/metadata/creationTimestamp",
    "/metadata/managedFields",
    "/metadata/namespace",
    "/metadata/name",
    "/metadata/generateName",
    "/spec/volumes",
    "/spec/containers",
    "/spec/initContainers",
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
    found = {path: change for path, change in changes(plain, stored).items() if not path.startswith(IGNORED)}
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(stored["spec"].get(kind, [])):
            for path, change in changes(plain["spec"][kind][index], container).items():
                if path != "/volumeMounts":  # the service account's token has a random name
                    found[f"/spec/{kind}/{index}{path}"] = change
    return found


def fixture_names() -> list[str]:
    return sorted(path.stem for path in PODS.glob("*.json"))


def load(name: str) -> Object:
    loaded: Object = json.loads((PODS / f"{name}.json").read_text())
    return loaded


def scheduler_name(stack: Stack, profile: str) -> str:
    return stack.scheduler_name(profile)


class TestRecordedPods:
    @pytest.mark.parametrize(
        "name",
        [name for name in fixture_names() if "-user-" in name and "placeholder" not in name and "core" not in name],
    )
    def test_a_user_pod_gets_scheduler_gate_and_attraction_and_nothing_else(
        self, name: str, control_plane: ControlPlane, stack: Stack, elsewhere: str
    ) -> None:
        found = placed(control_plane, stack, elsewhere, load(name))
        assert found.pop("/spec/schedulerName")[1] == scheduler_name(stack, "user")
        annotations = found.pop("/metadata/annotations", None) or found.pop(
            f"/metadata/annotations/{POLICY_REVISION_ANNOTATION}"
        )
        assert annotations[1]
        # Where the pod has annotations of its own, each added one is a change of its own.
        found.pop(f"/metadata/annotations/{WARM_TARGET_ANNOTATION}", None)
        affinity = {path: change for path, change in found.items() if path.startswith("/spec/affinity")}
        assert set(found) == set(affinity)
        body = dry_run(control_plane, load(name), stack.namespace)
        attraction = body["spec"]["affinity"]["podAffinity"][PREFERRED]
        assert any(
            term["podAffinityTerm"]["labelSelector"] == {"matchLabels": {"component": "singleuser-server"}}
            for term in attraction
        )
        assert OFF_BUILDS in body["spec"]["affinity"]["podAntiAffinity"][PREFERRED]
        for before, after in affinity.values():
            assert keeps(before, after), (before, after)
        images = [c["image"] for c in body["spec"]["containers"]]
        if IMAGE in images:
            label = pulled_label(RELEASE, stack.namespace, IMAGE)
            terms = body["spec"]["affinity"]["nodeAffinity"].get(REQUIRED, {}).get("nodeSelectorTerms", [])
            preferred = body["spec"]["affinity"]["nodeAffinity"].get(PREFERRED, [])
            required_everywhere = bool(terms) and all(label in json.dumps(term) for term in terms)
            # A pod whose own rules admit no node with the image is not held back for ever.
            assert required_everywhere or label in json.dumps(preferred)

    @pytest.mark.parametrize("name", [name for name in fixture_names() if "-build-" in name])
    def test_a_build_pod_prefers_its_ring_and_counts_for_the_scheduler(
        self, name: str, control_plane: ControlPlane, stack: Stack
    ) -> None:
        body = dry_run(control_plane, load(name), stack.namespace)
        assert body["spec"]["schedulerName"] == scheduler_name(stack, "build")
        terms = body["spec"]["affinity"]["nodeAffinity"][PREFERRED]
        ring = [t for t in terms if "matchFields" in t["preference"]]
        assert [t["weight"] for t in ring] == [100, 50]
        assert (
            body["metadata"]["annotations"][HOME_TARGET_ANNOTATION]
            == ring[0]["preference"]["matchFields"][0]["values"][0]
        )
        # BinderHub's own sticky term and its anti-affinity, of weight 100, are replaced, by shape.
        assert "kubernetes.io/hostname" not in json.dumps(terms)
        assert body["spec"]["affinity"]["podAntiAffinity"][PREFERRED] == [OFF_BUILDS]
        assert all(c["resources"].get("requests") for c in body["spec"]["containers"])

    @pytest.mark.parametrize(
        "name",
        [
            name
            for name in fixture_names()
            if any(part in name for part in ("puller", "builder-", "cleaner", "core", "awaiter"))
            and "three-builders" not in name
        ],
    )
    def test_pods_of_no_class_are_left_alone(
        self, name: str, control_plane: ControlPlane, stack: Stack, elsewhere: str
    ) -> None:
        assert placed(control_plane, stack, elsewhere, load(name)) == {}

    def test_a_placeholder_pod_of_zero_to_jupyterhub_is_placed_as_one(
        self, control_plane: ControlPlane, stack: Stack
    ) -> None:
        body = dry_run(control_plane, load("z2jh-user-placeholder"), stack.namespace)
        assert body["spec"]["schedulerName"] == scheduler_name(stack, "placeholder")
        assert body["spec"]["affinity"]["podAntiAffinity"] == {PREFERRED: [OFF_BUILDS]}
        assert "images-pulled" not in json.dumps(body)


def keeps(before: object, after: object) -> bool:
    """Whether everything that stood before stands after, lists in any order."""
    if before is None:
        return True
    if isinstance(before, dict):
        return isinstance(after, dict) and all(keeps(value, after.get(key)) for key, value in before.items())
    if isinstance(before, list):
        return isinstance(after, list) and all(any(keeps(item, other) for other in after) for item in before)
    return before == after


class TestSpawnedPods:
    """Pods by the KubeSpawner package that is installed now."""

    def test_700_kilobytes_of_environment_pass(self, control_plane: ControlPlane, stack: Stack, elsewhere: str) -> None:
        environment = {f"VARIABLE_{number}": "x" * 200 for number in range(3000)}
        body = spawned_pod("ada", control_plane.kubeconfig, image=IMAGE, environment=environment)
        assert "/spec/schedulerName" in placed(control_plane, stack, elsewhere, body)

    @pytest.mark.parametrize("room_bytes", [0, 11, 1000])
    def test_a_patch_that_would_be_refused_in_spite_of_ignore_is_not_sent(
        self, room_bytes: int, control_plane: ControlPlane, stack: Stack
    ) -> None:
        """One byte too many, and the API server refuses a patched pod in spite of failurePolicy Ignore."""
        body = spawned_pod("ada", control_plane.kubeconfig, image=IMAGE)
        there = body["metadata"].setdefault("annotations", {})
        used_bytes = sum(len(key) + len(value) for key, value in there.items()) + len("notes")
        there["notes"] = "x" * (256 * 1024 - used_bytes - room_bytes)
        stored = dry_run(control_plane, body, stack.namespace)
        assert stored["spec"]["schedulerName"] == scheduler_name(stack, "user")
        assert (POLICY_REVISION_ANNOTATION in stored["metadata"]["annotations"]) is (room_bytes == 1000)

    def test_a_pod_that_roost_may_not_fill_up_is_refused_a_byte_later(
        self, control_plane: ControlPlane, stack: Stack
    ) -> None:
        """The limit that the rule above keeps to is the API server's own."""
        body = spawned_pod("ada", control_plane.kubeconfig, image=IMAGE)
        body["metadata"]["annotations"] = {"notes": "x" * (256 * 1024 - len("notes") + 1)}
        with pytest.raises(ApiError) as refused:
            dry_run(control_plane, body, stack.namespace)
        assert refused.value.status == 422

    def test_a_post_that_is_repeated_is_placed_alike_and_conflicts_as_it_would_without_roost(
        self, control_plane: ControlPlane, stack: Stack
    ) -> None:
        body = spawned_pod("repeated", control_plane.kubeconfig, image=IMAGE)
        first = stack.create_pod(body)
        with pytest.raises(ApiError) as refused:
            stack.create_pod(body)
        assert refused.value.status == 409
        control_plane.api.delete(f"/api/v1/namespaces/{stack.namespace}/pods/repeated", gracePeriodSeconds=0)
        control_plane.api.delete(
            f"/api/v1/namespaces/{stack.namespace}/pods/{first['metadata']['name']}", gracePeriodSeconds=0
        )
        second = stack.create_pod(body)
        assert {
            path for path in changes(first["spec"], second["spec"]) if not path.startswith(("/volumes", "/containers"))
        } == set()
