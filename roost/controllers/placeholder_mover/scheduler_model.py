"""Predict where kube-scheduler would put an evicted placeholder.

The prediction is made in a model of the cluster. The model is kept from plan to plan, because it
takes more than a second to build it for 100,000 pods. It remembers nothing else: `follow` makes it
equal to the snapshot, whatever it was before.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import Final

from roost.controllers.contract.snapshot import Snapshot
from roost_core.objects.node import Node
from roost_core.objects.pod import Pod
from roost_core.scheduler.cycle import schedule
from roost_core.scheduler.plugins import PICKS_ALIKE_SINCE
from roost_core.scheduler.profile import Profile
from roost_core.scheduler.state import ClusterState
from roost_core.scheduler.surroundings import Surroundings

# The most pods that one plan adds to the model, which takes a third of a second. A new leader needs
# several plans for a large cluster. It has the time: it evicts nothing in its first minute.
MAX_NEW_PODS: Final = 30_000


class Prediction(Enum):
    """Where the scheduler would put a placeholder."""

    TARGET = "on the target"
    ELSEWHERE = "on another node"
    # The target can't take it: it has no room, or taints or rules exclude it.
    REJECTED = "the target is filtered out"


class SchedulerModel:
    """A ClusterState that follows snapshots."""

    # How often `try_move` was called in this plan.
    predictions: int
    # What `follow` returned in this plan; None: it wasn't called yet.
    _has_followed: bool | None

    def __init__(self) -> None:
        """Start empty."""
        self._reset()

    def _reset(self) -> None:
        self._state = ClusterState()
        self._nodes: dict[str, Node] = {}
        self._pods: dict[str, Pod] = {}
        self._tried: list[Pod] = []
        self.undo()

    def follow(self, snapshot: Snapshot) -> bool:
        """Become equal to the snapshot. This takes time for each change, and little for the rest.

        Return False if that was too much for one plan. `try_move` must not be called until a later
        call returns True.
        """
        try:
            self.undo()
            return self._follow(snapshot)
        except Exception:
            # The state may be half changed, so the next plan begins with an empty one.
            self._reset()
            raise

    def follow_once(self, snapshot: Snapshot) -> bool:
        """`follow` the snapshot, but only once in a plan. A plan ends with `undo`."""
        if self._has_followed is None:
            self._has_followed = self.follow(snapshot)
        return self._has_followed

    def _follow(self, snapshot: Snapshot) -> bool:
        nodes = snapshot.nodes
        pods = snapshot.pods
        self._state.surroundings = Surroundings(claimable=snapshot.claimable)
        for key in [key for key in self._pods if key not in pods]:
            self._forget(key)
        for name in [name for name in self._nodes if name not in nodes]:
            self._state.remove_node(name)
            del self._nodes[name]
        for name, node in nodes.items():
            if self._nodes.get(name) is not node:
                self._nodes[name] = node
                self._state.set_node(node)
        budget = MAX_NEW_PODS
        for key, pod in pods.items():
            if self._pods.get(key) is not pod:
                if not budget:
                    return False
                budget -= 1
                self._pods[key] = pod
                self._state.add_pod(pod)
        return True

    def _forget(self, key: str) -> None:
        del self._pods[key]
        # Pods that take no room aren't in the state.
        if self._state.get_pod(key) is not None:
            self._state.remove_pod(key)

    def try_move(self, pod: Pod, target: str, profile: Profile) -> Prediction:
        """Predict where the pod would go if it were evicted now.

        If that is the target, the pod is moved there in the model, until `undo`.
        """
        self.predictions += 1
        before = self._state.remove_pod(pod.key)
        unbound = replace(pod, node_name="", nominated_node="", phase="Pending")
        try:
            decision = schedule(unbound, self._state, profile, with_preemption=False)
        except Exception:
            self._reset()
            raise
        # Before PICKS_ALIKE_SINCE, kube-scheduler draws one of the best nodes at random. The pod
        # could then return to its node.
        is_chance = (
            profile.minor < PICKS_ALIKE_SINCE
            and decision.table is not None
            and len(decision.table.best) > 1
        )
        if decision.node == target and not is_chance:
            self._tried.append(before)
            self._state.add_pod(replace(pod, node_name=target))
            return Prediction.TARGET
        self._state.add_pod(before)
        return Prediction.REJECTED if target in decision.rejections else Prediction.ELSEWHERE

    def undo(self) -> None:
        """Revert all moves since `follow`. Called at the end of a plan."""
        for pod in reversed(self._tried):
            self._state.add_pod(pod)
        self._tried.clear()
        self.predictions = 0
        self._has_followed = None
