"""Fill a real API server with a large cluster in seconds: nodes as kubelets report them, pods as
hubs make them.

The large scene of benchmarks. Of what is stored, one object of each kind goes through the API
server, so it has all defaults and managed fields; its copies are written straight into etcd, with
names, uids and places of their own. `all_pods` makes the rest in memory.
"""

from __future__ import annotations

import base64
import copy
import http.client
import json
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from benchmarks.policy import IMAGES, RELEASE, pulled_labels, rendered
from benchmarks.stage import make_pods
from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import scheduler_name
from tests.harness.api import STRATEGIC
from tests.harness.pods import running_status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tests.harness.controlplane import ControlPlane


NAMESPACE: Final = "bench-scene"
# What a user runs beside the managed image: BinderHub's builds.
BUILT_IMAGES: Final = 2000
IMAGES_A_NODE: Final = 50
DAEMONS: Final = ("kube-proxy", "network", "storage", "monitoring")
OBJECTS_A_WRITE: Final = 40
PARALLEL_WRITES: Final = 4
MOMENT: Final = "2026-11-20T08:00:00Z"
GIB: Final = 2**30
OWNER_UID: Final = "owner"
SET_NAME: Final = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large: all nodes are alike, `pods` counts everything that runs on them."""

    nodes: int
    pods: int
    # Share of the pods beside daemons and pullers that are placeholders.
    placeholder_share: float = 0.1

    @property
    def placeholders(self) -> int:
        """Placeholders on all nodes together."""
        return int((self.pods - self.nodes * (len(DAEMONS) + 1)) * self.placeholder_share)

    @property
    def users_in_all(self) -> int:
        """Users on all nodes together."""
        return self.pods - self.nodes * (len(DAEMONS) + 1) - self.placeholders


def manifests(size: Size, *settings: str, learn: JSONObject | None = None) -> list[JSONObject]:
    """What `roost render` gives for a hub of this size, with all controllers on.

    settings: `--set` pairs. learn: of the placeholder set.
    """
    learning = {} if learn is None else {"learn": learn}
    placeholders = [{"name": SET_NAME, "replicas": size.placeholders, **learning}]
    return rendered(
        NAMESPACE,
        "popularImages.enabled=true",
        *settings,
        json_settings=[f"placeholders={json.dumps(placeholders)}"],
    )


# Shapes: one of each kind, whole


def make_shapes(hub: Iterable[JSONObject]) -> dict[str, JSONObject]:
    """One object of each kind, running, as far as the manifests say: `node`, `user`, `placeholder`,
    `puller`, `daemon`.
    """
    found = {(manifest["kind"], manifest["metadata"]["name"]): manifest for manifest in hub}
    stateful_set = next(manifest for (kind, _), manifest in found.items() if kind == "StatefulSet")
    puller = next(manifest for (kind, _), manifest in found.items() if kind == "DaemonSet")
    shapes = {
        "node": _node(),
        "user": _user(),
        "placeholder": _pod_of(
            stateful_set,
            {
                "apps.kubernetes.io/pod-index": "0",
                "statefulset.kubernetes.io/pod-name": "placeholder-0",
            },
        ),
        "puller": _pod_of(puller, {"pod-template-generation": "1"}),
        "daemon": _daemon(),
    }
    for name, shape in shapes.items():
        if name != "node":
            shape["spec"]["nodeName"] = "node"
            shape["status"] = {**running_status(shape, "10.128.0.2"), "hostIP": "10.0.0.2"}
    return shapes


def store_shapes(cluster: ControlPlane, shapes: Mapping[str, JSONObject]) -> dict[str, JSONObject]:
    """Send each through the API server once, as its authors would; what is then stored."""
    stored: dict[str, JSONObject] = {}
    api = cluster.api
    for name, shape in shapes.items():
        namespace = shape["metadata"].get("namespace")
        body = {key: part for key, part in shape.items() if key != "status"}
        path = api.path_of(shape)
        api.create(body, fieldManager="hub")
        api.patch(
            f"{path}/status",
            {"status": shape["status"]},
            content_type=STRATEGIC,
            fieldManager="kubelet",
        )
        if name == "node":
            # The API server taints new nodes as not ready.
            api.patch(path, {"spec": {"taints": None}}, fieldManager="node-controller")
        stored[name] = api.get(path)
        api.delete(path, {"gracePeriodSeconds": 0}) if namespace else api.delete(path)
    return stored


def _node() -> JSONObject:
    resources = {
        "cpu": "16",
        "memory": "65809940Ki",
        "pods": "110",
        "ephemeral-storage": "101430960Ki",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
    }
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/instance-type": "n2-highmem-16",
        "beta.kubernetes.io/os": "linux",
        "cloud.google.com/gke-boot-disk": "pd-balanced",
        "cloud.google.com/gke-nodepool": "users",
        "cloud.google.com/machine-family": "n2",
        "failure-domain.beta.kubernetes.io/region": "europe-west3",
        "failure-domain.beta.kubernetes.io/zone": "europe-west3-a",
        "hub.jupyter.org/node-purpose": "user",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": "node",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "n2-highmem-16",
        "topology.kubernetes.io/region": "europe-west3",
        "topology.kubernetes.io/zone": "europe-west3-a",
        **dict.fromkeys(pulled_labels(NAMESPACE), "true"),
    }
    conditions = [
        {
            "type": kind,
            "status": "True" if kind == "Ready" else "False",
            "reason": f"Kubelet{kind}",
            "message": f"kubelet says so of {kind}",
            "lastHeartbeatTime": MOMENT,
            "lastTransitionTime": MOMENT,
        }
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    info = dict.fromkeys(
        ("machineID", "systemUUID", "bootID"), "6f1d0d2a-0b6d-4c28-9f0e-53a4a4b90d11"
    ) | {
        "kernelVersion": "6.12.48",
        "osImage": "Container-Optimized OS",
        "containerRuntimeVersion": "containerd://2.1.4",
        "kubeletVersion": "v1.36.0",
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": "amd64",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node", "labels": labels},
        "spec": {"podCIDR": "10.128.0.0/24", "providerID": "gce://project/europe-west3-a/node"},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": conditions,
            "addresses": [
                {"type": "InternalIP", "address": "10.0.0.2"},
                {"type": "Hostname", "address": "node"},
            ],
            "nodeInfo": info,
            "images": images_of(0),
        },
    }


def images_of(number: int) -> list[JSONObject]:
    """`status.images` of one node: the managed images, the daemons', and what BinderHub's users
    left.
    """
    draw = random.Random(number)  # noqa: S311 (the same cluster in each run)
    names = [*IMAGES, *(f"registry.k8s.io/{daemon}:v1" for daemon in DAEMONS)]
    names += [
        built_image(index) for index in draw.sample(range(BUILT_IMAGES), IMAGES_A_NODE - len(names))
    ]
    return [
        {
            "names": [f"{name.rpartition(':')[0]}@sha256:{_digest(name)}", name],
            "sizeBytes": 2 * GIB + place,
        }
        for place, name in enumerate(names)
    ]


def built_image(number: int) -> str:
    """A reference as BinderHub makes them."""
    tag = _digest(str(number))[:40]
    return f"registry.example/binder/r2d-benchmark-2dorg-2drepository-{number}:{tag}"


def _digest(text: str) -> str:
    return random.Random(text).randbytes(32).hex()  # noqa: S311 (a stand-in)


def _user() -> JSONObject:
    pod: JSONObject = copy.deepcopy(make_pods()[0])
    pod["metadata"] |= {"namespace": NAMESPACE, "name": "jupyter-margaret"}
    spec = pod["spec"]
    spec["schedulerName"] = scheduler_name(RELEASE, NAMESPACE, "user")
    affinity = spec["affinity"]
    terms = [
        {"key": label, "operator": "In", "values": ["true"]} for label in pulled_labels(NAMESPACE)
    ]
    affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = {
        "nodeSelectorTerms": [{"matchExpressions": terms}]
    }
    together = {
        "labelSelector": {"matchLabels": {"component": "singleuser-server"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    affinity["podAffinity"] = {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "podAffinityTerm": together}
        ]
    }
    return pod


def _pod_of(owner: JSONObject, labels: Mapping[str, str]) -> JSONObject:
    template: JSONObject = copy.deepcopy(owner["spec"]["template"])
    controller = {
        "apiVersion": "apps/v1",
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": OWNER_UID,
    }
    metadata = {
        "name": f"{owner['metadata']['name']}-0",
        "namespace": NAMESPACE,
        "labels": {
            **template["metadata"]["labels"],
            "controller-revision-hash": "hub-7d9c5b",
            **labels,
        },
        "annotations": template["metadata"].get("annotations") or {},
        "ownerReferences": [{**controller, "controller": True, "blockOwnerDeletion": True}],
    }
    spec = template["spec"]
    # Classes and accounts of the manifests needn't exist here.
    for key in ("priorityClassName", "serviceAccountName"):
        spec.pop(key, None)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _daemon() -> JSONObject:
    container = {
        "name": "daemon",
        "image": "registry.k8s.io/kube-proxy:v1",
        "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}},
        "volumeMounts": [{"name": "modules", "mountPath": "/lib/modules", "readOnly": True}],
    }
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node"]}]}]
    node_affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    owner = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "name": "daemon",
        "uid": OWNER_UID,
        "controller": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "daemon-node",
            "namespace": "kube-system",
            "labels": {
                "k8s-app": "daemon",
                "controller-revision-hash": "7d9c5b",
                "pod-template-generation": "1",
            },
            "ownerReferences": [owner],
        },
        "spec": {
            "affinity": {"nodeAffinity": node_affinity},
            "containers": [container],
            "hostNetwork": True,
            "tolerations": [{"operator": "Exists"}],
            "volumes": [{"name": "modules", "hostPath": {"path": "/lib/modules", "type": ""}}],
        },
    }


# Copies


def node_name(number: int) -> str:
    """A node of the scene."""
    return f"gke-hub-users-{number:05d}"


def all_nodes(shapes: Mapping[str, JSONObject], size: Size) -> Iterator[JSONObject]:
    """Every node."""
    for number in range(size.nodes):
        yield one_node(shapes["node"], number)


def one_node(shape: JSONObject, number: int) -> JSONObject:
    """A node by its number."""
    name = node_name(number)
    body = _copy(shape, name, f"node-{number}")
    body["metadata"]["labels"] = {**shape["metadata"]["labels"], "kubernetes.io/hostname": name}
    body["status"] = {**shape["status"], "images": images_of(number)}
    return body


def all_pods(shapes: Mapping[str, JSONObject], size: Size) -> Iterator[JSONObject]:
    """Every pod: daemons and a puller on each node, users and placeholders over all of them in
    turn.
    """
    for number in range(size.nodes):
        for daemon in DAEMONS:
            yield _bound(shapes["daemon"], f"{daemon}-{number}", number)
        yield _bound(shapes["puller"], f"puller-{number}", number)
    for number in range(size.users_in_all):
        yield one_user(shapes["user"], number, number % size.nodes)
    for number in range(size.placeholders):
        owner = shapes["placeholder"]["metadata"]["ownerReferences"][0]["name"]
        yield _bound(shapes["placeholder"], f"{owner}-{number}", number % size.nodes)


def one_user(shape: JSONObject, number: int, node: int) -> JSONObject:
    """A user's pod; every second one runs an image that BinderHub built."""
    body = _bound(shape, f"jupyter-user-{number}", node)
    metadata = body["metadata"]
    spec = body["spec"]
    metadata["labels"] = {**metadata["labels"], "hub.jupyter.org/username": f"user-{number}"}
    if number % 2:
        image = built_image(number % BUILT_IMAGES)
        spec["containers"] = [{**spec["containers"][0], "image": image}]
        statuses = [{**body["status"]["containerStatuses"][0], "image": image, "imageID": image}]
        body["status"] = {**body["status"], "containerStatuses": statuses}
    volumes = [
        (
            {**volume, "persistentVolumeClaim": {"claimName": f"claim-user-{number}"}}
            if "persistentVolumeClaim" in volume
            else volume
        )
        for volume in spec["volumes"]
    ]
    spec["volumes"] = volumes
    return body


def _bound(shape: JSONObject, name: str, node: int) -> JSONObject:
    body = _copy(shape, name, f"{shape['metadata']['namespace']}/{name}")
    body["spec"] = {**shape["spec"], "nodeName": node_name(node)}
    fields = [{"key": "metadata.name", "operator": "In", "values": [node_name(node)]}]
    if "k8s-app" in shape["metadata"]["labels"]:
        required = {"nodeSelectorTerms": [{"matchFields": fields}]}
        body["spec"]["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
        }
    return body


def _copy(shape: JSONObject, name: str, seed: str) -> JSONObject:
    uid = random.Random(seed).randbytes(16).hex()  # noqa: S311 (the same cluster in each run)
    uid = f"{uid[:8]}-{uid[8:12]}-{uid[12:16]}-{uid[16:20]}-{uid[20:]}"
    metadata = {**shape["metadata"], "name": name, "uid": uid, "creationTimestamp": MOMENT}
    metadata.pop("resourceVersion", None)
    return {"apiVersion": "v1", "kind": shape.get("kind", "Pod"), **shape, "metadata": metadata}


# Into etcd


def write_to_etcd(
    etcd_url: str, bodies: Iterable[JSONObject], *, are_watched: bool = False
) -> None:
    """Write nodes and pods as they are, past admission.

    The API server reads JSON as well as its own form. are_watched: a program watches them already.
    Then each has a transaction of its own: what one transaction wrote has one resourceVersion, and
    a watch tells only the first object of it.
    """
    address = urlsplit(etcd_url)

    def write(batch: list[JSONObject]) -> None:
        puts = [
            {"requestPut": {"key": _base64(_key(pod)), "value": _base64(json.dumps(pod))}}
            for pod in batch
        ]
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
        try:
            connection.request("POST", "/v3/kv/txn", json.dumps({"success": puts}))
            answer = connection.getresponse()
            said = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise RuntimeError(f"etcd: {answer.status} {said[:500]!r}")

    with ThreadPoolExecutor(PARALLEL_WRITES) as pool:
        list(pool.map(write, _batches(bodies, 1 if are_watched else OBJECTS_A_WRITE)))


def _batches(bodies: Iterable[JSONObject], size: int) -> Iterator[list[JSONObject]]:
    batch: list[JSONObject] = []
    for body in bodies:
        batch.append(body)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _key(body: JSONObject) -> str:
    metadata = body["metadata"]
    if body["kind"] == "Node":
        return f"/registry/minions/{metadata['name']}"
    return f"/registry/pods/{metadata['namespace']}/{metadata['name']}"


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
