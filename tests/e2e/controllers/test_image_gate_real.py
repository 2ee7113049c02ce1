"""The image gate on real kubelets, with the puller, the scheduler, the webhook and the controllers
as rendered.

A registry on loopback is throttled, so that a pull takes as long as a test needs: about half a
minute here, where large images take minutes elsewhere. Nothing is made faster for the gate:
kubelets and Roost have their own intervals.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

import pytest

from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import pulled_label
from tests.harness.api import Watch
from tests.harness.binaries import ensure_binary
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import kubelet_cluster, or_give_up, pause_registry
from tests.harness.real_nodes import RealNode
from tests.harness.registry import RealRegistry
from tests.harness.waiting import wait_until
from tests.recorded_data import object_of
from tests.stack import Stack
from tools.release.version import version_of

pytestmark = pytest.mark.e2e

PULL_SECONDS = 30.0
PULL_BYTES = 12_000_000
# kubelets list their images every 30 s and post what changed every 10 s; then Roost's own part.
SYNC_SECONDS = 50.0
# Nine fill a node of two CPUs, whatever a puller's containers ask for.
REQUESTS = {"cpu": "200m", "memory": "16Mi"}
# An image under a name that others have: nodes ask the test's registry whatever the name.
ROOST = f"docker.io/library/roost:{version_of()}"


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with kubelet_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def registry() -> Iterator[RealRegistry]:
    with pause_registry() as registry:
        # All that the puller's init container needs of Roost's image.
        pause = ensure_binary("pause")
        registry.push(_path(ROOST), files={"/usr/local/lib/roost/pause": pause})
        yield registry


@pytest.fixture(scope="module")
def first_node(cluster: ControlPlane, registry: RealRegistry) -> Iterator[RealNode]:
    """A node for the tests of this module, one after the other; each brings images of its own."""
    with or_give_up(), RealNode(cluster, "node-1", registry, labels={"pool": "user"}) as node:
        yield node


@pytest.fixture
def hub(cluster: ControlPlane, registry: RealRegistry) -> Iterator[str]:
    """A namespace; afterwards the registry works as it should."""
    name = cluster.create_namespace()
    yield name
    registry.bytes_per_second = None
    registry.require_no_credentials()
    registry.up()
    cluster.api.delete(f"/api/v1/namespaces/{name}")
    wait_until(
        lambda: not cluster.api.list(f"/api/v1/namespaces/{name}/pods"),
        120,
        f"the pods of {name} to be gone",
    )


def _path(reference: str) -> str:
    return reference.partition("/")[2]


def images_of(hub: str, *names: str) -> tuple[str, ...]:
    """References that no other test has."""
    return tuple(f"quay.io/{hub}/{name}:1" for name in names)


def values_for(*images: str, **more: Any) -> dict[str, Any]:
    """Users of the pool `user`, the first image theirs, and no placeholders."""
    name, _, tag = images[0].rpartition(":")
    others = enumerate(images[1:])
    extra = {
        f"extra-{index}": dict(zip(("name", "tag"), image.rsplit(":", 1), strict=True))
        for index, image in others
    }
    return {
        "singleuser": {"image": {"name": name, "tag": tag}, "nodeSelector": {"pool": "user"}},
        "placeholders": [],
        **more,
        "prePuller": {"extraImages": extra, **more.get("prePuller", {})},
    }


def labels_on(cluster: ControlPlane, hub: str, node: str) -> set[str]:
    """This hub's labels on a node that say "the image is there"."""
    prefix = pulled_label("hub", hub, "any").partition("/")[0]
    labels = cluster.api.get(f"/api/v1/nodes/{node}")["metadata"].get("labels", {})
    return {
        key for key, value in labels.items() if key.startswith(f"{prefix}/") and value == "true"
    }


def wait_for_labels(
    cluster: ControlPlane, hub: str, node: str, images: set[str], timeout_seconds: float
) -> None:
    """Wait until the node carries the labels of these images and no others."""
    wanted = {pulled_label("hub", hub, image) for image in images}
    wait_until(
        lambda: labels_on(cluster, hub, node) == wanted,
        timeout_seconds,
        f"{node} to carry just the labels of {sorted(images)}",
        explain=lambda: (
            labels_on(cluster, hub, node),
            cluster.kubectl("get", "pods,events", "-n", hub),
        ),
    )


@pytest.mark.parametrize("method", ["imageVolume", "noop"])
def test_images_are_labelled_though_one_runs_nothing_and_a_deleted_one_loses_its_label(
    method: str, cluster: ControlPlane, registry: RealRegistry, first_node: RealNode, hub: str
) -> None:
    server, data = images_of(hub, f"server-{method.lower()}", f"data-{method.lower()}")
    registry.push_program(_path(server))
    registry.push(_path(data), size_bytes=100_000)
    values = values_for(server, data, prePuller={"method": method})
    with Stack(cluster, hub, values, controllers=True, webhook=False, scheduler=False):
        wait_for_labels(cluster, hub, "node-1", {server, data}, 90)
        wait_until(
            lambda: data in first_node.status_images(),
            SYNC_SECONDS,
            "the kubelet to list the image",
        )
        first_node.remove_image(data)
        wait_for_labels(cluster, hub, "node-1", {server}, SYNC_SECONDS)


@pytest.mark.parametrize("cause", ["registry", "missing", "credentials"])
def test_a_failed_pull_is_told_and_counted_holds_up_no_other_image_and_ends_when_mended(
    cause: str, cluster: ControlPlane, registry: RealRegistry, first_node: RealNode, hub: str
) -> None:
    server, last = images_of(hub, f"server-{cause}", f"last-{cause}")
    bad = registry.reference(f"{hub}/bad-{cause}:1")
    registry.push_program(_path(server))
    registry.push(_path(last), size_bytes=1000)
    if cause != "missing":
        registry.push(bad, size_bytes=1000)
    if cause == "credentials":
        _write_secret(cluster, hub, registry.pull_secret("ada", "wrong"))
    values = values_for(server, last, imagePullSecrets=["registry"])
    with Stack(cluster, hub, values, controllers=True, scheduler=False) as stack:
        wait_for_labels(cluster, hub, "node-1", {server, last}, 90)
        if cause == "registry":
            registry.down()
        elif cause == "credentials":
            registry.require_credentials("ada", "right")
        # Between the two in order of use.
        stack.apply(values_for(server, bad, last, imagePullSecrets=["registry"]))
        replica = stack.restart_controllers()

        def told() -> list[str]:
            events = cluster.api.list(
                f"/api/v1/namespaces/{hub}/events", fieldSelector="reason=CannotPullImage"
            )
            return [event["message"] for event in events]

        def explain() -> str:
            return cluster.kubectl("get", "pods,events", "-n", hub)

        (message,) = wait_until(told, 90, "an Event", explain=explain)
        words = {
            "registry": "does not answer",
            "missing": "no such image",
            "credentials": "refuses the credentials",
        }
        assert message.startswith(f"Image {bad} can't be pulled to node node-1: ")
        assert words[cause] in message
        metric = "roost_controllers_gate_pull_faults"
        wait_until(
            lambda: replica.metric(metric, reason=cause) == 1.0,
            40,
            "a metric that says so",
            explain=explain,
        )
        wait_for_labels(cluster, hub, "node-1", {server, last}, 40)

        # Users of images that are there are sent to them; those of the other aren't held back by
        # what no node has.
        assert _required_labels(cluster, hub, server) == {pulled_label("hub", hub, server)}
        assert _required_labels(cluster, hub, bad) == set()

        if cause == "registry":
            registry.up()
        elif cause == "missing":
            registry.push(bad, size_bytes=1000)
        else:
            _write_secret(cluster, hub, registry.pull_secret("ada", "right"))
        # Kubelets try again after 10, 20, 40 … s.
        wait_for_labels(cluster, hub, "node-1", {server, bad, last}, 150)


@pytest.mark.parametrize("method", ["imageVolume", "noop"])
def test_an_image_that_admission_renames_is_told_and_shuts_nobody_out_meanwhile(
    method: str, cluster: ControlPlane, registry: RealRegistry, first_node: RealNode, hub: str
) -> None:
    """As Kyverno's policies do that send pulls through a proxy."""
    (image,) = images_of(hub, f"server-renamed-{method.lower()}")
    renamed = image.replace("quay.io", "proxy.example.org")
    registry.push_program(_path(image))
    where = "containers/0/image" if method == "noop" else "volumes/0/image/reference"
    metadata = {"name": f"{hub}-renames"}
    mutation = {
        "expression": f'[JSONPatch{{op: "replace", path: "/spec/{where}", value: "{renamed}"}}]'
    }
    policy = {**object_of("policy-of-pullers"), "metadata": metadata}
    policy["spec"]["matchConstraints"]["namespaceSelector"] = {
        "matchLabels": {"kubernetes.io/metadata.name": hub}
    }
    policy["spec"]["mutations"] = [{"patchType": "JSONPatch", "jsonPatch": mutation}]
    binding = {
        **policy,
        "kind": "MutatingAdmissionPolicyBinding",
        "spec": {"policyName": metadata["name"]},
    }
    folder = f"/api/v1/namespaces/{hub}"
    with Stack(cluster, hub, {"placeholders": []}, controllers=True) as stack:
        for body in (policy, binding):
            cluster.api.create(body)
        try:
            container = {"name": "c", "image": image}
            volume = {"name": "v", "image": {"reference": image}}
            labels = {"app.kubernetes.io/component": "puller"}
            spec = {
                "containers": [container],
                "volumes": [volume],
                "automountServiceAccountToken": False,
            }
            probe = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "probe", "labels": labels},
                "spec": spec,
            }
            wait_until(
                lambda: renamed in str(cluster.api.create(probe, hub, dryRun="All")["spec"]),
                30,
                "the policy",
            )
            stack.apply(values_for(image, prePuller={"method": method}))
            stack.restart_controllers()
            found = wait_until(
                lambda: cluster.api.list(
                    f"{folder}/events", fieldSelector="reason=CannotPullImage"
                ),
                90,
                "an Event",
                explain=lambda: cluster.kubectl("get", "pods,events", "-n", hub),
            )
            told = (
                f"Image {image} can't be pulled to node node-1: admission changed the puller's"
                f" image to {renamed}: "
            )
            assert {event["message"].startswith(told) for event in found} == {True}, found
            wait_for_labels(cluster, hub, "node-1", set(), 10)
            stack.create_pod(_user("ada", image, ""))
            cluster.wait_for_pod_phase("ada", hub, "Running", 60)
        finally:
            kinds = "mutatingadmissionpolicybindings,mutatingadmissionpolicies"
            cluster.kubectl("delete", kinds, metadata["name"])
        path = f"{folder}/pods"
        wait_until(
            lambda: renamed not in str(cluster.api.create(probe, hub, dryRun="All")["spec"]),
            30,
            "no policy",
        )
        for pod in cluster.api.list(path, labelSelector="app.kubernetes.io/component=puller"):
            cluster.api.delete(f"{path}/{pod['metadata']['name']}")
        wait_for_labels(cluster, hub, "node-1", {image}, 90)


def _write_secret(cluster: ControlPlane, hub: str, data: Mapping[str, Any]) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "registry", "namespace": hub},
    }
    cluster.api.apply({**secret, "type": "kubernetes.io/dockerconfigjson", "data": dict(data)})


def _required_labels(cluster: ControlPlane, hub: str, image: str) -> set[str]:
    """The labels of images that a user's pod would be made to require."""
    pod = {"apiVersion": "v1", "kind": "Pod", **_user("asked", image, "")}
    spec = cluster.api.create(pod, hub, dryRun="All")["spec"]
    terms = (spec.get("affinity", {}).get("nodeAffinity", {})).get(
        "requiredDuringSchedulingIgnoredDuringExecution", {}
    )
    found = (
        expression["key"]
        for term in terms.get("nodeSelectorTerms", [])
        for expression in term.get("matchExpressions", [])
    )
    return {key for key in found if key.startswith("images-pulled.")}


class Seen(NamedTuple):
    """A change, when the API server made it among all others, and when we heard of it."""

    version: int
    moment: float


class Observer:
    """Watches who claims a node, and when an image came there.

    Versions of one etcd are in order across all objects.
    """

    def __init__(self, cluster: ControlPlane, hub: str, node: str, image: str) -> None:
        self._node = node
        self._image = image
        folder = f"/api/v1/namespaces/{hub}"
        self._watches = [
            (
                cluster.api.watch(f"{folder}/pods", labelSelector="component=singleuser-server"),
                self._see_user,
            ),
            (cluster.api.watch(f"{folder}/events", fieldSelector="reason=Pulled"), self._see_pull),
        ]
        self._threads = [
            threading.Thread(target=self._follow, args=watch, daemon=True)
            for watch in self._watches
        ]
        # User pod -> when it was bound to the node, or pre-empted there.
        self.claims: dict[str, Seen] = {}
        # When a kubelet said that the image is there.
        self.pull: Seen | None = None

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for watch, _see in self._watches:
            watch.close()
        for thread in self._threads:
            thread.join()

    @staticmethod
    def _follow(watch: Watch, see: Callable[[JSONObject, Seen], None]) -> None:
        for _kind, found in watch:
            see(found, Seen(int(found["metadata"]["resourceVersion"]), time.time()))

    def _see_user(self, pod: JSONObject, seen: Seen) -> None:
        claimed = pod["spec"].get("nodeName") or pod["status"].get("nominatedNodeName")
        if claimed == self._node:
            self.claims.setdefault(pod["metadata"]["name"], seen)

    def _see_pull(self, event: JSONObject, seen: Seen) -> None:
        is_ours = (
            event.get("source", {}).get("host") == self._node
            and f'"{self._image}"' in event["message"]
        )
        if is_ours and self.pull is None:
            self.pull = seen


@pytest.mark.parametrize("mode", ["requireLabel", "prefer"])
def test_fifty_users_start_on_a_node_that_joins_a_full_cluster_as_soon_as_the_image_is_there(
    mode: str, cluster: ControlPlane, registry: RealRegistry, first_node: RealNode, hub: str
) -> None:
    """Promise 1; with `prefer` users take the newest placeholders first, and wait there for their
    image.
    """
    (image,) = images_of(hub, f"server-{mode.lower()}")
    registry.push_program(_path(image), size_bytes=PULL_BYTES)
    resources = {"requests": REQUESTS}
    placeholders = {
        "name": "default",
        "replicas": 20,
        "resources": resources,
        "nodeSelector": {"pool": "user"},
    }
    # A pull takes longer here than users wait before the gate opens.
    gate = {"mode": mode, "openAfterSeconds": 600}
    values = values_for(
        image, imageGate=gate, placeholders=[placeholders], placeholderMover={"enabled": False}
    )
    with Stack(cluster, hub, values, controllers=True) as stack:
        wait_for_labels(cluster, hub, "node-1", {image}, 90)

        def placeholders_on(node: str) -> int:
            found = cluster.api.list(
                f"/api/v1/namespaces/{hub}/pods", labelSelector="component=user-placeholder"
            )
            return sum(pod["spec"].get("nodeName") == node for pod in found)

        wait_until(lambda: placeholders_on("node-1") == 10, 60, "ten placeholders on the old node")
        # It stands still until the users are there, however long a busy machine takes for that.
        registry.bytes_per_second = 0
        with (
            RealNode(cluster, "node-2", registry, labels={"pool": "user"}),
            Observer(cluster, hub, "node-2", image) as seen,
        ):
            wait_until(
                lambda: placeholders_on("node-2") == 10,
                60,
                "ten placeholders on the new node, so that all is full",
            )
            priority = next(
                manifest["metadata"]["name"]
                for manifest in stack.manifests
                if manifest["kind"] == "PriorityClass" and manifest["value"] == 0
            )
            for index in range(50):
                stack.create_pod(_user(f"user-{index}", image, priority))
            if mode == "prefer":
                wait_until(lambda: seen.claims, 60, "a user to take the newest node")
                assert seen.pull is None
                return
            registry.bytes_per_second = PULL_BYTES / PULL_SECONDS
            wait_until(
                lambda: seen.claims,
                120,
                "the first user on the new node",
                explain=lambda: seen.pull,
            )
            pull = wait_until(lambda: seen.pull, 10, "the kubelet's word that the image is there")
            registry.bytes_per_second = None
            first = min(seen.claims.values())
            assert pull.version < first.version, (
                "a user claimed the new node before its image was there"
            )
            print(f"first user on the new node {first.moment - pull.moment:.2f} s after its image")  # noqa: T201 - measured
            assert first.moment - pull.moment <= 5.0


def _user(name: str, image: str, priority_class: str) -> dict[str, Any]:
    container = {"name": "notebook", "image": image, "resources": {"requests": REQUESTS}}
    spec = {
        "containers": [container],
        "nodeSelector": {"pool": "user"},
        "priorityClassName": priority_class,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
    }
    return {"metadata": {"name": name, "labels": {"component": "singleuser-server"}}, "spec": spec}


def restart_kubelet(node: RealNode) -> None:
    """Kill it; its pods run on, and the next one asks of each whether it may be there."""
    (pid,) = (
        pid
        for pid in node.pids()
        if b"--hostname-override" in Path(f"/proc/{pid}/cmdline").read_bytes()
    )
    os.kill(pid, signal.SIGKILL)


def test_a_user_who_came_before_the_controllers_saw_the_node_is_not_refused_by_its_kubelet(
    cluster: ControlPlane, registry: RealRegistry, first_node: RealNode, hub: str
) -> None:
    """A kubelet looks at required node terms, too: of each new pod, and of all after a restart."""
    (image,) = images_of(hub, "server-late")
    registry.push_program(_path(image), size_bytes=PULL_BYTES)
    with Stack(cluster, hub, values_for(image), controllers=True) as stack:
        wait_for_labels(cluster, hub, "node-1", {image}, 90)
        priority = next(
            manifest["metadata"]["name"]
            for manifest in stack.manifests
            if manifest.get("value") == 0
        )
        # Leaves no room for another.
        whole = {"cpu": "1500m", "memory": "16Mi"}

        def start_user(name: str) -> None:
            body = _user(name, image, priority)
            body["spec"]["containers"][0]["resources"] = {"requests": whole}
            stack.create_pod(body)

        start_user("ada")
        assert stack.wait_for_node("ada") == "node-1"
        registry.bytes_per_second = 0
        stack.controllers[0].process.kill()
        with RealNode(cluster, "node-2", registry, labels={"pool": "user"}) as node:
            start_user("grace")
            assert stack.wait_for_node("grace") == "node-2"
            stack.start_controllers().wait_leading()
            node_path, label = "/api/v1/nodes/node-2", pulled_label("hub", hub, image)
            wait_until(
                lambda: label in cluster.api.get(node_path)["metadata"]["labels"],
                30,
                "a word about the image",
            )
            restart_kubelet(node)
            registry.bytes_per_second = None
            cluster.wait_for_pod_phase("grace", hub, "Running", 60)


# How a kubelet comes to delete images that no pod uses: by age at its start, by size every ten
# seconds where too little of their disk is free. (By size at imageGCHighThresholdPercent it looks
# every five minutes, and first at the second.)
COLLECTS: Mapping[str, Mapping[str, Any]] = {
    "age": {"imageMaximumGCAge": "2ns"},
    "size": {
        "evictionHard": {"imagefs.available": "40%"},
        "evictionPressureTransitionPeriod": "1s",
    },
}


@pytest.mark.parametrize("by", COLLECTS)
def test_what_a_kubelets_garbage_collection_takes_is_not_what_a_label_says_is_there(
    by: str, cluster: ControlPlane, registry: RealRegistry, hub: str
) -> None:
    image, unused = (*images_of(hub, "server-kept"), registry.reference(f"{hub}/unused:1"))
    registry.push_program(_path(image))
    registry.push(unused, size_bytes=35_000_000)  # kept packed and unpacked
    kubelet = {"imageMinimumGCAge": "1ns", "localStorageCapacityIsolation": True, **COLLECTS[by]}
    alone = {"pool": "user", "collects": by}
    values = values_for(image)
    values["singleuser"]["nodeSelector"] = alone
    with (
        RealNode(
            cluster, f"node-{by}", registry, labels=alone, kubelet=kubelet, disk_bytes=100_000_000
        ) as node,
        Stack(cluster, hub, values, controllers=True),
    ):

        def collect(gone: str) -> None:
            node.ctr("images", "pull", "--plain-http", unused)
            if by == "age":
                restart_kubelet(node)
            wait_until(lambda: gone not in node.images(), 60, f"{gone} to be deleted")

        wait_for_labels(cluster, hub, node.name, {image}, 90)
        collect(unused)
        # The puller's pod uses the hub's. Where room is short it may be evicted; the next one
        # brings the image again.
        assert image in node.images() or by == "size"
        wait_until(lambda: image in node.images(), 120, "the hub's image to be there again")
        wait_for_labels(cluster, hub, node.name, {image}, SYNC_SECONDS)
        required = {pulled_label("hub", hub, image)}
        wait_until(
            lambda: _required_labels(cluster, hub, image) == required,
            20,
            "users to be sent to the node",
        )

        path = f"/apis/apps/v1/namespaces/{hub}/daemonsets"
        (puller,) = cluster.api.list(path)
        nowhere = {"spec": {"template": {"spec": {"nodeSelector": {"pool": "nowhere"}}}}}
        cluster.api.patch(f"{path}/{puller['metadata']['name']}", nowhere)
        wait_until(
            lambda: image not in node.ctr("containers", "list"),
            60,
            "the puller's containers to be gone",
        )
        collect(image)
        wait_for_labels(cluster, hub, node.name, set(), SYNC_SECONDS)
        wait_until(
            lambda: not _required_labels(cluster, hub, image), 20, "users to be sent anywhere"
        )
