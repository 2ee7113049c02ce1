"""What a kubelet of each minor does with images as volumes and without, and that a real node leaves
nothing.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.harness.binaries import MINORS, NEWEST_MINOR
from tests.harness.cgroups import left_groups
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import or_give_up
from tests.harness.processes import is_alive
from tests.harness.real_nodes import RealNode
from tests.harness.registry import RealRegistry
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.e2e
PULL_SECONDS = 90.0


def container(name: str, image: str, mount: str, *command: str) -> dict[str, Any]:
    mounts = [{"name": mount, "mountPath": f"/mounted/{mount}"}]
    return {
        "name": name,
        "image": image,
        "volumeMounts": mounts,
        **({"command": [*command]} if command else {}),
    }


def create(
    cluster: ControlPlane, namespace: str, name: str, *containers: dict[str, Any], **spec: object
) -> None:
    body = {"nodeName": "node-a", "containers": list(containers), **spec}
    cluster.create_pod({"metadata": {"name": name}, "spec": body}, namespace)


@pytest.mark.parametrize(
    "minor",
    [
        pytest.param(one, marks=[] if one == NEWEST_MINOR else [pytest.mark.minors])
        for one in MINORS[2:]
    ],
)
def test_kubelets_from_1_35_on_mount_an_image_and_leave_nothing(
    minor: str, real_registry: RealRegistry
) -> None:
    groups_before = left_groups(os.getpid())
    with or_give_up(), ControlPlane(minor) as cluster:
        with RealNode(cluster, "node-a", real_registry, labels={"pool": "user"}) as node:
            program = real_registry.push_program("me/program:1")
            # nothing in it to run
            data = real_registry.push("me/data:1", files={"/data.txt": b"hello"})
            reads = container(
                "main", program.reference, "data", "/in-pod", "read", "/mounted/data/data.txt"
            )
            volumes = [{"name": "data", "image": {"reference": data.reference}}]
            namespace = cluster.create_namespace()
            create(cluster, namespace, "once", reads, volumes=volumes, restartPolicy="Never")
            cluster.wait_for_pod_phase("once", namespace, "Succeeded", timeout_seconds=PULL_SECONDS)
            found = node.wait_ready()
            assert found["status"]["nodeInfo"]["kubeletVersion"].startswith(f"v{minor}.")
            assert found["metadata"]["labels"]["pool"] == "user"
            assert data.reference in node.images()
            pids, folder = node.pids(), str(node.folder)
        assert not [pid for pid in pids if is_alive(pid)]
        assert folder not in Path("/proc/mounts").read_text()
        assert left_groups(os.getpid()) <= groups_before
        assert node.node() is None


@pytest.mark.minors
@pytest.mark.parametrize("minor", MINORS[:2])
def test_an_older_kubelet_mounts_no_image_and_runs_an_image_without_a_program_of_its_own(
    minor: str, real_registry: RealRegistry
) -> None:
    with (
        or_give_up(),
        ControlPlane() as cluster,
        RealNode(cluster, "node-a", real_registry, minor=minor),
    ):
        program = real_registry.push_program("me/program:1")
        data = real_registry.push("me/data:1", files={"/data.txt": b"hello"})
        namespace = cluster.create_namespace()
        images = [{"name": "data", "image": {"reference": data.reference}}]
        create(
            cluster,
            namespace,
            "mounts",
            container("main", program.reference, "data"),
            volumes=images,
        )
        # As the puller does with prePuller.method: noop.
        copies = container(
            "copy", program.reference, "tools", "/in-pod", "copy", "/mounted/tools/in-pod"
        )
        reads = container(
            "main", data.reference, "tools", "/mounted/tools/in-pod", "read", "/data.txt"
        )
        volumes = [{"name": "tools", "emptyDir": {}}]
        create(
            cluster,
            namespace,
            "runs",
            reads,
            volumes=volumes,
            initContainers=[copies],
            restartPolicy="Never",
        )
        cluster.wait_for_pod_phase("runs", namespace, "Succeeded", timeout_seconds=PULL_SECONDS)
        events = f"/api/v1/namespaces/{namespace}/events"

        def said() -> str:
            found = cluster.api.list(
                events, fieldSelector="involvedObject.name=mounts,reason=FailedMount"
            )
            return found[0]["message"] if found else ""

        assert "no volume plugin matched" in wait_until(
            said, PULL_SECONDS, "the kubelet to give up"
        )
        assert cluster.pod("mounts", namespace)["status"]["phase"] == "Pending"
