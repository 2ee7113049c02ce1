"""Set up what the servers under test watch: a real API server with nodes, builder pods, and a
namespace per peer.

Owns the scene that all cluster benchmarks share. Each peer has a namespace of its own, with the
same builder pods, and the nodes carry each peer's image labels: so all of them can stand side by
side, and a round needs no change of configuration.
"""

from __future__ import annotations

import copy
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from benchmarks.policy import RELEASE, pulled_labels, write_policy
from benchmarks.root import ROOT
from benchmarks.servers import Servers
from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import base_name, object_name
from tests.harness.nodes import FakeNodes
from tests.harness.pods import running_status

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.controlplane import ControlPlane

PODS: Final = ROOT / "lab" / "benchmarks" / "pods"
NAMESPACES: Final = {peer: f"bench-{peer}" for peer in ("rules", "roost", "policy")}
REPOSITORIES: Final = 40
PARALLEL_REQUESTS: Final = 8


class Stage:
    """A cluster for the benchmarks; it disappears with its control plane."""

    def __init__(self, cluster: ControlPlane, *, nodes: int = 20) -> None:
        self.cluster = cluster
        self.node_names = [f"bench-node-{number:05d}" for number in range(nodes)]
        self.nodes = FakeNodes(cluster.api)
        self.policies = {
            peer: write_policy(cluster.folder / f"policy-{peer}" / "release.json", namespace)
            for peer, namespace in NAMESPACES.items()
            if peer in ("rules", "roost")
        }
        self.servers = Servers(cluster.run, cluster.kubeconfig, self.policies, NAMESPACES)
        for namespace in NAMESPACES.values():
            cluster.create_namespace(namespace)
        labels = {"hub.jupyter.org/node-purpose": "user"}
        for namespace in NAMESPACES.values():
            labels |= dict.fromkeys(pulled_labels(namespace), "true")
        # Half of the nodes hold the images.
        self.nodes.create_many(self.node_names[::2], cpu="16", memory="64Gi", labels=labels)
        bare = {"hub.jupyter.org/node-purpose": "user"}
        self.nodes.create_many(self.node_names[1::2], cpu="16", memory="64Gi", labels=bare)
        self._hold_leases()
        self._create_builders()

    def _hold_leases(self) -> None:
        """Hold the Leases of Roost's scheduler and controllers for a day: without them Roost leaves
        pods alone.
        """
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        for part in ("scheduler", "controllers"):
            lease = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": object_name(base_name(RELEASE), part)},
                "spec": {
                    "holderIdentity": "a-benchmark",
                    "leaseDurationSeconds": 86400,
                    "renewTime": now,
                },
            }
            self.cluster.api.create(lease, NAMESPACES["roost"])

    def _create_builders(self) -> None:
        wanted = [
            (NAMESPACES[peer], node) for peer in ("rules", "roost") for node in self.node_names
        ]

        def create(place: tuple[str, str]) -> None:
            namespace, node = place
            labels = {"component": "image-builder", "app": "binder", "name": "hub-dind"}
            spec = {"nodeName": node, "containers": [{"name": "dind", "image": "docker:dind"}]}
            pod = self.cluster.create_pod(
                {"metadata": {"name": f"dind-{node}", "labels": labels}, "spec": spec}, namespace
            )
            path = f"/api/v1/namespaces/{namespace}/pods/dind-{node}/status"
            self.cluster.api.patch(path, {"status": running_status(pod, "10.1.2.3")})

        with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
            list(pool.map(create, wanted))

    def write_pods(self, folder: Path) -> list[Path]:
        """The POST bodies as files, for `createpods`."""
        folder.mkdir(parents=True, exist_ok=True)
        files = []
        for number, pod in enumerate(make_pods()):
            path = folder / f"{number:03d}.json"
            path.write_text(json.dumps(pod))
            files.append(path)
        return files


def make_pods() -> list[JSONObject]:
    """POST bodies: 2 users, a build, a placeholder, and so on for each repository."""
    user, build, placeholder = (
        json.loads((PODS / f"{name}.json").read_text()) for name in ("user", "build", "placeholder")
    )
    found: list[JSONObject] = []
    for number in range(REPOSITORIES):
        one = copy.deepcopy(build)
        one["metadata"]["name"] = f"build-repository-{number}"
        one["metadata"]["annotations"]["binder-repo"] = (
            f"https://github.com/benchmark-org/repository-{number}"
        )
        found += [user, one, user, placeholder]
    return found
