"""Prefer nodes of the smallest set that carries the class: first those known to hold the pod's
images.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, cast

from roost_core.objects.fields import MalformedObjectError
from roost_core.objects.image_references import normalise_reference
from roost_core.objects.node import node_admits
from roost_core.objects.selectors import NodeRules, node_term_matches, read_node_term
from roost_core.placement.labels import WARM_TARGET_ANNOTATION
from roost_core.placement.nodes import Nodes
from roost_core.placement.warm_sets import (
    MAX_HOLDERS,
    NEW_NODE_IMAGES,
    doubt,
    set_size,
    slots_of,
    with_weights,
)
from roost_core.release.pod_classes import PodClass, Warm
from webhook.facts.warm import WarmFacts
from webhook.patch import Annotate, PreferNode, named_node, prefers_node
from webhook.rules.contract import Case, Note, Reads, Rule, RuleResult
from webhook.rules.image_gate import gate_label
from webhook.rules.pod_terms import joins_unless_warm, pods_to_join
from webhook.rules.prefer_images import failing_nodes
from webhook.rules.requests import requests_of


class WarmNeeds(NamedTuple):
    """What a pod itself says of its warm nodes: the same for all pods with the same spec."""

    rules: NodeRules
    requests: tuple[tuple[str, int], ...]
    # As written, and normalised.
    images: Sequence[tuple[str, str]]
    # Pullers bring all of these images to every node.
    are_brought: bool


class WarmChoice(NamedTuple):
    """The warm nodes of a pod."""

    # Names and weights, best first.
    nodes: list[tuple[str, int]]
    # How many of them are known to have all of the pod's images.
    holding: int
    # Nodes in the set, including full ones.
    set_size: int


def prefer_warm(case: Case) -> Iterator[RuleResult]:
    """Prefer the warm nodes; where no set is used, nodes with pods of the classes that the pod's
    class joins.
    """
    if (choice := choose_warm_nodes(case)) is None:
        return
    if isinstance(choice, str):
        yield Note("warm", f"nothing preferred: {choice}")
        if joins_unless_warm(case.settings, case.pod_class):
            yield from pods_to_join(case)
        return
    if not choice.nodes:
        yield Note("warm", f"nothing preferred: no node has room; {choice.set_size} in the set")
        return
    for node, weight in choice.nodes:
        yield PreferNode({"weight": weight, "preference": named_node(node)})
    first, _ = choice.nodes[0]
    yield Annotate(WARM_TARGET_ANNOTATION, first)
    known = f"{choice.holding} of {len(choice.nodes)} preferred nodes hold the images"
    yield Note("warm", f"{first}; {known}; {choice.set_size} nodes in the set")


def read_warm_needs(case: Case) -> WarmNeeds:
    """What the case's pod says of its warm nodes.

    Raises MalformedObjectError for requests that can't be read.
    """
    images = [(reference, normalise_reference(reference)) for reference in case.pod.images]
    are_brought = all(normalised in _brought_images(case) for _, normalised in images)
    return WarmNeeds(case.pod.rules, requests_of(case), images, are_brought)


def choose_warm_nodes(case: Case, needs: WarmNeeds | None = None) -> WarmChoice | str | None:
    """The nodes to prefer, none if all are full; or why no set is used. None: the class has none,
    or the pod its nodes.

    needs: what `read_warm_needs` found for a pod with the same spec.
    """
    pod, pod_class = case.pod, case.pod_class
    target = pod.annotations.get(WARM_TARGET_ANNOTATION)
    if pod_class.warm is None or (target and prefers_node(pod, named_node(target))):
        return None
    nodes, facts = case.facts.nodes, case.facts.warm.get(pod_class.name)
    if nodes is None or facts is None:
        return f"{'nodes' if nodes is None else 'pods of the class'} can't be read"
    try:
        needs = needs or read_warm_needs(case)
    except MalformedObjectError:
        # The API server will reject the pod and say why; the other rules don't need requests.
        return "the pod's requests can't be read"
    images = {}
    for reference, normalised in needs.images:
        images[normalised] = nodes.holders.get(gate_label(case.settings, reference), frozenset())
    failing = failing_nodes(case)
    if needs.are_brought and not failing and facts.uses_only(_brought_images(case)):
        # Nothing is to be chosen, and the scheduler packs better than a set of the oldest nodes.
        return "pullers bring all images of the class to every node"
    slots = _slots(pod_class, pod_class.warm, needs, nodes)
    for node in failing:
        slots.pop(node, None)
    return order_warm_nodes(pod_class.warm, slots, facts, images)


def _brought_images(case: Case) -> frozenset[str]:
    """Normalised references of the images that pullers bring to every node."""
    return case.settings.gate.managed_images if case.settings.pullers_run else frozenset()


def _slots(pod_class: PodClass, warm: Warm, needs: WarmNeeds, nodes: Nodes) -> dict[str, int]:
    """How many such pods each node takes, the oldest node first: of those that the class prefers
    most.

    With others an old node of another pool would join the set.
    """
    read = [
        (term["weight"], read_node_term(term["preference"]))
        for term in pod_class.preferred_node_terms
    ]
    preferred = [(cast("int", weight), term) for weight, term in read if term is not None]
    liked = {
        node.name: sum(
            weight for weight, term in preferred if node_term_matches(term, node.name, node.labels)
        )
        for node in nodes.values()
        if node.is_usable and node_admits(needs.rules, node)
    }
    most = max(liked.values(), default=0)
    names = [name for name, weight in liked.items() if weight == most]
    names.sort(key=lambda name: (nodes[name].created, name))
    return {
        name: warm.pods_per_node or slots_of(nodes[name].allocatable, needs.requests)
        for name in names
    }


def order_warm_nodes(
    warm: Warm, slots: Mapping[str, int], facts: WarmFacts, images: Mapping[str, frozenset[str]]
) -> WarmChoice:
    """The nodes that a pod should prefer, best first: of the set the holders of its images, then
    others, then beyond.

    slots: pods that each node takes, the oldest node first. images: the pod's, normalised, with the
    nodes whose label says that they have it now.
    """
    loads = {name: facts.pods_on(name) for name in slots}
    # Pods on nodes where this pod can't go don't load its set.
    running = facts.pods_on("") + sum(loads.values())
    size = set_size(slots.values(), running + 1, warm.spare)
    order = list(slots)
    free = sorted(
        (name for name in order[:size] if loads[name] < slots[name]), key=loads.__getitem__
    )
    beyond = [name for name in order[size:] if loads[name] < slots[name]]
    held = frozenset.intersection(
        *(facts.holders(image) | labelled for image, labelled in images.items() or _NONE)
    )

    def since(name: str) -> int:
        return max(
            (
                facts.images_since(name, image)
                for image, labelled in images.items()
                if name not in labelled
            ),
            default=0,
        )

    holders = sorted(
        [name for name in free if name in held][:MAX_HOLDERS], key=lambda name: doubt(since(name))
    )
    pulling = [name for name in free if name not in held]
    pulling.sort(key=lambda name: (facts.pulls_on(name), facts.images_on(name) < NEW_NODE_IMAGES))
    names = [*holders, *pulling, *beyond][: warm.nodes]
    return WarmChoice(with_weights(names), sum(name in held for name in names), size)


# A pod without images is held nowhere.
_NONE: Final = (("", frozenset[str]()),)

RULE: Final = Rule(
    prefer_warm,
    lambda _settings, pod_class: pod_class.warm is not None,
    Reads.NODES | Reads.WARM | Reads.QUOTAS,
)
