"""Imagine the nodes that the same people would have had without learned placeholders.

Learning is compared with that pool: how many nodes it has, and how long people wait there. Nobody
can see it, so it is played, with the people who come and go at the real pool:

- A person goes to the fullest node with room. If no node has room, the person waits.
- A node is asked for, unless the nodes that boot have room for all who wait.
- When a node has booted or somebody left, who has waited longest gets a seat first.
- A node goes when it has been empty for as long as an autoscaler waits.

Left out: the scheduler weighs more than how full nodes are. People who wait also leave later. Some
images take longer to pull than others. Times are Unix time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Final, NamedTuple

# Sums of sizes may differ by so much, because floats are rounded.
_ROUNDING: Final = 1e-6


class PoolFacts(NamedTuple):
    """What is known of the real pool."""

    # How many placeholders fit on an empty node.
    per_node: float
    # From when somebody begins to wait until the new node is ready.
    boot_seconds: float
    # An empty node goes after so long.
    idle_seconds: float
    # The pool never has fewer nodes.
    least_nodes: int
    # Placeholders that there are without learning, by the values.
    kept_seats: int
    # From when a node is ready until people who waited for it have servers: it pulls their images.
    pull_seconds: float = 0.0


class Person(NamedTuple):
    """Somebody who came to the pool."""

    # Of the pod.
    key: str
    came_at: float
    # In placeholders.
    size: float
    # Whether the wait counts. Others only take room, as people of another hub on the same nodes.
    counts: bool = True


class _Node(NamedTuple):
    """An imagined node."""

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

    # By number: a node that came later has a higher number.
    nodes: Mapping[int, _Node] = field(default_factory=dict)
    # People with a seat, by key of the pod.
    homes: Mapping[str, _Home] = field(default_factory=dict)
    # People without a seat, by key of the pod. Who came first stands first.
    waiting: Mapping[str, Person] = field(default_factory=dict)
    # Of the next node that comes.
    next_number: int = 0
    # When it was played last.
    played_at: float = 0.0

    def count(self, now: float) -> int:
        """How many nodes are ready."""
        return sum(node.ready_at <= now for node in self.nodes.values())

    def people(self) -> list[str]:
        """Keys of the pods of all people, with a seat or without."""
        return [*self.homes, *self.waiting]

    @classmethod
    def like_real(
        cls, people_by_node: Mapping[str, Sequence[Person]], empty_nodes: int, now: float
    ) -> PoolWithout:
        """Return the pool as it begins: with the nodes of the real pool, and people where they are.

        empty_nodes: how many nodes have no people.
        """
        nodes: dict[int, _Node] = {}
        homes: dict[str, _Home] = {}
        for number, people in enumerate(people_by_node.values()):
            used = sum(person.size for person in people)
            nodes[number] = _Node(now, used, len(people), empty_since=None)
            for person in people:
                homes[person.key] = _Home(number, person.size)
        for number in range(len(nodes), len(nodes) + empty_nodes):
            nodes[number] = _Node(now, used=0.0, users=0, empty_since=now)
        return cls(nodes, homes, next_number=len(nodes), played_at=now)

    def after(
        self, now: float, came: Iterable[Person], gone: Collection[str], facts: PoolFacts
    ) -> tuple[PoolWithout, list[float]]:
        """Play until `now`. Return the pool then, and waits in seconds.

        came, gone: people who came and went since this pool was played, the latter by key. There is
        a wait for each person who got a seat, and for each who went without one, if it counts.
        """
        play = _Play(self, facts)
        # When they went isn't known. Their seats count as free since the last look.
        for key in gone:
            play.leave(key, self.played_at, now)
        play.seat_waiting(self.played_at)
        for person in sorted(came, key=lambda person: person.came_at):
            # The clock by which pods are dated may be ahead of ours.
            came_at = min(person.came_at, now)
            play.boot_until(came_at)
            play.come(person._replace(came_at=came_at))
        play.boot_until(now)
        play.ask_for_waiting(now)
        play.keep_least(now)
        play.remove_idle(now)
        pool = PoolWithout(play.nodes, play.homes, play.waiting, play.next_number, now)
        return pool, play.waits


class _Play:
    """The pool while it is played, from one look to the next. Methods are called in order of
    time.
    """

    def __init__(self, before: PoolWithout, facts: PoolFacts) -> None:
        self.nodes = dict(before.nodes)
        self.homes = dict(before.homes)
        # Nodes may be smaller than when these people came, and an empty node must take each.
        self.waiting = {
            key: person._replace(size=min(person.size, facts.per_node))
            for key, person in before.waiting.items()
        }
        self.next_number = before.next_number
        # In seconds: of each person who counts, and who got a seat, or went without one.
        self.waits: list[float] = []
        self._facts = facts
        # For each node that boots, when it is ready, and its number. The first to be ready stands
        # first.
        self._booting: list[tuple[float, int]] = []
        ready: list[tuple[float, int]] = []
        for number, node in self.nodes.items():
            if node.ready_at <= before.played_at:
                ready.append((node.used, number))
            else:
                self._booting.append((node.ready_at, number))
        self._booting.sort()
        self._ready = _NodesByUse(facts.per_node, ready)
        # The nodes that boot, filled with the people who wait. It shows whether one more person
        # needs one more node. None: not known.
        self._coming: _NodesByUse | None = None

    def leave(self, key: str, earliest: float, latest: float) -> None:
        """Take out somebody who went between these times."""
        if key in self.waiting:
            self._note_wait(self.waiting.pop(key), earliest)
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

    def come(self, person: Person) -> None:
        """Give somebody who comes a seat, or let them wait."""
        # A person who is larger than a node takes an empty node.
        person = person._replace(size=min(person.size, self._facts.per_node))
        if self._seat(person, person.came_at):
            return
        self.waiting[person.key] = person
        if self._coming is None:
            self.ask_for_waiting(person.came_at)
        elif self._coming.take(person.size) is None:
            self._ask_for_node(person.size, person.came_at)

    def boot_until(self, now: float) -> None:
        """Let nodes get ready in order of time. People who wait go there at once."""
        while self._booting and self._booting[0][0] <= now:
            ready_at, number = self._booting.pop(0)
            self._ready.add(number, 0.0)
            self.seat_waiting(ready_at)

    def seat_waiting(self, now: float) -> None:
        """Give free seats to people who wait. Who came first gets a seat first."""
        smallest = min((person.size for person in self.waiting.values()), default=0.0)
        for person in list(self.waiting.values()):
            if not self._ready.has_room(smallest):
                return
            if self._seat(person, now):
                del self.waiting[person.key]
                self._coming = None

    def ask_for_waiting(self, now: float) -> None:
        """Ask for nodes until the nodes that boot have room for all who wait."""
        self._coming = _NodesByUse(
            self._facts.per_node, [(0.0, number) for _, number in self._booting]
        )
        for person in self.waiting.values():
            if self._coming.take(person.size) is None:
                self._ask_for_node(person.size, now)

    def _ask_for_node(self, size: float, now: float) -> None:
        """Ask for a node, for somebody of this size who waits."""
        number = self._boot(now)
        if self._coming is not None:
            self._coming.add(number, size)

    def _boot(self, now: float) -> int:
        """Let a new node boot, and return its number."""
        number = self.next_number
        self.next_number += 1
        ready_at = now + self._facts.boot_seconds
        self.nodes[number] = _Node(ready_at, used=0.0, users=0, empty_since=now)
        insort(self._booting, (ready_at, number))
        return number

    def _seat(self, person: Person, now: float) -> bool:
        """Give a person a seat on the fullest ready node with room. Return whether there is one."""
        number = self._ready.take(person.size)
        if number is None:
            return False
        node = self.nodes[number]
        self.nodes[number] = node._replace(
            used=node.used + person.size, users=node.users + 1, empty_since=None
        )
        self.homes[person.key] = _Home(number, person.size)
        has_server_at = max(now, node.ready_at + self._facts.pull_seconds)
        self._note_wait(person, has_server_at)
        return True

    def _note_wait(self, person: Person, until: float) -> None:
        if person.counts:
            self.waits.append(max(0.0, until - person.came_at))

    def keep_least(self, now: float) -> None:
        """Ask for the nodes that there are without learning."""
        facts = self._facts
        missing_nodes = 0
        if facts.kept_seats:
            free_seats = self._free() - sum(person.size for person in self.waiting.values())
            missing_seats = facts.kept_seats - free_seats
            missing_nodes = ceil(missing_seats / max(1.0, facts.per_node) - _ROUNDING)
        for _ in range(max(missing_nodes, facts.least_nodes - len(self.nodes))):
            self._boot(now)

    def remove_idle(self, now: float) -> None:
        """Remove nodes that have been empty for long.

        Nodes stay that the pool's least or the kept seats need.
        """
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
            is_of_least = len(self.nodes) <= facts.least_nodes
            is_for_kept_seats = free < facts.kept_seats - _ROUNDING
            if is_of_least or is_for_kept_seats:
                return
            del self.nodes[number]

    def _free(self) -> float:
        """How much of all nodes nobody takes, in placeholders; also of nodes that boot."""
        per_node = self._facts.per_node
        return sum(max(0.0, per_node - node.used) for node in self.nodes.values())


class _NodesByUse:
    """Nodes, sorted by how much of them is used.

    So the fullest node with room is found without a look at each of thousands.
    """

    def __init__(self, per_node: float, nodes: Iterable[tuple[float, int]]) -> None:
        """nodes: how much of each is used, and its number."""
        self._per_node = per_node
        # For each node, how much of it is used, and its number times -1: so of nodes that are
        # equally full, the oldest comes last.
        self._by_use = sorted((used, -number) for used, number in nodes)

    def add(self, number: int, used: float) -> None:
        """Add a node."""
        insort(self._by_use, (used, -number))

    def change(self, number: int, before: float, used: float) -> None:
        """Change how much of a node is used. before: how much it was."""
        del self._by_use[bisect_left(self._by_use, (before, -number))]
        self.add(number, used)

    def has_room(self, size: float) -> bool:
        """Whether a node has room for so much more."""
        if not self._by_use:
            return False
        least_used, _ = self._by_use[0]
        return least_used + size <= self._per_node + _ROUNDING

    def take(self, size: float) -> int | None:
        """Use so much of the fullest node with room. Return its number; None: no node has room."""
        most = self._per_node + _ROUNDING
        # Nodes with room stand first, and the fullest of them last.
        with_room = bisect_right(self._by_use, most, key=lambda node: node[0] + size)
        if not with_room:
            return None
        used, negative_number = self._by_use.pop(with_room - 1)
        number = -negative_number
        self.add(number, used + size)
        return number
