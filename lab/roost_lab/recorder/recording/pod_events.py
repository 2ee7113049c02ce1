"""Choose the Events of a bound pod that are recorded, and read what each is about. Pure.

It may be about the pod's volumes, its sandbox, a container, an image or a probe.

Source: kubernetes/pkg/kubelet/events/event.go and pkg/controller/volume/events/event.go, from 1.34
to 1.37.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from roost_core.placement.kubelet_pulls import image_in_message
from roost_lab.recorder.recording.reading import EventReading
from roost_lab.recorder.store.records import MAX_DETAIL, PodEventRecord

# The reason of an Event that a volume was attached to the pod's node.
ATTACHED: Final = "SuccessfulAttachVolume"
_MAX_MESSAGE: Final = 1024
_VOLUME: Final = re.compile(r'volume "([^"]+)"')
_UNMOUNTED: Final = re.compile(r"unmounted volumes=\[([^\]]+)\]")
_CONTAINER: Final = re.compile(r"spec\.(containers|initContainers)\{([^}]+)\}")


class WaitKind(StrEnum):
    """What a bound pod waits for."""

    VOLUME = "volume"
    DEVICES = "devices"
    SANDBOX = "sandbox"
    INIT = "init"
    IMAGE = "image"
    CONTAINER = "container"
    PROBE = "probe"


# An Event's reason -> what it is about. `Failed` and `BackOff` may be about an image, too: the
# message tells (`kind_of`).
KIND_OF_REASON: Final[Mapping[str, WaitKind]] = {
    "FailedAttachVolume": WaitKind.VOLUME,
    "FailedMount": WaitKind.VOLUME,
    "FailedMapVolume": WaitKind.VOLUME,
    ATTACHED: WaitKind.VOLUME,
    "FailedPrepareDynamicResources": WaitKind.DEVICES,
    "FailedCreatePodSandBox": WaitKind.SANDBOX,
    "NetworkNotReady": WaitKind.SANDBOX,
    "Failed": WaitKind.CONTAINER,
    "BackOff": WaitKind.CONTAINER,
    "FailedPostStartHook": WaitKind.CONTAINER,
    "Unhealthy": WaitKind.PROBE,
}


def container_of(field_path: str) -> tuple[str, bool]:
    """The container that an Event is about, "" for none, and whether it is an init container.

    field_path: of the object that the Event is about, such as `spec.containers{notebook}`.
    """
    match = _CONTAINER.fullmatch(field_path)
    if match is None:
        return "", False
    return match[2], match[1] == "initContainers"


def kind_of(reason: str, message: str) -> WaitKind:
    """What an Event is about. reason: a key of KIND_OF_REASON."""
    kind = KIND_OF_REASON[reason]
    if kind is WaitKind.CONTAINER and image_in_message(message):
        return WaitKind.IMAGE
    return kind


def pod_event(event: EventReading, pod_uid: str) -> PodEventRecord | None:
    """The record of an Event of a bound pod; None if the Event isn't recorded."""
    if event.reason not in KIND_OF_REASON:
        return None
    if event.note.startswith("Error: ") and "ImagePull" in event.note:
        # Another Event of the same failure names the image, and says why.
        return None
    return PodEventRecord(
        pod_uid=pod_uid,
        reason=event.reason,
        subject=_subject(event)[:MAX_DETAIL],
        at_us=event.when.at_us,
        resolution_us=event.when.resolution_us,
        last_us=event.last_us,
        tries=event.count,
        message=event.note[:_MAX_MESSAGE],
    )


def _subject(event: EventReading) -> str:
    """The name of the volume, image or container; "" if the Event is about the whole pod."""
    match kind_of(event.reason, event.note):
        case WaitKind.VOLUME:
            volumes = _VOLUME.search(event.note) or _UNMOUNTED.search(event.note)
            return volumes[1] if volumes is not None else ""
        case WaitKind.IMAGE:
            return image_in_message(event.note)
        case WaitKind.CONTAINER | WaitKind.PROBE:
            return container_of(event.field_path)[0]
        case _:
            return ""
