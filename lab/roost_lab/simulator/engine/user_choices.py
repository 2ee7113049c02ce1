"""Which profile a launch has, and to which zone its volume brings it back; both drawn by launch."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from roost_core.objects.pod import copy_pod, copy_spec
from roost_core.objects.selectors import NodeTerm, Requirement
from roost_lab.simulator.engine.free_room import Room
from roost_lab.simulator.engine.group_template import STARTUP_TAINTS
from roost_lab.simulator.engine.node_groups import ZONE_LABEL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roost_core.objects.node import Node
    from roost_core.objects.pod import Pod, PodSpec
    from roost_lab.simulator.setup.pools import Pools, UserProfile
    from roost_lab.traces.attempt import Attempt
    from roost_lab.traces.chance import Chance

# The most specs with a zone that are kept.
_KEPT: Final = 8192


class UserChoices:
    """The choices of one replay's users."""

    def __init__(self, pools: Pools, chance: Chance, templates: Sequence[Node]) -> None:
        """templates: a new node of each group."""
        self._pools = pools
        self._chance = chance
        self._templates = templates
        self._ends = list(accumulate(profile.share for profile in pools.profiles))
        # By id of the spec, which is kept, and zone; and the zones where such a pod may go.
        self._pinned: dict[tuple[int, str], tuple[PodSpec, PodSpec]] = {}
        self._zones: dict[int, tuple[PodSpec, tuple[str, ...]]] = {}

    def profile(self, attempt: Attempt) -> UserProfile | None:
        """The launch's profile; None where the file has none."""
        if not self._ends:
            return None
        drawn = self._chance.uniform("profile", attempt.number) * self._ends[-1]
        return self._pools.profiles[min(bisect_right(self._ends, drawn), len(self._ends) - 1)]

    def to_zone(self, pod: Pod, attempt: Attempt) -> Pod:
        """The pod as its bound volume restricts it.

        The webhook doesn't see that: it is a term of the volume's, which kube-scheduler's VolumeBinding reads.
        """
        share = self._pools.claims_share
        if not share or self._chance.uniform("claim", attempt.number) >= share:
            return pod
        zones = self._zones_of(pod.spec)
        if not zones:
            return pod
        zone = zones[self._chance.below("zone", attempt.number, len(zones))]
        key = id(pod.spec), zone
        if key not in self._pinned:
            if len(self._pinned) > _KEPT:
                self._pinned.clear()
            self._pinned[key] = pod.spec, _in_zone(pod.spec, zone)
        return copy_pod(pod, spec=self._pinned[key][1])

    def _zones_of(self, spec: PodSpec) -> tuple[str, ...]:
        if id(spec) not in self._zones:
            if len(self._zones) > _KEPT:
                self._zones.clear()
            fitting = (node.labels.get(ZONE_LABEL, "") for node in self._templates if _fits(spec, node))
            self._zones[id(spec)] = spec, tuple(sorted({zone for zone in fitting if zone}))
        return self._zones[id(spec)][1]


def _fits(spec: PodSpec, node: Node) -> bool:
    return Room(node.name, node, ignored_taints=STARTUP_TAINTS).fits(spec)


def _in_zone(spec: PodSpec, zone: str) -> PodSpec:
    wanted = Requirement(ZONE_LABEL, "In", frozenset({zone}))
    if spec.required_node_terms is None:
        return copy_spec(spec, required_node_terms=(NodeTerm((wanted,), ()),))
    # Terms are ORed, so each gets the zone; one without expressions matches nothing.
    terms = tuple(
        NodeTerm((*term.expressions, wanted), term.fields) if term.expressions or term.fields else term
        for term in spec.required_node_terms
    )
    return copy_spec(spec, required_node_terms=terms)
