"""Imagine the nodes that the same people would have had without learned placeholders.

Nobody can see that pool, so it is played beside the real one, from the same people: each goes to
the fullest imagined node with room, waits for one that boots, or has one ask for another; a node
goes when it has stood empty as long as an autoscaler waits. What people waited there, and how many
nodes there were, is what learning is compared with.

Left out: what the scheduler weighs beside fullness, that people who wait end later, and that images
differ in how long a node pulls them. Times are Unix time.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, inf
from typing import NamedTuple

# Sums of sizes differ by rounding.
_ROUNDING = 1e-6


class PoolFacts(NamedTuple):
    """What is known of the real pool."""

    # Placeholders that fit a node.
    per_node: float
    # From the first who waits until a node is ready.
    boot_seconds: float
    # For so long an empty node stays.
    idle_seconds: float
    # Nodes that stay, and placeholders that the values keep, with or without learning.
    least_nodes: int
    kept_seats: int
    # From when a node is ready until those who waited for it have servers: it pulls their images.
    pull_seconds: float = 0.0


class Came(NamedTuple):
    """Somebody who came."""

    key: str
    at: float
    # In placeholders.
    size: float


class _Node(NamedTuple):
    ready_at: float
    # In placeholders, and how many people that are.
    used: float
    users: int
    # Since when nobody is there; None: somebody is.
    empty_since: float | None


@dataclass(frozen=True, slots=True)
class PoolWithout:
    """The imagined pool at one time."""

    # By number, in order of their coming.
    nodes: Mapping[int, _Node] = field(default_factory=dict)
    # The node and the size of each user, by key of the pod.
    homes: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    next_number: int = 0

    def count(self, now: float) -> int:
        """How many nodes are ready."""
        return sum(node.ready_at <= now for node in self.nodes.values())

    def seated(self, seats: Mapping[str, Sequence[Came]], empty: int, now: float) -> PoolWithout:
        """Return the pool as it begins: like the real one. seats: who is on each node; empty: nodes
        without users.
        """
        nodes: dict[int, _Node] = {}
        homes: dict[str, tuple[int, float]] = {}
        for number, users in enumerate(seats.values()):
            nodes[number] = _Node(now, sum(user.size for user in users), len(users), None)
            for user in users:
                homes[user.key] = (number, user.size)
        for number in range(len(nodes), len(nodes) + empty):
            nodes[number] = _Node(now, 0.0, 0, now)
        return PoolWithout(nodes, homes, len(nodes))

    def after(
        self, now: float, came: Sequence[Came], gone: Collection[str], facts: PoolFacts
    ) -> tuple[PoolWithout, list[float]]:
        """Return the pool with who came and without who went, and how many seconds each who came
        would have waited.
        """
        nodes = dict(self.nodes)
        homes = dict(self.homes)
        number = self.next_number
        for key in gone:
            place, size = homes.pop(key)
            node = nodes[place]
            if node.users > 1:
                nodes[place] = node._replace(used=max(0.0, node.used - size), users=node.users - 1)
            else:
                nodes[place] = node._replace(used=0.0, users=0, empty_since=now)
        waits = []
        places = _Places(nodes, facts.per_node)
        for user in sorted(came, key=lambda user: user.at):
            found = places.take(user)
            if found is None:
                found = number
                number += 1
                nodes[found] = _Node(user.at + facts.boot_seconds, 0.0, 0, None)
            node = nodes[found]
            waits.append(max(0.0, node.ready_at + facts.pull_seconds - user.at))
            nodes[found] = node._replace(
                used=node.used + user.size, users=node.users + 1, empty_since=None
            )
            places.give_back(found)
            homes[user.key] = (found, user.size)
        missing = ceil(
            (facts.kept_seats - _free(nodes, facts.per_node)) / max(1.0, facts.per_node) - _ROUNDING
        )
        for _ in range(max(missing, facts.least_nodes - len(nodes))):
            nodes[number] = _Node(now + facts.boot_seconds, 0.0, 0, now)
            number += 1
        _remove_idle(nodes, now, facts)
        return replace(self, nodes=nodes, homes=homes, next_number=number), waits


class _Places:
    """Where people go who come in order of time. Of thousands of ready nodes, the fullest with room
    is found without a look at each.
    """

    def __init__(self, nodes: Mapping[int, _Node], per_node: float) -> None:
        """nodes: as they are at any time; whoever changes one took it before."""
        self._nodes = nodes
        self._per_node = per_node
        # Of each ready node how much is used, and the number, negated: sorted, so the fullest come
        # last, and of these the oldest.
        self._ready: list[tuple[float, int]] = []
        # When the last one came, and the numbers of the nodes that weren't ready then.
        self._at = -inf
        self._others = set(nodes)

    def take(self, user: Came) -> int | None:
        """The number of the user's node, until it is given back; None: no node has room."""
        self._at = user.at
        ready = [number for number in self._others if self._nodes[number].ready_at <= user.at]
        if ready:
            self._others.difference_update(ready)
            self._ready += [(self._nodes[number].used, -number) for number in ready]
            self._ready.sort()
        most = self._per_node + _ROUNDING
        if user.size > most:
            # No more than an empty node has.
            found = _place_for(self._nodes, user, self._per_node)
            if found is not None and found not in self._others:
                self._ready.remove((self._nodes[found].used, -found))
            return found
        place = bisect_right(self._ready, most, key=lambda node: node[0] + user.size)
        if place:
            return -self._ready.pop(place - 1)[1]
        others = {number: self._nodes[number] for number in self._others}
        return _place_for(others, user, self._per_node)

    def give_back(self, number: int) -> None:
        """Let others go to a node that was taken, or is new."""
        node = self._nodes[number]
        if node.ready_at > self._at:
            self._others.add(number)
        else:
            insort(self._ready, (node.used, -number))


def _place_for(nodes: Mapping[int, _Node], user: Came, per_node: float) -> int | None:
    """The fullest ready node with room, else the fullest that boots."""
    best: tuple[bool, float, int] | None = None
    for number, node in nodes.items():
        if node.users and node.used + user.size > per_node + _ROUNDING:
            continue
        rank = (node.ready_at <= user.at, node.used, -number)
        if best is None or rank > best:
            best = rank
    return None if best is None else -best[2]


def _free(nodes: Mapping[int, _Node], per_node: float) -> float:
    return sum(max(0.0, per_node - node.used) for node in nodes.values())


def _remove_idle(nodes: dict[int, _Node], now: float, facts: PoolFacts) -> None:
    """Take out nodes that stood empty for long, but for those that stay anyhow."""
    idle = [
        number
        for number, node in nodes.items()
        if node.empty_since is not None
        and max(node.empty_since, node.ready_at) + facts.idle_seconds <= now
    ]
    free = _free(nodes, facts.per_node) if idle else 0.0
    for number in idle:
        free -= facts.per_node
        if len(nodes) <= facts.least_nodes or free < facts.kept_seats - _ROUNDING:
            return
        del nodes[number]
