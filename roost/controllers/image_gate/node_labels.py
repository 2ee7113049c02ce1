"""Decide what labels of a node and its startup taint should be, and the change that makes them so.

The label of an image that a Ready node lacks closes the node to the image's users, or opens it to
them. A node is closed only while this release's puller can be expected to bring the image soon. On
any doubt it is opened, and it stays open until the image is there, so that the label doesn't flap.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Final, NamedTuple

from roost.controllers.contract.actions import ChangeNode, Notice
from roost.controllers.image_gate.facts import NodeFacts, ObservedNode
from roost.controllers.image_gate.pull_warnings import count_any
from roost.controllers.image_gate.temporary_taints import goes_by_itself
from roost_core.objects.leaving_taints import ANY_LEAVING_TAINTS
from roost_core.objects.node import Node
from roost_core.placement.beliefs import COMING
from roost_core.placement.labels import HELD, OPENED, PULLING, pulled_label
from roost_core.release.image_gate import ManagedImage

# Webhooks get a new set of images within a kubelet's refresh of ConfigMaps; until then they may
# require an old label.
LEFT_SET_SECONDS: Final = 90.0
# Reasons of Events about a startup taint that was lifted: the node had its images, or lacked some.
TAINT_LIFTED: Final = "StartupTaintLifted"
OPENED_WITHOUT_IMAGES: Final = "OpenedWithoutImages"
# The reason of Events about a node that is open to users of an image that it lacks.
GATE_OPENED: Final = "ImageGateOpened"


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
NO_OPENINGS: Final[Mapping[str, Opening]] = {}


class LabelTarget(NamedTuple):
    """What a label should be."""

    # None: no label.
    value: str | None
    # When first opened.
    why: Opening | None = None
    # Seconds until it may change although nothing is reported; inf: it can't.
    wait_seconds: float = math.inf


_NO_LABEL: Final = LabelTarget(None)
_HELD: Final = LabelTarget(HELD)


class NodeTargets(NamedTuple):
    """What the labels of a node and its startup taint should be."""

    # By label, of the images that belong on the node.
    labels: Mapping[str, LabelTarget]
    # Labels of other images that go now.
    out_of_set: tuple[str, ...]
    # Why the startup taint goes now; "": it stays, or the node has none.
    why_taint_goes: str
    # Labels that close the node to users of an image while it is pulled.
    closed: frozenset[str]
    # Labels that open it, and why.
    opened: Mapping[str, Opening]
    # As of a label.
    wait_seconds: float


def choose_targets(
    observed: ObservedNode, facts: NodeFacts, opened_before: Mapping[str, Opening]
) -> NodeTargets:
    """Decide what a node's labels and startup taint should be. opened_before: the `opened` of the
    last plan.
    """
    node = observed.node
    settings = observed.context.settings
    # Or a taint says that it leaves or may leave.
    is_draining = node.unschedulable or any(
        taint.key in ANY_LEAVING_TAINTS for taint in node.taints
    )
    labels: dict[str, LabelTarget] = {}
    if settings.labels_nodes:
        for image in facts.wanted:
            label = node.labels.get(image.label)
            if not facts.is_reporting:
                target = _target_before_ready(observed, facts, image)
            elif facts.images[image.normalised].holds:
                target = _HELD
            elif not settings.closes_nodes:
                target = _NO_LABEL
            elif is_draining:
                # No pod is bound here. cluster-autoscaler models a group's new nodes on its last
                # one, labels included: the copy must not say "pulling".
                target = LabelTarget(OPENED) if label == OPENED else _NO_LABEL
            elif facts.puller_taint is not None:
                target = _target_under_taint(observed, facts, label)
            else:
                target = _target_while_absent(observed, facts, image)
            labels[image.label] = target
    # A node that was Ready and isn't takes no pods, whatever its labels say. One that never was
    # Ready will soon take some.
    counts_as_closed = facts.is_reporting or not facts.was_ready
    pulling = [label for label, target in labels.items() if target.value == PULLING]
    closed = pulling if counts_as_closed else []
    opened = {
        label: target.why or opened_before.get(label, Opening.EARLIER)
        for label, target in labels.items()
        if target.value == OPENED
    }
    out_of_set, out_of_set_wait = _find_out_of_set(observed, facts)
    why_taint_goes, taint_wait = _judge_taint(observed, facts)
    waits = [target.wait_seconds for target in labels.values()]
    return NodeTargets(
        labels=labels,
        out_of_set=tuple(out_of_set),
        why_taint_goes=why_taint_goes,
        closed=frozenset(closed),
        opened=opened or NO_OPENINGS,
        wait_seconds=min(out_of_set_wait, taint_wait, *waits),
    )


def _target_before_ready(
    observed: ObservedNode, facts: NodeFacts, image: ManagedImage
) -> LabelTarget:
    """Close a new node before any pod can be bound there; labels of other nodes stay as they
    are.
    """
    node = observed.node
    label = node.labels.get(image.label)
    if _is_kept_from_pullers(observed):
        # No puller comes. The taint may be a startup taint unknown to us that Karpenter ignores
        # (startupTaints of its NodePool): then the gate alone would keep off the very user that the
        # node is for.
        if label == PULLING and not facts.was_ready:
            return _NO_LABEL
        return LabelTarget(label)
    if (
        label is None
        and not facts.was_ready
        and observed.context.settings.closes_nodes
        and observed.context.expects_puller
        and not node.deleting
        and not any(spelling in node.images for spelling in image.spellings)
    ):
        return LabelTarget(PULLING)
    return LabelTarget(label)


def _is_kept_from_pullers(observed: ObservedNode) -> bool:
    """Whether a taint keeps the puller away that isn't known to be a startup taint."""
    node = observed.node
    lasting = tuple(taint for taint in node.taints if not goes_by_itself(taint))
    untainted = replace(node, taints=lasting)
    return observed.context.settings.taint_against_pullers(untainted) is not None


def _target_under_taint(observed: ObservedNode, facts: NodeFacts, label: str | None) -> LabelTarget:
    """Keep a node closed while a startup taint keeps all pods away: the taint goes without
    warning.
    """
    if _is_kept_from_pullers(observed) or not observed.context.expects_puller:
        return _NO_LABEL
    if label == OPENED:
        return LabelTarget(OPENED)
    seconds_left = COMING.age_seconds - _ready_seconds(observed, facts)
    return LabelTarget(PULLING, None, seconds_left) if seconds_left > 0 else _NO_LABEL


def _ready_seconds(observed: ObservedNode, facts: NodeFacts) -> float:
    """For how long the node has been Ready; 0: nobody knows."""
    if facts.ready_since is None:
        return 0.0
    return observed.context.now.steady - facts.ready_since


def _target_while_absent(
    observed: ObservedNode, facts: NodeFacts, image: ManagedImage
) -> LabelTarget:
    """Decide what the label of an absent image should be where the puller may go."""
    context = observed.context
    name = image.normalised
    now = context.now.steady
    label = observed.node.labels.get(image.label)
    is_coming = any(pod.still_brings(name) for pod in observed.evidence)
    if not (is_coming or context.expects_puller):
        return _NO_LABEL
    if label == OPENED:
        return LabelTarget(OPENED)
    if (observed.node.name, image.label) in context.users:
        # With another label, the kubelet would refuse the user's pod: kubelets check required node
        # terms, too, of new pods, and of all pods when they start.
        return LabelTarget(OPENED, Opening.USER_CAME)
    deadline_seconds = context.settings.pull_deadline_seconds - (now - facts.images[name].since)
    wait_seconds = deadline_seconds
    # A pull that fails doesn't open the node: among nodes that pull it would be the only open one.
    if not is_coming:
        if any(name in pod.images for pod in observed.evidence):
            # A puller's pod has pulled it once.
            return LabelTarget(OPENED, Opening.REMOVED)
        unattended_seconds = now - facts.unattended_since.get(name, now)
        wait_seconds = min(deadline_seconds, COMING.age_seconds - unattended_seconds)
        if unattended_seconds >= COMING.age_seconds:
            return LabelTarget(OPENED, Opening.NO_PULLER)
    if deadline_seconds <= 0:
        return LabelTarget(OPENED, Opening.DEADLINE)
    return LabelTarget(PULLING, None, wait_seconds)


def _find_out_of_set(observed: ObservedNode, facts: NodeFacts) -> tuple[list[str], float]:
    """Return the labels that go as their images don't belong on the node, and the seconds until
    another one may.
    """
    labels: list[str] = []
    waits: list[float] = []
    if not observed.node.deleting:
        for label, since in facts.unwanted.items():
            is_held = observed.node.labels[label] == HELD
            seconds_left = since + LEFT_SET_SECONDS - observed.context.now.steady
            if is_held and seconds_left > 0:
                waits.append(seconds_left)
                continue
            is_required = is_held and label in observed.context.required_labels
            if not is_required or (facts.is_reporting and _is_disproved(observed, label)):
                labels.append(label)
    return labels, min(waits, default=math.inf)


def _is_disproved(observed: ObservedNode, label: str) -> bool:
    """Whether the node's complete list has no image of that label, whatever its name."""
    settings = observed.context.settings
    return observed.node.lists_all_images and all(
        pulled_label(settings.release, settings.namespace, name) != label
        for name in observed.node.images
    )


def _judge_taint(observed: ObservedNode, facts: NodeFacts) -> tuple[str, float]:
    """Return why the startup taint goes now, and the seconds until it goes at the latest.

    "": it stays, or the node has none. inf: there is no deadline.
    """
    settings = observed.context.settings
    if all(taint.key != settings.taint_key for taint in observed.node.taints):
        return "", math.inf
    if not settings.labels_nodes:
        return "the image gate is off", math.inf
    if not facts.wanted:
        return "no image belongs on this node", math.inf
    if not facts.is_reporting:
        return "", math.inf
    if not facts.absent:
        why = count_any(facts.wanted, "image is on the node", "images are on the node")
        return why, math.inf
    deadline = settings.pull_deadline_seconds
    seconds_left = deadline - _ready_seconds(observed, facts)
    if seconds_left > 0:
        return "", seconds_left
    taint = facts.puller_taint
    kept_away = f", as taint {taint.key} keeps the puller away" if taint is not None else ""
    lacks = ", ".join(image.reference for image in facts.absent)
    why = f"its deadline of {deadline} s has passed, and it still lacks {lacks}{kept_away}"
    return why, math.inf


def plan_change(
    observed: ObservedNode, facts: NodeFacts, targets: NodeTargets
) -> ChangeNode | None:
    """Return what makes the node's labels and startup taint what they should be; None if they are,
    or the node is being deleted.
    """
    node = observed.node
    labels = node.labels
    differing = {
        label: target
        for label, target in targets.labels.items()
        if target.value != labels.get(label)
    }
    if node.deleting or not (differing or targets.out_of_set or targets.why_taint_goes):
        return None
    by_value = {
        value: [label for label, target in differing.items() if target.value == value]
        for value in (HELD, PULLING, OPENED)
    }
    # Of images that the node no longer has.
    left = [label for label in differing if labels.get(label) == HELD]
    removed = [label for label, target in differing.items() if target.value is None]
    # The others: of images that it was to get, or lacked.
    no_longer_awaited = [label for label in removed if label not in left]
    references = {image.label: image.reference for image in facts.wanted}
    why = [
        targets.why_taint_goes
        or count_any(by_value[HELD], "image is on the node", "images are on the node"),
        count_any(left, "image left the node", "images left the node"),
        count_any(by_value[PULLING], "image is being pulled", "images are being pulled"),
        *(
            _describe_opening(references[label], targets.labels[label].why or Opening.EARLIER)
            for label in by_value[OPENED]
        ),
        count_any(no_longer_awaited, "image is no longer awaited", "images are no longer awaited"),
        count_any(
            targets.out_of_set,
            "label is of an image not needed here",
            "labels are of images not needed here",
        ),
    ]
    taints = {observed.context.settings.taint_key} if targets.why_taint_goes else ()
    return ChangeNode(
        node=node.name,
        uid=node.uid,
        set_labels={label: value for value, changed in by_value.items() for label in changed},
        remove_labels=frozenset((*removed, *targets.out_of_set)),
        remove_taints=frozenset(taints),
        why="; ".join(filter(None, why)),
    )


def open_to_users(
    change: ChangeNode | None, node: Node, labels: Iterable[str], references: Mapping[str, str]
) -> ChangeNode:
    """Return the change that also opens labels of a node, as users wait. change: what else changes
    there. references: of images, by label.
    """
    opened = dict.fromkeys(sorted(labels), OPENED)
    why = "; ".join(
        _describe_opening(references.get(label, label), Opening.USER_WAITS) for label in opened
    )
    if change is None:
        return ChangeNode(node=node.name, uid=node.uid, set_labels=opened, why=why)
    set_labels = {**change.set_labels, **opened}
    return replace(change, set_labels=set_labels, why=f"{change.why}; {why}")


def _describe_opening(image: str, why: Opening) -> str:
    """Say that a node is open to users of an image that it lacks."""
    return f"opened to users of {image}, as {SENTENCES[why]}"


def urgency(change: ChangeNode) -> int:
    """Rank a change for when the write budget is short: those that somebody may wait for come
    first.
    """
    # Nodes are closed before one is known to hold a new image: from then on pods require it, and
    # kubelets refuse.
    values = change.set_labels.values()
    if OPENED in values:
        return 0
    if PULLING in values:
        return 1
    return 2 if values or change.remove_taints else 3


def describe_change(
    change: ChangeNode, *, is_for_users: bool, lacks_images: bool
) -> tuple[Notice, ...]:
    """Return the Events to write once a change is done. is_for_users: it opens the node as users
    wait, which is usual when nodes join; every other opening is worth a warning.
    """
    events: list[Notice] = []
    if OPENED in change.set_labels.values():
        message = f"Node {change.node}: {change.why}."
        events.append(
            Notice.on_node(change.node, change.uid, GATE_OPENED, message, warning=not is_for_users)
        )
    if change.remove_taints:
        reason = OPENED_WITHOUT_IMAGES if lacks_images else TAINT_LIFTED
        message = f"Node {change.node} lost its startup taint: {change.why}."
        events.append(
            Notice.on_node(change.node, change.uid, reason, message, warning=lacks_images)
        )
    return tuple(events)
