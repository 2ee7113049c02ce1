"""Who reads a required node term beside the filter NodeAffinity, and that the gate's term costs nobody a start there.

Each user could start on a node that is pulling the image, and for a reason that the webhook can't know not on the one
that holds it. Rows of the table in docs/placement.md.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e.controllers.test_gate_never_hides import IMAGE, VALUES, Hub, wait_for_facts
from tests.e2e.spawned import spawned_pod
from tests.harness.api import STRATEGIC, Object
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.waiting import wait_until
from tests.stack import Stack

pytestmark = pytest.mark.e2e

ZONE = "topology.kubernetes.io/zone"
DRIVER = "disks.example.com"
# Shorter than by default, as are all times here.
OPEN_AFTER_SECONDS = 3


@pytest.fixture
def hub(control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes) -> Iterator[Hub]:
    """A node that holds the image, and one that is pulling it, each in a zone of its own."""
    placeholders = [{"name": "default", "replicas": 0, "resources": {"requests": {"cpu": "3"}}}]
    values = {**VALUES, "placeholders": placeholders, "imageGate": {"openAfterSeconds": OPEN_AFTER_SECONDS}}
    with Stack(control_plane, namespace, values, controllers=True) as stack:
        hub = Hub(control_plane, namespace, fake_nodes, stack)
        hub.hold("holds", labels={ZONE: "a"})
        hub.join("pulls", labels={ZONE: "b"})
        hub.bind_puller("pulls")
        wait_for_facts(hub)
        yield hub


def create(hub: Hub, kind: str, name: str, *, version: str = "v1", **body: Any) -> Object:
    """One more object; those of the cluster carry the namespace in their names, and go with the control plane."""
    return hub.cluster.api.create(
        {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **body}, hub.namespace
    )


def make_volume(hub: Hub, claim: Object, **more: Any) -> None:
    """Play the volume controller: a volume for the claim, and both bound."""
    name, metadata = f"home-{hub.namespace}", claim["metadata"]
    reference = {"kind": "PersistentVolumeClaim", **{key: metadata[key] for key in ("name", "namespace", "uid")}}
    spec = {**claim["spec"], "capacity": {"storage": "1Gi"}, "claimRef": reference, **more}
    spec.pop("resources", None)
    create(hub, "PersistentVolume", name, spec={"csi": {"driver": DRIVER, "volumeHandle": name}, **spec})
    path = f"/api/v1/namespaces/{hub.namespace}/persistentvolumeclaims/home"
    bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    hub.cluster.api.patch(path, {"metadata": bound, "spec": {"volumeName": name}})
    for kind in (path, f"/api/v1/persistentvolumes/{name}"):
        hub.cluster.api.patch(f"{kind}/status", {"status": {"phase": "Bound"}}, content_type=STRATEGIC)


def make_claim(hub: Hub, storage_class: str = "") -> Object:
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": storage_class, "resources": resources}
    return create(hub, "PersistentVolumeClaim", "home", spec=spec)


HOME: Object = {"volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": "home"}}]}


def volume_in_the_other_zone(hub: Hub) -> Object:
    there = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}
    make_volume(hub, make_claim(hub), nodeAffinity={"required": {"nodeSelectorTerms": [there]}})
    return HOME


def holder_has_all_volumes_that_it_can(hub: Hub) -> Object:
    driver = {"name": DRIVER, "nodeID": "holds", "topologyKeys": None, "allocatable": {"count": 0}}
    create(hub, "CSINode", "holds", version="storage.k8s.io/v1", spec={"drivers": [driver]})
    make_volume(hub, make_claim(hub))
    return HOME


def device_of_the_other_node(hub: Hub) -> Object:
    group, name = "resource.k8s.io/v1", f"devices-{hub.namespace}"
    create(hub, "DeviceClass", name, version=group, spec={})
    pool = {"name": "pulls", "generation": 1, "resourceSliceCount": 1}
    slice_spec = {"driver": "devices.example.com", "nodeName": "pulls", "pool": pool, "devices": [{"name": "one"}]}
    create(hub, "ResourceSlice", name, version=group, spec=slice_spec)
    requests = [{"name": "one", "exactly": {"deviceClassName": name}}]
    create(hub, "ResourceClaim", "device", version=group, spec={"devices": {"requests": requests}})
    return {"resourceClaims": [{"name": "device", "resourceClaimName": "device"}]}


def port_that_is_taken(hub: Hub) -> Object:
    ports = [{"containerPort": 80, "hostPort": 80}]
    taken = {"nodeName": "holds", "containers": [{"name": "main", "image": "web", "ports": ports}]}
    hub.stack.create_pod({"metadata": {"name": "web"}, "spec": taken})
    return {"initContainers": [{"name": "web", "image": "web", "restartPolicy": "Always", "ports": ports}]}


def neighbour_to_avoid(hub: Hub) -> Object:
    taken = {"nodeName": "holds", "containers": [{"name": "main", "image": "exam"}]}
    hub.stack.create_pod({"metadata": {"name": "exam", "labels": {"exam": "yes"}}, "spec": taken})
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"exam": "yes"}}}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


@pytest.mark.parametrize(
    "obstacle",
    [
        volume_in_the_other_zone,
        holder_has_all_volumes_that_it_can,
        device_of_the_other_node,
        port_that_is_taken,
        neighbour_to_avoid,
    ],
)
def test_what_only_the_scheduler_knows_of_opens_the_node_that_pulls(
    obstacle: Callable[[Hub], Object], hub: Hub
) -> None:
    assert hub.user("ada", **obstacle(hub)) is True
    assert hub.node_of("ada") == "pulls"


def test_a_claim_is_provisioned_where_the_gate_lets_its_user_go(hub: Hub) -> None:
    """The binder writes its node into the claim, whose volume stays there for good."""
    storage_class = f"zonal-{hub.namespace}"
    topology = [{"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}]}]
    late = {"provisioner": DRIVER, "volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": topology}
    create(hub, "StorageClass", storage_class, version="storage.k8s.io/v1", **late)
    claim = make_claim(hub, storage_class)
    assert hub.user("ada", **HOME) is True
    path = f"/api/v1/namespaces/{hub.namespace}/persistentvolumeclaims/home"

    def chosen() -> str:
        annotations = hub.cluster.api.get(path)["metadata"].get("annotations", {})
        return str(annotations.get("volume.kubernetes.io/selected-node", ""))

    assert wait_until(chosen, 30, "the scheduler to choose the volume's node") == "pulls"
    make_volume(hub, claim)
    assert hub.node_of("ada") == "pulls"


def test_a_user_nominated_to_a_node_whose_placeholder_does_not_go_is_bound_elsewhere(hub: Hub) -> None:
    """Without a kubelet, the placeholder's grace never ends."""
    priority = next(one for one in hub.stack.manifests if one["kind"] == "PriorityClass" and one["value"] < -5)
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": "3"}}}
    spec = {"terminationGracePeriodSeconds": 600, "containers": [container], "nodeSelector": {ZONE: "a"}}
    labels = {"component": "user-placeholder"}
    hub.stack.create_pod(
        {
            "metadata": {"name": "placeholder", "labels": labels},
            "spec": {**spec, "priorityClassName": priority["metadata"]["name"]},
        }
    )
    assert hub.node_of("placeholder") == "holds"
    assert hub.user("ada", {"cpu": "3"}) is True
    found = hub.cluster.wait_for_pod(
        "ada", hub.namespace, lambda pod: bool(pod["status"].get("nominatedNodeName")), "be nominated"
    )
    assert found["status"]["nominatedNodeName"] == "holds"
    assert hub.node_of("ada") == "pulls"


def test_a_pod_that_others_hold_back_is_not_hurt_by_what_has_changed_meanwhile(hub: Hub) -> None:
    """As Kueue does: the pod waits with a scheduling gate, and is let go with a node selector."""
    assert hub.user("ada", schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]) is True
    hub.nodes.cordon("holds")
    path = f"/api/v1/namespaces/{hub.namespace}/pods/ada"
    hub.cluster.api.patch(path, {"spec": {"schedulingGates": None, "nodeSelector": {"kubernetes.io/os": "linux"}}})
    assert hub.node_of("ada") == "pulls"


@pytest.mark.parametrize(("zones", "node"), [(["b"], "pulls"), (["b", "a"], "holds")])
def test_kubespawners_required_terms_stay_and_each_is_gated_if_one_admits_a_holder(
    zones: list[str], node: str, hub: Hub
) -> None:
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]} for zone in zones]
    body = spawned_pod(
        "ada", hub.cluster.kubeconfig, image=IMAGE, namespace=hub.namespace, node_affinity_required=terms
    )
    stored = hub.stack.create_pod(body)
    required = stored["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    gate = {"key": hub.label, "operator": "NotIn", "values": ["pulling"]}
    gated = [term["matchExpressions"] for term in required["nodeSelectorTerms"]]
    assert gated == [[*term["matchExpressions"], *([gate] if node == "holds" else [])] for term in terms]
    assert hub.node_of(stored["metadata"]["name"]) == node
