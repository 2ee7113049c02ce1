"""The nodes that may be in the warm set of pods of one kind, how many the set has, and which have
room.

What nodes alone say is asked when a node changes, not when a pod comes. What pods add is counted
once for all pods that come before the next change.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, islice, repeat
from typing import Final, NamedTuple

from roost_core.objects.node import Node, node_admits
from roost_core.objects.selectors import NodeRules, NodeTerm, node_term_matches
from roost_core.placement.warm_sets import MAX_NODES, NEW_NODE_IMAGES, Spare, slots_of
from webhook.facts.holders import Holders
from webhook.facts.warm import WarmFacts

# Holders are looked up one by one while they are fewer than this part of the free nodes.
_FEW: Final = 4


class Candidate(NamedTuple):
    """A node that takes pods of one kind."""

    # Sorted by these two: the oldest node first.
    created: float
    name: str
    # How much the class prefers the node.
    weight: int
    # How many such pods the node takes.
    slots: int


class CandidateQuestion(NamedTuple):
    """Which nodes take pods with these rules and requests, and how many each."""

    rules: NodeRules
    requests: tuple[tuple[str, int], ...]
    # 0: as many as the requests allow.
    pods_per_node: int
    # Weights, and terms of the nodes that the class prefers.
    preferred: tuple[tuple[int, NodeTerm], ...]

    def answer(self, node: Node) -> Candidate | None:
        """Return the node as a candidate; None: it isn't usable, or the rules don't admit it."""
        if not node.is_usable or not node_admits(self.rules, node):
            return None
        weight = sum(
            weight
            for weight, term in self.preferred
            if node_term_matches(term, node.name, node.labels)
        )
        slots = self.pods_per_node or slots_of(node.allocatable, self.requests)
        return Candidate(node.created, node.name, weight, slots)


class Candidates:
    """The nodes that take pods of one kind, the oldest first, and how many each takes."""

    def __init__(self, slots: Mapping[str, int]) -> None:
        """slots: by name, the oldest node first."""
        self._slots = slots
        # By the spare of sets: what each set of the first nodes reaches.
        self._reaches: dict[Spare, list[int]] = {}
        # The last answer.
        self._free: _KnownFree | None = None

    @classmethod
    def of(cls, answers: Mapping[str, Candidate]) -> Candidates:
        """Take the candidates that the class prefers most: with others, an old node of another pool
        would join the set.
        """
        most = max((candidate.weight for candidate in answers.values()), default=0)
        candidates = sorted(candidate for candidate in answers.values() if candidate.weight == most)
        return cls({candidate.name: candidate.slots for candidate in candidates})

    def without(self, names: Iterable[str]) -> Candidates:
        """These candidates without some nodes."""
        left_out = self._slots.keys() & set(names)
        if not left_out:
            return self
        return Candidates(
            {name: slots for name, slots in self._slots.items() if name not in left_out}
        )

    def free(self, spare: Spare, facts: WarmFacts) -> FreeCandidates:
        """What the pods leave free, and which nodes a set with this spare has."""
        known = self._free
        if known is None or known.mark is not facts.mark or known.spare != spare:
            known = _KnownFree(facts.mark, spare, self._find_free(spare, facts))
            self._free = known
        return known.free

    def _find_free(self, spare: Spare, facts: WarmFacts) -> FreeCandidates:
        # 0 of a node without pods. With thousands of nodes `map` is quicker than a comprehension.
        loads = list(map(facts.loads.get, self._slots, repeat(0)))
        # Pods that have no node yet, those on these nodes, and the pod that is asked about. Pods on
        # nodes where these pods can't go don't load their set.
        size = self._set_size(facts.pods_on("") + sum(loads) + 1, spare)
        # One iterator: `beyond` goes on where the set's nodes end.
        nodes = iter(zip(loads, self._slots.items(), strict=True))
        # The set's nodes with room by their number of pods, the oldest first.
        free: dict[int, list[str]] = defaultdict(list)
        for load, (name, slots) in islice(nodes, size):
            if load < slots:
                free[load].append(name)
        # Asked no further than needed.
        beyond = (name for load, (name, slots) in nodes if load < slots)
        return FreeCandidates(size, _in_order(free), list(islice(beyond, MAX_NODES)))

    def _set_size(self, pods: int, spare: Spare) -> int:
        """How many nodes, the oldest first, hold this many pods and the spare; at least 1 if any.

        What each number of nodes reaches is worked out once for each spare.
        """
        reach = self._reaches.get(spare)
        if reach is None:
            # A set is large enough once its slots are, less the part of its last node that is to
            # be free.
            needed = [
                100 * total - spare.percent * slots
                for total, slots in zip(
                    accumulate(self._slots.values()), self._slots.values(), strict=True
                )
            ]
            reach = self._reaches[spare] = list(accumulate(needed, max))
        return min(bisect_left(reach, 100 * (pods + spare.pods)) + 1, len(reach))


class FreeCandidates:
    """The nodes of a warm set that have room, and those beyond it."""

    def __init__(self, set_size: int, in_set: Sequence[str], beyond: Sequence[str]) -> None:
        # How many nodes the set has, full ones included.
        self.set_size = set_size
        # The set's nodes, those with the fewest pods first.
        self.in_set = in_set
        # The oldest first; no more than a pod may name.
        self.beyond = beyond
        self._places: Mapping[str, int] | None = None
        self._to_pull: Sequence[str] | None = None

    def holders(self, held: Holders) -> Iterable[str]:
        """The set's nodes that are in `held`, those with the fewest pods first; found as they are
        asked for where they are many.
        """
        has_few_holders = _FEW * held.most <= len(self.in_set)
        if not has_few_holders:
            return held.among(self.in_set)
        if self._places is None:
            self._places = {name: place for place, name in enumerate(self.in_set)}
        return sorted(self._places.keys() & held.all(), key=self._places.__getitem__)

    def to_pull(self, facts: WarmFacts) -> Sequence[str]:
        """The set's, for a pod whose image they lack: those that pull least first, of these those
        that aren't new, and of these those with the fewest pods.

        facts: those that it was made of. Keeping them here would keep whole tables alive, and free
        them in the middle of a review.
        """
        if self._to_pull is None:
            # 0 of a node that pulls nothing. `map`: as in `_find_free`.
            pulls = map(facts.pulls.get, self.in_set, repeat(0))
            images = facts.image_counts(self.in_set)
            # The number of pulls decides, then whether the node is new.
            ranked: dict[int, list[str]] = defaultdict(list)
            for name, pulling, known in zip(self.in_set, pulls, images, strict=True):
                ranked[2 * pulling + (known < NEW_NODE_IMAGES)].append(name)
            self._to_pull = _in_order(ranked)
        return self._to_pull


def _in_order(ranked: Mapping[int, list[str]]) -> list[str]:
    """The names of the lowest rank first. For thousands of names with few ranks, this is quicker
    than sorting the names.
    """
    return list(chain.from_iterable(ranked[rank] for rank in sorted(ranked)))


class _KnownFree(NamedTuple):
    """What pods leave free, as it was found last."""

    # Of the pods.
    mark: object
    spare: Spare
    free: FreeCandidates
