"""Judge one node: which images it holds, and which label, taint and Events follow from that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from roost.controllers.image_gate import node_labels
from roost.controllers.image_gate.facts import (
    NO_TOKENS,
    RENAMED,
    Fact,
    Listing,
    PullFault,
    look_up,
    seconds_until_doubt,
    weigh,
)
from roost.controllers.image_gate.node_reports import tell_of_faults, tell_of_no_puller
from roost.controllers.image_gate.node_share import NO_FAULTS, NodeMemory, NodeShare
from roost_core.placement.labels import HELD, PULLING
from roost_core.release.image_gate import ManagedImage

# Until a write comes back by the watch; after that it is requested again.
ECHO_SECONDS: Final = 10.0


def judge_node(share: NodeShare) -> NodeMemory:
    """Decide what a node needs, and write it into its share; return what to remember."""
    node, settings = share.node, share.settings
    facts = _find_facts(share)
    absent = tuple(
        one
        for one in share.wanted
        if one.normalised not in facts or not facts[one.normalised].holds
    )
    is_served = share.is_reporting and settings.taint_against_pullers(node) is None
    missing = absent if is_served else ()
    waiting_since = share.waiting_since() if missing else None
    faults = _find_faults(share, missing) if missing else NO_FAULTS
    unwanted = node_labels.find_unwanted(share)
    unattended_since = node_labels.find_unattended(share, absent)
    targets = node_labels.choose_targets(share, facts, unattended_since)
    if not node.deleting:
        share.change = node_labels.plan_change(share, targets, absent, unwanted)
    tell_of_faults(share, faults)
    tell_of_no_puller(share, missing, waiting_since)
    if share.change is not None:
        share.waits.append(ECHO_SECONDS)
    # A node that was never Ready will soon be; one that was and isn't doesn't count as closed.
    is_closing = share.is_reporting or not share.was_ready
    return NodeMemory(
        node=node,
        evidence=share.evidence,
        facts=facts,
        wanted=share.wanted if is_served else (),
        missing=missing,
        absent=absent if settings.labels_nodes else (),
        waiting_since=waiting_since,
        ready_since=share.ready_since,
        unwanted=unwanted,
        faults=faults,
        is_settled=not (share.waits or unwanted or share.notices),
        closed=frozenset(
            label for label, target in targets.items() if target.value == PULLING and is_closing
        ),
        opened=node_labels.find_openings(share, targets),
        unattended_since=unattended_since,
        was_ready=share.is_reporting or share.was_ready,
    )


def _find_facts(share: NodeShare) -> Mapping[str, Fact]:
    """Return what is known of each image that belongs on the node, by normalised reference."""
    before = share.before.facts if share.before is not None else {}
    if not share.is_reporting:
        return before
    labels = share.node.labels
    sizes = share.context.image_bytes
    facts: dict[str, Fact] = {}
    for image in share.wanted:
        name = image.normalised
        listing = look_up(share.node, image, sizes.get(name))
        if listing is Listing.YES:
            listed = share.node.images
            sizes[name] = next(
                listed[spelling] for spelling in image.spellings if spelling in listed
            )
        elif listing is Listing.SILENT and _is_refuted(share, image):
            listing = Listing.NO
        tokens = NO_TOKENS.union(*(pod.tokens.get(name, NO_TOKENS) for pod in share.evidence))
        is_labelled = labels.get(image.label) == HELD
        fact = weigh(before.get(name), listing, tokens, labelled=is_labelled, now=share.now)
        if share.before is None and not fact.holds:
            # At a new leader's first look, the puller's pod may know since when the image is
            # awaited.
            fact = fact._replace(since=share.waiting_since())
        facts[name] = fact
        doubt_after = seconds_until_doubt(fact, listing, share.now)
        if doubt_after is not None:
            share.waits.append(doubt_after)
    return facts


def _is_refuted(share: NodeShare, image: ManagedImage) -> bool:
    """Whether the kubelet failed to pull this very image, which it tries only if the node lacks
    it.
    """
    faults = (pod.faults.get(image.normalised) for pod in share.evidence)
    return any(
        fault is not None and fault.reference == image.reference and fault.reason != RENAMED
        for fault in faults
    )


def _find_faults(share: NodeShare, missing: tuple[ManagedImage, ...]) -> Mapping[str, PullFault]:
    names = [image.normalised for image in missing]
    return {
        name: pod.faults[name] for name in names for pod in share.evidence if name in pod.faults
    }
