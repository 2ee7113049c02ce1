"""Run kube-scheduler in a replay: its queue, its back-off, and the unschedulable pods.

`roost_core.scheduler` decides where a pod goes. This module decides which pods are tried, and when.
"""

from __future__ import annotations

from dataclasses import replace
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, Protocol

from roost_core.scheduler.cycle import SchedulingDecision, schedule
from roost_lab.simulator.engine.pods import PLACEHOLDER, USER

if TYPE_CHECKING:
    from collections.abc import Callable

    from roost_core.scheduler.profile import Profile
    from roost_lab.simulator.engine.cluster import Cluster
    from roost_lab.simulator.engine.entities import SimNode, SimPod

# kube-scheduler retries pods that have been unschedulable for so long.
FLUSH_SECONDS: Final = 300.0
# The most kinds of pods that are remembered to fit nowhere.
_MOST_HOPELESS: Final = 512


class Binding(Protocol):
    """What becomes of a pod that was tried."""

    def bind(self, pod: SimPod, node_name: str) -> None:
        """The pod goes to a node."""

    def preempt(self, pod: SimPod) -> None:
        """The pod is a victim of pre-emption."""

    def pod_waits(self, pod: SimPod) -> None:
        """The pod fits no node."""


class Scheduling:
    """kube-scheduler of one replay."""

    def __init__(
        self,
        cluster: Cluster,
        pods: Binding,
        *,
        profile_of: Callable[[str], Profile],
        give_up_if_late: Callable[[SimPod], None],
    ) -> None:
        """profile_of: by scheduler's name. give_up_if_late: is called when a launch's patience has
        ended.
        """
        self._cluster = cluster
        self._pods = pods
        self._profile_of = profile_of
        self._give_up_if_late = give_up_if_late
        # Pods that no node fits, by key, in order of creation.
        self.unschedulable: dict[str, SimPod] = {}
        self._queue: list[tuple[int, int, SimPod]] = []
        # Grows with each change that may make a pod fit.
        self._chances = 0
        # (spec's id, priority, scheduler, nomination) -> `_chances` at which it fitted nowhere, and
        # the spec, so that its id isn't reused.
        self._hopeless: dict[tuple[object, ...], tuple[int, object]] = {}
        # Scheduler -> the node at which its next search begins.
        self._starts: dict[str, int] = {}

    @property
    def is_due(self) -> bool:
        """Whether a pod waits to be tried."""
        return bool(self._queue)

    def enqueue(self, pod: SimPod) -> None:
        """Try a pod at the next `run`."""
        if not pod.in_queue:
            pod.in_queue = True
            heappush(self._queue, (-pod.state.priority, pod.order, pod))

    def run(self) -> None:
        """Try all pods that are due, the most important first, then the oldest."""
        queue = self._queue
        while queue:
            _, _, pod = heappop(queue)
            pod.in_queue = False
            if pod.bound_at is not None or self._cluster.sim_pods.get(pod.key) is not pod:
                continue
            state = pod.state
            kind = (id(state.spec), state.priority, state.scheduler_name, state.nominated_node)
            if self._hopeless.get(kind, (-1, None))[0] == self._chances:
                self._unfit(pod)
                continue
            profile = self._profile_of(state.scheduler_name)
            decision = schedule(
                state, self._cluster.state, profile, start=self._starts.get(state.scheduler_name, 0)
            )
            self._starts[state.scheduler_name] = decision.next_start
            if decision.node is not None:
                self._pods.bind(pod, decision.node)
            else:
                if decision.nomination is None:
                    if len(self._hopeless) > _MOST_HOPELESS:
                        self._hopeless.clear()
                    self._hopeless[kind] = self._chances, state.spec
                self._unfit(pod, decision)

    def _unfit(self, pod: SimPod, decision: SchedulingDecision | None = None) -> None:
        """Note a failed try; pre-empt the victims, if any."""
        now = self._cluster.now
        pod.failures += 1
        pod.tried_at = now
        self._cluster.journal.pod_unfit(pod, decision, now)
        if pod.waits_since is None:
            pod.waits_since = now
            pod.state = replace(pod.state, unschedulable_since=now)
            self._cluster.pods[pod.key] = pod.state
            self._cluster.at(now + FLUSH_SECONDS, self._flush, pod)
            if pod.launch is not None:
                self._cluster.at(
                    pod.created + self._cluster.assumed.start_timeout_seconds,
                    self._give_up_if_late,
                    pod,
                )
        self.unschedulable[pod.key] = pod
        nomination = decision.nomination if decision is not None else None
        if nomination is not None:
            pod.state = replace(pod.state, nominated_node=nomination.node)
            self._cluster.pods[pod.key] = pod.state
            self._cluster.state.add_pod(pod.state)
            for victim in nomination.victims:
                victim_pod = self._cluster.sim_pods.get(victim.key)
                if victim_pod is not None and not victim_pod.state.leaving:
                    result = self._cluster.measures.result
                    result.placeholder_preemptions += victim_pod.kind == PLACEHOLDER
                    result.users_preempted += victim_pod.kind == USER
                    self._cluster.journal.pod_removed(victim_pod, pod, now)
                    self._pods.preempt(victim_pod)
            return
        nominated = pod.state.nominated_node
        if decision is not None and nominated and not self._makes_room(nominated):
            self._drop_nomination(pod)
        # Whoever was nominated waits for a placeholder to go, not for a node.
        pod.waited_for_node |= not pod.state.nominated_node
        self._pods.pod_waits(pod)

    def _makes_room(self, node: str) -> bool:
        row = self._cluster.state.rows.get(node)
        return row is not None and any(pod.leaving for pod in row.pods.values())

    def _drop_nomination(self, pod: SimPod) -> None:
        if self._cluster.state.get_pod(pod.key) is not None:
            self._cluster.state.remove_pod(pod.key)
        pod.state = replace(pod.state, nominated_node="")
        self._cluster.pods[pod.key] = pod.state

    def retry(self, node: SimNode | None = None) -> None:
        """There is more room, on that node or, without one, anywhere: pods that fitted nowhere are
        tried again.
        """
        self._chances += 1
        assumed = self._cluster.assumed
        for pod in self.unschedulable.values():
            if (
                pod.in_queue
                or pod.retries_at is not None
                or (node is not None and not self.might_fit(pod, node))
            ):
                continue
            rest = min(
                assumed.max_backoff_seconds, assumed.backoff_seconds * 2 ** min(pod.failures - 1, 8)
            )
            if pod.tried_at + rest > self._cluster.now:
                pod.retries_at = pod.tried_at + rest
                self._cluster.at(pod.retries_at, self._enqueue_again, pod)
            else:
                self.enqueue(pod)

    def _enqueue_again(self, pod: SimPod) -> None:
        pod.retries_at = None
        if pod.bound_at is None and self._cluster.sim_pods.get(pod.key) is pod:
            self.enqueue(pod)

    def _flush(self, pod: SimPod) -> None:
        """kube-scheduler retries pods that have been unschedulable for long, whether or not
        anything changed.
        """
        if pod.bound_at is None and self._cluster.sim_pods.get(pod.key) is pod:
            self.enqueue(pod)
            self._cluster.at(self._cluster.now + FLUSH_SECONDS, self._flush, pod)

    def might_fit(self, pod: SimPod, node: SimNode) -> bool:
        """kube-scheduler's queueing hint: whether the pod's requests now fit the node where a pod
        was deleted.
        """
        row = self._cluster.state.rows.get(node.name)
        if row is None or pod.state.nominated_node == node.name:
            return True
        if len(row.pods) >= row.max_pods:
            return False
        requested = row.requested
        allocatable = row.allocatable
        return all(
            requested.get(name, 0) + amount <= allocatable.get(name, 0)
            for name, amount in pod.state.spec.requests
        )
