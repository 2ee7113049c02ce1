"""Prefer the first nodes of the repository's ring, with falling weights."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from roost_core.objects.node import Node, node_admits
from roost_core.objects.selectors import NodeRules
from roost_core.placement.labels import HOME_TARGET_ANNOTATION
from roost_core.release.pod_classes import Home, PodClass
from roost_core.release.repositories import PodTexts, repository_of
from webhook.binderhub_terms import is_binderhub_sticky_term
from webhook.facts.facts import Facts
from webhook.patch import Annotate, DropBinderHubTerms, PreferNode, named_node, prefers_node
from webhook.rendezvous import best_nodes, encode_name
from webhook.rules.contract import Case, Note, Reads, Rule, RuleResult

# From this weight on an author's preferred node term can outvote the repository's first home.
_OUTVOTING_WEIGHT: Final = 50


def prefer_home(case: Case) -> Iterator[RuleResult]:
    """Prefer the repository's homes in place of the node that BinderHub chose.

    A ring made without builders yields to BinderHub's own sticky term: BinderHub has seen builders
    that Roost hasn't. Its spreading term goes in any case: it would scatter a repository over cold
    caches.
    """
    pod = case.pod
    home = case.pod_class.home
    if home is None:
        return
    texts = PodTexts(pod.labels, pod.annotations, pod.containers)
    repository = repository_of(texts, home.key)
    if not repository:
        return
    target = pod.annotations.get(HOME_TARGET_ANNOTATION)
    if target and prefers_node(pod, named_node(target)):
        # Roost chose already: a pod reviewed again keeps its nodes.
        return
    admitted, lacks_builders = ring_of(case.pod_class, home, case.facts, pod.rules)
    nodes = best_nodes(repository, admitted, len(home.weights))
    is_settled = lacks_builders and any(map(is_binderhub_sticky_term, pod.preferred_node_terms))
    if not nodes or is_settled:
        yield DropBinderHubTerms(sticky=False, spread=True)
        yield Note(
            "home",
            "BinderHub's choice stays: no builder is ready" if is_settled else "no node is known",
        )
        return
    yield DropBinderHubTerms(sticky=True, spread=True)
    for weight, node in zip(home.weights, nodes, strict=False):
        yield PreferNode({"weight": weight, "preference": named_node(node)})
    yield Annotate(HOME_TARGET_ANNOTATION, nodes[0])
    without = ", without ready builders" if lacks_builders else ""
    yield Note("home", f"{', '.join(nodes)} of {len(admitted)}{without}")
    if any(map(_can_outvote_home, pod.preferred_node_terms)):
        text = (
            f"a preferred node term of weight {_OUTVOTING_WEIGHT} or more adds to the repository's"
            " home, may outvote it"
        )
        yield Note("home-outvoted", text, is_warning=True)


class RingQuestion(NamedTuple):
    """Which nodes are usable, and admitted by a pod's rules."""

    # None: any.
    names: frozenset[str] | None
    # None: whoever comes.
    rules: NodeRules | None

    def answer(self, node: Node) -> bytes | None:
        """The node's name as it is hashed; None: it isn't of the ring, or doesn't admit the pod."""
        is_of_ring = self.names is None or node.name in self.names
        if not (is_of_ring and node.is_usable):
            return None
        if self.rules is not None and not node_admits(self.rules, node):
            return None
        return encode_name(node.name)


class Ring(NamedTuple):
    """The nodes among which a repository's home is chosen."""

    # As `encode_name` gives them.
    nodes: Collection[bytes]
    # Whether its class has builders, and none is Ready on a usable node.
    lacks_builders: bool


def ring_of(pod_class: PodClass, home: Home, facts: Facts, rules: NodeRules | None = None) -> Ring:
    """The class's ring of usable nodes. rules: a pod's, which admit these nodes; None: all.

    While no builder is Ready the ring is made of all nodes: a repository's builds then still meet.
    """
    nodes = facts.nodes
    # None: the class has no builders, and any node can be a home.
    builders = None
    if home.builder_labels:
        builders = facts.builder_nodes.get(pod_class.name, frozenset())
    if nodes is None:
        names = [encode_name(name) for name in builders or ()]
        return Ring(names, lacks_builders=builders is not None and not builders)
    lacks_builders = False
    if builders is not None:
        lacks_builders = not nodes.answers(RingQuestion(builders, None)).by_name
    asked_for = None if lacks_builders else builders
    admitted = nodes.answers(RingQuestion(asked_for, rules)).by_name
    return Ring(admitted.values(), lacks_builders)


def _can_outvote_home(term: object) -> bool:
    if type(term) is not dict or is_binderhub_sticky_term(term):
        return False
    weight = term.get("weight")
    return type(weight) is int and weight >= _OUTVOTING_WEIGHT


RULE: Final = Rule(
    prefer_home,
    lambda _settings, pod_class: pod_class.home is not None,
    Reads.NODES | Reads.BUILDERS,
)
