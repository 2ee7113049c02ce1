"""Judge which nodes are fit to attract placeholders or to lose them.

A fit node has been ready for a while, isn't leaving, and has its images. `NodeHistory` remembers
how nodes were judged before. Without it, only a node's timestamps tell of its past.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from roost.controllers.contract.snapshot import Moment, Sight, Snapshot
from roost.controllers.placeholder_mover.settings import MoverSettings
from roost.controllers.placeholder_mover.view import MoverView
from roost_core.objects.leaving_taints import LEAVING_TAINTS, MAYBE_LEAVING_TAINTS
from roost_core.objects.node import Node, node_is_tolerated
from roost_core.objects.selectors import node_matches
from roost_core.placement.labels import HELD
from roost_core.release.image_gate import serving
from roost_core.release.placeholder_sets import PlaceholderSet


class Reason(NamedTuple):
    """Why a node is not fit, or placeholders stay."""

    # `reason` of roost_controllers_placeholder_moves_held.
    text: str
    # Until it may no longer hold even if nothing changes; None: unknown.
    seconds_left: float | None = None
    # The node is leaving, or is not in the pool. A cordon, pressure or an autoscaler's candidate
    # taint may pass.
    is_for_good: bool = False


@dataclass(frozen=True, slots=True)
class NodeHistory:
    """What earlier plans saw; times are steady seconds."""

    # uids of nodes that were Ready at the last plan. None: there was no earlier plan.
    ready: frozenset[str] | None = None
    # By uid, when a node stopped being ready, for as long as it counts as flapping.
    lost: Mapping[str, float] = field(default_factory=dict)
    # Whether a node was fit to attract a set when it was last judged, and since when: by the node's
    # uid and the set's name, because sets have different tolerations. Without nodes that have been
    # fit for `mark_after_seconds`.
    fitness: Mapping[tuple[str, str], tuple[bool, float]] = field(default_factory=dict)


def follow_nodes(
    history: NodeHistory, snapshot: Snapshot, settings: MoverSettings, now: Moment
) -> NodeHistory:
    """Note which nodes stopped being ready since the last plan."""
    ready = frozenset(node.uid for node in snapshot.nodes.values() if node.ready)
    flapping_since = now.steady - settings.flap_seconds
    lost = {uid: at for uid, at in history.lost.items() if at > flapping_since}
    if history.ready is not None:
        for uid in history.ready - ready:
            lost[uid] = now.steady
    fit_long_before = now.steady - settings.mark_after_seconds
    present = {node.uid for node in snapshot.nodes.values()}
    fitness: dict[tuple[str, str], tuple[bool, float]] = {}
    for (uid, set_name), (is_fit, since) in history.fitness.items():
        has_long_been_fit = is_fit and since < fit_long_before
        if uid in present and not has_long_been_fit:
            fitness[uid, set_name] = (is_fit, since)
    return NodeHistory(ready, lost, fitness)


class NodeJudge:
    """Judges the nodes of one snapshot."""

    def __init__(self, view: MoverView, history: NodeHistory) -> None:
        """history: what earlier plans saw."""
        self._view = view
        self._settings = view.settings
        self._history = history
        self._now = view.now
        # As in the history, and updated by `judge_attraction`.
        self.fitness = dict(history.fitness)

    def judge_attraction(self, node: Node, placeholder_set: PlaceholderSet) -> Reason | None:
        """Judge whether the set's placeholders may be attracted to the node, and note it.

        Returns why they must not; None: they may.
        """
        if not node_matches(placeholder_set.rules, node.name, node.labels):
            return Reason("not of the pool", is_for_good=True)
        why = self._why_unfit(node)
        # Where pullers label nodes, the labels say which images are present.
        if why is None and not self._settings.pullers and node.name in self._view.pulling_on:
            why = Reason("images are being pulled")
        if why is None and not node_is_tolerated(placeholder_set.rules, node):
            why = Reason("a taint keeps the set off")
        key = (node.uid, placeholder_set.name)
        if why is not None:
            self._note_fitness(key, is_fit=False)
            return why
        fit_seconds = self._ready_seconds(node)
        if key in self.fitness:
            fit_since = self._note_fitness(key, is_fit=True)
            fit_seconds = min(fit_seconds, self._now.steady - fit_since)
        seconds_left = self._settings.mark_after_seconds - fit_seconds
        return Reason("ready for too short a time", seconds_left) if seconds_left > 0 else None

    def why_unmoved(self, node: Node) -> Reason | None:
        """Return why placeholders should neither be evicted from the node nor sent to it now.

        None: they may.
        """
        why = self._why_unfit(node)
        if why is None and node.name in self._view.pulling_on:
            why = Reason("images are being pulled")
        return why

    def unfit_seconds(self, node: Node, placeholder_set: PlaceholderSet) -> float:
        """Seconds for which the node has been unfit to attract the set; 0.0 if it is fit."""
        is_fit, since = self.fitness.get((node.uid, placeholder_set.name), (True, 0.0))
        return 0.0 if is_fit else self._now.steady - since

    def _note_fitness(self, key: tuple[str, str], *, is_fit: bool) -> float:
        """Note whether a node is fit to attract a set. Returns since when it has been so.

        key: as in `NodeHistory.fitness`.
        """
        if key in self.fitness:
            was_fit, since = self.fitness[key]
            if was_fit == is_fit:
                return since
        self.fitness[key] = (is_fit, self._now.steady)
        return self._now.steady

    def _why_unfit(self, node: Node) -> Reason | None:
        if node.deleting:
            return Reason("being deleted", is_for_good=True)
        taints = {taint.key for taint in node.taints}
        if taints & LEAVING_TAINTS:
            return Reason("an autoscaler takes it away", is_for_good=True)
        if not node.ready:
            return Reason("not ready")
        if node.unschedulable:
            return Reason("cordoned")
        if taints & MAYBE_LEAVING_TAINTS:
            return Reason("an autoscaler may take it away")
        if self._settings.startup_taint in taints:
            return Reason("its startup taint is there")
        if self._lacks_images(node):
            return Reason("images are missing")
        return self._flapping(node)

    def _flapping(self, node: Node) -> Reason | None:
        flap_seconds = self._settings.flap_seconds
        lost_at = self._history.lost.get(node.uid)
        sight = self._sight(node)
        if lost_at is not None:
            seconds_left = lost_at + flap_seconds - self._now.steady
        elif sight.ready_since is not None and sight.ready_since - sight.created > flap_seconds:
            # The node became ready long after it joined. So it was ready before.
            seconds_left = flap_seconds - self._ready_seconds(node)
        else:
            return None
        return Reason("flapping", seconds_left) if seconds_left > 0 else None

    def _lacks_images(self, node: Node) -> bool:
        labels = node.labels
        for puller in serving(self._settings.pullers, node):
            missing = {label for label in puller.labels if labels.get(label) != HELD}
            # It may be impossible to pull an image that no node holds, for example because of a
            # wrong name. So the node needs only the puller's images that some node holds; if no
            # node holds any of them, it needs all.
            needed = (self._held_labels & puller.labels) or puller.labels
            if missing & needed:
                return True
        return False

    def _ready_seconds(self, node: Node) -> float:
        ready_since = self._sight(node).ready_since
        return 0.0 if ready_since is None else self._now.steady - ready_since

    def _sight(self, node: Node) -> Sight:
        return self._view.snapshot.sight_of(node, self._now)

    @cached_property
    def _held_labels(self) -> frozenset[str]:
        """Labels of managed images that at least one node carries."""
        wanted = frozenset().union(*(puller.labels for puller in self._settings.pullers))
        held: set[str] = set()
        for node in self._view.snapshot.nodes.values():
            if len(held) == len(wanted):
                break
            labels = node.labels
            held.update(label for label in wanted if labels.get(label) == HELD)
        return frozenset(held)
