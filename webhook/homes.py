"""Find the home of a pod's repository among the nodes that the facts know."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from placement.homes import choose_homes
from placement.nodes import node_admits
from placement.rendezvous import Ring

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placement.nodes import NodeRules, Nodes
    from placement.settings import Home
    from webhook.facts import Facts
    from webhook.ledger import Ledger


class HomeRequest(NamedTuple):
    """Who asks for a home."""

    pod_class: str
    home: Home
    repository: str
    # What the pod demands of its node.
    rules: NodeRules
    # How facts and ledger know the pod.
    pod_key: str


class HomeChoice(NamedTuple):
    """Where a pod's home is."""

    # Best first; empty when no node is known that would do.
    nodes: list[str]
    ring_size: int
    # True: no builder is Ready anywhere, so the ring is made of all nodes instead.
    without_builders: bool


class HomeFinder:
    """Keeps one ring a class, in step with the facts. Safe to use from several threads."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._rings: dict[str, Ring] = {}
        # class -> the two sets that its members come from, and the members: recognised by identity.
        self._members: dict[str, tuple[frozenset[str], frozenset[str] | None, frozenset[str]]] = {}

    def members(self, pod_class: str, home: Home, facts: Facts) -> tuple[frozenset[str], bool]:
        """Nodes of the class's ring: Ready, not cordoned, with a Ready builder; and whether it lacks builders.

        While no builder is Ready the ring is made of all Ready nodes: a repository's builds then still meet, and go on
        from there, where a choice by load alone would scatter them.
        """
        usable = facts.nodes.usable if facts.nodes is not None else None
        if home.builder_labels:
            members = self._ring_members(pod_class, facts.builder_nodes.get(pod_class, frozenset()), usable)
            if members:
                return members, False
        return usable or frozenset(), bool(home.builder_labels)

    def _ring_members(self, pod_class: str, builders: frozenset[str], usable: frozenset[str] | None) -> frozenset[str]:
        if usable is None:
            return builders
        known = self._members.get(pod_class)
        if known is not None and known[0] is builders and known[1] is usable:
            return known[2]
        members = builders & usable
        if known is not None and known[2] == members:
            members = known[2]
        self._members[pod_class] = (builders, usable, members)
        return members

    def find(self, wanted: HomeRequest, facts: Facts, now: float) -> HomeChoice:
        """The home that is wanted, under the bound on load."""
        pod_class, home = wanted.pod_class, wanted.home
        members, without_builders = self.members(pod_class, home, facts)
        if not members:
            return HomeChoice([], 0, without_builders)
        ring = self._rings.get(pod_class)
        if ring is None:
            ring = self._rings.setdefault(pod_class, Ring())
        order = ring.order(wanted.repository, members)
        candidates = list(islice(_admitted(order, facts.nodes, wanted.rules), len(home.weights)))
        loads, running = self._loads(wanted, facts, now)
        nodes = choose_homes(
            candidates, loads, running=running, nodes=len(members), min_load=home.min_load, max_load=home.max_load
        )
        return HomeChoice(nodes, len(members), without_builders)

    def _loads(self, wanted: HomeRequest, facts: Facts, now: float) -> tuple[dict[str, int], int]:
        """Builds on each node and in all, the pod itself left out: its POST may be repeated."""
        pod_class, pod_key = wanted.pod_class, wanted.pod_key
        loads = dict(facts.homes.loads(pod_class))
        itself = facts.homes.pods.get(pod_key)
        if itself is not None and itself.pod_class == pod_class:
            loads[itself.node] -= 1
        for key, pod in self._ledger.unseen(facts.homes, now):
            if pod.pod_class == pod_class and key != pod_key:
                loads[pod.node] = loads.get(pod.node, 0) + 1
        return loads, sum(loads.values())


def _admitted(order: Iterator[str], nodes: Nodes | None, rules: NodeRules) -> Iterator[str]:
    """Those nodes that the pod may be bound to: a home that its selector shuts out is none."""
    for name in order:
        node = nodes.get_node(name) if nodes is not None else None
        if node is None or node_admits(rules, node):
            yield name
