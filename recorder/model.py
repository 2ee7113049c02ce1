"""Judge decisions by the scheduler's own rules: follow the cluster, and ask the pure model where a pod would have gone.

What a scheduler saw can differ from what the watches told by the moment of its decision: changes on their way, another
scheduler's pods, nominated nodes. So "differs" is a hint to look, never proof of a fault.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import orjson

from placement.scheduling.cycle import Decision, schedule
from placement.scheduling.objects import CPU, MEMORY
from placement.scheduling.state import ClusterState, Surroundings
from recorder.assembler import Judgement
from recorder.records import CandidateRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from placement.scheduling.profile import Profile
    from placement.scheduling.state import NodeRow
    from recorder.reading import SeenNode, SeenPod

# Nodes kept of each decision: the best by score, the chosen one, and then those that were refused.
MAX_CANDIDATES: Final = 50
USER, PLACEHOLDER, BUILD = "user", "placeholder", "build"


class Model:
    """Follows nodes and pods. One thread owns it."""

    def __init__(self, profiles: Mapping[str, Profile], max_candidates: int = MAX_CANDIDATES) -> None:
        """Prepare. profiles: by schedulerName; pods of other schedulers are not judged, only counted."""
        self._profiles = profiles
        self._max_candidates = max_candidates
        self._state = ClusterState(stale_images=True)
        self._classes: dict[str, str] = {}
        self._by_class: dict[str, Counter[str]] = {}

    def namespaces_changed(self, labels: Mapping[str, Mapping[str, str]]) -> None:
        """Learn the namespaces' labels, which pod terms may ask for."""
        self._state.surroundings = Surroundings(namespaces=labels)

    def node_changed(self, name: str, node: SeenNode | None) -> None:
        """Learn of a node; None: it is gone."""
        if node is not None:
            self._state.set_node(node.state)
        elif name in self._state.rows:
            self._state.remove_node(name)

    def pod_changed(self, key: str, pod: SeenPod | None, pod_class: str) -> None:
        """Learn of a pod; None: it is gone."""
        before = self._state.get_pod(key)
        if before is not None:
            if before.node_name:
                self._count(before.node_name, self._classes.pop(key, ""), -1)
            self._state.remove_pod(key)
        if pod is not None:
            self._state.add_pod(pod.state)
            after = self._state.get_pod(key)
            if after is not None and after.node_name:
                self._classes[key] = pod_class
                self._count(after.node_name, pod_class, 1)

    def judge(self, decision_id: str, pod: SeenPod, node_name: str) -> Judgement:
        """Say where the pod would have gone, were it not bound yet."""
        profile = self._profiles.get(pod.state.scheduler_name)
        if profile is None:
            return Judgement("unknown", note=f"no profile is known for scheduler {pod.state.scheduler_name}")
        known = self._state.get_pod(pod.state.key)
        nominated = known.nominated_node if known is not None else ""
        with self._state.without(pod.state.key):
            asked = replace(pod.state, node_name="", nominated_node=nominated)
            decision = schedule(asked, self._state, profile, with_preemption=False)
            preferred, (word, note) = decision.node, _verdict(decision, node_name)
            if decision.table is None and nominated and decision.node == nominated:
                # Only the node where room was made for it was looked at: how the others stood is asked apart.
                decision = schedule(replace(asked, nominated_node=""), self._state, profile, with_preemption=False)
            return Judgement(
                word,
                model_node=preferred or "",
                note=note,
                nodes_total=len(self._state.rows),
                nodes_feasible=len(self._state.rows) - len(decision.rejections),
                candidates=tuple(self._candidates(decision_id, pod, decision, node_name)),
            )

    def _count(self, node_name: str, pod_class: str, by: int) -> None:
        counts = self._by_class.setdefault(node_name, Counter())
        counts[pod_class] += by
        if not counts[pod_class]:
            del counts[pod_class]
        if not counts:
            del self._by_class[node_name]

    def _candidates(self, decision_id: str, pod: SeenPod, decision: Decision, chosen: str) -> list[CandidateRecord]:
        totals: dict[str, int] = {}
        scores: dict[str, dict[str, int]] = {}
        if decision.table is not None:
            for name, by_plugin, total in decision.table.rows():
                totals[name], scores[name] = total, by_plugin
        image = pod.state.spec.images[0] if pod.state.spec.images else ""

        nobody = Counter[str]()

        def candidate(row: NodeRow) -> CandidateRecord:
            counts = self._by_class.get(row.name, nobody)
            rejection = decision.rejections.get(row.name)
            return CandidateRecord(
                decision_id=decision_id,
                node_name=row.name,
                node_uid=row.node.uid,
                users=counts[USER],
                placeholders=counts[PLACEHOLDER],
                builds=counts[BUILD],
                free_cpu_millicores=row.allocatable.get(CPU, 0) - row.requested.get(CPU, 0),
                free_memory_bytes=row.allocatable.get(MEMORY, 0) - row.requested.get(MEMORY, 0),
                has_image=image in row.node.images,
                refused=", ".join(rejection.reasons) if rejection is not None else "",
                score_total=totals.get(row.name),
                scores=orjson.dumps(scores.get(row.name, {}), option=orjson.OPT_SORT_KEYS).decode(),
            )

        def rank(row: NodeRow) -> tuple[bool, bool, int, str]:
            return row.name != chosen, row.name in decision.rejections, -totals.get(row.name, 0), row.name

        return [candidate(row) for row in sorted(self._state.rows.values(), key=rank)[: self._max_candidates]]


def _verdict(decision: Decision, node_name: str) -> tuple[str, str]:
    if decision.node == node_name:
        return "agrees", ""
    rejection = decision.rejections.get(node_name)
    if rejection is not None:
        return "differs", f"the model refuses {node_name}: {', '.join(rejection.reasons)}"
    if decision.table is not None and node_name in decision.table.best:
        return "agrees", f"as many points as {decision.node}"
    if decision.node is None:
        return "differs", f"the model finds no node: {decision.message}"
    return "differs", f"the model prefers {decision.node}"
