"""What kubelets say of pulls: Events, their messages, and the reasons for which containers wait.

Source: kubernetes/pkg/kubelet/images/image_manager.go and pkg/kubelet/events/event.go, from 1.34 to
1.37.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from roost_core.objects.timestamps import event_moment, read_span

# The reason of an Event that an image was pulled, or was already present.
PULLED: Final = "Pulled"
# Longer than the slowest pulls seen (13 minutes to unpack on slow disks).
LONGEST_PULL_SECONDS: Final = 1800.0
# Why a container waits: the image is not present.
PULL_FAULTS: Final = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
# Why a container waits: the image is present.
AFTER_PULL_FAULTS: Final = frozenset(
    {
        "CrashLoopBackOff",
        "CreateContainerConfigError",
        "CreateContainerError",
        "PreCreateHookError",
        "PreStartHookError",
        "PostStartHookError",
        "RunContainerError",
    }
)
_PULLED_MESSAGE: Final = re.compile(
    r'Successfully pulled image "(?P<image>[^"]+)" in (?P<pull>[0-9.a-zµμ]*[a-z])'
    r"(?: \((?P<total>\S+) including waiting\))?"
    r"(?:\. Image size: (?P<bytes>[0-9]{1,19}) bytes)?"
)
_PRESENT_MESSAGE: Final = re.compile(
    r'[Cc]ontainer image "(?P<image>[^"]+)" already present on machine'
)
_NAMED: Final = re.compile(r'image "([^"]+)"')


class PulledMessage(NamedTuple):
    """What the message of an Event `Pulled` says."""

    # As written in the pod.
    image: str
    was_present: bool
    # Microseconds of the pull alone, and with the wait for the kubelet's other pulls; None: not
    # said, or not readable.
    pull_us: int | None = None
    pull_and_wait_us: int | None = None
    image_bytes: int | None = None


class PullEvent(NamedTuple):
    """A kubelet's Event about one image of a pod."""

    pod: str
    pod_uid: str
    node: str
    # As written in the pod.
    image: str
    # Pulled (the image is present), Failed or BackOff.
    reason: str
    message: str
    # Unix time, by the kubelet's clock.
    at: float


def read_pulled_message(message: str) -> PulledMessage | None:
    """Read the message of an Event `Pulled`; None for another message."""
    if pulled := _PULLED_MESSAGE.search(message):
        size = pulled["bytes"]
        pull_us = read_span(pulled["pull"])
        total_us = read_span(pulled["total"]) if pulled["total"] else pull_us
        return PulledMessage(pulled["image"], False, pull_us, total_us, int(size) if size else None)
    present = _PRESENT_MESSAGE.search(message)
    return PulledMessage(present["image"], True) if present else None


def image_in_message(message: str) -> str:
    """Return the image that a kubelet's message names, as written there; "" if it names none."""
    named = _NAMED.search(message)
    return named[1] if named else ""


def read_pull_event(item: Mapping[str, Any]) -> PullEvent | None:
    """Read an Event of the core API; None if it names no image."""
    about = item.get("involvedObject") or {}
    message = str(item.get("message") or "")[:4096]  # not a megabyte of each
    image = image_in_message(message)
    if not image:
        return None
    return PullEvent(
        pod=str(about.get("name") or ""),
        pod_uid=str(about.get("uid") or ""),
        node=str((item.get("source") or {}).get("host") or item.get("reportingInstance") or ""),
        image=image,
        reason=str(item.get("reason") or ""),
        message=message,
        at=event_moment(item),
    )
