"""Imagine the nodes that the same people would have had without learned placeholders.

Nobody can see that pool, so it is played beside the real one, from the same people. Each goes to
the fullest imagined node with room. Whoever finds none waits, and a node is asked for unless the
nodes that boot have room for all who wait. Who has waited longest gets the first seat, on a node
that has booted or where somebody left. A node goes when it has stood empty as long as an autoscaler
waits. What people waited there, and how many nodes there were, is what learning is compared with.

Left out: what the scheduler weighs beside fullness, that people who wait end later, and that images
differ in how long a node pulls them. Times are Unix time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Final, NamedTuple

# Sums of sizes differ by rounding.
_ROUNDING: Final = 1e-6


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
    # How much of it people take, in placeholders.
    used: float
    # How many people have a seat there.
    users: int
    # Since when nobody is there; None: somebody is.
    empty_since: float | None


class _Home(NamedTuple):
    """Where somebody has a seat."""

    node: int
    # In placeholders.
    size: float


@dataclass(frozen=True, slots=True)
class PoolWithout:
    """The imagined pool at one time."""

    # By number, in order of their coming.
    nodes: Mapping[int, _Node] = field(default_factory=dict)
    # Who has a seat, by key of the pod.
    homes: Mapping[str, _Home] = field(default_factory=dict)
    # Who has no seat yet, by key of the pod, in order of their coming.
    waiting: Mapping[str, Came] = field(default_factory=dict)
    next_number: int = 0
    # When it was played last.
    played_at: float = 0.0

    def count(self, now: float) -> int:
        """How many nodes are ready."""
        return sum(node.ready_at <= now for node in self.nodes.values())

    def people(self) -> list[str]:
        """Keys of the pods of all who are here, with a seat or without."""
        return [*self.homes, *self.waiting]

    def seated(self, seats: Mapping[str, Sequence[Came]], empty: int, now: float) -> PoolWithout:
        """Return the pool as it begins: like the real one. seats: who is on each node; empty: nodes
        without users.
        """
        nodes: dict[int, _Node] = {}
        homes: dict[str, _Home] = {}
        for number, users in enumerate(seats.values()):
            nodes[number] = _Node(now, sum(user.size for user in users), len(users), None)
            for user in users:
                homes[user.key] = _Home(number, user.size)
        for number in range(len(nodes), len(nodes) + empty):
            nodes[number] = _Node(now, 0.0, 0, now)
        return PoolWithout(nodes, homes, next_number=len(nodes), played_at=now)

    def after(
        self, now: float, came: Iterable[Came], gone: Collection[str], facts: PoolFacts
    ) -> tuple[PoolWithout, list[float]]:
        """Return the pool with who came and without who went, and for how many seconds each who got
        a seat or went without one has waited.
        """
        play = _Play(self, facts)
        # Nobody knows when since the last look they went. Their seats are free from then on.
        for key in gone:
            play.leave(key, self.played_at, now)
        play.seat_waiting(self.played_at)
        for user in sorted(came, key=lambda user: user.at):
            # The clock that dates pods may be ahead.
            at = min(user.at, now)
            play.boot_until(at)
            play.come(user._replace(at=at))
        play.boot_until(now)
        play.ask_for_waiting(now)
        play.keep_least(now)
        play.remove_idle(now)
        pool = PoolWithout(play.nodes, play.homes, play.waiting, play.next_number, now)
        return pool, play.waits


class _Play:
    """The time from one look to the next, in order."""

    def __init__(self, before: PoolWithout, facts: PoolFacts) -> None:
        self.nodes = dict(before.nodes)
        self.homes = dict(before.homes)
        # Nodes may have room for less than when these came.
        self.waiting = {
            key: user._replace(size=min(user.size, facts.per_node))
            for key, user in before.waiting.items()
        }
        self.next_number = before.next_number
        # Of each who got a seat, or went without one.
        self.waits: list[float] = []
        self._facts = facts
        # When each node that boots is ready, and its number.
        self._booting: list[tuple[float, int]] = []
        ready: list[tuple[float, int]] = []
        for number, node in self.nodes.items():
            if node.ready_at <= before.played_at:
                ready.append((node.used, number))
            else:
                self._booting.append((node.ready_at, number))
        self._booting.sort()
        self._ready = _Rooms(facts.per_node, ready)
        # The nodes that boot, with those who wait as they would fill them. None: not known.
        self._coming: _Rooms | None = None

    def leave(self, key: str, earliest: float, latest: float) -> None:
        """Somebody went between these times."""
        if key in self.waiting:
            self.waits.append(max(0.0, earliest - self.waiting.pop(key).at))
            return
        home = self.homes.pop(key)
        node = self.nodes[home.node]
        if node.users > 1:
            used = max(0.0, node.used - home.size)
            self.nodes[home.node] = node._replace(used=used, users=node.users - 1)
        else:
            used = 0.0
            self.nodes[home.node] = node._replace(used=used, users=0, empty_since=latest)
        self._ready.change(home.node, node.used, used)

    def come(self, user: Came) -> None:
        """Somebody comes: there is a seat, or one is waited for."""
        # An empty node takes whoever is larger than a node.
        user = user._replace(size=min(user.size, self._facts.per_node))
        if self._seat(user, user.at):
            return
        self.waiting[user.key] = user
        if self._coming is None:
            self.ask_for_waiting(user.at)
        elif self._coming.take(user.size) is None:
            self._ask_for(user)

    def boot_until(self, now: float) -> None:
        """Nodes get ready one after the other, and who waits goes there."""
        while self._booting and self._booting[0][0] <= now:
            ready_at, number = self._booting.pop(0)
            self._ready.add(number, 0.0)
            self.seat_waiting(ready_at)

    def seat_waiting(self, now: float) -> None:
        """Who waits takes the seats that there are, in order of coming."""
        least = min((user.size for user in self.waiting.values()), default=0.0)
        for user in list(self.waiting.values()):
            if not self._ready.has_room(least):
                return
            if self._seat(user, now):
                del self.waiting[user.key]
                self._coming = None

    def ask_for_waiting(self, now: float) -> None:
        """Have nodes boot until all who wait have room on nodes that boot."""
        self._coming = _Rooms(self._facts.per_node, [(0.0, number) for _, number in self._booting])
        for user in self.waiting.values():
            if self._coming.take(user.size) is None:
                self._ask_for(user._replace(at=now))

    def _ask_for(self, user: Came) -> None:
        number = self._boot(user.at)
        if self._coming is not None:
            self._coming.add(number, user.size)

    def _boot(self, now: float) -> int:
        number = self.next_number
        self.next_number += 1
        ready_at = now + self._facts.boot_seconds
        self.nodes[number] = _Node(ready_at, 0.0, 0, now)
        insort(self._booting, (ready_at, number))
        return number

    def _seat(self, user: Came, now: float) -> bool:
        """Give a user a seat on the fullest ready node with room; whether there is one."""
        number = self._ready.take(user.size)
        if number is None:
            return False
        node = self.nodes[number]
        self.nodes[number] = node._replace(
            used=node.used + user.size, users=node.users + 1, empty_since=None
        )
        self.homes[user.key] = _Home(number, user.size)
        self.waits.append(max(0.0, max(now, node.ready_at + self._facts.pull_seconds) - user.at))
        return True

    def keep_least(self, now: float) -> None:
        """Have the nodes boot that the values keep without learning."""
        facts = self._facts
        free = self._free() - sum(user.size for user in self.waiting.values())
        missing = ceil((facts.kept_seats - free) / max(1.0, facts.per_node) - _ROUNDING)
        if not facts.kept_seats:
            missing = 0
        for _ in range(max(missing, facts.least_nodes - len(self.nodes))):
            self._boot(now)

    def remove_idle(self, now: float) -> None:
        """Take out nodes that stood empty for long, but for those that stay anyhow."""
        facts = self._facts
        idle = [
            number
            for number, node in self.nodes.items()
            if node.empty_since is not None
            and max(node.empty_since, node.ready_at) + facts.idle_seconds <= now
        ]
        free = self._free() if idle else 0.0
        for number in idle:
            free -= facts.per_node
            if len(self.nodes) <= facts.least_nodes or free < facts.kept_seats - _ROUNDING:
                return
            del self.nodes[number]

    def _free(self) -> float:
        per_node = self._facts.per_node
        return sum(max(0.0, per_node - node.used) for node in self.nodes.values())


class _Rooms:
    """Nodes by how much of them is used.

    Of thousands, the fullest with room is found without a look at each.
    """

    def __init__(self, per_node: float, nodes: Iterable[tuple[float, int]]) -> None:
        """nodes: how much of each is used, and its number."""
        self._per_node = per_node
        # Sorted by use. Of equally full nodes the oldest comes last.
        self._by_use = sorted((used, -number) for used, number in nodes)

    def add(self, number: int, used: float) -> None:
        """One node more."""
        insort(self._by_use, (used, -number))

    def change(self, number: int, before: float, used: float) -> None:
        """Of a node more or less is used than before."""
        del self._by_use[bisect_left(self._by_use, (before, -number))]
        self.add(number, used)

    def has_room(self, size: float) -> bool:
        """Whether a node has room for so much more."""
        return bool(self._by_use) and self._by_use[0][0] + size <= self._per_node + _ROUNDING

    def take(self, size: float) -> int | None:
        """Use so much of the fullest node with room, and return its number; None: there is none."""
        most = self._per_node + _ROUNDING
        place = bisect_right(self._by_use, most, key=lambda node: node[0] + size)
        if not place:
            return None
        used, negative_number = self._by_use.pop(place - 1)
        number = -negative_number
        self.add(number, used + size)
        return number
