"""Make nodes, pods and states for tests of the scheduler model; each says only what the test is
about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roost_core.objects.node import read_node
from roost_core.objects.pod_reader import read_pod
from roost_core.scheduler.plugins import NEWEST_MINOR
from roost_core.scheduler.profile import Profile, read_profiles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roost_core.objects.node import Node
    from roost_core.objects.pod import Pod

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "16Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[str] = (),
    images: Mapping[str, int] | None = None,
    cordoned: bool = False,
    extra: Mapping[str, str] | None = None,
) -> Node:
    """A Ready node with its hostname label; taints as KEY=VALUE:EFFECT, extra: further
    resources.
    """
    allocatable: dict[str, str] = {"cpu": cpu, "memory": memory, "pods": str(pods), **(extra or {})}
    reported = [{"names": [image], "sizeBytes": size} for image, size in (images or {}).items()]
    ready = [{"type": "Ready", "status": "True"}]
    return read_node(
        {
            "metadata": {"name": name, "labels": {HOSTNAME: name, **(labels or {})}},
            "spec": {"taints": [_taint(taint) for taint in taints], "unschedulable": cordoned},
            "status": {"allocatable": allocatable, "images": reported, "conditions": ready},
        }
    )


def _taint(text: str) -> dict[str, str]:
    rest, _, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    return {"key": key, "value": value, "effect": effect}


def pod(
    name: str,
    *,
    on: str = "",
    requests: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    namespace: str = "hub",
    image: str = "image:1",
    images: Sequence[str] = (),
    priority: int = 0,
    started: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    """A pod with one container, or one for each of `images`; on: the node it is bound to."""
    containers = [
        {"name": f"c{index}", "image": one, "resources": {"requests": dict(requests or {})}}
        for index, one in enumerate(images or [image])
    ]
    return read_pod(
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": dict(labels or {}),
                **(metadata or {}),
            },
            "spec": {"nodeName": on, "priority": priority, "containers": containers, **spec},
            "status": {"startTime": started, **(status or {})},
        }
    )


def profile(minor: int = NEWEST_MINOR, **body: Any) -> Profile:
    """kube-scheduler's default profile with this much of its own configuration."""
    return read_profiles({"profiles": [body]}, minor)["default-scheduler"]


def arguments(plugin: str, **args: Any) -> dict[str, Any]:
    return {"pluginConfig": [{"name": plugin, "args": args}]}
