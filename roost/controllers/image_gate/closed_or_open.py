"""Decide the label of an image that a Ready node lacks: it closes the node to the image's users, or
opens it to them.

A node is closed only while this release's puller can be expected to bring the image soon. On any
doubt it is opened, and it stays open until the image is there, so that the label doesn't flap.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from roost_core.objects.selectors import Taint
from roost_core.placement.beliefs import COMING
from roost_core.placement.labels import OPENED, PULLING, STARTUP_PREFIXES

# Taints that are removed within seconds of a node's start. Until then they keep pullers away, but
# users too.
_STARTUP_KEYS: Final = frozenset(
    {"node.cloudprovider.kubernetes.io/uninitialized", "karpenter.sh/unregistered"}
)
_STARTUP_PREFIXES: Final = ("node.kubernetes.io/", "readiness.k8s.io/", *STARTUP_PREFIXES)
# Cilium's, and those of storage drivers.
_STARTUP_SUFFIX: Final = "/agent-not-ready"


class Opening(StrEnum):
    """Why a node was opened; the values are a metric's label values."""

    REMOVED = "removed"
    NO_PULLER = "no-puller"
    DEADLINE = "deadline"
    USER_WAITS = "user-waits"
    USER_CAME = "user-came"
    # An earlier leader knew why.
    EARLIER = "earlier"


SENTENCES: Final = {
    Opening.REMOVED: "it was removed from the node, and the puller doesn't bring it again",
    Opening.NO_PULLER: f"no puller's pod has come within {COMING.age_seconds:.0f} s",
    Opening.DEADLINE: "it hasn't come within imageGate.pullDeadlineSeconds",
    Opening.USER_WAITS: (
        "a user waits for nothing else, or would only have nodes that can't pull it"
    ),
    Opening.USER_CAME: (
        "a user's pod came before it was closed, and its kubelet would refuse that pod"
    ),
    Opening.EARLIER: "it was before",
}


class Absence(NamedTuple):
    """What is known about an image that a Ready node lacks."""

    # Its label's present value.
    label: str | None
    # A puller's pod on the node has yet to pull it.
    is_coming: bool
    # A puller's pod on the node has pulled it once.
    was_brought: bool
    # A puller's pod can be expected on every node that it tolerates, this one included.
    is_expected: bool
    # A pod is bound to the node that must keep off nodes that are pulling the image.
    has_user: bool
    # How long it has been missing, and how long no puller's pod has been there to pull it.
    missing_seconds: float
    unattended_seconds: float


class LabelTarget(NamedTuple):
    """What a label should be."""

    # None: no label.
    value: str | None
    # When first opened.
    why: Opening | None = None
    # Seconds until it may change.
    wait_seconds: float | None = None


NO_LABEL: Final = LabelTarget(None)


def find_target(absence: Absence, deadline_seconds: float) -> LabelTarget:
    """Decide what the label of an absent image should be."""
    if not (absence.is_coming or absence.is_expected):
        return NO_LABEL
    if absence.label == OPENED:
        return LabelTarget(OPENED)
    if absence.has_user:
        # Kubelets look at required node terms, too: of new pods, and of all when they start.
        return LabelTarget(OPENED, Opening.USER_CAME)
    waits = [deadline_seconds - absence.missing_seconds]
    # Where the pull fails it's closed, too: it would be the only one open among those that are
    # pulling.
    if not absence.is_coming:
        if absence.was_brought:
            return LabelTarget(OPENED, Opening.REMOVED)
        waits.append(COMING.age_seconds - absence.unattended_seconds)
        if waits[-1] <= 0:
            return LabelTarget(OPENED, Opening.NO_PULLER)
    if waits[0] <= 0:
        return LabelTarget(OPENED, Opening.DEADLINE)
    return LabelTarget(PULLING, None, min(waits))


def is_startup_taint(taint: Taint) -> bool:
    """Whether a taint is one that nodes start with and that goes by itself."""
    key = taint.key
    return (
        key in _STARTUP_KEYS or key.startswith(_STARTUP_PREFIXES) or key.endswith(_STARTUP_SUFFIX)
    )
