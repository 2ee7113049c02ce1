"""Users' servers request CPU, and their nodes' boot disks are fast.

The cluster shows only these two causes of slow starts. docs/faster-starts.md has the others.
"""

from typing import Final

from roost.doctor.evidence import admits, count, some, users_of
from roost.doctor.findings import CheckReport, warning
from roost.doctor.install import Install
from roost_core.objects.fields import JSONObject
from roost_core.objects.node import Node
from roost_core.objects.requests import CPU, read_requests

# GKE's label of a node, and its slow kind of disk.
_BOOT_DISK: Final = "cloud.google.com/gke-boot-disk"
_SLOW_DISK: Final = "pd-standard"
# Fewer servers without a request for CPU seldom slow each other down.
_LEAST_WITHOUT_CPU: Final = 10


def check(install: Install) -> CheckReport:
    users = users_of(install) if admits(install) else []
    yield f"CPU requests of {count(len(users), 'user server')}, and boot disks of their nodes"
    without_cpu = sorted(pod["metadata"]["name"] for pod in users if not _requests_cpu(pod))
    if len(without_cpu) >= _LEAST_WITHOUT_CPU:
        yield warning(
            f"{len(without_cpu)} of {len(users)} users' servers request no CPU:"
            f" {some(without_cpu)}. Next to four busy neighbours, a start took 11.4 s without a"
            " guarantee, and 2.5 s with one.",
            "In the hub's values singleuser.cpu.guarantee: 0.05, in profiles too"
            " (docs/faster-starts.md#cpu).",
        )
    users_nodes = {(pod.get("spec") or {}).get("nodeName") for pod in users}
    slow = sorted(
        node.name for node in install.nodes if node.name in users_nodes and _has_slow_disk(node)
    )
    if slow:
        yield warning(
            f"Users' nodes whose boot disk is {_SLOW_DISK}: {some(slow)}. Reading what a start"
            " needs took 24 s from such a disk of 100 GB, and 2.5 s from a fast one.",
            "Give the node pool the disk type pd-balanced or pd-ssd"
            " (docs/faster-starts.md#the-image).",
        )


def _requests_cpu(pod: JSONObject) -> bool:
    return dict(read_requests(pod.get("spec") or {})).get(CPU, 0) > 0


def _has_slow_disk(node: Node) -> bool:
    return node.labels.get(_BOOT_DISK) == _SLOW_DISK
