"""Say what a node's label of an image it lacks should be: closed to the image's users while it comes, or open to them.

A node is closed only while this release's puller can be expected to bring the image soon. Whoever doubts that opens it,
and it stays open until the image is there: a label that went back and forth would say nothing.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from roost_core.placement.labels import OPENED, PULLING

if TYPE_CHECKING:
    from roost_core.placement.selectors import Taint

# The DaemonSet controller makes a pod for a new node within a second or two, and it is bound at once. Without one for
# so long there is none to wait for.
NO_PULLER_OPENS_SECONDS: Final = 30.0
# Kubelets say so only once a pull has failed twice, some ten seconds apart. Of the others nothing comes by waiting.
STUCK_REASONS: Final = frozenset({"ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"})
# Taints that somebody takes off within seconds of a node's start. They keep the puller away for so long, but users too.
_STARTUP_KEYS: Final = frozenset({"node.cloudprovider.kubernetes.io/uninitialized", "karpenter.sh/unregistered"})
# Those by which cluster-autoscaler is told that a node is on its way until they go.
AUTOSCALER_STARTUP_PREFIXES: Final = (
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
)
_STARTUP_PREFIXES: Final = ("node.kubernetes.io/", "readiness.k8s.io/", *AUTOSCALER_STARTUP_PREFIXES)
# Cilium's, and those of storage drivers.
_STARTUP_SUFFIX: Final = "/agent-not-ready"


class Opening(StrEnum):
    """Why a node was opened; the values are a metric's label values."""

    BACK_OFF = "back-off"
    REMOVED = "removed"
    NO_PULLER = "no-puller"
    DEADLINE = "deadline"
    USER_WAITS = "user-waits"
    # A leader before this one knew.
    EARLIER = "earlier"


SENTENCES: Final = {
    Opening.BACK_OFF: "it can't be pulled now",
    Opening.REMOVED: "it was removed from the node, and the puller doesn't bring it again",
    Opening.NO_PULLER: f"no puller's pod has come within {NO_PULLER_OPENS_SECONDS:.0f} s",
    Opening.DEADLINE: "it hasn't come within imageGate.pullDeadlineSeconds",
    Opening.USER_WAITS: "a user waits for nothing else",
    Opening.EARLIER: "it was before",
}


class Absence(NamedTuple):
    """What is known of an image that a Ready node lacks."""

    # What its label says now.
    label: str | None
    # A puller's pod is on the node that hasn't brought it yet; its pull fails again and again.
    is_coming: bool
    is_stuck: bool
    # A puller's pod is on the node that has brought it once.
    was_brought: bool
    # A puller can be expected on every node that its taints admit, and on this one.
    is_expected: bool
    # How long it is missing, and how long no puller's pod has been at it.
    missing_seconds: float
    alone_seconds: float


class Mark(NamedTuple):
    """What a label should be."""

    # None: no label.
    value: str | None
    # Of OPENED, the first time.
    why: Opening | None = None
    # Seconds after which it may be another.
    wait_seconds: float | None = None


NO_MARK: Final = Mark(None)


def find_mark(absence: Absence, deadline_seconds: float) -> Mark:
    """Say what becomes of a node's label of an image that it lacks."""
    if not (absence.is_coming or absence.is_expected):
        return NO_MARK
    if absence.label == OPENED:
        return Mark(OPENED)
    waits = [deadline_seconds - absence.missing_seconds]
    if absence.is_coming:
        if absence.is_stuck:
            return Mark(OPENED, Opening.BACK_OFF)
    elif absence.was_brought:
        return Mark(OPENED, Opening.REMOVED)
    else:
        waits.append(NO_PULLER_OPENS_SECONDS - absence.alone_seconds)
        if waits[-1] <= 0:
            return Mark(OPENED, Opening.NO_PULLER)
    if waits[0] <= 0:
        return Mark(OPENED, Opening.DEADLINE)
    return Mark(PULLING, None, min(waits))


def is_startup_taint(taint: Taint) -> bool:
    """Tell whether a taint is one under which nodes begin, and which goes by itself."""
    key = taint.key
    return key in _STARTUP_KEYS or key.startswith(_STARTUP_PREFIXES) or key.endswith(_STARTUP_SUFFIX)
