"""Tell which nodes are fit to draw placeholders, or to give them away: ready for a while, wanted, with their images.

What a node was before is remembered in `NodeHistory`; a fresh one judges by what the node itself says of its past.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from roost_core.placement.labels import HELD
from roost_core.placement.leaving_taints import GOING_TAINTS, MAYBE_GOING_TAINTS
from roost_core.placement.nodes import node_is_selected, node_is_tolerated
from roost_core.placement.pullers import serving

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost.controllers.contract.placeholder_sets import PlaceholderSet
    from roost.controllers.contract.snapshot import Moment, Snapshot
    from roost.controllers.placeholder_mover.pods import PodWatch
    from roost.controllers.placeholder_mover.settings import MoverSettings
    from roost_core.scheduler.objects import NodeState


class Unfit(NamedTuple):
    """Why a node is not fit now."""

    reason: str
    # When that may be over though nothing changes.
    seconds_left: float | None = None
    # The node goes, or is none of the pool. A cordon, pressure, an autoscaler's second thoughts may pass.
    is_for_good: bool = False


class NodeOfSet(NamedTuple):
    """A node as one set sees it: what one tolerates, another needn't."""

    uid: str
    set_name: str


class Fitness(NamedTuple):
    """What a node was when it was last looked at."""

    fit: bool
    # Steady seconds.
    since: float


@dataclass(frozen=True, slots=True)
class NodeHistory:
    """What earlier plans saw. Moments are steady seconds."""

    # uids of those Ready at the last plan. None: there was no earlier plan.
    ready: frozenset[str] | None = None
    # By uid, when they stopped being ready, as long as that matters.
    lost: Mapping[str, float] = field(default_factory=dict)
    # Of nodes that are unfit to draw, or were not long ago.
    fitness: Mapping[NodeOfSet, Fitness] = field(default_factory=dict)


def follow_nodes(history: NodeHistory, snapshot: Snapshot, settings: MoverSettings, now: Moment) -> NodeHistory:
    """Note which nodes stopped being ready since the last plan."""
    ready = frozenset(node.uid for node in snapshot.nodes.values() if node.fact.ready)
    horizon = now.steady - settings.flap_seconds
    lost = {uid: at for uid, at in history.lost.items() if at > horizon}
    if history.ready is not None:
        lost.update(dict.fromkeys(history.ready - ready, now.steady))
    lately = now.steady - settings.mark_after_seconds
    known = {node.uid for node in snapshot.nodes.values()}
    fitness = {
        key: one for key, one in history.fitness.items() if key.uid in known and not (one.fit and one.since < lately)
    }
    return NodeHistory(ready, lost, fitness)


class NodeJudge:
    """Judges the nodes of one snapshot."""

    def __init__(
        self, snapshot: Snapshot, settings: MoverSettings, history: NodeHistory, pods: PodWatch, now: Moment
    ) -> None:
        """Look at nothing yet; pods: has followed the snapshot."""
        self._snapshot = snapshot
        self._pods = pods
        self._settings = settings
        self._history = history
        self._now = now
        # As in the history, with what is found here.
        self.fitness = dict(history.fitness)

    def why_undrawn(self, node: NodeState, one: PlaceholderSet) -> Unfit | None:
        """Why the set's placeholders must not be drawn to the node; None when they may."""
        if not node_is_selected(one.rules, node.fact):
            return Unfit("not of the pool", is_for_good=True)
        why = self._why_unusable(node)
        # Labels tell of images where there are labels.
        if why is None and not self._settings.pullers and node.name in self.pulling:
            why = Unfit("images are being pulled")
        if why is None and not node_is_tolerated(one.rules, node.fact):
            why = Unfit("a taint keeps the set off")
        key = NodeOfSet(node.uid, one.name)
        if why is not None:
            self._note(key, fit=False)
            return why
        fit_seconds = self._ready_seconds(node)
        if key in self.fitness:
            fit_seconds = min(fit_seconds, self._now.steady - self._note(key, fit=True).since)
        left = self._settings.mark_after_seconds - fit_seconds
        return Unfit("ready for too short a time", left) if left > 0 else None

    def why_unmoved(self, node: NodeState) -> Unfit | None:
        """Why placeholders should neither be taken from the node nor be led to it now."""
        why = self._why_unusable(node)
        if why is None and node.name in self.pulling:
            why = Unfit("images are being pulled")
        return why

    def unfit_seconds(self, node: NodeState, one: PlaceholderSet) -> float:
        """For how long the node has been unfit to draw the set; 0.0 when it isn't."""
        fitness = self.fitness.get(NodeOfSet(node.uid, one.name))
        return 0.0 if fitness is None or fitness.fit else self._now.steady - fitness.since

    def _note(self, key: NodeOfSet, *, fit: bool) -> Fitness:
        before = self.fitness.get(key)
        if before is None or before.fit != fit:
            before = self.fitness[key] = Fitness(fit, self._now.steady)
        return before

    def _why_unusable(self, node: NodeState) -> Unfit | None:
        if node.leaving:
            return Unfit("being deleted", is_for_good=True)
        taints = {taint.key for taint in node.fact.taints}
        if taints & GOING_TAINTS:
            return Unfit("an autoscaler takes it away", is_for_good=True)
        if not node.fact.ready:
            return Unfit("not ready")
        if node.fact.unschedulable:
            return Unfit("cordoned")
        if taints & MAYBE_GOING_TAINTS:
            return Unfit("an autoscaler may take it away")
        if self._settings.startup_taint in taints:
            return Unfit("its startup taint is there")
        if self._lacks_images(node):
            return Unfit("images are missing")
        return self._flapping(node)

    def _flapping(self, node: NodeState) -> Unfit | None:
        flap_seconds = self._settings.flap_seconds
        lost_at = self._history.lost.get(node.uid)
        if lost_at is not None:
            left = lost_at + flap_seconds - self._now.steady
        elif node.ready_since is not None and node.ready_since - node.created > flap_seconds:
            # It became ready long after it joined: it has been ready before.
            left = flap_seconds - self._ready_seconds(node)
        else:
            return None
        return Unfit("flapping", left) if left > 0 else None

    def _lacks_images(self, node: NodeState) -> bool:
        labels = node.fact.labels
        for puller in serving(self._settings.pullers, node.fact):
            missing = {label for label in puller.labels if labels.get(label) != HELD}
            # What no node holds can't be had just now (a wrong name, say): the rest has to do, if there is a rest.
            held = self._held & puller.labels
            if missing and (not held or missing & held):
                return True
        return False

    def _ready_seconds(self, node: NodeState) -> float:
        return 0.0 if node.ready_since is None else max(0.0, self._now.wall - node.ready_since)

    @cached_property
    def _held(self) -> frozenset[str]:
        """Labels of managed images that at least one node carries."""
        wanted = frozenset().union(*(puller.labels for puller in self._settings.pullers))
        found: set[str] = set()
        for node in self._snapshot.nodes.values():
            if len(found) == len(wanted):
                break
            labels = node.fact.labels
            found.update(label for label in wanted if labels.get(label) == HELD)
        return frozenset(found)

    @cached_property
    def pulling(self) -> frozenset[str]:
        """Names of nodes on which a puller's pod is at work: not done, and not stuck at an image that can't be had."""
        return self._pods.pulling_on
