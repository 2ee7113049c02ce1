"""Who reads a required node term beside the filter NodeAffinity, and that the gate's term costs
nobody a start there.

Each user could start on a node that is pulling the image, and for a reason that the webhook can't
know not on the one that holds it. What users notice is in docs/image-gate.md. The others:

- Pre-emption looks for victims on open nodes alone. Only placeholders and pullers may be victims.
- Limits of volumes, devices, host ports and anti-affinities may exclude each node that holds the
  images. The pod waits, and the closed node is opened.
- A pod's author may require nodes (node_affinity_required). Terms are ORed, so each gets the
  expression; none gets it if they admit no holder.
- While Kueue holds a pod back, the term stays as it was at creation. Released, the pod waits.
- Karpenter counts all demand: a new node has no label, so NotIn holds.
"""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from roost_core.objects.fields import JSONObject
from tests.builders import requires_nodes
from tests.e2e.controllers.test_gate_never_hides import VALUES, Hub
from tests.e2e.pods import IMAGE
from tests.e2e.spawned import spawned_pod
from tests.harness.api import STRATEGIC
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import require_binary
from tests.harness.nodes import FakeNodes
from tests.harness.waiting import wait_until
from tests.stack import Stack

pytestmark = pytest.mark.e2e

ZONE = "topology.kubernetes.io/zone"
DRIVER = "disks.example.com"
# Shorter than by default, as are all times here.
OPEN_AFTER_SECONDS = 3


class Pool:
    """A node that holds the image, and one that is pulling it, each in a zone of its own; and users
    who go there.
    """

    def __init__(self, hub: Hub, name: str) -> None:
        self.hub = hub
        self.name = name
        self.api = hub.cluster.api
        self.holds, self.pulls = f"holds-{name}", f"pulls-{name}"
        self.selector = {"pool": name}
        hub.hold(self.holds, labels={**self.selector, ZONE: "a"})
        hub.join(self.pulls, labels={**self.selector, ZONE: "b"})
        hub.bind_puller(self.pulls)
        wait_until(
            lambda: self.user("nobody"), 30, "the webhook to know the holder", interval_seconds=0.2
        )

    def user(self, scheduler: str = "", requests: JSONObject | None = None, **spec: Any) -> bool:
        """Post a user's pod; tell whether the gate keeps it off the node that pulls. scheduler: not
        Roost's.
        """
        if scheduler:
            spec["schedulerName"] = scheduler
        name = f"asks-{next(self.hub.numbers)}" if scheduler else self.name
        return self.hub.user(name, requests, **{"nodeSelector": self.selector, **spec})

    @property
    def node(self) -> str:
        return self.hub.node_of(self.name)

    def create(self, kind: str, name: str = "", *, version: str = "v1", **body: Any) -> JSONObject:
        metadata = {"name": name or self.name}
        return self.api.create(
            {"apiVersion": version, "kind": kind, "metadata": metadata, **body}, self.hub.namespace
        )

    def create_pod(self, name: str, component: str, **spec: Any) -> None:
        metadata = {"name": f"{name}-{self.name}", "labels": {"component": component}}
        self.hub.stack.create_pod({"metadata": metadata, "spec": spec})

    def replicate(self, name: str, expression: JSONObject) -> str:
        """A ReplicaSet's only pod, on the node that pulls, which must not match; returns its
        uid.
        """
        labels = {"of": f"{name}-{self.name}"}
        affinity = requires_nodes({"matchExpressions": [expression]})
        spec = {
            "nodeSelector": self.selector,
            "nodeName": self.pulls,
            "affinity": affinity,
            "terminationGracePeriodSeconds": 0,
        }
        template = {
            "metadata": {"labels": labels},
            "spec": {**spec, "containers": [{"name": "main", "image": IMAGE}]},
        }
        whole = {"selector": {"matchLabels": labels}, "template": template}
        self.create("ReplicaSet", labels["of"], version="apps/v1", spec=whole)
        return str(self.replica(name)["metadata"]["uid"])

    def replica(self, name: str) -> JSONObject:
        """That pod, or the one that came in its place."""
        path = f"/api/v1/namespaces/{self.hub.namespace}/pods"
        return wait_until(
            lambda: self.api.list(path, labelSelector=f"of={name}-{self.name}"), 30, f"pod {name}"
        )[0]

    # Volumes

    @property
    def home(self) -> JSONObject:
        return {"volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": self.name}}]}

    @property
    def claim_path(self) -> str:
        return f"/api/v1/namespaces/{self.hub.namespace}/persistentvolumeclaims/{self.name}"

    def claim(self, storage_class: str = "") -> JSONObject:
        resources = {"requests": {"storage": "1Gi"}}
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": resources,
        }
        return self.create("PersistentVolumeClaim", spec=spec)

    def claim_late(self, zone: str) -> JSONObject:
        topology = [{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]}]
        late: JSONObject = {"provisioner": DRIVER, "volumeBindingMode": "WaitForFirstConsumer"}
        self.create("StorageClass", version="storage.k8s.io/v1", allowedTopologies=topology, **late)
        return self.claim(storage_class=self.name)

    def wait_for_choice(self) -> str:
        def chosen() -> str:
            annotations = self.api.get(self.claim_path)["metadata"].get("annotations", {})
            return str(annotations.get("volume.kubernetes.io/selected-node", ""))

        return wait_until(chosen, 30, "the scheduler to choose the volume's node")

    def provide(self, claim: JSONObject, **more: Any) -> None:
        """Play the volume controller: a volume for the claim, and both bound."""
        reference = {
            "kind": "PersistentVolumeClaim",
            "namespace": self.hub.namespace,
            "name": self.name,
        }
        spec = {key: claim["spec"][key] for key in ("accessModes", "storageClassName")}
        spec |= {
            "capacity": {"storage": "1Gi"},
            "claimRef": {**reference, "uid": claim["metadata"]["uid"]},
        }
        self.create(
            "PersistentVolume",
            spec={"csi": {"driver": DRIVER, "volumeHandle": self.name}, **spec, **more},
        )
        bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        self.api.patch(self.claim_path, {"metadata": bound, "spec": {"volumeName": self.name}})
        for path in (self.claim_path, f"/api/v1/persistentvolumes/{self.name}"):
            self.api.patch(f"{path}/status", {"status": {"phase": "Bound"}}, content_type=STRATEGIC)


@pytest.fixture(scope="module")
def hub(control_plane: ControlPlane) -> Iterator[Hub]:
    placeholders = [{"name": "default", "replicas": 0, "resources": {"requests": {"cpu": "3"}}}]
    values = {
        **VALUES,
        "placeholders": placeholders,
        "imageGate": {"openAfterSeconds": OPEN_AFTER_SECONDS},
    }
    namespace = control_plane.create_namespace()
    with (
        FakeNodes(control_plane.api) as nodes,
        Stack(control_plane, namespace, values, controllers=True) as stack,
    ):
        yield Hub(control_plane, namespace, nodes, stack)
    control_plane.api.delete(f"/api/v1/namespaces/{namespace}")


@pytest.fixture
def pool(hub: Hub) -> Pool:
    return Pool(hub, f"{hub.namespace}-{next(hub.numbers)}")


def volume_in_the_other_zone(pool: Pool) -> JSONObject:
    there = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}
    pool.provide(pool.claim(), nodeAffinity={"required": {"nodeSelectorTerms": [there]}})
    return pool.home


def holder_has_all_volumes_that_it_can(pool: Pool) -> JSONObject:
    driver = {
        "name": DRIVER,
        "nodeID": pool.holds,
        "topologyKeys": None,
        "allocatable": {"count": 0},
    }
    pool.create("CSINode", pool.holds, version="storage.k8s.io/v1", spec={"drivers": [driver]})
    pool.provide(pool.claim())
    return pool.home


def device_of_the_other_node(pool: Pool) -> JSONObject:
    version = "resource.k8s.io/v1"
    pool.create("DeviceClass", version=version, spec={})
    offer = {"name": pool.pulls, "generation": 1, "resourceSliceCount": 1}
    devices = {
        "driver": "devices.example.com",
        "nodeName": pool.pulls,
        "pool": offer,
        "devices": [{"name": "one"}],
    }
    pool.create("ResourceSlice", version=version, spec=devices)
    requests = [{"name": "one", "exactly": {"deviceClassName": pool.name}}]
    pool.create("ResourceClaim", version=version, spec={"devices": {"requests": requests}})
    return {"resourceClaims": [{"name": "device", "resourceClaimName": pool.name}]}


def port_that_is_taken(pool: Pool) -> JSONObject:
    web = {"name": "web", "image": "web", "ports": [{"containerPort": 80, "hostPort": 80}]}
    pool.create_pod("web", "web", nodeName=pool.holds, containers=[web])
    return {"initContainers": [{**web, "restartPolicy": "Always"}]}


def neighbour_to_avoid(pool: Pool) -> JSONObject:
    pool.create_pod(
        "exam", "exam", nodeName=pool.holds, containers=[{"name": "main", "image": "exam"}]
    )
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"component": "exam"}},
    }
    return {
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    }


OBSTACLES = (
    volume_in_the_other_zone,
    holder_has_all_volumes_that_it_can,
    device_of_the_other_node,
    port_that_is_taken,
    neighbour_to_avoid,
)


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_what_only_the_scheduler_knows_of_opens_the_node_that_pulls(
    obstacle: Callable[[Pool], JSONObject], pool: Pool
) -> None:
    assert pool.user(**obstacle(pool)) is True
    assert pool.node == pool.pulls


def test_where_the_first_node_that_is_opened_is_the_wrong_one_the_others_follow(pool: Pool) -> None:
    obstacle = volume_in_the_other_zone(pool)
    pool.hub.nodes.set_labels(pool.pulls, {ZONE: "c"})
    right = f"right-{pool.name}"
    # Longer ready by a second, to which times are written.
    time.sleep(1.1)
    pool.hub.join(right, labels={**pool.selector, ZONE: "b"})
    pool.hub.bind_puller(right)
    assert pool.user(**obstacle) is True
    pool.hub.wait_for_value(pool.pulls, "open")
    assert pool.hub.value(right) == "pulling"
    assert pool.node == right


def test_a_claim_is_provisioned_where_the_gate_lets_its_user_go(pool: Pool) -> None:
    """The binder writes its node into the claim, whose volume stays there for good."""
    claim = pool.claim_late("b")
    assert pool.user(**pool.home) is True
    assert pool.wait_for_choice() == pool.pulls
    pool.provide(claim)
    assert pool.node == pool.pulls


def test_a_node_that_a_volume_is_made_for_is_not_closed_to_the_user_who_waits_for_it(
    pool: Pool,
) -> None:
    """Until the volume is there the pod isn't bound; closed, the node's kubelet would refuse it
    then.
    """
    hub, claim = pool.hub, pool.claim_late("b")
    controllers = hub.stack.controllers[-1].process
    controllers.freeze()
    hub.nodes.set_labels(pool.pulls, {hub.label: None})
    assert pool.user(**pool.home) is True
    assert pool.wait_for_choice() == pool.pulls
    controllers.resume()
    hub.wait_for_value(pool.pulls, "open")
    pool.provide(claim)
    assert pool.node == pool.pulls


def test_a_user_nominated_to_a_node_whose_placeholder_does_not_go_is_bound_elsewhere(
    pool: Pool,
) -> None:
    """Without a kubelet, the placeholder's grace never ends."""
    hub, requests = pool.hub, {"cpu": "3"}
    priority = next(
        manifest
        for manifest in hub.stack.manifests
        if manifest["kind"] == "PriorityClass" and manifest["value"] < -5
    )
    pool.create_pod(
        "placeholder",
        "user-placeholder",
        terminationGracePeriodSeconds=600,
        priorityClassName=priority["metadata"]["name"],
        nodeSelector={**pool.selector, ZONE: "a"},
        containers=[{"name": "main", "image": "pause", "resources": {"requests": requests}}],
    )
    assert hub.node_of(f"placeholder-{pool.name}") == pool.holds
    assert pool.user(requests=requests) is True
    found = hub.cluster.wait_for_pod(
        pool.name,
        hub.namespace,
        lambda pod: bool(pod["status"].get("nominatedNodeName")),
        "be nominated",
    )
    assert found["status"]["nominatedNodeName"] == pool.holds
    assert pool.node == pool.pulls


def test_a_pod_that_others_hold_back_is_not_hurt_by_what_has_changed_meanwhile(pool: Pool) -> None:
    """As Kueue does: the pod waits with a scheduling gate, and is let go with a node selector."""
    assert pool.user(schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]) is True
    pool.hub.nodes.cordon(pool.holds)
    more = {"schedulingGates": None, "nodeSelector": {"kubernetes.io/os": "linux"}}
    pool.api.patch(f"/api/v1/namespaces/{pool.hub.namespace}/pods/{pool.name}", {"spec": more})
    assert pool.node == pool.pulls


def test_a_daemon_sets_pods_come_to_the_node_that_pulls_too(pool: Pool) -> None:
    """Its controller reads required node terms, and makes no pod where they don't match."""
    labels = {"component": "singleuser-server", "of": pool.name}
    container = {"name": "main", "image": IMAGE}
    spec = {"nodeSelector": pool.selector, "schedulerName": pool.hub.stack.scheduler_name("user")}
    template = {"metadata": {"labels": labels}, "spec": {**spec, "containers": [container]}}
    pool.create(
        "DaemonSet",
        version="apps/v1",
        spec={"selector": {"matchLabels": labels}, "template": template},
    )
    path = f"/api/v1/namespaces/{pool.hub.namespace}/pods"

    def nodes() -> set[str]:
        return {
            body["spec"].get("nodeName", "")
            for body in pool.api.list(path, labelSelector=f"of={pool.name}")
        }

    wait_until(lambda: nodes() == {pool.holds, pool.pulls}, 30, "a pod on each node", explain=nodes)


def test_a_descheduler_evicts_no_user_of_the_gate(pool: Pool) -> None:
    """It evicts pods of nodes that don't match their required terms any more, if another node
    does.
    """
    violated = {"key": ZONE, "operator": "NotIn", "values": ["b"]}
    gate = {"key": pool.hub.label, "operator": "NotIn", "values": ["pulling"]}
    uids = {
        name: pool.replicate(name, expression)
        for name, expression in (("moved", violated), ("kept", gate))
    }
    pool.hub.wait_for_value(pool.pulls, "open")
    command = [str(require_binary("descheduler")), f"--kubeconfig={pool.hub.cluster.kubeconfig}"]
    command += [
        f"--policy-config-file={_write_policy(pool)}",
        "--disable-metrics",
        "--secure-port=0",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert pool.replica("moved")["metadata"]["uid"] != uids["moved"]
    assert pool.replica("kept")["metadata"]["uid"] == uids["kept"]


def _write_policy(pool: Pool) -> Path:
    plugin = "RemovePodsViolatingNodeAffinity"
    kinds = ["requiredDuringSchedulingIgnoredDuringExecution"]
    arguments = {"nodeAffinityType": kinds, "namespaces": {"include": [pool.hub.namespace]}}
    profile = {
        "name": "terms",
        "pluginConfig": [{"name": "DefaultEvictor"}, {"name": plugin, "args": arguments}],
        "plugins": {"deschedule": {"enabled": [plugin]}},
    }
    policy = {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "profiles": [profile],
    }
    path = pool.hub.cluster.folder / "descheduler.json"
    path.write_text(json.dumps(policy))
    return path


def test_no_quota_refuses_the_terms(pool: Pool) -> None:
    scopes = [{"scopeName": "CrossNamespacePodAffinity", "operator": "Exists"}]
    pool.create(
        "ResourceQuota", spec={"hard": {"pods": "0"}, "scopeSelector": {"matchExpressions": scopes}}
    )
    assert pool.user() is True
    assert pool.node == pool.holds


@pytest.mark.parametrize(("zones", "is_held"), [(["b"], False), (["b", "a"], True)])
def test_kubespawners_required_terms_stay_and_each_is_gated_if_one_admits_a_holder(
    zones: list[str], is_held: bool, pool: Pool
) -> None:
    hub = pool.hub
    terms = [
        {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]} for zone in zones
    ]
    traits = {"node_affinity_required": terms, "node_selector": pool.selector, "image": IMAGE}
    body = spawned_pod(
        f"ada-{len(zones)}", hub.cluster.kubeconfig, namespace=hub.namespace, **traits
    )
    stored = hub.stack.create_pod(body)
    required = stored["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    gate = {"key": hub.label, "operator": "NotIn", "values": ["pulling"]}
    gated = [term["matchExpressions"] for term in required["nodeSelectorTerms"]]
    assert gated == [[*term["matchExpressions"], *([gate] if is_held else [])] for term in terms]
    assert hub.node_of(stored["metadata"]["name"]) == (pool.holds if is_held else pool.pulls)
