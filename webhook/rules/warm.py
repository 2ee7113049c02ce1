"""Prefer the nodes of the warm set: the oldest nodes that are enough for all pods of the class.

Of these, nodes that hold the pod's images come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import Final, NamedTuple, cast

from roost_core.objects.fields import MalformedObjectError
from roost_core.objects.image_references import normalise_reference
from roost_core.objects.selectors import NodeRules, NodeTerm, read_node_term
from roost_core.placement.labels import WARM_TARGET_ANNOTATION
from roost_core.placement.warm_sets import MAX_HOLDERS, doubt, with_weights
from roost_core.release.pod_classes import PodClass, Warm
from webhook.facts.holders import Holders, ImageHolders
from webhook.facts.warm import WarmFacts
from webhook.facts.warm_candidates import CandidateQuestion, Candidates
from webhook.patch import Annotate, PreferNode, named_node, prefers_node
from webhook.rules.contract import Case, Note, Reads, Rule, RuleResult
from webhook.rules.failed_pulls import failing_nodes
from webhook.rules.image_gate import gate_label
from webhook.rules.join_and_avoid import joins_unless_warm, pods_to_join
from webhook.rules.requests import requests_of


class WarmNeeds(NamedTuple):
    """What a pod itself says of its warm nodes: the same for all pods with the same spec."""

    rules: NodeRules
    requests: tuple[tuple[str, int], ...]
    # References, each as written and normalised.
    images: Sequence[tuple[str, str]]
    # Whether pullers bring all of these images to every node.
    are_brought: bool


class WarmChoice(NamedTuple):
    """The warm nodes of a pod."""

    # Names and weights, the best first.
    nodes: list[tuple[str, int]]
    # How many of them are known to hold all of the pod's images.
    holding: int
    # How many nodes the warm set has, full nodes included.
    set_size: int


class NoWarmSet(NamedTuple):
    """No warm set is used for a pod, although its class has one."""

    # In words: "nodes can't be read".
    reason: str


def prefer_warm(case: Case) -> Iterator[RuleResult]:
    """Prefer the warm nodes.

    If no warm set is used, prefer nodes with pods of the classes that the pod's class joins.
    """
    choice = choose_warm_nodes(case)
    if choice is None:
        return
    if isinstance(choice, NoWarmSet):
        yield Note("warm", f"nothing preferred: {choice.reason}")
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


def choose_warm_nodes(case: Case, needs: WarmNeeds | None = None) -> WarmChoice | NoWarmSet | None:
    """Choose the nodes to prefer: none if all are full.

    None: the class has no warm set, or the pod was reviewed before. needs: what `read_warm_needs`
    returned for a pod with the same spec.
    """
    pod = case.pod
    pod_class = case.pod_class
    if pod_class.warm is None:
        return None
    target = pod.annotations.get(WARM_TARGET_ANNOTATION, "")
    was_reviewed = bool(target) and prefers_node(pod, named_node(target))
    if was_reviewed:
        return None
    nodes = case.facts.nodes
    facts = case.facts.warm.get(pod_class.name)
    if nodes is None:
        return NoWarmSet("nodes can't be read")
    if facts is None:
        return NoWarmSet("pods of the class can't be read")
    try:
        needs = needs or read_warm_needs(case)
    except MalformedObjectError:
        # The API server will reject the pod, and say why. Other rules don't need the requests.
        return NoWarmSet("the pod's requests can't be read")
    # The nodes whose label says that they hold an image, by the image.
    images = {
        normalised: nodes.holders.get(gate_label(case.settings, reference), frozenset())
        for reference, normalised in needs.images
    }
    failing = failing_nodes(case)
    all_nodes_are_warm = needs.are_brought and facts.uses_only(_brought_images(case))
    if all_nodes_are_warm and not failing:
        # The scheduler packs users better than a set of the oldest nodes does.
        return NoWarmSet("pullers bring all images of the class to every node")
    warm = pod_class.warm
    question = CandidateQuestion(
        needs.rules, needs.requests, warm.pods_per_node, _preferred_terms(pod_class)
    )
    candidates = nodes.answers(question).derive(Candidates.of)
    if failing:
        candidates = candidates.without(failing)
    return order_warm_nodes(warm, candidates, facts, images)


def _brought_images(case: Case) -> frozenset[str]:
    """Normalised references of the images that pullers bring to every node."""
    return case.settings.gate.managed_images if case.settings.pullers_run else frozenset()


def _preferred_terms(pod_class: PodClass) -> tuple[tuple[int, NodeTerm], ...]:
    """The weights and terms of the nodes that the class prefers."""
    read = [
        (term["weight"], read_node_term(term["preference"]))
        for term in pod_class.preferred_node_terms
    ]
    return tuple((cast("int", weight), term) for weight, term in read if term is not None)


def order_warm_nodes(
    warm: Warm, candidates: Candidates, facts: WarmFacts, images: Mapping[str, frozenset[str]]
) -> WarmChoice:
    """The nodes that a pod should prefer, the best first.

    First stand nodes of the warm set that hold the pod's images, then others of the set, then nodes
    beyond the set. images: the pod's, normalised, with the nodes whose label says that they hold
    the image now.
    """
    free = candidates.free(warm.spare, facts)
    held = Holders(
        ImageHolders(facts.holders(image), labelled) for image, labelled in images.items()
    )
    names = _least_doubtful(warm.nodes, islice(free.holders(held), MAX_HOLDERS), facts, images)
    if len(names) < warm.nodes:
        to_pull = (name for name in free.to_pull(facts) if name not in held)
        names += islice(to_pull, warm.nodes - len(names))
    names += free.beyond[: warm.nodes - len(names)]
    return WarmChoice(with_weights(names), sum(name in held for name in names), free.set_size)


def _least_doubtful(
    count: int, holders: Iterable[str], facts: WarmFacts, images: Mapping[str, frozenset[str]]
) -> list[str]:
    """The best `count` of the holders: those of which it is most certain that they still hold the
    images.

    `holders` is read only until that many are certain.
    """
    sure: list[str] = []
    # The more doubtful, the higher the number.
    doubtful: list[tuple[int, str]] = []
    for name in holders:
        # The more other images came since, the likelier the kubelet has deleted this image. A label
        # says that it is there now.
        images_since = 0
        for image, labelled in images.items():
            if name not in labelled:
                images_since = max(images_since, facts.images_since(name, image))
        rank = doubt(images_since)
        if rank:
            doubtful.append((rank, name))
            continue
        sure.append(name)
        if len(sure) == count:
            return sure
    # Sorting is stable, so holders that are equally doubtful keep their order.
    doubtful.sort(key=itemgetter(0))
    return [*sure, *(name for _, name in doubtful)][:count]


RULE: Final = Rule(
    prefer_warm,
    lambda _settings, pod_class: pod_class.warm is not None,
    Reads.NODES | Reads.WARM | Reads.QUOTAS,
)
