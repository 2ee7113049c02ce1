"""Decide a node's labels and its startup taint: the target of each wanted image's label, and what must go."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from roost.controllers.contract.actions import ChangeNode
from roost.controllers.image_gate.absent_images import (
    NO_LABEL,
    NO_PULLER_OPENS_SECONDS,
    SENTENCES,
    STUCK_REASONS,
    Absence,
    LabelTarget,
    Opening,
    find_target,
    is_startup_taint,
)
from roost.controllers.image_gate.facts import LISTED_IMAGES
from roost.controllers.image_gate.node_view import NO_OPENINGS, NO_TIMES, count_any, join_references
from roost_core.objects.leaving_taints import LEAVING_TAINTS
from roost_core.placement.labels import HELD, OPENED, PULLING, pulled_label

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost.controllers.image_gate.facts import Fact
    from roost.controllers.image_gate.node_view import NodeView
    from roost_core.release.pullers import ManagedImage

# Webhooks get a new set of images within a kubelet's refresh of ConfigMaps; until then they may require an old label.
LEFT_SET_SECONDS: Final = 90.0
_HELD: Final = LabelTarget(HELD)


def find_unwanted(view: NodeView) -> Mapping[str, float]:
    """Return labels of this hub's images that don't belong on the node, and since when that is known."""
    prefix = view.settings.label_prefix
    ours = [label for label in view.node.labels if label.startswith(prefix)]
    if not ours:
        return NO_TIMES
    wanted = {image.label for image in view.wanted} if view.settings.labels_nodes else set()
    before = view.before.unwanted if view.before is not None else NO_TIMES
    return {label: before.get(label, view.now.steady) for label in ours if label not in wanted}


def find_unattended(view: NodeView, absent: tuple[ManagedImage, ...]) -> Mapping[str, float]:
    """Return the absent images that no puller's pod is there to pull, and since when; by normalised reference."""
    if not view.is_reporting or not absent or not view.settings.closes_nodes:
        return NO_TIMES
    before = view.before.unattended_since if view.before is not None else NO_TIMES
    return {
        image.normalised: before.get(image.normalised, view.now.steady)
        for image in absent
        if not any(image.normalised in pod.images for pod in view.evidence)
    }


def choose_targets(
    view: NodeView, facts: Mapping[str, Fact], unattended_since: Mapping[str, float]
) -> Mapping[str, LabelTarget]:
    """Decide what the labels of the images that belong on the node should be, by label."""
    if not view.settings.labels_nodes:
        return {}
    labels = view.node.labels
    if not view.is_reporting:
        return {image.label: _target_before_ready(view, image, labels.get(image.label)) for image in view.wanted}
    targets: dict[str, LabelTarget] = {}
    taint = view.settings.taint_against_pullers(view.node)
    for image in view.wanted:
        fact = facts[image.normalised]
        label = labels.get(image.label)
        if fact.holds:
            target = _HELD
        elif not view.settings.closes_nodes:
            target = NO_LABEL
        elif _is_draining(view):
            # No pod is bound here. cluster-autoscaler models a group's new nodes on its last one, labels included: the
            # copy must not say "pulling".
            target = LabelTarget(OPENED) if label == OPENED else NO_LABEL
        elif taint is not None:
            target = _target_under_taint(view, label)
        else:
            absence = _absence(view, image, fact, unattended_since)
            target = find_target(absence, view.settings.pull_deadline_seconds)
        targets[image.label] = target
    view.waits += [target.wait_seconds for target in targets.values() if target.wait_seconds is not None]
    return targets


def _target_before_ready(view: NodeView, image: ManagedImage, label: str | None) -> LabelTarget:
    """Close a new node before any pod can be bound there; labels of other nodes stay as they are."""
    if _is_kept_from_pullers(view):
        # No puller comes. The taint may be a startup taint unknown to us that Karpenter ignores (startupTaints of its
        # NodePool): then the gate alone would keep off the very user that the node is for.
        return NO_LABEL if not view.was_ready and label == PULLING else LabelTarget(label)
    if (
        label is None
        and not view.was_ready
        and view.settings.closes_nodes
        and view.context.has_puller
        and not view.node.deleting
        and not any(spelling in view.node.images for spelling in image.spellings)
    ):
        return LabelTarget(PULLING)
    return LabelTarget(label)


def _is_draining(view: NodeView) -> bool:
    """Whether the node is cordoned, or a taint says that it leaves or may leave."""
    node = view.node
    return node.unschedulable or any(taint.key in LEAVING_TAINTS for taint in node.taints)


def _is_kept_from_pullers(view: NodeView) -> bool:
    """Whether a taint keeps the puller away that isn't known to be a startup taint."""
    node = view.node
    lasting = tuple(taint for taint in node.taints if not is_startup_taint(taint))
    return view.settings.taint_against_pullers(replace(node, taints=lasting)) is not None


def _target_under_taint(view: NodeView, label: str | None) -> LabelTarget:
    """Keep a node closed while a startup taint keeps all pods away: the taint goes without warning."""
    if _is_kept_from_pullers(view) or not view.context.has_puller:
        return NO_LABEL
    if label == OPENED:
        return LabelTarget(OPENED)
    ready_seconds = 0.0 if view.ready_since is None else view.now.steady - view.ready_since
    seconds_left = NO_PULLER_OPENS_SECONDS - ready_seconds
    return LabelTarget(PULLING, None, seconds_left) if seconds_left > 0 else NO_LABEL


def _absence(view: NodeView, image: ManagedImage, fact: Fact, unattended_since: Mapping[str, float]) -> Absence:
    name = image.normalised
    faults = [pod.faults[name] for pod in view.evidence if name in pod.faults]
    return Absence(
        label=view.node.labels.get(image.label),
        is_coming=any(pod.still_brings(name) for pod in view.evidence),
        is_stuck=bool(faults) and all(fault.reason in STUCK_REASONS for fault in faults),
        was_brought=any(name in pod.images for pod in view.evidence),
        is_expected=view.context.has_puller,
        missing_seconds=view.now.steady - fact.since,
        unattended_seconds=view.now.steady - unattended_since.get(name, view.now.steady),
    )


def find_openings(view: NodeView, targets: Mapping[str, LabelTarget]) -> Mapping[str, Opening]:
    """Return why each label that says "opened" does."""
    if not any(target.value == OPENED for target in targets.values()):
        return NO_OPENINGS
    before = view.before.opened if view.before is not None else NO_OPENINGS
    return {
        label: target.why or before.get(label, Opening.EARLIER)
        for label, target in targets.items()
        if target.value == OPENED
    }


def plan_change(
    view: NodeView,
    targets: Mapping[str, LabelTarget],
    absent: tuple[ManagedImage, ...],
    unwanted: Mapping[str, float],
) -> ChangeNode | None:
    """Return what makes the node's labels and startup taint what they should be; None if they are."""
    labels = view.node.labels
    differing = {label: target for label, target in targets.items() if target.value != labels.get(label)}
    by_value = {
        value: [label for label, target in differing.items() if target.value == value]
        for value in (HELD, PULLING, OPENED)
    }
    left = [label for label in differing if labels.get(label) == HELD]
    removed = [label for label, target in differing.items() if target.value is None]
    out_of_set = [label for label, since in unwanted.items() if _may_remove(view, label, since)]
    lift_reason = _why_taint_goes(view, absent)
    if not (differing or out_of_set or lift_reason):
        return None
    no_longer = [label for label in removed if label not in left]
    why = [
        lift_reason or count_any(by_value[HELD], "image is on the node", "images are on the node"),
        count_any(left, "image left the node", "images left the node"),
        count_any(by_value[PULLING], "image is being pulled", "images are being pulled"),
        *(_why_opened(view, label, targets[label]) for label in by_value[OPENED]),
        count_any(no_longer, "image is no longer awaited", "images are no longer awaited"),
        count_any(out_of_set, "label is of an image not needed here", "labels are of images not needed here"),
    ]
    return ChangeNode(
        node=view.node.name,
        uid=view.node.uid,
        set_labels={label: value for value, changed in by_value.items() for label in changed},
        remove_labels=frozenset((*removed, *out_of_set)),
        remove_taints=frozenset({view.settings.taint_key} if lift_reason else ()),
        why="; ".join(filter(None, why)),
    )


def describe_opening(image: str, why: Opening) -> str:
    """Say that a node is open to users of an image that it lacks."""
    return f"opened to users of {image}, as {SENTENCES[why]}"


def _why_opened(view: NodeView, label: str, target: LabelTarget) -> str:
    image = next(image.reference for image in view.wanted if image.label == label)
    return describe_opening(image, target.why or Opening.EARLIER)


def _may_remove(view: NodeView, label: str, since: float) -> bool:
    """Whether a label that doesn't belong on the node may be removed."""
    if view.node.labels[label] != HELD:
        return True
    seconds_left = since + LEFT_SET_SECONDS - view.now.steady
    if seconds_left > 0:
        view.waits.append(seconds_left)
        return False
    return label not in view.context.required or (view.is_reporting and _is_disproved(view, label))


def _is_disproved(view: NodeView, label: str) -> bool:
    """Whether the node's complete list has no image of that label, whatever its name."""
    listed = view.node.images
    if not listed or (view.node.image_count or len(listed)) >= LISTED_IMAGES:
        return False
    return all(pulled_label(view.settings.release, view.settings.namespace, name) != label for name in listed)


def _why_taint_goes(view: NodeView, absent: tuple[ManagedImage, ...]) -> str:
    """Return why the startup taint goes now; "" if it stays, or the node has none."""
    if all(taint.key != view.settings.taint_key for taint in view.node.taints):
        return ""
    if not view.settings.labels_nodes:
        return "the image gate is off"
    if not view.wanted:
        return "no image belongs on this node"
    if not view.is_reporting:
        return ""
    if not absent:
        return count_any(view.wanted, "image is on the node", "images are on the node")
    deadline = view.settings.pull_deadline_seconds
    seconds_left = deadline - (view.now.steady - view.ready_since if view.ready_since is not None else 0.0)
    if seconds_left > 0:
        view.waits.append(seconds_left)
        return ""
    taint = view.settings.taint_against_pullers(view.node)
    kept_away = f", as taint {taint.key} keeps the puller away" if taint is not None else ""
    return f"its deadline of {deadline} s has passed, and it still lacks {join_references(absent)}{kept_away}"
