"""Judge decisions by the scheduler's own rules: follow the cluster, and ask the pure model where a pod would have gone.

What a scheduler saw can differ from what the watches told by the moment of its decision. So a binding that the model
doesn't agree with at once is asked of again a second later, on the states that hindsight.py finds. What "differs" even
then is a hint to look, never proof of a fault; and where an earlier state agrees, that is said, not hidden.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, replace
from heapq import nsmallest
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from roost.recorder.recording.assembler import Judgement
from roost.recorder.recording.hindsight import US, WINDOW_US, Change, Hindsight, Past, Subject
from roost.recorder.store.records import Candidates, CandidatesRecord, Verdict, pack_candidates
from roost_core.placement.images import normalise_reference
from roost_core.scheduler.cycle import Decision, feasible_wanted, schedule
from roost_core.scheduler.objects import CPU, MEMORY
from roost_core.scheduler.state import ClusterState, Surroundings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from roost.recorder.recording.reading import SeenNode, SeenPod
    from roost_core.scheduler.objects import NodeState, PodState
    from roost_core.scheduler.profile import Profile
    from roost_core.scheduler.state import ImageViews, NodeRow

# Nodes kept of each decision: the best by score, the chosen one, and then those that were refused.
MAX_CANDIDATES: Final = 50
USER, PLACEHOLDER, BUILD = "user", "placeholder", "build"
DEFAULT_SCHEDULER: Final = "default-scheduler"
# Earlier states cost as much as bindings: nodes that are looked at for them a second (a few µs each), and of how many
# seconds' worth a burst may make use.
HINDSIGHT_NODES_A_SECOND: Final = 10_000
HINDSIGHT_BURST_SECONDS: Final = 10
POD, NODE = "pod", "node"
_NOBODY: Final[Mapping[str, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Unsettled:
    """A binding, and what is needed to judge it again once more was told."""

    decision_id: str
    pod: SeenPod
    node_name: str
    at_us: int
    # Of the pod's creation.
    since_version: int
    first: Judgement
    views: ImageViews


class Model:
    """Follows nodes and pods. One thread owns it."""

    def __init__(self, profiles: Mapping[str, Profile], max_candidates: int = MAX_CANDIDATES) -> None:
        """Prepare. profiles: by schedulerName; pods of other schedulers are not judged, only counted."""
        self._profiles = profiles
        # All nodes are looked at: which part a scheduler took, that looks at a part only, nobody tells.
        self._whole_profiles = {
            name: replace(profile, percentage_of_nodes_to_score=100) for name, profile in profiles.items()
        }
        self._max_candidates = max_candidates
        self._state = ClusterState(stale_images=True)
        self._classes: dict[str, str] = {}
        self._by_class: dict[str, Counter[str]] = {}
        self._hindsight = Hindsight(self._put, self._is_one_process)
        # Of pods that aren't bound: the version at which each was told first.
        self._since_versions: dict[str, int] = {}
        self._newest_version = 0
        self._open: deque[Unsettled] = deque()
        self._nodes_left = float(HINDSIGHT_NODES_A_SECOND * HINDSIGHT_BURST_SECONDS)
        self._filled_us = 0

    def namespaces_changed(self, labels: Mapping[str, Mapping[str, str]]) -> None:
        """Learn the namespaces' labels, which pod terms may ask for."""
        self._state.surroundings = Surroundings(namespaces=labels)

    def relisted(self, at_us: int) -> None:
        """Learn that what was told last was a list: no state before it can be gone back to."""
        self._hindsight.forget(at_us)
        # A cluster that was restored from a backup counts from there again.
        self._newest_version = 0

    def node_changed(self, name: str, node: SeenNode | None, at_us: int) -> None:
        """Learn of a node; None: it is gone."""
        row = self._state.rows.get(name)
        before, after = row.node if row is not None else None, node.state if node is not None else None
        version = self._version(node)
        self._put((NODE, name), after)
        if not _is_same_node(before, after):
            self._note(Change(version, at_us, (NODE, name), before, after, ""))

    def pod_changed(self, key: str, pod: SeenPod | None, pod_class: str, at_us: int) -> None:
        """Learn of a pod; None: it is gone."""
        version = self._version(pod)
        before, before_class = self._state.get_pod(key), self._classes.get(key, "")
        if pod is None or pod.state.node_name:
            self._since_versions.pop(key, None)
        else:
            self._since_versions.setdefault(key, version)
        if before is not None and pod is not None and _is_same_pod(before, pod.state) and not pod.state.is_finished:
            self._state.touch(before.node_name)
            return
        self._put((POD, key), (pod.state, pod_class) if pod is not None else None)
        after = self._state.get_pod(key)
        if not _is_same_pod(before, after):
            old = (before, before_class) if before is not None else None
            new = (after, pod_class) if after is not None else None
            self._note(Change(version, at_us, (POD, key), old, new, _whose(before, after)))

    def judge(self, decision_id: str, pod: SeenPod, node_name: str, at_us: int) -> Judgement | None:
        """Say where the pod would have gone, were it not bound yet; None: `settle` will say it."""
        asked = self.ask_of(decision_id, pod, node_name, at_us)
        if asked.first.model != Verdict.DIFFERS:
            return asked.first
        self._open.append(asked)
        return None

    def settle(self, now_us: int | None) -> Iterator[tuple[str, Judgement]]:
        """Judge what was left open long enough (None: however short), with what was told since; by decision's id."""
        while self._open and self.is_due(self._open[0], now_us):
            one = self._open.popleft()
            self._fill(one.at_us if now_us is None else now_us)
            yield one.decision_id, self.judge_again(one)

    def ask_of(self, decision_id: str, pod: SeenPod, node_name: str, at_us: int) -> Unsettled:
        """Judge on the state as it is now."""
        views = self._state.image_views()
        first = self._judge(decision_id, pod, node_name)
        return Unsettled(decision_id, pod, node_name, at_us, self._since_versions.get(pod.state.key, 0), first, views)

    @staticmethod
    def is_due(one: Unsettled, now_us: int | None) -> bool:
        """Whether all was told that can have to do with it; None: nothing more will be."""
        return now_us is None or one.at_us <= now_us - WINDOW_US

    def _fill(self, now_us: int) -> None:
        """Let time bring what earlier states may cost."""
        seconds = max(0, now_us - self._filled_us) / US
        most = HINDSIGHT_NODES_A_SECOND * HINDSIGHT_BURST_SECONDS
        self._nodes_left = min(most, self._nodes_left + seconds * HINDSIGHT_NODES_A_SECOND)
        self._filled_us = max(now_us, self._filled_us)

    def judge_again(self, one: Unsettled) -> Judgement:
        """Judge on the states that the scheduler may have seen; as at first where none of them agrees."""
        state = one.pod.state
        now = self._state.image_views()
        version = _number(one.pod.resource_version)
        pasts = self._hindsight.pasts((POD, state.key), version, one.at_us, state.scheduler_name, one.since_version)
        try:
            for past in pasts:
                if self._nodes_left <= 0:
                    return replace(one.first, note=f"{one.first.note}; too many at once to look at earlier states")
                self._nodes_left -= len(self._state.rows)
                self._state.set_image_views(one.views)
                word, _ = self._verdict(self._ask(one.pod), one.pod, one.node_name)
                if word == Verdict.AGREES:
                    return _in_hindsight(self._judge(one.decision_id, one.pod, one.node_name), past)
        finally:
            pasts.close()
            self._state.set_image_views(now)
        return one.first

    def _judge(self, decision_id: str, pod: SeenPod, node_name: str) -> Judgement:
        """Ask the state as it is now."""
        if pod.state.scheduler_name not in self._profiles:
            return Judgement(Verdict.UNKNOWN, note=f"no profile is known for scheduler {pod.state.scheduler_name}")
        decision = self._ask(pod)
        preferred, (word, note) = decision.node, self._verdict(decision, pod, node_name)
        with self._state.without(pod.state.key):
            if decision.table is None and not decision.rejections and decision.node is not None:
                # Only the node where room was made for it was looked at: how the others stood is asked apart.
                decision = self._schedule(pod, "")
            return Judgement(
                word,
                model_node=preferred or "",
                note=note,
                back_us=0 if word == Verdict.AGREES else None,
                nodes_total=len(self._state.rows),
                nodes_feasible=len(self._state.rows) - len(decision.rejections),
                candidates=self._candidates(decision_id, pod, decision, node_name),
            )

    def _ask(self, pod: SeenPod) -> Decision:
        known = self._state.get_pod(pod.state.key)
        with self._state.without(pod.state.key):
            return self._schedule(pod, known.nominated_node if known is not None else "")

    def _schedule(self, pod: SeenPod, nominated: str) -> Decision:
        asked = replace(pod.state, node_name="", nominated_node=nominated)
        profile = self._whole_profiles[pod.state.scheduler_name]
        return schedule(asked, self._state, profile, with_preemption=False)

    def _verdict(self, decision: Decision, pod: SeenPod, node_name: str) -> tuple[Verdict, str]:
        word, note = _verdict(decision, node_name)
        if word == Verdict.DIFFERS and decision.table is not None and node_name not in decision.rejections:
            wanted = feasible_wanted(len(self._state.rows), self._profiles[pod.state.scheduler_name])
            if wanted < len(decision.table.nodes):
                return Verdict.UNKNOWN, f"the scheduler looks at {wanted} nodes that fit, and doesn't tell at which"
        return word, note

    def _is_one_process(self, one: str, other: str) -> bool:
        """Whether two profiles share a scheduler's cache: those of the configuration do."""
        return one == other or (DEFAULT_SCHEDULER not in (one, other) and {one, other} <= self._profiles.keys())

    def _version(self, seen: SeenPod | SeenNode | None) -> int:
        """Of what was told; of an end without an object, the newest that was."""
        self._newest_version = max(self._newest_version, _number(seen.resource_version) if seen is not None else 0)
        return self._newest_version if seen is None else _number(seen.resource_version)

    def _note(self, change: Change) -> None:
        since_us = self._open[0].at_us if self._open else change.at_us
        self._hindsight.note(change, since_us - WINDOW_US)

    def _put(self, subject: Subject, wanted: object) -> None:
        """Make a pod or node be so."""
        kind, key = subject
        if kind == NODE:
            if wanted is not None:
                self._state.set_node(cast("NodeState", wanted))
            elif key in self._state.rows:
                self._state.remove_node(key)
            return
        before = self._state.get_pod(key)
        if before is not None:
            if before.node_name:
                self._count(before.node_name, self._classes.pop(key, ""), -1)
            self._state.remove_pod(key)
        if wanted is not None:
            pod, pod_class = cast("tuple[PodState, str]", wanted)
            self._state.add_pod(pod)
            after = self._state.get_pod(key)
            if after is not None and after.node_name:
                self._classes[key] = pod_class
                self._count(after.node_name, pod_class, 1)

    def _count(self, node_name: str, pod_class: str, by: int) -> None:
        counts = self._by_class.setdefault(node_name, Counter())
        counts[pod_class] += by
        if not counts[pod_class]:
            del counts[pod_class]
        if not counts:
            del self._by_class[node_name]

    def _candidates(self, decision_id: str, pod: SeenPod, decision: Decision, chosen: str) -> CandidatesRecord:
        table, rejections = decision.table, decision.rejections
        # Where a scored node stands in the table.
        places = {name: place for place, name in enumerate(table.nodes)} if table is not None else {}
        totals = table.totals if table is not None else []
        image = pod.state.spec.images[0] if pod.state.spec.images else ""
        # Kubelets name images in full.
        full_image = normalise_reference(image) if image else ""
        rows: Iterable[NodeRow] = self._state.rows.values()

        def rank(row: NodeRow) -> tuple[bool, bool, int, str]:
            place = places.get(row.name)
            return row.name != chosen, row.name in rejections, -totals[place] if place is not None else 0, row.name

        if len(self._state.rows) > self._max_candidates:
            rows = nsmallest(self._max_candidates, rows, key=rank)
        kept = list(rows)
        names = [row.name for row in kept]
        counts = [self._by_class.get(name, _NOBODY) for name in names]
        found = [places.get(name) for name in names]
        points = table.points if table is not None else {}
        candidates = Candidates(
            node_name=names,
            users=[one.get(USER, 0) for one in counts],
            placeholders=[one.get(PLACEHOLDER, 0) for one in counts],
            builds=[one.get(BUILD, 0) for one in counts],
            free_cpu_millicores=[row.allocatable.get(CPU, 0) - row.requested.get(CPU, 0) for row in kept],
            free_memory_bytes=[row.allocatable.get(MEMORY, 0) - row.requested.get(MEMORY, 0) for row in kept],
            has_image=[image in row.node.images or full_image in row.node.images for row in kept],
            refused=[", ".join(rejections[name].reasons) if name in rejections else "" for name in names],
            score_total=[totals[place] if place is not None else None for place in found],
            scores={
                plugin: [amounts[place] if place is not None else None for place in found]
                for plugin, amounts in points.items()
            },
        )
        return pack_candidates(decision_id, candidates)


def _verdict(decision: Decision, node_name: str) -> tuple[Verdict, str]:
    if decision.node == node_name:
        return Verdict.AGREES, ""
    rejection = decision.rejections.get(node_name)
    if rejection is not None:
        return Verdict.DIFFERS, f"the model refuses {node_name}: {', '.join(rejection.reasons)}"
    if decision.table is not None and node_name in decision.table.best:
        return Verdict.AGREES, f"as many points as {decision.node}"
    if decision.node is None:
        return Verdict.DIFFERS, f"the model finds no node: {decision.message}"
    return Verdict.DIFFERS, f"the model prefers {decision.node}"


def _in_hindsight(judged: Judgement, past: Past) -> Judgement:
    if not past.words:
        # The API server's own order of what two streams told.
        return judged
    note = f"as it stood {past.words}"
    return replace(
        judged,
        model=Verdict.AGREES_EARLIER,
        back_us=past.back_us,
        note=f"{note}; {judged.note}" if judged.note else note,
    )


def _whose(before: PodState | None, after: PodState | None) -> str:
    """The scheduler that knew of this change before it was told: it bound the pod, or made room for it."""
    if after is None:
        return ""
    is_bound = bool(after.node_name) and (before is None or not before.node_name)
    is_nominated = not after.node_name and (before is None or before.nominated_node != after.nominated_node)
    return after.scheduler_name if is_bound or is_nominated else ""


def _is_same_pod(one: PodState | None, other: PodState | None) -> bool:
    """Whether schedulers see no difference."""
    if one is None or other is None:
        return one is other
    return (
        one.node_name == other.node_name
        and one.nominated_node == other.nominated_node
        and one.leaving == other.leaving
        and one.priority == other.priority
        and (one.spec is other.spec or one.spec == other.spec)
        and one.labels == other.labels
    )


def _is_same_node(one: NodeState | None, other: NodeState | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.fact == other.fact and one.allocatable == other.allocatable and one.images == other.images


def _number(version: str) -> int:
    """A resourceVersion as a number; 0 for anything else."""
    return int(version) if version.isdigit() else 0
