"""Write the pod that brings one image to one node, and read what has become of it.

Owns its manifest. The pod goes through the scheduler (node affinity on the node's name, as DaemonSet pods have it), so
a node without room for one more pod gets none. It asks for nothing, so it takes no room and counts for no autoscaler;
it may be evicted at any time, holds no token, and passes the `restricted` Pod Security Standard. Nothing of the image
needs to run: an image volume is mounted, or Roost's own static pause is run in it. It stays until it is deleted, but no
longer than a pull may take: should nobody lead any more, its kubelet ends it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from roost.controllers.contract.pull_failures import AFTER_PULL_FAULTS, PULL_FAULTS
from roost.controllers.contract.pullers import is_popular_puller
from roost.controllers.popular_images.settings import PULL_SECONDS, PULL_SLACK_SECONDS, PullMethod
from roost_core.placement.images import normalise_reference
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

if TYPE_CHECKING:
    from roost.controllers.popular_images.settings import PopularSettings
    from roost_core.scheduler.objects import NodeState, PodState

JSONObject = dict[str, Any]

# The kubelet's word for a pod that came to its activeDeadlineSeconds.
DEADLINE_EXCEEDED: Final = "DeadlineExceeded"
# A deletion that wasn't heard of is asked for again.
DELETE_SECONDS: Final = 30.0
_SECURITY: Final = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
# Zero, and not left out: with a LimitRange's defaults the pod would push placeholders out.
_NO_RESOURCES: Final = {"requests": {"cpu": "0", "memory": "0"}}
# Why a container waits when its image doesn't come, or comes and can't be used by the pod that mounts or runs it.
FAILURES: Final = PULL_FAULTS | AFTER_PULL_FAULTS


class Pull(NamedTuple):
    """What a pod of ours is there for."""

    # As users write it, normalised.
    image: str
    node: str
    image_bytes: int
    # What is pulled for it: the digest that its tag stood for, where that was known.
    reference: str


def pull_pod(settings: PopularSettings, node: NodeState, pull: Pull) -> JSONObject:
    """The whole manifest."""
    made_of = settings.pull_pod
    container: JSONObject = {"name": "pull", "resources": _NO_RESOURCES, "securityContext": _SECURITY}
    spec: JSONObject = {"containers": [container]}
    if made_of.method is PullMethod.IMAGE_VOLUME:
        container |= {
            "image": made_of.pause_image,
            "volumeMounts": [{"name": "image", "mountPath": "/image", "readOnly": True}],
        }
        spec["volumes"] = [{"name": "image", "image": {"reference": pull.reference, "pullPolicy": "IfNotPresent"}}]
    else:
        mount = {"name": "roost-pause", "mountPath": "/roost-pause"}
        spec["initContainers"] = [
            {
                "name": "pause",
                "image": made_of.image,
                "command": ["/usr/local/lib/roost/pause", "install", "/roost-pause/pause"],
                "volumeMounts": [mount],
                "resources": _NO_RESOURCES,
                "securityContext": _SECURITY,
            }
        ]
        container |= {
            "image": pull.reference,
            "imagePullPolicy": "IfNotPresent",
            "command": ["/roost-pause/pause"],
            "volumeMounts": [{**mount, "readOnly": True}],
        }
        spec["volumes"] = [{"name": "roost-pause", "emptyDir": {}}]
    spec |= {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node.name]}]}
                    ]
                }
            }
        },
        "tolerations": [dict(one) for one in made_of.tolerations],
        "restartPolicy": "Never",
        "activeDeadlineSeconds": int(PULL_SECONDS + PULL_SLACK_SECONDS),
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "runAsGroup": 65534,
            "fsGroup": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    if made_of.service_account:
        spec["serviceAccountName"] = made_of.service_account
    if made_of.priority_class:
        spec["priorityClassName"] = made_of.priority_class
    if made_of.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in made_of.pull_secrets]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": popular_pull_name(settings.release, node.name, node.uid, pull.reference),
            "namespace": settings.namespace,
            "labels": {
                OWN_NAME_LABEL: OWN_PART,
                OWN_INSTANCE_LABEL: settings.release,
                OWN_COMPONENT_LABEL: OWN_POPULAR_PULLER,
                PART_OF_LABEL: OWN_PART,
            },
            "annotations": {
                POPULAR_IMAGE_ANNOTATION: pull.image,
                POPULAR_NODE_ANNOTATION: node.name,
                POPULAR_BYTES_ANNOTATION: str(pull.image_bytes),
                SAFE_TO_EVICT_ANNOTATION: "true",
            },
        },
        "spec": spec,
    }


def is_pull_pod(pod: PodState, release: str, namespace: str) -> bool:
    """Tell whether a pod pulls a popular image for this release."""
    labels = pod.labels
    return is_popular_puller(labels) and labels.get(OWN_INSTANCE_LABEL) == release and pod.namespace == namespace


def read_pull(pod: PodState) -> Pull:
    """What a pod that pulls is there for."""
    size = pod.annotations.get(POPULAR_BYTES_ANNOTATION, "")
    image = pod.annotations.get(POPULAR_IMAGE_ANNOTATION, "")
    # Main containers come first, and there is one.
    pulled = (*pod.spec.volume_images, *pod.spec.images, image)[0]
    return Pull(
        image=image,
        node=pod.node_name or pod.annotations.get(POPULAR_NODE_ANNOTATION, ""),
        image_bytes=int(size) if size.isascii() and size.isdigit() and len(size) < 20 else 0,
        reference=normalise_reference(pulled) if pulled else "",
    )


def has_pulled(pod: PodState) -> bool:
    """Tell whether its image is on the node: its one container was started, which takes the image by either method."""
    # One that ran until its deadline has pulled as well.
    return pod.phase in ("Running", "Succeeded") or (
        pod.reason == DEADLINE_EXCEEDED
        and any(container.terminated and container.image_id and not container.init for container in pod.containers)
    )


def was_ended_by_node(pod: PodState) -> bool:
    """Tell whether its kubelet ended or refused it for the node's sake: evicted, out of room, shut down."""
    return pod.phase == "Failed" and pod.reason not in ("", DEADLINE_EXCEEDED)


def failure_of(pod: PodState) -> str:
    """Why its image doesn't come, in the kubelet's words; "" while nothing speaks against it."""
    for container in pod.containers:
        if container.waiting_reason in FAILURES:
            return f"{container.waiting_reason}: {container.waiting_message}".rstrip(": ")
    return "the pod failed" if pod.phase == "Failed" else ""
