"""Find the home of a pod's repository among the nodes that the facts know."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from roost_core.objects.node import node_admits
from roost_core.placement.admitted_nodes import AdmittedNodes
from roost_core.placement.home_load import choose_homes
from roost_core.placement.rendezvous import Ring
from webhook.rules.facts import HomePod

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roost_core.objects.selectors import NodeRules
    from roost_core.placement.nodes import Nodes
    from roost_core.placement.settings import Home
    from webhook.rules.facts import Facts
    from webhook.rules.ledger import Ledger


class HomeRequest(NamedTuple):
    """A pod that needs a home."""

    pod_class: str
    home: Home
    repository: str
    # What the pod's own fields require of its node.
    rules: NodeRules
    # The pod's key in facts and ledger.
    pod_key: str


class HomeChoice(NamedTuple):
    """The nodes of a pod's home."""

    # Best first; empty when no known node is suitable.
    nodes: list[str]
    # Nodes of the ring, and how many of them the pod's own rules admit.
    ring_size: int
    admitted: int
    # True: no builder is Ready anywhere, so the ring is made of all nodes instead.
    without_builders: bool


class HomeFinder:
    """Keeps one ring per class, up to date with the facts. Safe for use from several threads."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        # By class, and whether the ring is made of all nodes.
        self._rings: dict[tuple[str, bool], Ring] = {}
        self._counters: dict[tuple[str, bool], AdmittedNodes] = {}
        # Sizes of the same rings, with the names and nodes that they were counted from.
        self._sizes: dict[tuple[str, bool], tuple[frozenset[str], Nodes, int]] = {}

    def ring_size(self, pod_class: str, home: Home, facts: Facts) -> int:
        """Nodes in the class's ring."""
        return self._ring_names(pod_class, home, facts)[1]

    def find(self, request: HomeRequest, facts: Facts, now: float) -> HomeChoice:
        """The home of the pod's repository, under the bound on load."""
        pod_class, home = request.pod_class, request.home
        names, ring_size, without_builders = self._ring_names(pod_class, home, facts)
        if not ring_size:
            return HomeChoice([], 0, 0, without_builders)
        which = (pod_class, without_builders)
        ring = self._rings.get(which)
        if ring is None:
            ring = self._rings.setdefault(which, Ring())
        order = ring.order(request.repository, names)
        candidates = list(islice(_admitted(order, facts.nodes, request.rules), len(home.weights)))
        admitted = ring_size
        if facts.nodes is not None and home.max_load:
            counter = self._counters.get(which) or self._counters.setdefault(which, AdmittedNodes())
            counted = counter.count(facts.nodes, names, request.rules)
            admitted = ring_size if counted is None else counted
        loads, running = self._loads(request, candidates, facts, now)
        nodes = choose_homes(
            candidates, loads, running=running, nodes=admitted, min_load=home.min_load, max_load=home.max_load
        )
        return HomeChoice(nodes, ring_size, admitted, without_builders)

    def _ring_names(self, pod_class: str, home: Home, facts: Facts) -> tuple[frozenset[str], int, bool]:
        """Names that the class's ring is made of, how many are Ready and not cordoned, and whether it lacks builders.

        While no builder is Ready the ring is made of all nodes: a repository's builds then still meet. A choice by load
        alone would scatter them. Names of unusable nodes stay in the ring and are skipped, so that a node whose
        readiness flaps doesn't change it.
        """
        lacks_builders = bool(home.builder_labels)
        if lacks_builders:
            builders = facts.builder_nodes.get(pod_class, frozenset())
            size = self._size((pod_class, False), builders, facts.nodes)
            if size:
                return builders, size, False
        if facts.nodes is None:
            return frozenset(), 0, lacks_builders
        return (
            facts.nodes.names,
            self._size((pod_class, lacks_builders), facts.nodes.names, facts.nodes),
            lacks_builders,
        )

    def _size(self, ring: tuple[str, bool], names: frozenset[str], nodes: Nodes | None) -> int:
        if nodes is None:
            return len(names)
        cached = self._sizes.get(ring)
        changed = nodes.changed_since(cached[1].moment) if cached is not None and cached[0] is names else None
        if cached is None or changed is None:
            size = sum(1 for name in names if nodes.is_usable(name))
        else:
            changed_members = names & changed
            size = (
                cached[2]
                + sum(nodes.is_usable(name) for name in changed_members)
                - sum(map(cached[1].is_usable, changed_members))
            )
        if cached is None or cached[1] is not nodes or cached[0] is not names:
            self._sizes[ring] = (names, nodes, size)
        return size

    def _loads(
        self, request: HomeRequest, candidates: list[str], facts: Facts, now: float
    ) -> tuple[dict[str, int], int]:
        """Builds on the candidates, and in total. The pod itself doesn't count: its POST may be a repetition."""
        pod_class, ledger = request.pod_class, self._ledger
        ledger.follow(facts.homes, now, is_current=facts.shows_new_pods)
        shown = facts.homes.loads(pod_class)
        running = facts.homes.total(pod_class) + ledger.total(pod_class)
        loads = {node: shown.get(node, 0) + ledger.load(HomePod(pod_class, node)) for node in candidates}
        for own in (facts.homes.pods.get(request.pod_key), ledger.decision(request.pod_key)):
            if own is not None and own.pod_class == pod_class:
                running -= 1
                if own.node in loads:
                    loads[own.node] -= 1
        return loads, running


def _admitted(order: Iterator[str], nodes: Nodes | None, rules: NodeRules) -> Iterator[str]:
    """Those nodes that are Ready and not cordoned, and that the pod may be bound to; all, where nodes can't be read."""
    for name in order:
        if nodes is None:
            yield name
            continue
        node = nodes.get_node(name)
        if node is not None and node.is_usable and node_admits(rules, node):
            yield name
