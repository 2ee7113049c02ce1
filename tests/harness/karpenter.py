"""Run a real Karpenter against a control plane of the harness, and boot the machines it asks for.

Owns one Karpenter process, its CustomResourceDefinitions and node pools, and its nodes from their
creation to Ready. Its cloud is Karpenter's own provider `kwok`, whose machines are Node objects
only.
"""

import contextlib
import functools
import http.client
import itertools
import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import yaml

from roost_core.objects.fields import JSONObject
from tests.harness.api import Api, ApiError
from tests.harness.binaries import ensure_binary, ensure_module_files
from tests.harness.controlplane import ControlPlane
from tests.harness.life import Started
from tests.harness.nodes import NODES, NOT_READY_TAINT, FakeNodes, read_taint
from tests.harness.ports import LOOPBACK, ReservedPort
from tests.harness.processes import ProgramExitedError
from tests.harness.talk import say
from tests.harness.waiting import wait_until

READY_SECONDS = 60.0  # a bound for an overloaded machine; an idle one takes two
KEEPER_SECONDS = 0.2
NODE_POOL_LABEL = "karpenter.sh/nodepool"
REGISTERED_LABEL = "karpenter.sh/registered"
NODE_CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
NODE_CLASS = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class InstanceType:
    """A kind of machine on offer.

    Of its capacity Karpenter takes 100m CPU and 10Mi for the kubelet.
    """

    name: str
    cpu: str
    memory: str
    price: float  # a unit of time; only the comparison with others matters


# A user's requests of 1 CPU fit three times on the first, seven times on the second.
INSTANCE_TYPES = (
    InstanceType("small", cpu="4", memory="16Gi", price=1.0),
    InstanceType("large", cpu="8", memory="32Gi", price=2.0),
)


class Karpenter(Started):
    """`with Karpenter(cluster) as karpenter: karpenter.create_node_pool("users",
    startup_taints=["key:NoSchedule"])`.

    Give it a cluster of its own, with a scheduler: it answers every pod that no node takes, in all
    namespaces.

    boot_delay_seconds: from a Node's creation to Ready. Its metrics and health listen on every
    interface, for which it has no setting.
    """

    def __init__(
        self,
        cluster: ControlPlane,
        *,
        instance_types: Sequence[InstanceType] = INSTANCE_TYPES,
        boot_delay_seconds: float = 0.0,
    ) -> None:
        self._cluster = cluster
        self._instance_types = tuple(instance_types)
        self.keeper = NodeKeeper(cluster.api, boot_delay_seconds)

    # Life

    def start(self) -> Self:
        """Build what is missing, apply the CustomResourceDefinitions, and return when Karpenter is
        ready.
        """
        program = ensure_binary("karpenter")
        apply_definitions(self._cluster.api, ensure_module_files("karpenter"))
        self._cluster.api.apply(
            {
                "apiVersion": "karpenter.kwok.sh/v1alpha1",
                "kind": NODE_CLASS["kind"],
                "metadata": {"name": "default"},
            }
        )
        types_path = self._cluster.folder / "karpenter-instance-types.json"
        types_path.write_text(json.dumps([_described(kind) for kind in self._instance_types]))
        metrics, health = ReservedPort(), ReservedPort()
        environment = {
            "KUBECONFIG": str(self._cluster.kubeconfig),
            "SYSTEM_NAMESPACE": "kube-system",
            "DISABLE_LEADER_ELECTION": "true",
            "KARPENTER_SERVICE": "karpenter",
            "CLUSTER_NAME": "test",
            "METRICS_PORT": str(metrics.number),
            "HEALTH_PROBE_PORT": str(health.number),
            "INSTANCE_TYPES_FILE_PATH": str(types_path),
        }
        metrics.release()
        health_port = health.release()
        self.process = self._cluster.run.start(
            f"karpenter-{next(_numbers)}", program, environment=environment
        )
        wait_until(
            lambda: self._is_ready(health_port),
            READY_SECONDS,
            "Karpenter to be ready",
            explain=self.process.tail,
        )
        self.keeper.start()
        return self

    def stop(self) -> None:
        """Stop Karpenter at once; its nodes stay as they are.

        Raises what went wrong with their boots.
        """
        self.process.kill()
        self.keeper.stop()

    # Its objects

    def create_node_pool(
        self,
        name: str,
        *,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[str | Mapping[str, str]] = (),
        startup_taints: Sequence[str | Mapping[str, str]] = (),
        instance_types: Sequence[str] = (),
        consolidate_after: str = "Never",
        consolidation_policy: str = "WhenEmpty",
    ) -> JSONObject:
        """Create a NodePool; returns it.

        Taints are `key=value:Effect`, or mappings as in a manifest. instance_types: names; empty:
        all on offer. consolidate_after: "Never", or for how long a node must be idle, as "5s".
        consolidation_policy: WhenEmpty or WhenEmptyOrUnderutilized. All its nodes may go at once.
        """
        required = [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
        ]
        if instance_types:
            key = "node.kubernetes.io/instance-type"
            required.append({"key": key, "operator": "In", "values": list(instance_types)})
        spec = {
            "nodeClassRef": NODE_CLASS,
            "requirements": required,
            "taints": [read_taint(taint) for taint in taints],
            "startupTaints": [read_taint(taint) for taint in startup_taints],
            "expireAfter": "Never",
        }
        template = {"metadata": {"labels": dict(labels or {})}, "spec": spec}
        policy = {
            "consolidationPolicy": consolidation_policy,
            "consolidateAfter": consolidate_after,
        }
        disruption = {**policy, "budgets": [{"nodes": "100%"}]}
        pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}}
        return self._cluster.api.create(
            {**pool, "spec": {"template": template, "disruption": disruption}}
        )

    def delete_node_pool(self, name: str) -> None:
        self._cluster.api.delete(f"/apis/karpenter.sh/v1/nodepools/{name}")
        wait_until(lambda: not self.node_claims(name), 60, f"the NodeClaims of pool {name} to go")
        # A node that hadn't joined yet isn't Karpenter's to drain: its provider finds it minutes
        # later.
        for node in self.nodes(name):
            self._cluster.api.delete(f"{NODES}/{node['metadata']['name']}")
        wait_until(lambda: not self.nodes(name), 60, f"the nodes of pool {name} to go")

    def node_claims(self, pool: str | None = None) -> list[JSONObject]:
        return self._cluster.api.list(NODE_CLAIMS, labelSelector=_of_pool(pool))

    def nodes(self, pool: str | None = None) -> list[JSONObject]:
        return self._cluster.api.list(NODES, labelSelector=_of_pool(pool))

    def wait_for_nodes(self, count: int) -> list[JSONObject]:
        """Wait until exactly so many Nodes stand, each booted and taken over by Karpenter; returns
        them.

        Startup taints may still be there. Before it takes a node over, they aren't yet: another
        taint keeps pods off.
        """

        def joined() -> list[JSONObject] | None:
            nodes = self.nodes()
            return nodes if len(nodes) == count and all(map(has_joined, nodes)) else None

        def explain() -> str:
            found = {node["metadata"]["name"]: node["spec"].get("taints") for node in self.nodes()}
            return f"{found}; the end of Karpenter's log:\n{self.process.tail(8)}"

        return wait_until(joined, 60, f"{count} nodes to join", explain=explain)

    def _is_ready(self, port: int) -> bool:
        if not self.process.is_running:
            raise ProgramExitedError(self.process.epitaph("before it was ready"))
        connection = http.client.HTTPConnection(LOOPBACK, port, timeout=5)
        with contextlib.suppress(OSError), contextlib.closing(connection):
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        return False


class NodeKeeper:
    """Boots the Nodes that Karpenter creates, as a machine's kubelet and the node controllers
    would.

    A node gets its capacity and the condition Ready, and loses the taint
    `node.kubernetes.io/not-ready`; Karpenter's own taints and startup taints are left alone. The
    pods of a node that has gone go too.
    """

    def __init__(self, api: Api, boot_delay_seconds: float) -> None:
        self._boot_delay_seconds = boot_delay_seconds
        self._api = api
        self._nodes = FakeNodes(api)
        self._first_seen: dict[str, float] = {}
        self._stopping = threading.Event()
        self._faults: list[BaseException] = []
        self._thread = threading.Thread(target=self._work, name="node-keeper", daemon=True)

    def start(self) -> Self:
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop within moments.

        Raises what went wrong meanwhile: nodes that weren't kept spoil a test.
        """
        self._stopping.set()
        self._thread.join()
        if self._faults:
            raise self._faults[0]

    def _work(self) -> None:
        while not self._stopping.wait(KEEPER_SECONDS):
            try:
                self._keep()
            except ApiError as error:
                # gone, or changed by Karpenter meanwhile: looked at again
                if error.status not in (404, 409):
                    self._faults.append(error)
                    return
            except (OSError, http.client.HTTPException) as error:
                say(f"node keeper: connection broke, going on: {error!r}")

    def _keep(self) -> None:
        now = time.monotonic()
        nodes = {
            node["metadata"]["name"]: node
            for node in self._api.list(NODES, labelSelector=NODE_POOL_LABEL)
        }
        for name in self._first_seen.keys() - nodes.keys():
            self._nodes.delete(name)  # gone already: its pods are meant
            del self._first_seen[name]
        for name, node in nodes.items():
            age_seconds = now - self._first_seen.setdefault(name, now)
            if age_seconds >= self._boot_delay_seconds and not is_booted(node):
                self._boot(node)

    def _boot(self, node: JSONObject) -> None:
        name = node["metadata"]["name"]
        if not _is_ready(node):
            capacity = {"status": {"capacity": node["status"]["allocatable"]}}
            self._api.patch(f"{NODES}/{name}/status", capacity)
            self._nodes.set_ready(name)
            node = self._nodes.get(name)
        others = [
            taint for taint in node["spec"].get("taints", []) if taint["key"] != NOT_READY_TAINT
        ]
        # With the version it was read at: Karpenter writes taints at the same time.
        version = node["metadata"]["resourceVersion"]
        self._api.patch(
            f"{NODES}/{name}",
            {"metadata": {"resourceVersion": version}, "spec": {"taints": others}},
        )


def is_booted(node: JSONObject) -> bool:
    """Whether the node is Ready and carries no taint that says otherwise."""
    return _is_ready(node) and all(
        taint["key"] != NOT_READY_TAINT for taint in node["spec"].get("taints", [])
    )


def has_joined(node: JSONObject) -> bool:
    return is_booted(node) and REGISTERED_LABEL in node["metadata"]["labels"]


def apply_definitions(api: Api, folder: Path) -> None:
    """Apply every CustomResourceDefinition of a folder's YAML files, and wait until the API server
    serves them.
    """
    for path in sorted(folder.glob("*.yaml")):
        for definition in filter(None, yaml.safe_load_all(path.read_text())):
            api.apply(definition)
            is_served = functools.partial(_is_served, api, api.path_of(definition))
            wait_until(is_served, 30, f"{path.name} to be served")


def _is_served(api: Api, address: str) -> bool:
    return _has_condition(api.get(address), "Established")


def _is_ready(node: JSONObject) -> bool:
    return _has_condition(node, "Ready")


def _has_condition(item: JSONObject, kind: str) -> bool:
    conditions = item.get("status", {}).get("conditions") or []  # null in a new definition
    return any(
        condition["type"] == kind and condition["status"] == "True" for condition in conditions
    )


def _of_pool(pool: str | None) -> str:
    return NODE_POOL_LABEL if pool is None else f"{NODE_POOL_LABEL}={pool}"


def _described(kind: InstanceType) -> JSONObject:
    offer = {"karpenter.sh/capacity-type": "on-demand", "topology.kubernetes.io/zone": "zone-a"}
    requirements = [
        {"key": key, "operator": "In", "values": [value]} for key, value in offer.items()
    ]
    return {
        "name": kind.name,
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {
            "cpu": kind.cpu,
            "memory": kind.memory,
            "pods": "110",
            "ephemeral-storage": "100Gi",
        },
        "offerings": [{"Price": kind.price, "Available": True, "Requirements": requirements}],
    }
