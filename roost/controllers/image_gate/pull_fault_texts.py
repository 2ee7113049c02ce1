"""Tell from the kubelet's and its runtime's messages why an image can't be pulled, and what to do
about it.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from roost.controllers.image_gate.facts import RENAMED, PullFault
from roost_core.release.image_gate import GateMode


class Cause(StrEnum):
    """Why a pull fails; the values are a metric's label values."""

    REGISTRY = "registry"
    MISSING = "missing"
    CREDENTIALS = "credentials"
    CERTIFICATE = "certificate"
    THROTTLED = "throttled"
    DISK = "disk"
    NAME = "name"
    NEVER = "never"
    RENAMED = "renamed"
    OTHER = "other"


# Patterns, searched in this order, in lower case: a refusal may also say "not found". HTTP status
# codes are left out: ports and digests contain the same digits.
_WORDS: Final = (
    (Cause.DISK, "no space left on device|disk quota exceeded"),
    (Cause.THROTTLED, "toomanyrequests|too many requests|pull qps exceeded|rate limit"),
    (Cause.CERTIFICATE, "x509:|certificate|http response to https client"),
    (
        Cause.CREDENTIALS,
        "unauthorized|forbidden|authorization failed|authentication required|insufficient_scope",
    ),
    (Cause.CREDENTIALS, "no basic auth credentials|access denied|permission denied"),
    (
        Cause.REGISTRY,
        (
            "connection refused|connection reset|no such host|timeout|deadline exceeded|unexpected"
            " eof|: eof"
        ),
    ),
    (
        Cause.REGISTRY,
        (
            "network is unreachable|no route to host|server misbehaving|service unavailable|bad"
            " gateway"
        ),
    ),
    (Cause.REGISTRY, "internal server error"),
    (Cause.MISSING, "not found|manifest unknown|name unknown"),
)
_BY_REASON: Final = {
    "InvalidImageName": Cause.NAME,
    "ErrImageNeverPull": Cause.NEVER,
    "RegistryUnavailable": Cause.REGISTRY,
    RENAMED: Cause.RENAMED,
}
_SENTENCES: Final = {
    Cause.REGISTRY: (
        "its registry does not answer; see that the registry is up and that the node reaches it"
    ),
    Cause.MISSING: "the registry has no such image; fix its name and tag in the values, or push it",
    Cause.CREDENTIALS: (
        "the registry refuses the credentials; fix the Secrets named in imagePullSecrets"
    ),
    Cause.CERTIFICATE: (
        "the registry's certificate is not trusted; fix it, or make the node trust it"
    ),
    Cause.THROTTLED: (
        "the registry limits pulls; wait, or use credentials with a higher limit in"
        " imagePullSecrets"
    ),
    Cause.DISK: "the node's disk is full; free some space, or use larger disks",
    Cause.NAME: "it is not a valid image name; fix it in the values",
    Cause.NEVER: "its pull policy is Never; change it to IfNotPresent",
    Cause.RENAMED: (
        "name that one in the values, or exempt Roost's puller from what renames images and"
        " restart it"
    ),
    Cause.OTHER: "the runtime's message is in the status of the puller's pod",
}
_MEANWHILE: Final = {
    GateMode.REQUIRE_LABEL: "its users go to other nodes that hold it, if any",
    GateMode.PREFER: "its users may still start on this node",
    GateMode.STARTUP_TAINT: (
        "a new node stays closed until its images are there or its deadline has passed"
    ),
    GateMode.OFF: "its users may still start on this node",
}


def find_cause(fault: PullFault) -> Cause:
    """Classify a fault by the kubelet's reason and message."""
    if fault.reason in _BY_REASON:
        return _BY_REASON[fault.reason]
    # The image's name may contain any of the phrases.
    message = fault.message.lower()
    for name in {fault.reference, fault.image.reference, fault.image.normalised}:
        message = message.replace(name.lower(), "IMAGE")
    return next((cause for cause, words in _WORDS if re.search(words, message)), Cause.OTHER)


def describe_fault(fault: PullFault, node: str, mode: GateMode) -> str:
    """Say in one sentence which image can't be pulled, to which node, why, what to do, and the
    effect until then.
    """
    subject = f"Image {fault.reference} can't be pulled to node {node}"
    if fault.reference != fault.image.reference:
        subject = f"The puller's own image {fault.reference} can't be pulled to node {node}"
    if fault.reason == RENAMED:
        subject = f"{subject}: admission changed the puller's image to {fault.message}"
    return f"{subject}: {_SENTENCES[find_cause(fault)]} ({_MEANWHILE[mode]})."
