"""Find the warm nodes of a pod among the nodes of the facts. Pods with the same rules and requests share the work.

Owns the order within the set, and the caches: sets and orders are computed once per change of the facts.
`tests/warm_rule.py` is the same without caches, and a property test compares the two.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from roost_core.objects.node import node_admits
from roost_core.objects.selectors import node_term_matches, read_node_term
from roost_core.placement.warm_sets import MAX_HOLDERS, NEW_NODE_IMAGES, doubt, set_size, slots_of, with_weights

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from roost_core.objects.node import Node
    from roost_core.objects.selectors import NodeRules
    from roost_core.placement.nodes import Nodes
    from roost_core.placement.settings import Warm
    from webhook.rules.facts import WarmFacts

    # Rules and requests.
    _Key = tuple[NodeRules, tuple[tuple[str, int], ...]]

# Kinds of pods: rules and requests. A hub has one or a few.
_MAX_REMEMBERED: Final = 64


class WarmRequest(NamedTuple):
    """A pod that needs warm nodes."""

    # What the pod's own fields require of its node.
    rules: NodeRules
    # Amounts as kube-scheduler counts them, by resource.
    requests: tuple[tuple[str, int], ...]
    # For each image of the pod: the sets of nodes that are known to have it, one set per source.
    holders: Sequence[Sequence[frozenset[str]]]
    # Those images, normalised, with the nodes whose label says that they have it now.
    images: Sequence[tuple[str, frozenset[str]]] = ()


class WarmChoice(NamedTuple):
    """The warm nodes of a pod."""

    # Names and weights, best first.
    nodes: list[tuple[str, int]]
    # How many of them are known to have all of the pod's images.
    holding: int
    # Nodes in the set, including full ones.
    set_size: int


class _Kind(NamedTuple):
    """What pods with the same rules and requests have in common, for one state of the nodes."""

    nodes: Nodes
    # Of each usable node that the rules admit: the weights of the class's preferred terms that it meets, and its slots.
    judged: Mapping[str, tuple[int, int]]
    # Names and slots of those of them that the class prefers most, the oldest node first.
    slots: Mapping[str, int]


class _Set(NamedTuple):
    """The set of one kind, for one state of the nodes and the pods."""

    nodes: Nodes
    facts: WarmFacts
    # Of the facts.
    moment: int
    size: int
    # Those with room, the emptiest first, the older of two that are as empty.
    emptiest: Sequence[str]
    # The same, those first that pull for the fewest pods, and of these the ones that aren't new.
    idlest: Sequence[str]
    # The oldest outside the set with room, as many as may be named.
    beyond: Sequence[str]


class WarmFinder:
    """Finds warm nodes for one class. Safe for use from several threads."""

    def __init__(self, warm: Warm, preferred_node_terms: Sequence[Mapping[str, object]] = ()) -> None:
        """preferred_node_terms: the class's own. A set contains only nodes that they prefer most."""
        self._warm = warm
        read = ((cast("int", term["weight"]), read_node_term(term["preference"])) for term in preferred_node_terms)
        self._preferred = [(weight, term) for weight, term in read if term is not None]
        self._kinds: dict[_Key, _Kind] = {}
        self._sets: dict[_Key, _Set] = {}

    def find(self, request: WarmRequest, nodes: Nodes, facts: WarmFacts) -> WarmChoice:
        """The warm nodes of the pod."""
        key = (request.rules, () if self._warm.pods_per_node else request.requests)
        is_short = request.rules.are_short
        known = self._sets.get(key)
        if known is None or known.nodes is not nodes or known.facts is not facts or known.moment != facts.moment:
            known = self._make_set(self._kind(key, request, nodes, is_short=is_short), facts)
            if is_short:
                _make_room(self._sets)
                self._sets[key] = known
        limit = self._warm.nodes
        held = _held(request.holders)
        names = _surest((name for name in known.emptiest if name in held), facts, request.images, limit) if held else []
        holding = len(names)
        if holding < limit:
            names += islice((name for name in known.idlest if name not in held), limit - holding)
        names += known.beyond[: limit - len(names)]
        return WarmChoice(with_weights(names), sum(name in held for name in names), known.size)

    def _kind(self, key: _Key, request: WarmRequest, nodes: Nodes, *, is_short: bool) -> _Kind:
        known = self._kinds.get(key)
        changed = nodes.changed_since(known.nodes.moment) if known is not None else None
        if known is None or changed is None:
            kind = _kind_of(nodes, dict(self._judged(request, nodes.values())))
        elif changed:
            changed_nodes = (nodes[name] for name in changed if name in nodes)
            judged = {name: found for name, found in known.judged.items() if name not in changed}
            kind = _kind_of(nodes, judged | dict(self._judged(request, changed_nodes)))
        else:
            kind = known._replace(nodes=nodes)
        if is_short:
            _make_room(self._kinds)
            self._kinds[key] = kind
        return kind

    def _judged(self, request: WarmRequest, nodes: Iterable[Node]) -> Iterator[tuple[str, tuple[int, int]]]:
        for node in nodes:
            if node.is_usable and node_admits(request.rules, node):
                liked = sum(
                    weight for weight, term in self._preferred if node_term_matches(term, node.name, node.labels)
                )
                slots = self._warm.pods_per_node or slots_of(node.allocatable, request.requests)
                yield node.name, (liked, slots)

    def _make_set(self, kind: _Kind, facts: WarmFacts) -> _Set:
        slots = kind.slots
        loads = {name: facts.pods_on(name) for name in slots}
        # Pods on nodes where this pod can't go don't load its set.
        running = facts.pods_on("") + sum(loads.values())
        size = set_size(slots.values(), running + 1, self._warm.spare)
        with_room = ((place, name) for place, name in enumerate(slots) if loads[name] < slots[name])
        free: list[str] = []
        beyond: list[str] = []
        for place, name in with_room:
            if place < size:
                free.append(name)
            elif len(beyond) == self._warm.nodes:
                break
            else:
                beyond.append(name)
        # Sorting keeps those that are alike in their order.
        emptiest = sorted(free, key=loads.__getitem__)
        idlest = sorted(emptiest, key=lambda name: (facts.pulls_on(name), facts.images_on(name) < NEW_NODE_IMAGES))
        return _Set(kind.nodes, facts, facts.moment, size, emptiest, idlest, beyond)


def _kind_of(nodes: Nodes, judged: Mapping[str, tuple[int, int]]) -> _Kind:
    """Only the nodes that the class prefers most: otherwise an old node of another pool would join the set."""
    most = max((liked for liked, _ in judged.values()), default=0)
    names = [name for name, (liked, _) in judged.items() if liked == most]
    names.sort(key=lambda name: (nodes[name].created, name))
    return _Kind(nodes, judged, {name: judged[name][1] for name in names})


def _held(holders: Sequence[Sequence[frozenset[str]]]) -> frozenset[str]:
    """Nodes that have every image."""
    sets = [found[0] if len(found) == 1 else frozenset().union(*found) for found in holders]
    return frozenset.intersection(*sorted(sets, key=len)) if sets else frozenset()


def _surest(
    holders: Iterable[str], facts: WarmFacts, images: Sequence[tuple[str, frozenset[str]]], limit: int
) -> list[str]:
    """The holders whose kubelets most likely still have the images; the order stays among those as likely."""
    sure: list[str] = []
    by_doubt = {0: sure}
    for name in islice(holders, MAX_HOLDERS):
        since = 0
        for image, labelled in images:
            if name not in labelled:
                since = max(since, facts.images_since(name, image))
        by_doubt.setdefault(doubt(since), []).append(name)
        if len(sure) == limit:
            return sure
    return [name for rank in sorted(by_doubt) for name in by_doubt[rank]][:limit]


def _make_room(memory: dict[_Key, Any]) -> None:
    if len(memory) >= _MAX_REMEMBERED:
        memory.clear()
