"""Judge one node: which images it holds, and which label, taint, condition and Events follow from that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from roost.controllers.image_gate.facts import NO_TOKENS, Listing, look_up, seconds_until_doubt, weigh
from roost.controllers.image_gate.node_labels import (
    choose_targets,
    find_openings,
    find_unattended,
    find_unwanted,
    plan_change,
)
from roost.controllers.image_gate.node_reports import fault_notices, plan_condition, puller_notices
from roost.controllers.image_gate.node_view import NO_FAULTS, NodeMemory, NodeView
from roost_core.placement.labels import HELD, PULLING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost.controllers.contract.actions import ChangeNode, SetCondition
    from roost.controllers.image_gate.facts import Fact, Fault, PodEvidence, Token
    from roost.controllers.image_gate.node_reports import NodeNotice
    from roost.controllers.image_gate.node_view import PlanContext
    from roost_core.objects.node import Node
    from roost_core.release.pullers import ManagedImage

# Until a write comes back by the watch; after that it is requested again.
ECHO_SECONDS: Final = 10.0


class Judgement(NamedTuple):
    """One node's share of a plan."""

    memory: NodeMemory
    change: ChangeNode | None
    condition: SetCondition | None
    notices: tuple[NodeNotice, ...]
    wake_after_seconds: float | None


def judge_node(
    node: Node, evidence: tuple[PodEvidence, ...], before: NodeMemory | None, context: PlanContext
) -> Judgement:
    """Decide what a node needs. before: what was remembered of this very node, None at first."""
    view = NodeView(node, evidence, before, context)
    settings = view.settings
    facts = _find_facts(view)
    absent = tuple(image for image in view.wanted if image.normalised not in facts or not facts[image.normalised].holds)
    is_served = view.is_reporting and settings.taint_against_pullers(node) is None
    missing = absent if is_served else ()
    waiting_since = view.waiting_since() if missing else None
    faults = _find_faults(view, missing) if missing else NO_FAULTS
    unwanted = find_unwanted(view)
    unattended_since = find_unattended(view, absent)
    targets = choose_targets(view, facts, unattended_since)
    change = None if node.deleting else plan_change(view, targets, absent, unwanted)
    condition = None if node.deleting else plan_condition(view, absent, faults)
    notices = (*fault_notices(view, faults), *puller_notices(view, missing, waiting_since))
    if change is not None or condition is not None:
        view.waits.append(ECHO_SECONDS)
    # A node that was never Ready will soon be; one that was and isn't doesn't count as closed.
    is_closing = view.is_reporting or not view.was_ready
    memory = NodeMemory(
        node=node,
        evidence=evidence,
        facts=facts,
        wanted=view.wanted if is_served else (),
        missing=missing,
        absent=absent if settings.labels_nodes else (),
        waiting_since=waiting_since,
        ready_since=view.ready_since,
        unwanted=unwanted,
        faults=faults,
        is_settled=not (view.waits or unwanted or notices),
        closed=frozenset(label for label, target in targets.items() if target.value == PULLING and is_closing),
        opened=find_openings(view, targets),
        unattended_since=unattended_since,
        was_ready=view.is_reporting or view.was_ready,
    )
    return Judgement(memory, change, condition, notices, min(view.waits, default=None))


def _find_facts(view: NodeView) -> Mapping[str, Fact]:
    """Return what is known of each image that belongs on the node, by normalised reference."""
    before = view.before.facts if view.before is not None else {}
    if not view.is_reporting:
        return before
    labels = view.node.labels
    sizes = view.context.image_bytes
    facts: dict[str, Fact] = {}
    for image in view.wanted:
        name = image.normalised
        listing = look_up(view.node, image, sizes.get(name))
        if listing is Listing.YES:
            listed = view.node.images
            sizes[name] = next(listed[spelling] for spelling in image.spellings if spelling in listed)
        elif listing is Listing.SILENT and _is_refuted(view, image):
            listing = Listing.NO
        tokens = _tokens(view, name)
        is_labelled = labels.get(image.label) == HELD
        fact = weigh(before.get(name), listing, tokens, labelled=is_labelled, now=view.now)
        if view.before is None and not fact.holds:
            # At a new leader's first look, the puller's pod may know since when the image is awaited.
            fact = fact._replace(since=view.waiting_since())
        facts[name] = fact
        doubt_after = seconds_until_doubt(fact, listing, view.now)
        if doubt_after is not None:
            view.waits.append(doubt_after)
    return facts


def _tokens(view: NodeView, name: str) -> frozenset[Token]:
    """Return what the puller's pods on the node report of an image; nearly always there is one pod."""
    if len(view.evidence) == 1:
        return view.evidence[0].tokens.get(name, NO_TOKENS)
    return NO_TOKENS.union(*(pod.tokens.get(name, NO_TOKENS) for pod in view.evidence))


def _is_refuted(view: NodeView, image: ManagedImage) -> bool:
    """Whether the kubelet failed to pull this very image, which it tries only if the node lacks it."""
    faults = (pod.faults.get(image.normalised) for pod in view.evidence)
    return any(fault is not None and fault.reference == image.reference for fault in faults)


def _find_faults(view: NodeView, missing: tuple[ManagedImage, ...]) -> Mapping[str, Fault]:
    return {
        image.normalised: fault
        for image in missing
        for pod in view.evidence
        if (fault := pod.faults.get(image.normalised)) is not None
    }
