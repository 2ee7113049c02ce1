"""Keep the scheduler's model of the cluster from plan to plan: making one of 100,000 pods takes more than a second.

It is a cache and nothing else: `follow` makes it equal to the snapshot whatever it was before, and `undo` takes back
what a plan tried.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from roost_core.scheduler.cycle import schedule
from roost_core.scheduler.objects import copy_pod
from roost_core.scheduler.state import ClusterState

if TYPE_CHECKING:
    from roost.controllers.contract.snapshot import Snapshot
    from roost_core.scheduler.objects import NodeState, PodState
    from roost_core.scheduler.profile import Profile


# Pods taken in by one plan: a third of a second. A new leader may evict nothing for a minute, and has time.
MAX_NEW_PODS: Final = 30_000


class Answer(Enum):
    """Where the scheduler would put a placeholder."""

    THERE = "on the marked node"
    ELSEWHERE = "on another node"
    # The marked node takes none of its kind: it has no room, or something keeps them off.
    NOBODY = "not there, whichever it is"


class Model:
    """A ClusterState that follows snapshots."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._reset()

    def _reset(self) -> None:
        self._state = ClusterState()
        self._nodes: dict[str, NodeState] = {}
        self._pods: dict[str, PodState] = {}
        self._tried: list[PodState] = []

    def follow(self, snapshot: Snapshot) -> bool:
        """Become equal to the snapshot; costs what has changed, and a look at each object.

        False: there was too much for one plan. It may be asked nothing before a later call says True.
        """
        try:
            self.undo()
            return self._follow(snapshot)
        except Exception:
            # Half of it may be done: the next plan had better begin anew.
            self._reset()
            raise

    def _follow(self, snapshot: Snapshot) -> bool:
        nodes, pods = snapshot.nodes, snapshot.pods
        for key in [key for key in self._pods if key not in pods]:
            self._forget(key)
        for name in [name for name in self._nodes if name not in nodes]:
            self._state.remove_node(name)
            del self._nodes[name]
        for name, node in nodes.items():
            if self._nodes.get(name) is not node:
                self._nodes[name] = node
                self._state.set_node(node)
        left = MAX_NEW_PODS
        for key, pod in pods.items():
            if self._pods.get(key) is not pod:
                if not left:
                    return False
                left -= 1
                self._pods[key] = pod
                self._state.add_pod(pod)
        return True

    def _forget(self, key: str) -> None:
        del self._pods[key]
        # Pods that take no room aren't in the state.
        if self._state.get_pod(key) is not None:
            self._state.remove_pod(key)

    def try_move(self, pod: PodState, target: str, profile: Profile) -> Answer:
        """Move the pod, until `undo`, if the scheduler, asked now, would put it there."""
        known = self._state.remove_pod(pod.key)
        unbound = copy_pod(pod, node_name="", nominated_node="", phase="Pending")
        try:
            decision = schedule(unbound, self._state, profile, with_preemption=False)
        except Exception:
            self._reset()
            raise
        if decision.node == target:
            self._tried.append(known)
            self._state.add_pod(copy_pod(pod, node_name=target))
            return Answer.THERE
        self._state.add_pod(known)
        return Answer.NOBODY if target in decision.rejections else Answer.ELSEWHERE

    def undo(self) -> None:
        """Put back what was moved."""
        for pod in reversed(self._tried):
            self._state.add_pod(pod)
        self._tried.clear()
