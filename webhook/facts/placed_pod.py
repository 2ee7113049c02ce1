"""One unfinished pod as the facts count it."""

from __future__ import annotations

from collections.abc import Mapping
from sys import intern
from typing import Final, NamedTuple

from roost_core.objects.fields import MAX_NAME, JSONObject
from roost_core.objects.image_references import normalise_reference
from roost_core.objects.node import MAX_IMAGES, MAX_REFERENCE
from roost_core.objects.pod import FINISHED_PHASES
from roost_core.placement.kubelet_pulls import PULL_FAULTS
from roost_core.placement.labels import HOME_TARGET_ANNOTATION, WARM_TARGET_ANNOTATION

# The longest text of the names of a pod's pull secrets, which may be as many as its author likes.
_MAX_SECRETS: Final = 1024


class PlacedPod(NamedTuple):
    """One unfinished pod of a class whose pods the facts count."""

    pod_class: str
    # Where it is bound, else where Roost sent it (WARM_TARGET_ANNOTATION, HOME_TARGET_ANNOTATION);
    # "" when neither is known.
    node: str
    # Normalised; none before it is bound: until then no node has them because of it.
    images: tuple[str, ...] = ()
    # It is bound and none of its containers runs yet.
    is_starting: bool = False
    # Images, normalised and not among `images`, that its node can't pull now.
    failing: tuple[str, ...] = ()
    # Images, of `images` and of `failing`, all of whose containers have `Always`: its kubelet pulls
    # them although the node holds them.
    always: tuple[str, ...] = ()
    # As `pull_secrets` says.
    secrets: str = ""


class FailedPull(NamedTuple):
    """What failed to be pulled where, and with which pull secrets."""

    node: str
    # Normalised.
    image: str
    # As `pull_secrets` says.
    secrets: str = ""


def pull_secrets(spec: Mapping[str, object], namespace: str) -> str:
    """Which pull secrets a pod's kubelet uses: the same text for pods that use the same; "" for
    none. Nonsense is none.
    """
    listed = spec.get("imagePullSecrets")
    names = {
        str(secret["name"])
        for secret in (listed if type(listed) is list else ())
        if type(secret) is dict and secret.get("name")
    }
    return f"{namespace}/{','.join(sorted(names))}"[:_MAX_SECRETS] if names else ""


def read_placed_pod(pod: JSONObject, pod_class: str) -> PlacedPod | None:
    """What a Pod of this class adds to its node; None once it has finished."""
    phase = _object(pod, "status").get("phase")
    if phase in FINISHED_PHASES:
        return None
    spec, metadata = _object(pod, "spec"), _object(pod, "metadata")
    bound = spec.get("nodeName")
    if not bound:
        annotations = _object(metadata, "annotations")
        target = str(
            annotations.get(WARM_TARGET_ANNOTATION) or annotations.get(HOME_TARGET_ANNOTATION) or ""
        )
        # Pods may write anything: no node is called so.
        return PlacedPod(pod_class, target if len(target) <= MAX_NAME else "")
    failing = _failing_containers(_object(pod, "status"))
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    # Image -> whether one of its containers can't pull it.
    is_failing: dict[str, bool] = {}
    # Image -> whether all of its containers have Always. If one with IfNotPresent can't pull, the
    # node doesn't hold the image.
    is_always: dict[str, bool] = {}
    for container in containers:
        image = str(container.get("image") or "")
        if image and len(image) <= MAX_REFERENCE and len(is_failing) < MAX_IMAGES:
            fails = container.get("name") in failing
            is_failing[image] = is_failing.get(image, False) or fails
            # The API server writes a policy into every pod.
            pulls_always = container.get("imagePullPolicy") == "Always"
            is_always[image] = is_always.get(image, True) and pulls_always
    return PlacedPod(
        pod_class,
        node=intern(str(bound)),
        images=tuple(normalise_reference(image) for image in is_failing if not is_failing[image]),
        is_starting=phase == "Pending",
        failing=tuple(normalise_reference(image) for image in is_failing if is_failing[image]),
        always=tuple(normalise_reference(image) for image in is_always if is_always[image]),
        secrets=pull_secrets(spec, str(metadata.get("namespace") or "")),
    )


def _failing_containers(status: JSONObject) -> set[str]:
    """Names of containers whose image can't be pulled now."""
    containers = (
        *(status.get("containerStatuses") or ()),
        *(status.get("initContainerStatuses") or ()),
    )
    reasons = (
        (container.get("name"), _object(_object(container, "state"), "waiting").get("reason"))
        for container in containers
    )
    return {str(name) for name, reason in reasons if reason in PULL_FAULTS}


def _object(parent: JSONObject, key: str) -> JSONObject:
    """The object under `key`, an empty one when it is absent or null."""
    return parent.get(key) or {}
