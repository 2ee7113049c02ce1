"""Judge decisions by the model of kube-scheduler: follow the cluster, and compute where a pod would
have gone.

The scheduler decided some milliseconds before its binding was reported, on a state that nobody
reports. So the verdict on a binding that differs is "unknown" when pods or nodes had just changed;
otherwise "differs" is a reason to look, not proof of a fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import nsmallest
from types import MappingProxyType
from typing import Final

from roost_core.objects.image_references import normalise_reference
from roost_core.objects.node import Node
from roost_core.objects.pod import Pod
from roost_core.objects.requests import CPU, MEMORY
from roost_core.placement.labels import PLACEHOLDER_CLASS, USER_CLASS
from roost_core.scheduler.cycle import SchedulingDecision, feasible_wanted, schedule
from roost_core.scheduler.node_rows import NodeRow
from roost_core.scheduler.profile import Profile
from roost_core.scheduler.rejections import Rejection
from roost_core.scheduler.scores import ScoreTable
from roost_core.scheduler.state import ClusterState
from roost_core.scheduler.surroundings import Surroundings
from roost_lab.recorder.recording.decision_records import Judged
from roost_lab.recorder.recording.reading import NodeReading, PodReading
from roost_lab.recorder.recording.shortfalls import shortfalls
from roost_lab.recorder.store.records import (
    Candidates,
    CandidatesRecord,
    DecisionRecord,
    Verdict,
    WaitingRecord,
    pack_candidates,
    pack_waiting,
)

# Most nodes that are stored of a decision: the chosen one, the best by score, then rejected ones.
MAX_CANDIDATES: Final = 50
USER = USER_CLASS
PLACEHOLDER = PLACEHOLDER_CLASS
BUILD = "build"
# A change this long before a binding, or less, may not have reached the scheduler when it decided.
UNSEEN_US: Final = 100_000
_NOBODY: Final[Mapping[str, int]] = MappingProxyType({})


class Model:
    """Follows nodes and pods. Owned by one thread."""

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        """profiles: by schedulerName; pods of other schedulers are counted, but not judged."""
        self._profiles = profiles
        # All nodes are scored: a scheduler that scores only a part does not report which.
        self._full_profiles = {
            name: replace(profile, percentage_of_nodes_to_score=100)
            for name, profile in profiles.items()
        }
        self._state = ClusterState(stale_images=True)
        self._classes: dict[str, str] = {}
        self._by_class: dict[str, Counter[str]] = {}
        # The last relevant change for schedulers, of a node or of a pod on a node.
        self._changed_us: int | None = None

    def surroundings_changed(
        self, namespaces: Mapping[str, Mapping[str, str]], claimable: frozenset[str]
    ) -> None:
        """Update the namespaces' labels, which pod affinity terms may select, and what
        DeviceClasses map.
        """
        self._state.surroundings = Surroundings(namespaces=namespaces, claimable=claimable)

    def node_changed(self, name: str, node: NodeReading | None, at_us: int) -> None:
        """Update a node; None: it is gone."""
        row = self._state.rows.get(name)
        before = row.node if row is not None else None
        after = node.state if node is not None else None
        if after is not None:
            self._state.set_node(after)
        elif row is not None:
            self._state.remove_node(name)
        if not _is_same_node(before, after):
            self._changed_us = at_us

    def pod_changed(self, key: str, pod: PodReading | None, pod_class: str, at_us: int) -> None:
        """Update a pod; None: it is gone."""
        before = self._state.get_pod(key)
        if before is not None:
            if pod is not None and _is_same_pod(before, pod.state) and not pod.state.is_finished:
                self._state.touch(before.node_name)
                return
            if before.node_name:
                self._count(before.node_name, self._classes.pop(key, ""), -1)
            self._state.remove_pod(key)
        if pod is not None:
            self._state.add_pod(pod.state)
        after = self._state.get_pod(key)
        if after is not None and after.node_name:
            self._classes[key] = pod_class
            self._count(after.node_name, pod_class, 1)
        was_on_node = before is not None and before.node_name != ""
        is_on_node = after is not None and after.node_name != ""
        if (was_on_node or is_on_node) and not _is_same_pod(before, after):
            self._changed_us = at_us

    def judge(self, binding: DecisionRecord, pod: PodReading, at_us: int) -> Judged:
        """The binding with the verdict: where the pod would have gone had it not been bound; and
        the nodes.
        """
        if pod.state.scheduler_name not in self._profiles:
            note = f"unknown scheduler profile {pod.state.scheduler_name}"
            return replace(binding, model=Verdict.UNKNOWN, model_note=note), None
        known = self._state.get_pod(pod.state.key)
        with self._state.without(pod.state.key):
            decision = self._schedule(pod, known.nominated_node if known is not None else "")
            preferred = decision.node
            verdict, note = self._verdict(decision, pod, binding.node_name)
            if verdict == Verdict.DIFFERS:
                doubt = ""
                if self._changed_us is not None and at_us - self._changed_us <= UNSEEN_US:
                    doubt = "pods or nodes had just changed"
                elif self._claims(pod):
                    doubt = "it claims devices, which the model leaves out"
                if doubt:
                    verdict = Verdict.UNKNOWN
                    note = f"{note}, but {doubt}"
            if decision.table is None and not decision.rejections and decision.node is not None:
                # Only the nominated node was evaluated: evaluate the others too.
                decision = self._schedule(pod, "")
            judged = replace(
                binding,
                model=verdict,
                model_node=preferred or "",
                model_note=note,
                nodes_total=len(self._state.rows),
                nodes_feasible=len(self._state.rows) - len(decision.rejections),
            )
            return judged, self._candidates(binding, pod, decision)

    def examine(self, pod: PodReading, at_us: int) -> WaitingRecord | None:
        """The nodes as they stand for a pod that fits on none, and what each lacks, those that lack
        least first.

        None when the pod's scheduler profile isn't known.
        """
        profile = self._profiles.get(pod.state.scheduler_name)
        if profile is None:
            return None
        with self._state.without(pod.state.key):
            rejections = self._schedule(pod, "").rejections
            claimable = self._state.surroundings.claimable
            lacks = {
                row.name: shortfalls(pod.state, row, rejections.get(row.name), claimable)
                for row in self._state.rows.values()
            }

            def rank(row: NodeRow) -> tuple[int, int, str]:
                return len(lacks[row.name]), -row.allocatable.get(CPU, 0), row.name

            rows = sorted(self._state.rows.values(), key=rank)
            kept = rows[:MAX_CANDIDATES]
            candidates = self._columns(pod, kept, rejections, None)
            return pack_waiting(
                pod.state.uid, at_us, len(rows), candidates, [lacks[row.name] for row in kept]
            )

    def _claims(self, pod: PodReading) -> bool:
        claimable = self._state.surroundings.claimable
        return pod.has_claims or any(name in claimable for name, _ in pod.state.spec.requests)

    def _schedule(self, pod: PodReading, nominated: str) -> SchedulingDecision:
        pending = replace(pod.state, node_name="", nominated_node=nominated)
        profile = self._full_profiles[pod.state.scheduler_name]
        return schedule(pending, self._state, profile, with_preemption=False)

    def _verdict(
        self, decision: SchedulingDecision, pod: PodReading, node_name: str
    ) -> tuple[Verdict, str]:
        """How the binding compares with the model's decision, and why; UNKNOWN where the scheduler
        scores a part of the nodes only.
        """
        verdict, note = _compare(decision, node_name)
        is_rejected = node_name in decision.rejections
        if verdict != Verdict.DIFFERS or decision.table is None or is_rejected:
            return verdict, note
        profile = self._profiles[pod.state.scheduler_name]
        scored = feasible_wanted(len(self._state.rows), profile)
        if scored >= len(decision.table.nodes):
            return verdict, note
        note = f"the scheduler scores only {scored} feasible nodes and does not report which"
        return Verdict.UNKNOWN, note

    def _count(self, node_name: str, pod_class: str, by: int) -> None:
        counts = self._by_class.setdefault(node_name, Counter())
        counts[pod_class] += by
        if not counts[pod_class]:
            del counts[pod_class]
        if not counts:
            del self._by_class[node_name]

    def _candidates(
        self, binding: DecisionRecord, pod: PodReading, decision: SchedulingDecision
    ) -> CandidatesRecord:
        table = decision.table
        rejections = decision.rejections
        totals = _totals(table)
        rows: Iterable[NodeRow] = self._state.rows.values()

        def rank(row: NodeRow) -> tuple[bool, bool, int, str]:
            return (
                row.name != binding.node_name,
                row.name in rejections,
                -totals.get(row.name, 0),
                row.name,
            )

        if len(self._state.rows) > MAX_CANDIDATES:
            rows = nsmallest(MAX_CANDIDATES, rows, key=rank)
        return pack_candidates(binding.id, self._columns(pod, list(rows), rejections, table))

    def _columns(
        self,
        pod: PodReading,
        rows: Sequence[NodeRow],
        rejections: Mapping[str, Rejection],
        table: ScoreTable | None,
    ) -> Candidates:
        image = pod.state.spec.images[0] if pod.state.spec.images else ""
        # Kubelets name images in full.
        full_image = normalise_reference(image) if image else ""
        names = [row.name for row in rows]
        counts = [self._by_class.get(name, _NOBODY) for name in names]
        totals = _totals(table)
        by_plugin = table.points.items() if table is not None else ()
        points = {plugin: dict(zip(totals, scores, strict=True)) for plugin, scores in by_plugin}
        return Candidates(
            node_name=names,
            users=[by_class.get(USER, 0) for by_class in counts],
            placeholders=[by_class.get(PLACEHOLDER, 0) for by_class in counts],
            builds=[by_class.get(BUILD, 0) for by_class in counts],
            free_cpu_millicores=[
                row.allocatable.get(CPU, 0) - row.requested.get(CPU, 0) for row in rows
            ],
            free_memory_bytes=[
                row.allocatable.get(MEMORY, 0) - row.requested.get(MEMORY, 0) for row in rows
            ],
            has_image=[image in row.node.images or full_image in row.node.images for row in rows],
            refused=[
                ", ".join(rejections[name].reasons) if name in rejections else "" for name in names
            ],
            score_total=[totals.get(name) for name in names],
            scores={
                plugin: [of_node.get(name) for name in names] for plugin, of_node in points.items()
            },
        )


def _totals(table: ScoreTable | None) -> dict[str, int]:
    """The scored nodes' totals, by name."""
    return {} if table is None else dict(zip(table.nodes, table.totals, strict=True))


def _compare(decision: SchedulingDecision, node_name: str) -> tuple[Verdict, str]:
    """Whether the model, which scores all nodes, agrees with a binding to this node, and why."""
    if decision.node == node_name:
        return Verdict.AGREES, ""
    rejection = decision.rejections.get(node_name)
    if rejection is not None:
        return Verdict.DIFFERS, f"the model rejects {node_name}: {', '.join(rejection.reasons)}"
    if decision.table is not None and node_name in decision.table.best:
        return Verdict.AGREES, f"same score as {decision.node}"
    if decision.node is None:
        return Verdict.DIFFERS, f"the model finds no node: {decision.message}"
    return Verdict.DIFFERS, f"the model prefers {decision.node}"


def _is_same_pod(before: Pod | None, after: Pod | None) -> bool:
    """Whether the two are the same to schedulers."""
    if before is None or after is None:
        return before is after
    # Specs that are one object need no comparing.
    if before.spec is not after.spec and before.spec != after.spec:
        return False
    return _what_schedulers_read(before) == _what_schedulers_read(after)


def _what_schedulers_read(pod: Pod) -> tuple[object, ...]:
    """Of a pod, besides its spec."""
    return pod.node_name, pod.nominated_node, pod.leaving, pod.priority, pod.labels


def _is_same_node(before: Node | None, after: Node | None) -> bool:
    if before is None or after is None:
        return before is after
    return (
        before == after
        and before.allocatable == after.allocatable
        and before.images == after.images
    )
