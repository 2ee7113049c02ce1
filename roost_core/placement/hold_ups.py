"""What holds a bound pod up before its containers start: a volume that isn't there yet, or a
sandbox without an address.

Kubelets and the attacher of volumes say it in Events. Source:
kubernetes/pkg/kubelet/events/event.go and pkg/controller/volume/events/event.go,
from 1.34 to 1.37.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

from roost_core.objects.timestamps import event_beginning, event_moment

# The most characters of a cause.
_MAX_CAUSE: Final = 200
# Words in kubelets' messages about volumes. A kubelet says so only after it has waited for minutes.
LATE_WORDS: Final = ("timed out waiting for the condition", "context deadline exceeded")
_MULTI_ATTACH: Final = re.compile(
    r'(Multi-Attach error for volume) "([^"]+)"(?:.*already used by (pod\(s\) .*))?.*', re.DOTALL
)
# The parts of a message around its cause, which are left out.
_WRAPPING: Final = re.compile(
    r"Failed to create pod sandbox: |rpc error: code = \w+ desc = |^Error: |\\?\"", re.IGNORECASE
)
# The ID of a sandbox or a container.
_ID: Final = re.compile(r"\b[0-9a-f]{64}\b")


class HeldUpBy(StrEnum):
    """What isn't there yet."""

    VOLUME = "volume"
    SANDBOX = "sandbox"


# By the Event's reason.
HOLD_UPS: Final[Mapping[str, HeldUpBy]] = {
    "FailedAttachVolume": HeldUpBy.VOLUME,
    "FailedMount": HeldUpBy.VOLUME,
    "FailedMapVolume": HeldUpBy.VOLUME,
    "FailedCreatePodSandBox": HeldUpBy.SANDBOX,
    "NetworkNotReady": HeldUpBy.SANDBOX,
}
# Reasons of frequent warnings about pods that say nothing of hold-ups. The API server leaves these
# Events out. They are listed because a field selector can exclude many reasons, but can't name more
# than one that it wants.
OTHER_WARNINGS: Final = ("FailedScheduling", "BackOff", "Unhealthy", "Failed", "Evicted")


class HoldUp(NamedTuple):
    """One Event about what holds a pod up."""

    pod_uid: str
    by: HeldUpBy
    # See `short_cause`.
    cause: str
    # When the Event first occurred, in Unix time.
    since: float
    # When it last occurred.
    at: float


def read_hold_up(item: Mapping[str, Any]) -> HoldUp | None:
    """Read an Event of the core API; None: it isn't about a hold-up."""
    by = HOLD_UPS.get(str(item.get("reason") or ""))
    about = item.get("involvedObject") or {}
    if by is None or not about.get("uid"):
        return None
    cause = short_cause(str(item.get("message") or "")[:4096])
    return HoldUp(str(about["uid"]), by, cause, event_beginning(item), event_moment(item))


def short_cause(message: str) -> str:
    """A kubelet's message without what wraps its cause, in one line of at most 200 characters."""
    multi_attach = _MULTI_ATTACH.fullmatch(message)
    if multi_attach is not None:
        users = f", used by {multi_attach[3]}" if multi_attach[3] else ""
        message = f"{multi_attach[1]} {multi_attach[2]}{users}"
    without_wrapping = _ID.sub("…", _WRAPPING.sub("", message))
    text = " ".join(without_wrapping.split()).replace(" : ", ": ")
    return text if len(text) <= _MAX_CAUSE else f"{text[: _MAX_CAUSE - 1]}…"
