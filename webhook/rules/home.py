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

# A preferred node term of the pod's author with this weight or more can outvote the first home.
_OUTVOTING_WEIGHT: Final = 50


def prefer_home(case: Case) -> Iterator[RuleResult]:
    """Prefer the repository's homes instead of the node that BinderHub chose.

    If Roost knows no Ready builder, BinderHub's sticky term stays: BinderHub has seen builders that
    Roost hasn't. BinderHub's spreading term is dropped in any case, because it would spread a
    repository over nodes without its cache.
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
        # Roost has already chosen: a pod that is reviewed again keeps its nodes.
        return
    admitted, lacks_builders = ring_of(case.pod_class, home, case.facts, pod.rules)
    nodes = best_nodes(repository, admitted, len(home.weights))
    keeps_choice = lacks_builders and any(map(is_binderhub_sticky_term, pod.preferred_node_terms))
    if keeps_choice:
        yield DropBinderHubTerms(sticky=False, spread=True)
        yield Note("home", "BinderHub's choice stays: no builder is ready")
        return
    if not nodes:
        yield DropBinderHubTerms(sticky=False, spread=True)
        yield Note("home", "no node is known")
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
    """Which nodes may be in a ring: they are usable, have a builder, and admit a pod."""

    # Names of the nodes with a builder; None: any node may be in the ring.
    names: frozenset[str] | None
    # Of the pod that the node must admit; None: nodes needn't admit a certain pod.
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

    # Names as `encode_name` returns them.
    nodes: Collection[bytes]
    # Whether its class has builders, and none is Ready on a usable node.
    lacks_builders: bool


def ring_of(pod_class: PodClass, home: Home, facts: Facts, rules: NodeRules | None = None) -> Ring:
    """The ring of a class: its usable nodes. rules: only nodes that they admit; None: all nodes.

    While no builder is Ready, the ring has all nodes, so that the builds of a repository still
    meet.
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
    names_of_ring = None if lacks_builders else builders
    admitted = nodes.answers(RingQuestion(names_of_ring, rules)).by_name
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
