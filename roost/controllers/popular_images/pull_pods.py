"""Write the pod that pulls one image to one node, and read its progress.

The pod goes through the scheduler (by node affinity on the node's name, like DaemonSet pods), so a
node without room for one more pod gets none. It requests nothing, so it takes no room and triggers
no autoscaler. It may be evicted at any time, has no token, and passes the `restricted` Pod Security
Standard. Nothing in the image has to run: an image volume is mounted, or Roost's own static pause
program is run in it. It stays until it is deleted, but no longer than a pull may take: without a
leader, its kubelet ends it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from roost.controllers.contract.pod_kinds import is_popular_puller
from roost.controllers.popular_images.settings import PopularSettings, PullMethod
from roost_core.objects.fields import JSONObject
from roost_core.objects.node import Node
from roost_core.objects.pod import Pod
from roost_core.placement.kubelet_pulls import AFTER_PULL_FAULTS, LONGEST_PULL_SECONDS, PULL_FAULTS
from roost_core.placement.labels import (
    OWN_COMPONENT_LABEL,
    OWN_INSTANCE_LABEL,
    OWN_NAME_LABEL,
    OWN_PART,
    OWN_POPULAR_PULLER,
    PART_OF_LABEL,
    POPULAR_BYTES_ANNOTATION,
    POPULAR_IMAGE_ANNOTATION,
    POPULAR_NODE_ANNOTATION,
    SAFE_TO_EVICT_ANNOTATION,
    popular_pull_name,
)

# After this much longer, the pod ends by itself: there may be no leader to delete it.
PULL_SLACK_SECONDS: Final = 600.0
# The status.reason of a pod that reached its activeDeadlineSeconds.
DEADLINE_EXCEEDED: Final = "DeadlineExceeded"
# Explicitly zero: with a LimitRange's defaults the pod would pre-empt placeholders.
_NO_RESOURCES: Final = {"requests": {"cpu": "0", "memory": "0"}}
# Why a container waits if its image can't be pulled, or can't be mounted or run.
FAILURES: Final = PULL_FAULTS | AFTER_PULL_FAULTS


class PopularPull(NamedTuple):
    """The image that a pod pulls, and to which node."""

    # As users' pods name it, normalised: so the kubelet knows the name afterwards, and asks no
    # registry.
    image: str
    node: str
    image_bytes: int


def pull_pod(settings: PopularSettings, node: Node, pull: PopularPull) -> JSONObject:
    """Return the manifest of the pod."""
    security = dict(settings.container_security)
    container: JSONObject = {
        "name": "pull",
        "resources": _NO_RESOURCES,
        "securityContext": security,
    }
    spec: JSONObject = {"containers": [container]}
    if settings.method is PullMethod.IMAGE_VOLUME:
        container["image"] = settings.pause_image
        container["volumeMounts"] = [{"name": "image", "mountPath": "/image", "readOnly": True}]
        spec["volumes"] = [
            {"name": "image", "image": {"reference": pull.image, "pullPolicy": "IfNotPresent"}}
        ]
    else:
        mount = {"name": "roost-pause", "mountPath": "/roost-pause"}
        spec["initContainers"] = [
            {
                "name": "pause",
                "image": settings.image,
                "command": ["/usr/local/lib/roost/pause", "install", "/roost-pause/pause"],
                "volumeMounts": [mount],
                "resources": _NO_RESOURCES,
                "securityContext": security,
            }
        ]
        container |= {
            "image": pull.image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["/roost-pause/pause"],
        }
        container["volumeMounts"] = [{**mount, "readOnly": True}]
        spec["volumes"] = [{"name": "roost-pause", "emptyDir": {}}]
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node.name]}]}
    spec |= {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [here]}
            }
        },
        "tolerations": [dict(toleration) for toleration in settings.pod_tolerations],
        "restartPolicy": "Never",
        "activeDeadlineSeconds": int(LONGEST_PULL_SECONDS + PULL_SLACK_SECONDS),
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": dict(settings.pod_security),
    }
    if settings.service_account:
        spec["serviceAccountName"] = settings.service_account
    if settings.priority_class:
        spec["priorityClassName"] = settings.priority_class
    if settings.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in settings.pull_secrets]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": popular_pull_name(settings.release.name, node.name, node.uid, pull.image),
            "namespace": settings.release.namespace,
            "labels": {
                OWN_NAME_LABEL: OWN_PART,
                OWN_INSTANCE_LABEL: settings.release.name,
                OWN_COMPONENT_LABEL: OWN_POPULAR_PULLER,
                PART_OF_LABEL: OWN_PART,
            },
            "annotations": {
                **settings.annotations,
                POPULAR_IMAGE_ANNOTATION: pull.image,
                POPULAR_NODE_ANNOTATION: node.name,
                POPULAR_BYTES_ANNOTATION: str(pull.image_bytes),
                SAFE_TO_EVICT_ANNOTATION: "true",
            },
        },
        "spec": spec,
    }


def is_pull_pod(pod: Pod, release: str, namespace: str) -> bool:
    """Whether a pod pulls a popular image for this release."""
    labels = pod.labels
    return (
        is_popular_puller(labels)
        and labels.get(OWN_INSTANCE_LABEL) == release
        and pod.namespace == namespace
    )


def read_pull(pod: Pod) -> PopularPull:
    """Read from a pod which image it pulls, and to which node."""
    size = pod.annotations.get(POPULAR_BYTES_ANNOTATION, "")
    return PopularPull(
        image=pod.annotations.get(POPULAR_IMAGE_ANNOTATION, ""),
        node=pod.node_name or pod.annotations.get(POPULAR_NODE_ANNOTATION, ""),
        image_bytes=int(size) if size.isascii() and size.isdigit() and len(size) < 20 else 0,
    )


def has_pulled(pod: Pod) -> bool:
    """Whether the image is on the node: by either method, the main container starts only then."""
    if pod.phase in ("Running", "Succeeded"):
        return True
    # A pod that ran until its deadline has pulled, too.
    return pod.reason == DEADLINE_EXCEEDED and any(
        container.terminated and container.image_id and not container.init
        for container in pod.containers
    )


def was_ended_by_node(pod: Pod) -> bool:
    """Whether the kubelet ended or rejected it because of the node: evicted, out of resources, shut
    down.
    """
    return pod.phase == "Failed" and pod.reason not in ("", DEADLINE_EXCEEDED)


def failure_of(pod: Pod) -> str:
    """Return why its image can't be pulled, by the kubelet; "" while there is no failure."""
    for container in pod.containers:
        if container.waiting_reason in FAILURES:
            return f"{container.waiting_reason}: {container.waiting_message}".rstrip(": ")
    return "the pod failed" if pod.phase == "Failed" else ""
