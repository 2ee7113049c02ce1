"""Decide a node's labels and its startup taint: the target of each wanted image's label, and what
must go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from roost.controllers.contract.actions import ChangeNode
from roost.controllers.image_gate.closed_or_open import (
    NO_LABEL,
    SENTENCES,
    Absence,
    LabelTarget,
    Opening,
    find_target,
    is_startup_taint,
)
from roost.controllers.image_gate.facts import LISTED_IMAGES, Fact
from roost.controllers.image_gate.node_share import NO_OPENINGS, NO_TIMES, NodeShare, count_any
from roost_core.objects.leaving_taints import ANY_LEAVING_TAINTS
from roost_core.placement.beliefs import COMING
from roost_core.placement.labels import HELD, OPENED, PULLING, pulled_label
from roost_core.release.image_gate import ManagedImage

# Webhooks get a new set of images within a kubelet's refresh of ConfigMaps; until then they may
# require an old label.
LEFT_SET_SECONDS: Final = 90.0
_HELD: Final = LabelTarget(HELD)


def find_unwanted(share: NodeShare) -> Mapping[str, float]:
    """Return labels of this hub's images that don't belong on the node, and since when that is
    known.
    """
    prefix = share.settings.label_prefix
    ours = [label for label in share.node.labels if label.startswith(prefix)]
    if not ours:
        return NO_TIMES
    wanted = {image.label for image in share.wanted} if share.settings.labels_nodes else set()
    before = share.before.unwanted if share.before is not None else NO_TIMES
    return {label: before.get(label, share.now.steady) for label in ours if label not in wanted}


def find_unattended(share: NodeShare, absent: tuple[ManagedImage, ...]) -> Mapping[str, float]:
    """Return the absent images that no puller's pod is there to pull, and since when; by normalised
    reference.
    """
    if not share.is_reporting or not absent or not share.settings.closes_nodes:
        return NO_TIMES
    before = share.before.unattended_since if share.before is not None else NO_TIMES
    names = [image.normalised for image in absent]
    unattended = [name for name in names if not any(name in pod.images for pod in share.evidence)]
    return {name: before.get(name, share.now.steady) for name in unattended}


def choose_targets(
    share: NodeShare, facts: Mapping[str, Fact], unattended_since: Mapping[str, float]
) -> Mapping[str, LabelTarget]:
    """Decide what the labels of the images that belong on the node should be, by label."""
    if not share.settings.labels_nodes:
        return {}
    labels = share.node.labels
    if not share.is_reporting:
        return {
            image.label: _target_before_ready(share, image, labels.get(image.label))
            for image in share.wanted
        }
    targets: dict[str, LabelTarget] = {}
    taint = share.settings.taint_against_pullers(share.node)
    # Or a taint says that it leaves or may leave.
    is_draining = share.node.unschedulable or any(
        one.key in ANY_LEAVING_TAINTS for one in share.node.taints
    )
    for image in share.wanted:
        fact = facts[image.normalised]
        label = labels.get(image.label)
        if fact.holds:
            target = _HELD
        elif not share.settings.closes_nodes:
            target = NO_LABEL
        elif is_draining:
            # No pod is bound here. cluster-autoscaler models a group's new nodes on its last one,
            # labels included: the copy must not say "pulling".
            target = LabelTarget(OPENED) if label == OPENED else NO_LABEL
        elif taint is not None:
            target = _target_under_taint(share, label)
        else:
            absence = _absence(share, image, fact, unattended_since)
            target = find_target(absence, share.settings.pull_deadline_seconds)
        targets[image.label] = target
    share.waits += [
        target.wait_seconds for target in targets.values() if target.wait_seconds is not None
    ]
    return targets


def _target_before_ready(share: NodeShare, image: ManagedImage, label: str | None) -> LabelTarget:
    """Close a new node before any pod can be bound there; labels of other nodes stay as they
    are.
    """
    if _is_kept_from_pullers(share):
        # No puller comes. The taint may be a startup taint unknown to us that Karpenter ignores
        # (startupTaints of its NodePool): then the gate alone would keep off the very user that the
        # node is for.
        return NO_LABEL if not share.was_ready and label == PULLING else LabelTarget(label)
    if (
        label is None
        and not share.was_ready
        and share.settings.closes_nodes
        and share.context.has_puller
        and not share.node.deleting
        and not any(spelling in share.node.images for spelling in image.spellings)
    ):
        return LabelTarget(PULLING)
    return LabelTarget(label)


def _is_kept_from_pullers(share: NodeShare) -> bool:
    """Whether a taint keeps the puller away that isn't known to be a startup taint."""
    node = share.node
    lasting = tuple(taint for taint in node.taints if not is_startup_taint(taint))
    return share.settings.taint_against_pullers(replace(node, taints=lasting)) is not None


def _target_under_taint(share: NodeShare, label: str | None) -> LabelTarget:
    """Keep a node closed while a startup taint keeps all pods away: the taint goes without
    warning.
    """
    if _is_kept_from_pullers(share) or not share.context.has_puller:
        return NO_LABEL
    if label == OPENED:
        return LabelTarget(OPENED)
    ready_seconds = 0.0 if share.ready_since is None else share.now.steady - share.ready_since
    seconds_left = COMING.age_seconds - ready_seconds
    return LabelTarget(PULLING, None, seconds_left) if seconds_left > 0 else NO_LABEL


def _absence(
    share: NodeShare, image: ManagedImage, fact: Fact, unattended_since: Mapping[str, float]
) -> Absence:
    name = image.normalised
    return Absence(
        label=share.node.labels.get(image.label),
        is_coming=any(pod.still_brings(name) for pod in share.evidence),
        was_brought=any(name in pod.images for pod in share.evidence),
        is_expected=share.context.has_puller,
        has_user=(share.node.name, image.label) in share.context.users,
        missing_seconds=share.now.steady - fact.since,
        unattended_seconds=share.now.steady - unattended_since.get(name, share.now.steady),
    )


def find_openings(share: NodeShare, targets: Mapping[str, LabelTarget]) -> Mapping[str, Opening]:
    """Return why each label that says "opened" does."""
    reasons = {label: target.why for label, target in targets.items() if target.value == OPENED}
    if not reasons:
        return NO_OPENINGS
    before = share.before.opened if share.before is not None else NO_OPENINGS
    return {label: why or before.get(label, Opening.EARLIER) for label, why in reasons.items()}


def plan_change(
    share: NodeShare,
    targets: Mapping[str, LabelTarget],
    absent: tuple[ManagedImage, ...],
    unwanted: Mapping[str, float],
) -> ChangeNode | None:
    """Return what makes the node's labels and startup taint what they should be; None if they
    are.
    """
    labels = share.node.labels
    differing = {
        label: target for label, target in targets.items() if target.value != labels.get(label)
    }
    values = (HELD, PULLING, OPENED)
    by_value = {
        value: [label for label, target in differing.items() if target.value == value]
        for value in values
    }
    left = [label for label in differing if labels.get(label) == HELD]
    removed = [label for label, target in differing.items() if target.value is None]
    out_of_set = [label for label, since in unwanted.items() if _may_remove(share, label, since)]
    lift_reason = _why_taint_goes(share, absent)
    if not (differing or out_of_set or lift_reason):
        return None
    no_longer = [label for label in removed if label not in left]
    references = {image.label: image.reference for image in share.wanted}
    why = [
        lift_reason or count_any(by_value[HELD], "image is on the node", "images are on the node"),
        count_any(left, "image left the node", "images left the node"),
        count_any(by_value[PULLING], "image is being pulled", "images are being pulled"),
        *(
            describe_opening(references[label], targets[label].why or Opening.EARLIER)
            for label in by_value[OPENED]
        ),
        count_any(no_longer, "image is no longer awaited", "images are no longer awaited"),
        count_any(
            out_of_set,
            "label is of an image not needed here",
            "labels are of images not needed here",
        ),
    ]
    return ChangeNode(
        node=share.node.name,
        uid=share.node.uid,
        set_labels={label: value for value, changed in by_value.items() for label in changed},
        remove_labels=frozenset((*removed, *out_of_set)),
        remove_taints=frozenset({share.settings.taint_key} if lift_reason else ()),
        why="; ".join(filter(None, why)),
    )


def describe_opening(image: str, why: Opening) -> str:
    """Say that a node is open to users of an image that it lacks."""
    return f"opened to users of {image}, as {SENTENCES[why]}"


def _may_remove(share: NodeShare, label: str, since: float) -> bool:
    """Whether a label that doesn't belong on the node may be removed."""
    if share.node.labels[label] != HELD:
        return True
    seconds_left = since + LEFT_SET_SECONDS - share.now.steady
    if seconds_left > 0:
        share.waits.append(seconds_left)
        return False
    return label not in share.context.required_labels or (
        share.is_reporting and _is_disproved(share, label)
    )


def _is_disproved(share: NodeShare, label: str) -> bool:
    """Whether the node's complete list has no image of that label, whatever its name."""
    listed = share.node.images
    if not listed or (share.node.image_count or len(listed)) >= LISTED_IMAGES:
        return False
    return all(
        pulled_label(share.settings.release, share.settings.namespace, name) != label
        for name in listed
    )


def _why_taint_goes(share: NodeShare, absent: tuple[ManagedImage, ...]) -> str:
    """Return why the startup taint goes now; "" if it stays, or the node has none."""
    if all(taint.key != share.settings.taint_key for taint in share.node.taints):
        return ""
    if not share.settings.labels_nodes:
        return "the image gate is off"
    if not share.wanted:
        return "no image belongs on this node"
    if not share.is_reporting:
        return ""
    if not absent:
        return count_any(share.wanted, "image is on the node", "images are on the node")
    deadline = share.settings.pull_deadline_seconds
    seconds_left = deadline - (
        share.now.steady - share.ready_since if share.ready_since is not None else 0.0
    )
    if seconds_left > 0:
        share.waits.append(seconds_left)
        return ""
    taint = share.settings.taint_against_pullers(share.node)
    kept_away = f", as taint {taint.key} keeps the puller away" if taint is not None else ""
    lacks = ", ".join(image.reference for image in absent)
    return f"its deadline of {deadline} s has passed, and it still lacks {lacks}{kept_away}"
