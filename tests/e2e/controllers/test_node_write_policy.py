"""What the controllers' account may write, on a real API server: it tries to escape, holding every right there is."""

import copy
import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from generator.values.release import Release
from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.popular_images.pull_pods import PopularPull, pull_pod
from roost.controllers.popular_images.settings import read_popular_settings
from roost_core.placement import labels
from roost_core.release.reader import Reader
from tests.builders import REQUIRED
from tests.harness.api import JSON, MERGE, STRATEGIC, Api, ApiError
from tests.harness.binaries import MINORS, NEWEST_MINOR
from tests.harness.controlplane import CONTROLLERS, ControlPlane
from tests.harness.fixtures import require_binary
from tests.harness.nodes import FakeNodes
from tests.harness.waiting import wait_until
from tests.parity.renderers import roost_render
from tests.popular_builders import node_state

pytestmark = pytest.mark.e2e

RELEASE = "hub"
ACCOUNT = "hub-roost-controllers"
IMAGE = "quay.io/jupyter/base-notebook:2026"
# On the namespaces of the release's hubs.
HUB = {"example.org/hub": "yes"}
VALUES: dict[str, Any] = {
    "podClasses": {"user": {"match": {"namespaceSelector": {"matchLabels": HUB}}}},
    "imageGate": {"mode": "startupTaint"},
    "popularImages": {"enabled": True},
    "imagePullSecrets": ["registry"],
    "commonLabels": {"example.org/team": "hubs"},
    "prePuller": {"annotations": {"sidecar.istio.io/inject": "false"}},
    "placeholders": [
        {
            "name": "default",
            "replicas": 0,
            "windows": [{"name": "w", "timeZone": "UTC", "start": "0 8 1 1 *", "end": "0 9 1 1 *", "replicas": 7}],
            "resources": {"requests": {"memory": "1Gi"}},
        },
        {
            "name": "learns",
            "replicas": 0,
            "learn": {"quantile": 0.9, "min": 0, "max": 1, "timeZone": "UTC"},
            "resources": {"requests": {"memory": "1Gi"}},
        },
    ],
    "singleuser": {"image": {"name": "quay.io/jupyter/base-notebook", "tag": "2026", "pullSecrets": ["users"]}},
}
FOREIGN = {"key": "example.org/gpu", "value": "yes", "effect": "NoSchedule"}
POLICIES = ("nodes", "namespaced", "pods", "webhook", "secrets")
JSON_PATCH = "application/json-patch+json"
STAY = ["example.org/stay"]
CA, LEAF = "hub-roost-webhook-ca", "hub-roost-webhook-leaf"
TOKEN = "kubernetes.io/service-account-token"
FOR_ACCOUNT = {"kubernetes.io/service-account.name": "hub-roost-webhook"}
PEM = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1BPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
OWN_EVENT = {labels.PART_OF_LABEL: labels.OWN_PART}
Body = Any


class Case(NamedTuple):
    """A namespace with the release in it, a node, and a namespace of one of the release's hubs."""

    admin: Api
    # The rendered account: with its own rights, or with all.
    account: Api
    namespace: str
    node: str
    hub: str
    # A pod that pulls, as the controllers make it under the rendered settings.
    puller: Body

    def path(self, kind: str, name: str = "") -> str:
        return f"/api/v1/namespaces/{self.namespace}/{kind}{name and '/'}{name}"

    @property
    def node_path(self) -> str:
        return f"/api/v1/nodes/{self.node}"


class Write(NamedTuple):
    method: str
    path: str
    body: Body = None
    content_type: str = MERGE


def patch(path: str, body: Body, content_type: str = MERGE) -> Write:
    return Write("PATCH", path, body, content_type)


def metadata(path: str, **keys: Body) -> Write:
    return patch(path, {"metadata": keys})


def manifests_of(namespace: str, folder: Path, values: dict[str, Any], minor: str) -> str:
    """What is rendered, as far as a bare API server knows its kinds."""
    file = folder / "values.yaml"
    file.write_text(json.dumps(values))
    objects = roost_render([file], Release(RELEASE, namespace, f"v{minor.removeprefix('v')}.0"))
    unknown = ("monitoring.coreos.com", "readiness.node.x-k8s.io", "autoscaling.x-k8s.io")
    known = [body for key, body in objects.items() if not key[0].startswith(unknown)]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": known})


def install(cluster: ControlPlane, namespace: str, folder: Path, values: dict[str, Any], minor: str) -> Iterator[Api]:
    """Render, apply, and give the account's way in once its policies are at work."""
    manifests = manifests_of(namespace, folder, values, minor)
    cluster.kubectl("apply", "--filename=-", input=manifests)
    account = cluster.api_as(cluster.service_account_token(namespace, ACCOUNT))
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"all-rights-{namespace}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
    }
    cluster.api.create(binding)
    try:
        wait_until(lambda: policies_work(cluster, account, namespace), 30.0, "the policies to be at work")
        yield account
    finally:
        cluster.api.delete(f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/all-rights-{namespace}")
        cluster.kubectl("delete", "--filename=-", "--wait", input=manifests)


def policies_work(cluster: ControlPlane, account: Api, namespace: str) -> bool:
    pod = {"metadata": {"name": "probe"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    probes = (
        Write("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "probe"}}),
        Write("POST", f"/api/v1/namespaces/{namespace}/pods", {"apiVersion": "v1", "kind": "Pod", **pod}),
        eviction(namespace, "probe"),
        event("probe", namespace),
        scale(set_path(namespace), 1000),
        lease("probe", namespace),
        secret("probe", namespace),
        metadata(webhook_path(namespace), labels={"a": "b"}),
    )
    return all("ValidatingAdmissionPolicy" in refusal(account, probe) for probe in probes)


def set_path(namespace: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace}/statefulsets/hub-roost-placeholder-default"


def scale(path: str, replicas: int) -> Write:
    return patch(f"{path}/scale", {"spec": {"replicas": replicas}})


def lease(name: str, namespace: str, spec: Body = None, **keys: Body) -> Write:
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name, **keys}}
    return Write("POST", f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases", {**body, "spec": spec or {}})


def secret(name: str, namespace: str, *, kind: str = "Opaque", data: Body = None, **metadata: Body) -> Write:
    body = {"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": {"name": name, **metadata}}
    return Write("POST", f"/api/v1/namespaces/{namespace}/secrets", {**body, "data": data or {}})


def webhook_path(namespace: str) -> str:
    name = labels.cluster_object_name(RELEASE, namespace, "webhook")
    return f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{name}"


def refusal(account: Api, write: Write) -> str:
    """What the API server says against a write, tried as a dry run; "" when it takes it."""
    content_type = write.content_type if write.method == "PATCH" else JSON
    try:
        account.request(write.method, write.path, write.body, {"dryRun": "All"}, content_type)
    except ApiError as error:
        return str(error)
    return ""


def not_refused(account: Api, writes: dict[str, Write]) -> dict[str, str]:
    """What is said of those writes that no policy refuses, by name."""
    said = {name: refusal(account, write) for name, write in writes.items()}
    return {name: text for name, text in said.items() if "ValidatingAdmissionPolicy" not in text}


def eviction(namespace: str, pod: str) -> Write:
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": namespace},
        "deleteOptions": {"dryRun": ["All"]},
    }
    return Write("POST", f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction", body)


@pytest.fixture
def case(control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes, tmp_path: Path) -> Iterator[Case]:
    """A release with every writing feature on, and its account with all rights that RBAC can give."""
    for account in install(control_plane, namespace, tmp_path, VALUES, NEWEST_MINOR):
        yield make_case(control_plane, namespace, fake_nodes, account)


def make_case(cluster: ControlPlane, namespace: str, fake_nodes: FakeNodes, account: Api) -> Case:
    """A node with marks of this release, of another and of others; pods, Events and Secrets of others, and own ones."""
    node, admin = f"{namespace}-n", cluster.api
    fake_nodes.create(
        node,
        labels={
            "example.org/pool": "users",
            labels.pulled_label("other", namespace, IMAGE): "true",
            labels.pulled_label(RELEASE, namespace, "old:1"): "true",
        },
        taints=[FOREIGN, {"key": labels.startup_taint(RELEASE, namespace), "effect": "NoSchedule"}],
        images={IMAGE: 2**30},
    )
    fake_nodes.create(f"{node}-old")
    for name, component in (("jupyter-ann", "singleuser-server"), ("hub-0", "hub")):
        spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": node}
        cluster.create_pod({"metadata": {"name": name, "labels": {"component": component}}, "spec": spec}, namespace)
    hub = cluster.create_namespace(labels=HUB)
    admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "hub-roost-puller"}}, hub)
    for made in (
        event("theirs", namespace),
        event("own", namespace, **OWN_EVENT),
        event("own", hub, **OWN_EVENT),
        secret(CA, namespace, data={"ca.crt": "YQ=="}),
        secret("theirs", namespace, data={"a": "YQ=="}),
    ):
        admin.request(made.method, made.path, made.body)
    rendered = admin.get(f"/api/v1/namespaces/{namespace}/configmaps/hub-roost-release")
    read = Reader()
    settings = read_popular_settings(ReleaseDocument(read, json.loads(rendered["data"]["release.json"])))
    assert settings is not None
    assert not read.faults
    puller = pull_pod(settings, node_state(node), PopularPull(IMAGE, node, 2**30))
    owner = {"apiVersion": "v1", "kind": "ServiceAccount", "name": ACCOUNT, "uid": "1", "controller": True}
    puller["metadata"]["ownerReferences"] = [owner]
    del puller["metadata"]["namespace"]
    return Case(admin, account, namespace, node, hub, puller)


def puller_pod(
    case: Case, *, labels_: dict[str, str] | None = None, owner: Body = None, metadata: Body = None, **spec: Body
) -> Write:
    """A pod that pulls, but for what is given. container: keys of its container. metadata, owner: keys of theirs."""
    body = copy.deepcopy(case.puller)
    body["metadata"]["ownerReferences"][0] |= owner or {}
    body["metadata"]["labels"] |= labels_ or {}
    body["metadata"] |= metadata or {}
    body["spec"]["containers"][0] |= spec.pop("container", {})
    body["spec"] |= spec
    return Write("POST", case.path("pods"), body)


def mounting(case: Case, volume: Body) -> Write:
    return puller_pod(case, volumes=[volume], initContainers=[], container={"volumeMounts": []})


def filled_fields(version: str = "v1") -> Body:
    """An entry of managedFields of a megabyte: API servers take the writer's word for who owns which fields."""
    fields: Body = {f"f:example.org/{'x' * 40}-{number}": {} for number in range(14_000)}
    entry = {"manager": "mine", "operation": "Update", "apiVersion": version, "time": "2026-11-03T08:00:00Z"}
    return {**entry, "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": fields}}}


def labelled(path: str, key: str, value: str | None = "true") -> Write:
    """One label written, or taken away by None."""
    return metadata(path, labels={key: value})


def many_pulled(case: Case, count: int) -> Write:
    found = {labels.pulled_label(RELEASE, case.namespace, f"i:{number}"): "true" for number in range(count)}
    return metadata(case.node_path, labels=found)


def conditions(case: Case, *found: Body) -> Write:
    return patch(f"{case.node_path}/status", {"status": {"conditions": list(found)}}, STRATEGIC)


def node_escapes(case: Case) -> dict[str, Write]:
    """Writes to a node that no controller of this release has any business with."""
    path, status, namespace = case.node_path, f"{case.node_path}/status", case.namespace
    own_taint, new_taint = labels.startup_taint(RELEASE, namespace), {"key": "x", "effect": "NoSchedule"}
    found = case.admin.get(path)
    taints = found["spec"]["taints"]

    def spec(at: str = path, **keys: Body) -> Write:
        return patch(at, {"spec": keys})

    def own_taint_with(**keys: str) -> Write:
        return spec(taints=[one if one["key"] != own_taint else {**one, **keys} for one in taints])

    def status_of(**keys: Body) -> Write:
        return patch(status, {"status": keys})

    pool = "example.org/pool"
    return {
        "a label of somebody's": labelled(path, pool, "core"),
        "a new label": labelled(path, "example.org/new", "x"),
        "a label taken away": labelled(path, pool, None),
        "another release's label": labelled(path, labels.pulled_label("other", namespace, "x:1")),
        "another release's label taken away": labelled(path, labels.pulled_label("other", namespace, IMAGE), None),
        "another namespace's label": labelled(path, labels.pulled_label(RELEASE, "elsewhere", "x:1")),
        "a word of its own about an image": labelled(path, labels.pulled_label(RELEASE, namespace, IMAGE), "closed"),
        "another hub's attraction": labelled(path, labels.attract_label(RELEASE, f"{namespace}x", "default"), ""),
        "a label through the status": labelled(status, pool, "core"),
        "an annotation": metadata(path, annotations={"example.org/a": "b"}),
        "an annotation through the status": metadata(status, annotations={"example.org/a": "b"}),
        "a finalizer": metadata(path, finalizers=STAY),
        "an owner": metadata(path, ownerReferences=[{"apiVersion": "v1", "kind": "Node", "name": "x", "uid": "1"}]),
        "a taint": spec(taints=[*taints, new_taint]),
        "all taints taken away": spec(taints=None),
        "somebody's taint changed": spec(taints=[{**one, "effect": "NoExecute"} for one in taints]),
        "the own taint, so that it throws pods out": own_taint_with(effect="NoExecute"),
        "the own taint, where it isn't": spec(f"{path}-old", taints=[{**new_taint, "key": own_taint}]),
        "the own taint with another value": own_taint_with(value="x"),
        "another hub's startup taint": spec(taints=[*taints, {**new_taint, "key": labels.startup_taint("other", "a")}]),
        "a cordon": spec(unschedulable=True),
        "a provider's id": spec(providerID="x://y"),
        "a Pod network": spec(podCIDR="10.0.0.0/24", podCIDRs=["10.0.0.0/24"]),
        "allocatable": status_of(allocatable={"cpu": "64"}),
        "a resource of its own": status_of(capacity={"example.org/gpu": "8"}),
        "images": status_of(images=[]),
        "addresses": status_of(addresses=[{"type": "InternalIP", "address": "10.6.6.6"}]),
        "the Ready condition": conditions(case, {"type": "Ready", "status": "False"}),
        "all conditions taken away": status_of(conditions=[]),
        "a condition of its own": conditions(case, {"type": "example.org/Ready", "status": "True"}),
        "a mark with words of its own": labelled(path, labels.attract_label(RELEASE, namespace, "default"), "x" * 63),
        "labels without end": many_pulled(case, 600),
        "fields that it doesn't have": metadata(path, managedFields=[filled_fields()]),
        "a whole node": Write("PUT", path, {**found, "spec": {**found["spec"], "unschedulable": True}}),
        "a node made": Write("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}}),
        "a node deleted": Write("DELETE", path),
    }


class Schemas:
    """The API server's own schemas of what a pod may be, and a value for each field of them."""

    def __init__(self, admin: Api) -> None:
        self._schemas = admin.get("/openapi/v3/api/v1")["components"]["schemas"]

    def fields(self, kind: str) -> dict[str, Body]:
        properties = self._schemas[f"io.k8s.api.core.v1.{kind}"]["properties"]
        return {name: self._value(schema) for name, schema in properties.items()}

    def fields_of_nobody(self, case: Case) -> dict[str, Write]:
        """Fields that Kubernetes knows and no puller has, each by itself, and fine for others."""
        plain, writes = case.puller["spec"], {}
        # What every pod has, and what a provider's webhook may set.
        anyones = {
            *("schedulerName", "serviceAccount", "nodeSelector", "dnsPolicy"),
            *("imagePullPolicy", "terminationMessagePolicy"),
        }
        for kind, before in (("PodSpec", plain), ("Container", plain["containers"][0])):
            for name, value in self.fields(kind).items():
                write = puller_pod(case, **({name: value} if kind == "PodSpec" else {"container": {name: value}}))
                # A field whose feature is off is dropped.
                if name not in {*before, *anyones} and name in taken_fields(case, write, kind):
                    writes[f"{kind}.{name}"] = write
        assert len(writes) >= 20
        return writes

    def _value(self, schema: Body) -> Body:
        for part in schema.get("allOf", ()):
            return self._value(part)
        if "$ref" in schema:
            return self._value(self._schemas[schema["$ref"].rpartition("/")[2]])
        match schema.get("type"):
            case "object" if "additionalProperties" in schema:
                return {"a": self._value(schema["additionalProperties"])}
            case "object":
                properties = schema.get("properties", {})
                return {name: self._value(properties[name]) for name in schema.get("required", ())}
            case "array":
                return [self._value(schema["items"])]
            case "boolean":
                return True
            case "integer" | "number":
                return 1
            case _:
                return schema.get("enum", ["a"])[0]


def taken_fields(case: Case, write: Write, kind: str) -> set[str]:
    """The fields of a pod, or of its container, that somebody with every right could make."""
    try:
        made = case.admin.request(write.method, write.path, write.body, {"dryRun": "All"})
    except ApiError:
        return set()
    return set(made["spec"] if kind == "PodSpec" else made["spec"]["containers"][0])


def pod_escapes(case: Case) -> dict[str, Write]:
    namespace = case.namespace
    whole = "hub-roost-placeholder-default"

    def pod(**keys: Body) -> Write:
        return puller_pod(case, **keys)

    def container(**keys: Body) -> Write:
        return puller_pod(case, container=keys)

    def confined(**keys: Body) -> Write:
        return container(securityContext={"allowPrivilegeEscalation": False, **keys})

    def asking(requests: Body, **limits: str) -> Write:
        return container(resources={"requests": requests, "limits": limits} if limits else {"requests": requests})

    def volume(**source: Body) -> Write:
        return mounting(case, {"name": "s", **source})

    def annotated(key: str, value: str) -> Write:
        return pod(metadata={"annotations": {key: value}})

    plain, gpu = case.puller, "nvidia.com/gpu"
    user = {"runAsNonRoot": True, "runAsUser": 1}
    unconfined, default = {"type": "Unconfined"}, {"type": "RuntimeDefault"}
    evil = {"name": "evil", "image": "docker.io/evil/miner"}
    dropped = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    beside = [{"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}]
    port, metadata_server = 80, "169.254.169.254"
    probe = {"httpGet": {"host": metadata_server, "port": port, "path": "/"}}
    sysctls = [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]
    return {
        "a user evicted": eviction(namespace, "jupyter-ann"),
        "the hub evicted": eviction(namespace, "hub-0"),
        "a pod that only begins like a placeholder evicted": eviction(namespace, f"{whole}-b-0"),
        "a pod named like the set evicted": eviction(namespace, whole),
        "a pod elsewhere evicted": eviction("default", f"{whole}-0"),
        "a user deleted": Write("DELETE", case.path("pods", "jupyter-ann")),
        "the hub deleted": Write("DELETE", case.path("pods", "hub-0")),
        "all pods deleted": Write("DELETE", case.path("pods")),
        "a pod changed": labelled(case.path("pods", "hub-0"), "component", "x"),
        "a pod turned into one of its own": metadata(case.path("pods", "hub-0"), labels=plain["metadata"]["labels"]),
        "a pod in another namespace": pod()._replace(path=f"/api/v1/namespaces/{case.hub}/pods"),
        "a pod without the labels": pod(labels_={labels.OWN_COMPONENT_LABEL: "hub"}),
        "another release's pod": pod(labels_={labels.OWN_INSTANCE_LABEL: "other"}),
        "a token mounted": pod(automountServiceAccountToken=True),
        "a token projected": volume(projected={"sources": [{"serviceAccountToken": {"path": "token"}}]}),
        "its own account": pod(serviceAccountName=ACCOUNT),
        "a Secret mounted": volume(secret={"secretName": "s"}),
        "a ConfigMap mounted": volume(configMap={"name": "s"}),
        "the host's files": volume(hostPath={"path": "/"}),
        "a Secret read": container(envFrom=[{"secretRef": {"name": "s"}}]),
        "somebody's pull secret": pod(imagePullSecrets=[{"name": "theirs"}]),
        "privileged": container(securityContext={"privileged": True, "allowPrivilegeEscalation": True}),
        "a capability": confined(capabilities={"add": ["SYS_ADMIN"]}),
        "not confined": pod(securityContext={**user, "seccompProfile": unconfined}),
        "a container that isn't confined": confined(seccompProfile=unconfined),
        "a label by which a Service takes it for the hub": pod(labels_={"app": "jupyterhub"}),
        "another team's common label": pod(labels_={"example.org/team": "mine"}),
        "another application's name": pod(labels_={labels.OWN_NAME_LABEL: "jupyterhub"}),
        "another owner": pod(owner={"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "hub-abc"}),
        "another account as its owner": pod(owner={"name": "hub"}),
        "a command": container(command=["sh"]),
        "arguments": container(args=["-c", "true"]),
        "any image started": pod(container={"image": evil["image"], "command": ["/x"]}, initContainers=[]),
        "a container more before it": pod(initContainers=[{**evil, "securityContext": dropped}]),
        "a probe of any address": container(livenessProbe=probe),
        "a kernel's setting": pod(securityContext={**user, "seccompProfile": default, "sysctls": sysctls}),
        "as root": pod(securityContext={"runAsUser": 0}),
        "above users": pod(priorityClassName="system-node-critical"),
        "64 CPUs": asking({"cpu": "64", "memory": "0"}),
        "all memory": asking({"cpu": "0", "memory": "4Ti"}),
        "8 GPUs": asking({"cpu": "0", "memory": "0", gpu: "8"}, **{gpu: "8"}),
        "64 CPUs by a limit": container(resources={"limits": {"cpu": "64", "memory": "4Ti"}}),
        "no request at all": container(resources={}),
        "another container": pod(containers=[{**plain["spec"]["containers"][0], "name": name} for name in "ab"]),
        "wherever there is room": pod(affinity={"nodeAffinity": {}}),
        "beside users": pod(affinity={**plain["spec"]["affinity"], "podAffinity": {REQUIRED: beside}}),
        "for ever": pod(activeDeadlineSeconds=None),
        "for a year": pod(activeDeadlineSeconds=31_536_000),
        "again and again": pod(restartPolicy="Always"),
        "a grace of a day": pod(terminationGracePeriodSeconds=86_400),
        "tolerations without end": pod(tolerations=[{"key": f"a-{n}", "operator": "Exists"} for n in range(5000)]),
        "a finalizer": pod(metadata={"finalizers": STAY}),
        "an annotation that keeps its node": annotated("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
        "another network's annotation": annotated("k8s.v1.cni.cncf.io/networks", "host"),
        "a pullers' annotation with another value": annotated("sidecar.istio.io/inject", "true"),
        "fields that it doesn't have": pod(metadata={"managedFields": [filled_fields()]}),
        "a large annotation": annotated(labels.POPULAR_IMAGE_ANNOTATION, "x" * 200_000),
        "of a user's priority": pod(priorityClassName=labels.cluster_object_name(RELEASE, namespace, "user")),
        **Schemas(case.admin).fields_of_nobody(case),
    }


def image_volume_escapes(case: Case) -> dict[str, Write]:
    image = {"reference": "x" * 400_000, "pullPolicy": "IfNotPresent"}
    mount = {"name": "image", "mountPath": "/etc", "readOnly": True}
    return {
        "a reference without end": puller_pod(case, volumes=[{"name": "image", "image": image}]),
        "over another path": puller_pod(case, container={"volumeMounts": [mount]}),
    }


def event(name: str, namespace: str, *, about: Body = None, said: Body = None, **labels_: str) -> Write:
    """An Event made. about: keys of what it is about. said: its own keys."""
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace, "labels": labels_},
        "involvedObject": {"kind": "Pod", "name": "x", "namespace": namespace, **(about or {})},
        "reason": "A",
        "message": "Starting a new machine for your server; usually 1.5 to 4 minutes.",
        "source": {"component": "roost-controllers"},
        "reportingInstance": "one",
        "type": "Normal",
        **(said or {}),
    }
    return Write("POST", f"/api/v1/namespaces/{namespace}/events", body)


def event_escapes(case: Case) -> dict[str, Write]:
    theirs = case.path("events", "theirs")
    new = f"/apis/events.k8s.io/v1/namespaces/{case.namespace}/events"
    newer = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "newer"},
        "eventTime": "2026-11-03T08:00:00.000000Z",
        "regarding": {"kind": "Pod", "name": "x", "namespace": case.namespace},
        "reportingController": "example.org/forger",
        "reportingInstance": "x",
        "action": "A",
        "reason": "A",
        "type": "Normal",
        "note": "b",
    }
    filled_event = event("x", case.hub, **OWN_EVENT)
    filled_event.body["metadata"]["managedFields"] = [filled_fields()]
    node, hubs_node = {"kind": "Node", "namespace": ""}, {"kind": "Node", "namespace": case.hub}
    reason = {"message": "Log in: https://evil/", "reason": "CannotPullImage"}

    def on_page(message: str) -> Write:
        return event("x", case.hub, said={"message": message}, **OWN_EVENT)

    return {
        "an Event made that doesn't say whose it is": event("x", "kube-system"),
        "an Event that says another's name": event("x", "default", **{labels.PART_OF_LABEL: "hub"}),
        "another's Event rewritten": patch(theirs, {"message": "forged"}),
        "an Event made by its newer kind": Write("POST", new, newer),
        "another's Event taken over": patch(theirs, {"message": "forged", "metadata": {"labels": OWN_EVENT}}),
        "an Event in a namespace that is no hub's": event("x", "kube-system", **OWN_EVENT),
        "an Event about a pod, beside nodes": event("x", "default", **OWN_EVENT),
        "an Event about a node, on a hub's pages": event("x", case.hub, about=hubs_node, **OWN_EVENT),
        "an address on the spawn page": on_page("Log in again: https://evil.example.org/"),
        "an address without a scheme": on_page("Now at evil.example.org"),
        "markup on the spawn page": on_page("<a href=//evil>go on</a>"),
        "an address by a puller's reason": event("x", case.namespace, said=reason, **OWN_EVENT),
        "a page full of text": on_page("words " * 100),
        "a message without end": event("x", "default", about=node, said={"message": "m" * 1_000_000}, **OWN_EVENT),
        "an Event with fields that it doesn't have": filled_event,
        "an Event in the kubelet's name": event("x", case.hub, said={"source": {"component": "kubelet"}}, **OWN_EVENT),
        "an Event with labels without end": event("x", case.hub, **OWN_EVENT, **{f"a-{n}": "b" for n in range(1000)}),
        "an own Event made another": patch(f"/api/v1/namespaces/{case.hub}/events/own", {"message": "https://evil/"}),
        "the own label taken off": metadata(case.path("events", "own"), labels=None),
        "an Event deleted": Write("DELETE", theirs),
    }


def history(case: Case, body: Body) -> Write:
    return patch(case.path("configmaps", "hub-roost-headroom-history"), body)


def config_map_escapes(case: Case) -> dict[str, Write]:
    """ConfigMaps are settings of every program, and what headroom learned."""
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}}
    return {
        "the release's settings": patch(case.path("configmaps", "hub-roost-release"), {"data": {"release.json": "{}"}}),
        "one made": Write("POST", case.path("configmaps"), made),
        "its own deleted": history(case, None)._replace(method="DELETE"),
        "its own kept": history(case, {"metadata": {"finalizers": STAY}}),
        "its own filled": history(case, {"data": {"a": "x" * 1_040_000}, "binaryData": {"b": "YWFh" * 1000}}),
        "its own with fields that it doesn't have": history(case, {"metadata": {"managedFields": [filled_fields()]}}),
        "its own for good": history(case, {"immutable": True}),
        "its own a booking": history(case, {"metadata": {"labels": {labels.EVENTS_LABEL: RELEASE}}}),
    }


def configuration_escapes(case: Case) -> dict[str, Write]:
    """Changes that would show the webhook what is none of its business, or show it to somebody else."""
    path = webhook_path(case.namespace)
    found = case.admin.get(path)
    folder = path.rpartition("/")[0]
    service = found["webhooks"][0]["clientConfig"]["service"]

    def put(change: dict[str, Body]) -> Write:
        """The first entry with other keys; `clientConfig` is merged."""
        body = copy.deepcopy(found)
        client = {**body["webhooks"][0]["clientConfig"], **change.pop("clientConfig", {})}
        body["webhooks"][0] |= {
            **change,
            "clientConfig": {key: value for key, value in client.items() if value is not None},
        }
        return Write("PUT", path, body)

    everything = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]
    mine = {"name": "mine.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None"}
    entry = {**mine, "clientConfig": {"url": "https://evil.example.org/"}, "rules": everything}
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
    return {
        "every object of the cluster": put({"rules": everything}),
        "every namespace": put({"namespaceSelector": {}}),
        "every pod": put({"objectSelector": {}}),
        "no condition": put({"matchConditions": None}),
        "another policy of failure": put({"failurePolicy": "Fail"}),
        "another time-out": put({"timeoutSeconds": 30}),
        "another name of an entry": put({"name": "other.example.org"}),
        "somebody else's URL": put({"clientConfig": {"url": "https://evil.example.org/", "service": None}}),
        "another Service": put({"clientConfig": {"service": {"name": "evil", "namespace": case.namespace}}}),
        "another namespace's Service": put({"clientConfig": {"service": {**service, "namespace": "default"}}}),
        "another path": put({"clientConfig": {"service": {**service, "path": "/evil"}}}),
        "the bundle, and the rules with it": put({"clientConfig": {"caBundle": PEM}, "rules": everything}),
        "a bundle without end": put({"clientConfig": {"caBundle": b64encode(b64decode(PEM) * 2000).decode()}}),
        "fields that it doesn't have": metadata(path, managedFields=[filled_fields(kind["apiVersion"])]),
        "an entry more": Write("PUT", path, {**found, "webhooks": [*found["webhooks"], entry]}),
        "an entry less": Write("PUT", path, {**found, "webhooks": found["webhooks"][1:]}),
        "no entry": Write("PUT", path, {**found, "webhooks": []}),
        "another order": Write("PUT", path, {**found, "webhooks": found["webhooks"][::-1]}),
        "rules by a patch": patch(path, [{"op": "add", "path": "/webhooks/0/rules", "value": everything}], JSON_PATCH),
        "a label": metadata(path, labels={"a": "b"}),
        "an annotation that injects a CA": metadata(path, annotations={"cert-manager.io/inject-ca-from": "a/b"}),
        "a finalizer": metadata(path, finalizers=STAY),
        "deleted": Write("DELETE", path),
        "all deleted": Write("DELETE", folder),
        "one made": Write("POST", folder, {**kind, "metadata": {"name": "mine"}, "webhooks": [entry]}),
    }


def secret_escapes(case: Case) -> dict[str, Write]:
    """Secrets that would be a token, or somebody else's."""
    namespace, authority, theirs = case.namespace, case.path("secrets", CA), case.path("secrets", "theirs")
    found = case.admin.get(authority)
    generated = secret("", namespace, kind=TOKEN, annotations=FOR_ACCOUNT)
    leaf, pair = secret(LEAF, namespace), {"tls.crt": "YQ==", "tls.key": "YQ=="}
    del generated.body["metadata"]["name"]
    generated.body["metadata"]["generateName"] = "hub-roost-"
    pulls, pull_data = "kubernetes.io/dockerconfigjson", {".dockerconfigjson": "e30="}
    return {
        "a token of an account": secret("token", namespace, kind=TOKEN, annotations=FOR_ACCOUNT),
        "a token under the leaf's name": secret(LEAF, namespace, kind=TOKEN, annotations=FOR_ACCOUNT),
        "a token under a name that is drawn": generated,
        "an annotation that asks for a token": secret(LEAF, namespace, annotations=FOR_ACCOUNT),
        "such an annotation afterwards": metadata(authority, annotations=FOR_ACCOUNT),
        "pull secrets under the leaf's name": secret(LEAF, namespace, kind=pulls, data=pull_data),
        "of another type": secret(LEAF, namespace, kind="kubernetes.io/tls", data=pair),
        "another name": secret("mine", namespace),
        "another namespace": secret(LEAF, "default"),
        "a token elsewhere": secret(LEAF, "kube-system", kind=TOKEN, annotations=FOR_ACCOUNT),
        "other data": secret(LEAF, namespace, data={"password": "YQ=="}),
        "the CA's key for the webhook": secret(LEAF, namespace, data={"ca.key": "YQ=="}),
        "somebody's changed": patch(theirs, {"data": {"a": "Yg=="}}),
        "somebody's replaced": Write("PUT", theirs, {**found, "metadata": {"name": "theirs"}}),
        "one that nobody can change": leaf._replace(body={**leaf.body, "immutable": True}),
        "made immutable afterwards": patch(authority, {"immutable": True}),
        "a finalizer": secret(LEAF, namespace, finalizers=STAY),
        "a finalizer afterwards": metadata(authority, finalizers=STAY),
        "as large as a Secret may be": secret(LEAF, namespace, data={"tls.crt": "YWFh" * 300_000}),
        "fields that it doesn't have": secret(LEAF, namespace, managedFields=[filled_fields()]),
        "labels without end": secret(LEAF, namespace, labels={f"a-{number}": "b" for number in range(20_000)}),
        "a large annotation": secret(LEAF, namespace, annotations={"example.org/a": "x" * 200_000}),
        "other data afterwards": patch(authority, {"data": {"password": "YQ=="}}),
        "its own deleted": Write("DELETE", authority),
        "somebody's deleted": Write("DELETE", theirs),
        "all deleted": Write("DELETE", case.path("secrets")),
    }


def scale_escapes(case: Case) -> dict[str, Write]:
    """Numbers of pods that the values don't say, and Leases of others."""
    namespace = case.namespace
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    mine = {"holderIdentity": "mine"}
    return {
        "more placeholders than in the values": scale(set_path(namespace), 8),
        "the webhook stopped": scale(f"{deployments}/hub-roost-webhook", 0),
        "the scheduler stopped": scale(f"{deployments}/hub-roost-scheduler", 0),
        "more of itself": scale(f"{deployments}/{ACCOUNT}", 9),
        "another's Lease made": lease("hub-roost-other", namespace),
        "its Lease elsewhere": lease(ACCOUNT, "kube-system"),
        "the scheduler's Lease taken": patch(
            f"{leases}/hub-roost-scheduler", {"spec": {**mine, "leaseDurationSeconds": 9999}}
        ),
        "its Lease filled": lease(ACCOUNT, namespace, annotations={"a": "x" * 200_000}),
        "its Lease kept": lease(ACCOUNT, namespace, finalizers=STAY),
        "its Lease for ever": lease(ACCOUNT, namespace, {**mine, "leaseDurationSeconds": 2_000_000_000}),
        "its Lease by a long name": lease(ACCOUNT, namespace, {"holderIdentity": "m" * 100_000}),
        "the scheduler's Lease deleted": Write("DELETE", f"{leases}/hub-roost-scheduler"),
    }


def legal_writes(case: Case) -> dict[str, Write]:
    """All that the controllers do, the keeper of the certificates among them."""
    path, namespace = case.node_path, case.namespace
    own = labels.startup_taint(RELEASE, namespace)
    taints = case.admin.get(path)["spec"]["taints"]
    old, image = labels.pulled_label(RELEASE, namespace, "old:1"), labels.pulled_label(RELEASE, namespace, IMAGE)
    index = next(number for number, one in enumerate(taints) if one["key"] == own)
    limited = {"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"cpu": "4", "memory": "8Gi"}}
    by_ranger = {"kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu", "openshift.io/scc": "x"}
    by_engine = {"policies.kyverno.io/last-applied-patches": "x: y"}
    any_text, node = {"message": "https://any: text"}, {"kind": "Node", "namespace": ""}
    no_pull = {"message": "Image a.b/c can't be pulled", "reason": "CannotPullImage"}
    moved = {"message": "It was to move from a.b to c.d"}
    puller, placeholder = {"name": "hub-roost-puller-x"}, {"name": "hub-roost-placeholder-default-3"}
    webhooks, authority = webhook_path(namespace), case.admin.get(case.path("secrets", CA))
    bundles = every_bundle(case)
    keys = dict.fromkeys(("ca.crt", "ca.key", "previous-ca.crt", "previous-ca.key"), "YQ==")
    return {
        "an image's label": labelled(path, image),
        "a node closed while it pulls": labelled(path, image, "pulling"),
        "a node opened": labelled(path, image, "open"),
        "an image's label taken away": labelled(path, old, None),
        "a mark": labelled(path, labels.attract_label(RELEASE, namespace, "default")),
        "the startup taint lifted": patch(path, {"spec": {"taints": [one for one in taints if one["key"] != own]}}),
        "the same by its place": patch(path, [{"op": "remove", "path": f"/spec/taints/{index}"}], JSON_PATCH),
        "as many labels as a node may have": many_pulled(case, 511),
        "a placeholder evicted": eviction(namespace, "hub-roost-placeholder-default-17"),
        "the number of placeholders": scale(set_path(namespace), 7),
        "no placeholders": scale(set_path(namespace), 0),
        "its own Lease": lease(ACCOUNT, namespace),
        "what headroom learned": history(case, {"data": {"default.json": "x" * 200_000}}),
        "a pod that pulls": puller_pod(case),
        "the same under a LimitRange": puller_pod(
            case, container={"resources": limited}, metadata={"annotations": by_ranger}
        ),
        "the same, seen by a policy engine": puller_pod(case, metadata={"annotations": by_engine}),
        "the same, with the common labels": puller_pod(case, labels_={"example.org/team": "hubs"}),
        "an Event": event("new", namespace, **OWN_EVENT),
        "an Event about a user's pod": event("new", case.hub, **OWN_EVENT),
        "about a hub's bookings": event("new", case.hub, about={"kind": "ConfigMap"}, said=any_text, **OWN_EVENT),
        "about a node": event("new", "default", about=node, said={"message": "a.b/c: text"}, **OWN_EVENT),
        "about an image that can't be pulled": event("new", namespace, about=puller, said=no_pull, **OWN_EVENT),
        "about a placeholder": event("new", namespace, about=placeholder, said=moved, **OWN_EVENT),
        "an Event counted": patch(case.path("events", "own"), {"count": 2}),
        "every bundle": bundles,
        "one bundle": patch(webhooks, bundles.body[:1], JSON_PATCH),
        "the leaf": secret(LEAF, namespace, data={"tls.crt": "YQ==", "tls.key": "YQ=="}, labels=OWN_EVENT),
        "the CA and the one before it": Write("PUT", case.path("secrets", CA), {**authority, "data": keys}),
    }


def every_bundle(case: Case) -> Write:
    """The certificate that API servers trust, in every entry of the webhook's configuration."""
    path = webhook_path(case.namespace)
    count = len(case.admin.get(path)["webhooks"])
    adds = [{"op": "add", "path": f"/webhooks/{one}/clientConfig/caBundle", "value": PEM} for one in range(count)]
    return patch(path, adds, JSON_PATCH)


KINDS = (
    node_escapes, pod_escapes, image_volume_escapes, event_escapes, config_map_escapes, configuration_escapes,
    secret_escapes, scale_escapes,
)  # fmt: skip


def check_escapes(case: Case, minor: str = NEWEST_MINOR) -> None:
    """Not one escape is taken, whatever RBAC gives; the policy says so, and not a typing error of this test."""
    # The puller mounts no images in the oldest.
    kinds = [kind for kind in KINDS if kind is not image_volume_escapes or minor not in ("1.33", "1.34")]
    escapes = {f"{kind.__name__}: {name}": write for kind in kinds for name, write in kind(case).items()}
    assert not_refused(case.account, escapes) == {}
    # The same requests are fine for somebody else.
    assert not_refused(case.admin, escapes).keys() == escapes.keys()
    # A second bundle over a first: now there is one to compare with.
    bundle = every_bundle(case)
    case.account.request(bundle.method, bundle.path, bundle.body, {}, bundle.content_type)
    assert not_refused(case.account, configuration_escapes(case)) == {}


def check_legal(case: Case) -> None:
    """All that the controllers do is taken, with the rendered rights alone, and they read no list of Secrets."""
    said = {name: refusal(case.account, write) for name, write in legal_writes(case).items()}
    # No such pod is there to be evicted, which the API server says only after admission.
    said = {name: text for name, text in said.items() if text and "not found" not in text}
    assert said == {}
    for path in (case.path("secrets"), "/api/v1/secrets", case.path("secrets", "theirs")):
        assert "forbidden" in refusal(case.account, Write("GET", path))
    assert case.account.get(case.path("secrets", CA))["type"] == "Opaque"


def take_rights_away(case: Case) -> None:
    name = f"all-rights-{case.namespace}"
    case.admin.delete(f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{name}")
    outside = Write("GET", "/api/v1/namespaces/kube-system/secrets")
    wait_until(lambda: "forbidden" in refusal(case.account, outside), 20.0, "the rights to be gone")


def test_the_account_escapes_not_even_with_every_right_and_does_its_work_with_the_rendered_ones(case: Case) -> None:
    check_escapes(case)
    take_rights_away(case)
    check_legal(case)


def test_the_rendered_rights_let_the_controllers_only_count_their_own_pods(case: Case) -> None:
    take_rights_away(case)
    own = f"/apis/apps/v1/namespaces/{case.namespace}/deployments/{ACCOUNT}"
    # Whoever may patch a Deployment's pods may take any account's place, any Secret, and any file of a node.
    changed = {"spec": {"template": {"spec": {"serviceAccountName": "hub-roost-webhook", "hostNetwork": True}}}}
    assert "forbidden" in refusal(case.account, patch(own, changed, STRATEGIC))
    assert "forbidden" in refusal(case.account, metadata(own, labels={"a": "b"}))
    assert refusal(case.account, scale(own, 0)) == ""
    assert "forbidden" in refusal(case.account, scale(own.replace("controllers", "webhook"), 0))


def test_pods_that_pull_without_image_volumes_are_held_alike(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes, tmp_path: Path
) -> None:
    values = {**VALUES, "prePuller": {"method": "noop"}}
    for account in install(control_plane, namespace, tmp_path, values, NEWEST_MINOR):
        case = make_case(control_plane, namespace, fake_nodes, account)
        mount = {"name": "roost-pause", "mountPath": "/elsewhere"}
        writes = {
            **pod_escapes(case),
            "the image's own program of that name": puller_pod(case, container={"volumeMounts": [mount]}),
            "an image volume": mounting(case, {"name": "image", "image": {"reference": IMAGE}}),
        }
        assert not_refused(account, writes) == {}
        take_rights_away(case)
        check_legal(case)


def test_pods_made_under_other_values_can_still_be_deleted(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, case: Case
) -> None:
    made = puller_pod(case)
    # Its owner isn't there: it would be collected.
    del made.body["metadata"]["ownerReferences"]
    case.account.request(made.method, made.path, made.body)
    delete = Write("DELETE", case.path("pods", made.body["metadata"]["name"]))
    assert refusal(case.account, delete) == ""
    changed = {
        **VALUES,
        "imagePullSecrets": ["another"],
        "commonLabels": {},
        "prePuller": {"method": "noop"},
        "priorityClasses": {"enabled": False},
    }
    control_plane.kubectl("apply", "--filename=-", input=manifests_of(namespace, tmp_path, changed, NEWEST_MINOR))
    # The same pod couldn't be made any more: the new policy is at work.
    again = made._replace(body={**made.body, "metadata": {**made.body["metadata"], "name": "again"}})
    wait_until(
        lambda: "ValidatingAdmissionPolicy" in refusal(case.account, again), 30.0, "the new policy to be at work"
    )
    assert refusal(case.account, delete) == ""


@pytest.mark.minors
@pytest.mark.parametrize("minor", [minor for minor in MINORS if minor != NEWEST_MINOR])
def test_every_supported_minor_holds_the_account_alike(minor: str, tmp_path: Path) -> None:
    require_binary("kube-apiserver", minor)
    with ControlPlane(minor=minor) as cluster, FakeNodes(cluster.api) as nodes:
        namespace = cluster.create_namespace()
        for account in install(cluster, namespace, tmp_path, VALUES, minor):
            case = make_case(cluster, namespace, nodes, account)
            check_escapes(case, minor)
            take_rights_away(case)
            check_legal(case)


def test_a_large_node_costs_no_more_than_the_policies_may(
    control_plane: ControlPlane, fake_nodes: FakeNodes, case: Case
) -> None:
    node, path = f"{case.namespace}-large", f"/api/v1/nodes/{case.namespace}-large"
    many = {labels.pulled_label(RELEASE, case.namespace, f"quay.io/o/image-{one}:1"): "true" for one in range(50)}
    theirs = {f"{'x' * 200}.example.org/label-{number}": "v" * 63 for number in range(200)}
    fake_nodes.create(
        node,
        labels={**many, **theirs},
        taints=[{"key": f"example.org/taint-{number}", "effect": "PreferNoSchedule"} for number in range(30)],
        images={f"quay.io/{'path/' * 20}image-{number}@sha256:{number:064}": 2**30 for number in range(50)},
        extra_resources={f"example.org/device-{number}": "8" for number in range(30)},
    )
    conditions = [{"type": f"Condition{number}", "status": "False", "message": "m" * 500} for number in range(40)]
    control_plane.api.patch(f"{path}/status", {"status": {"conditions": conditions}}, content_type=STRATEGIC)
    assert refusal(case.account, labelled(path, labels.pulled_label(RELEASE, case.namespace, IMAGE))) == ""


def test_the_webhooks_own_token_may_write_nothing(case: Case, control_plane: ControlPlane) -> None:
    webhook = control_plane.api_as(control_plane.service_account_token(case.namespace, "hub-roost-webhook"))
    # It works, and reads.
    webhook.list(case.path("pods"))
    kinds = (legal_writes, *KINDS)
    writes = [write for kind in kinds for write in kind(case).values()]
    said = {f"{write.method} {write.path}": refusal(webhook, write) for write in writes}
    assert {name: text for name, text in said.items() if "is forbidden" not in text} == {}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview"}
    rules = webhook.create({**review, "spec": {"namespace": case.namespace}})["status"]["resourceRules"]
    # Every account may ask who it is and what it may do; asking is a `create`.
    asks = ("authorization.k8s.io", "authentication.k8s.io")
    verbs = {verb for rule in rules if not set(rule["apiGroups"]) & set(asks) for verb in rule["verbs"]}
    assert verbs == {"get", "list", "watch"}


def test_the_policies_have_no_typing_errors(tmp_path: Path) -> None:
    with ControlPlane(controllers=(*CONTROLLERS, "validatingadmissionpolicy-status-controller")) as cluster:
        namespace = cluster.create_namespace()
        policies = [
            f"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{name}"
            for what in POLICIES
            for name in [labels.cluster_object_name(RELEASE, namespace, f"controllers-{what}")]
        ]

        def checked() -> list[Any] | None:
            statuses = [cluster.api.get(policy).get("status", {}) for policy in policies]
            is_done = all(status.get("observedGeneration") == 1 for status in statuses)
            return [status.get("typeChecking", {}) for status in statuses] if is_done else None

        for _ in install(cluster, namespace, tmp_path, VALUES, NEWEST_MINOR):
            assert wait_until(checked, 30.0, "the policies to be checked") == [{}] * len(POLICIES)
