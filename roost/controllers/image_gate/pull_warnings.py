"""Tell why a node doesn't get its images: find the cause in the kubelet's message, and write an
Event about it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sized
from enum import StrEnum
from typing import Final, NamedTuple

from roost.controllers.contract.actions import Notice
from roost.controllers.image_gate.facts import NodeFacts, ObservedNode
from roost.controllers.image_gate.puller_pods import RENAMED, PullFault
from roost_core.release.image_gate import GateMode

# Further causes, which no fault of a pull has. The node has no puller's pod:
NO_PULLER: Final = "no-puller"
# The image was pulled, but the node doesn't list it. It may be there under another name:
NOT_LISTED: Final = "not-listed"


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


# What messages say, in lower case. They are searched in this order, because a registry that refuses
# credentials may also say "not found". HTTP status codes are left out: a port or a digest may
# contain the same digits.
_PHRASES: Final = (
    (Cause.DISK, ("no space left on device", "disk quota exceeded")),
    (Cause.THROTTLED, ("toomanyrequests", "too many requests", "pull qps exceeded", "rate limit")),
    (Cause.CERTIFICATE, ("x509:", "certificate", "http response to https client")),
    (
        Cause.CREDENTIALS,
        (
            "unauthorized",
            "forbidden",
            "authorization failed",
            "authentication required",
            "insufficient_scope",
            "no basic auth credentials",
            "access denied",
            "permission denied",
        ),
    ),
    (
        Cause.REGISTRY,
        (
            "connection refused",
            "connection reset",
            "no such host",
            "timeout",
            "deadline exceeded",
            "unexpected eof",
            ": eof",
            "network is unreachable",
            "no route to host",
            "server misbehaving",
            "service unavailable",
            "bad gateway",
            "internal server error",
        ),
    ),
    (Cause.MISSING, ("not found", "manifest unknown", "name unknown")),
)
_BY_REASON: Final = {
    "InvalidImageName": Cause.NAME,
    "ErrImageNeverPull": Cause.NEVER,
    "RegistryUnavailable": Cause.REGISTRY,
    RENAMED: Cause.RENAMED,
}
# What is wrong, and how to fix it. Each ends a sentence that names the image.
_SENTENCES: Final = {
    Cause.REGISTRY: (
        "its registry does not answer. See that the registry is up and that the node reaches it"
    ),
    Cause.MISSING: "the registry has no such image. Fix its name and tag in the values, or push it",
    Cause.CREDENTIALS: (
        "the registry refuses the credentials. Fix the Secrets named in imagePullSecrets"
    ),
    Cause.CERTIFICATE: (
        "the registry's certificate is not trusted. Fix it, or make the node trust it"
    ),
    Cause.THROTTLED: (
        "the registry limits pulls. Wait, or use credentials with a higher limit in"
        " imagePullSecrets"
    ),
    Cause.DISK: "the node's disk is full. Free some space, or use larger disks",
    Cause.NAME: "it is not a valid image name. Fix it in the values",
    Cause.NEVER: "its pull policy is Never. Change it to IfNotPresent",
    # `_describe_fault` puts before it which image admission made of ours: "that one".
    Cause.RENAMED: (
        "name that one in the values, or exempt Roost's puller from what renames images and"
        " restart it"
    ),
    Cause.OTHER: "the runtime's message is in the status of the puller's pod",
}
# What happens to the image's users until that is fixed.
_MEANWHILE: Final = {
    GateMode.REQUIRE_LABEL: "Its users go to other nodes that hold it, if any",
    GateMode.PREFER: "Its users may still start on this node",
    GateMode.STARTUP_TAINT: (
        "A new node stays closed until its images are there or its deadline has passed"
    ),
    GateMode.OFF: "Its users may still start on this node",
}


def find_cause(fault: PullFault) -> Cause:
    """Classify a fault by the kubelet's reason and message."""
    if fault.reason in _BY_REASON:
        return _BY_REASON[fault.reason]
    # The image's name may contain a phrase, so it is taken out of the message.
    message = fault.message.lower()
    for name in {fault.reference, fault.image.reference, fault.image.normalised}:
        message = message.replace(name.lower(), "IMAGE")
    for cause, phrases in _PHRASES:
        if any(phrase in message for phrase in phrases):
            return cause
    return Cause.OTHER


class PullWarning(NamedTuple):
    """An Event about a node that doesn't get its images."""

    # The image and the cause. Warnings with the same subject are about the same fault, so Events
    # about a few of the nodes are enough.
    subject: tuple[str, str]
    event: Notice


def find_warnings(observed: ObservedNode, facts: NodeFacts) -> Iterator[PullWarning]:
    """Make the warnings about a node."""
    node = observed.node
    if facts.faults:
        yield from _warn_of_faults(observed, facts)
    if facts.unserved:
        effect = count_any(facts.unserved, "image stays missing", "images stay missing")
        fix = "look for pending pods of the puller's DaemonSet, and at its tolerations"
        message = f"No puller pod runs on node {node.name}, so {effect} there; {fix}."
        event = Notice.on_node(node.name, node.uid, "NoPullerPod", message, warning=True)
        yield PullWarning(("", NO_PULLER), event)
    for image in facts.unlisted:
        message = (
            f"Image {image.reference} was pulled to node {node.name} and isn't listed under that"
            " name; name its registry in the values. Until then Roost can't tell when the image"
            " leaves the node."
        )
        event = Notice.on_node(node.name, node.uid, "ImageNotListed", message, warning=True)
        yield PullWarning((image.reference, NOT_LISTED), event)


def _warn_of_faults(observed: ObservedNode, facts: NodeFacts) -> Iterator[PullWarning]:
    """Make a warning for each fault that the puller's pods report. Equal messages occur once."""
    mode = observed.context.settings.mode
    messages: set[str] = set()
    for pod in observed.evidence:
        for name, fault in pod.faults.items():
            if name not in facts.faults:
                # The image has come meanwhile, or doesn't belong on the node.
                continue
            cause = find_cause(fault)
            message = _describe_fault(fault, cause, observed.node.name, mode)
            if message not in messages:
                messages.add(message)
                event = Notice.on_pod(pod.pod, "CannotPullImage", message, warning=True)
                yield PullWarning((fault.reference, cause.value), event)


def _describe_fault(fault: PullFault, cause: Cause, node: str, mode: GateMode) -> str:
    """Say which image can't be pulled, to which node, why, what to do, and the effect until
    then.
    """
    subject = f"Image {fault.reference} can't be pulled to node {node}"
    if fault.reference != fault.image.reference:
        subject = f"The puller's own image {fault.reference} can't be pulled to node {node}"
    if fault.reason == RENAMED:
        subject = f"{subject}: admission changed the puller's image to {fault.message}"
    return f"{subject}: {_SENTENCES[cause]}. {_MEANWHILE[mode]}."


def count_any(things: Sized, singular: str, plural: str) -> str:
    """Return "1 singular" or "n plural"; "" for none."""
    number = len(things)
    return f"{number} {singular if number == 1 else plural}" if number else ""
