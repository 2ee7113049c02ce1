"""Run the controllers in a replay: the planners that run in a cluster, on a snapshot of the world,
with their budgets.

They plan when something that concerns them changes, and when a plan asks to be called again; not at
every change, because a replay plays ten days in a minute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol, assert_never

from roost.controllers.contract import actions
from roost.controllers.contract.pod_kinds import waits_at_gate
from roost.controllers.contract.snapshot import Moment, Snapshot, StatefulSetState
from roost.controllers.headroom.plan import CONTROLLER as LEARNED_HEADROOM
from roost.controllers.image_gate.plan import CONTROLLER as IMAGE_GATE
from roost.controllers.placeholder_mover.plan import CONTROLLER as PLACEHOLDER_MOVER
from roost.controllers.popular_images.plan import CONTROLLER as POPULAR_IMAGES
from roost.controllers.popular_images.pull_pods import read_pull
from roost.controllers.runtime.budget import MinuteBudget
from roost_core.objects.pod import ContainerState, Owner, Pod
from roost_core.placement.headroom_account import Account
from roost_core.placement.headroom_history import read_history
from roost_core.placement.labels import (
    OWN_COMPONENT_LABEL,
    OWN_INSTANCE_LABEL,
    OWN_PART,
    PART_OF_LABEL,
)
from roost_lab.simulator.engine.pods import PLACEHOLDER, USER, PodMaker

if TYPE_CHECKING:
    from roost.controllers.contract.planner import Planner
    from roost_core.objects.node import Node
    from roost_lab.simulator.engine.cluster import Cluster
    from roost_lab.simulator.engine.entities import SimNode, SimPod
    from roost_lab.simulator.engine.kubelets import Kubelets
    from roost_lab.simulator.engine.placeholder_sets import PlaceholderSets
    from roost_lab.simulator.setup.policy import Policy, PullerSet

GATE: Final = IMAGE_GATE.name
MOVER: Final = PLACEHOLDER_MOVER.name
HEADROOM: Final = LEARNED_HEADROOM.name
POPULAR: Final = POPULAR_IMAGES.name
# Least seconds between two plans of a controller.
PACE_SECONDS: Final = {GATE: 0.5, MOVER: 20.0, HEADROOM: 10.0, POPULAR: 20.0}
# The same for popular images, unless one of its pulls ends: one user more hardly changes what is
# popular.
DEMAND_PACE_SECONDS: Final = 60.0


class ClusterChanges(Protocol):
    """What controllers change in the cluster, besides the pods that they make."""

    def change_node(self, node: SimNode, state: Node) -> None:
        """Labels or taints of a node change."""

    def evict(self, pod: SimPod) -> None:
        """A placeholder is evicted."""


class Controls:
    """The controllers of one hub's release."""

    def __init__(
        self,
        cluster: Cluster,
        policy: Policy,
        *,
        maker: PodMaker,
        sets: PlaceholderSets,
        kubelets: Kubelets,
        changes: ClusterChanges,
    ) -> None:
        self._cluster = cluster
        self._policy = policy
        self._maker = maker
        self._sets = sets
        self._kubelets = kubelets
        self._changes = changes
        document = policy.controllers or {}
        self._planners: dict[str, Planner[Any]] = {
            planner.name: planner
            for planner in policy.make_planners()
            # Start notices place nothing.
            if planner.name in PACE_SECONDS and _is_on(planner.name, document)
        }
        self._reads_containers = POPULAR in self._planners
        self.reads_starts = self._reads_containers or HEADROOM in self._planners
        self._evictions = MinuteBudget(policy.evictions_per_minute, lambda: cluster.now)
        # By name of a controller: when it planned last.
        self._planned_at: dict[str, float] = {}
        # By name of a controller whose next plan is scheduled: when it is due.
        self._due: dict[str, float] = {}
        self._kept: dict[str, str] = {}
        # By key of the pod that pulls.
        self._pulling: dict[str, tuple[SimNode, str]] = {}

    # Changes

    def nodes_changed(self) -> None:
        """A node came or went."""
        for name in self._planners:
            self._plan_soon(name)

    def node_registered(self) -> None:
        """A node that isn't ready yet: the gate sees it before any pod can be bound there."""
        if GATE in self._planners:
            self._run(GATE)

    def pod_waits(self, pod: SimPod) -> None:
        """No node fits a pod."""
        self._plan_soon(HEADROOM)
        if GATE in self._planners and waits_at_gate(pod.state):
            self._plan_soon(GATE)

    def node_left(self, node: SimNode) -> None:
        """A node was removed, with the pods there that pull."""
        cluster = self._cluster
        there = [key for key, pod in cluster.pods.items() if pod.node_name == node.name]
        for key in there:
            if key not in cluster.sim_pods:
                del cluster.pods[key]
                self._pulling.pop(key, None)
        self.nodes_changed()

    def images_shown(self) -> None:
        """A node reports other images."""
        self._plan_soon(GATE)
        self._plan_soon(POPULAR, DEMAND_PACE_SECONDS)

    def pods_changed(self, pod: SimPod) -> None:
        """A pod came, was bound, or went."""
        if not self._planners:
            return
        if pod.kind == USER:
            self._plan_soon(POPULAR, DEMAND_PACE_SECONDS)
        if pod.kind in (USER, PLACEHOLDER):
            self._plan_soon(MOVER)
            self._plan_soon(HEADROOM)

    def user_runs(self, pod: SimPod, image: str) -> None:
        """A user's server is up."""
        pod.state = replace(pod.state, phase="Running", started=self._cluster.now)
        if self._reads_containers:
            container = ContainerState(image, image, running=True, ready=True, name="notebook")
            pod.state = replace(pod.state, containers=(container,))
        self._cluster.pods[pod.key] = pod.state

    def puller_began(self, node: SimNode, puller: PullerSet) -> None:
        """A puller's pod is on a node and begins to pull."""
        name = f"{puller.name}-{node.name}"
        containers = tuple(
            ContainerState(image, waiting_reason="ContainerCreating", name=container)
            for container, image in puller.images.items()
        )
        policy = self._policy
        labels = {**puller.labels, OWN_INSTANCE_LABEL: policy.release, PART_OF_LABEL: OWN_PART}
        labels.setdefault(OWN_COMPONENT_LABEL, "puller")
        pod = Pod(
            namespace=policy.namespace,
            name=name,
            uid=name,
            labels=labels,
            node_name=node.name,
            created=self._cluster.now,
            containers=containers,
            owner=Owner("DaemonSet", puller.name, puller.name),
        )
        node.pullers[pod.key] = pod
        self._cluster.pods[pod.key] = pod

    def puller_has(self, node: SimNode, puller: PullerSet, container: str) -> None:
        """One image of a puller is on the node; its container runs."""
        pod = node.pullers[f"{self._policy.namespace}/{puller.name}-{node.name}"]
        containers: list[ContainerState] = []
        for before in pod.containers:
            running = replace(
                before, waiting_reason="", image_id=before.image, running=True, ready=True
            )
            containers.append(running if before.name == container else before)
        pod = replace(pod, containers=tuple(containers), phase="Running")
        node.pullers[pod.key] = pod
        self._cluster.pods[pod.key] = pod
        self._plan_soon(GATE)
        self._plan_soon(MOVER)

    # What was learned

    def learned_account(self, set_name: str) -> Account:
        """What a set's learning saved and cost, as kept at the last full hour.

        Empty: it doesn't learn.
        """
        text = self._kept.get(set_name)
        return Account() if text is None else read_history(text).account

    # Planning

    def _plan_soon(self, name: str, pace_seconds: float | None = None) -> None:
        if name in self._planners:
            last = self._planned_at.get(name)
            now = self._cluster.now
            pace = PACE_SECONDS[name] if pace_seconds is None else pace_seconds
            self._plan_at(name, now if last is None else max(now, last + pace))

    def _plan_at(self, name: str, moment: float) -> None:
        due = self._due.get(name)
        if due is None or moment < due:
            self._due[name] = moment
            self._cluster.at(moment, self._plan, (name, moment))

    def _plan(self, argument: tuple[str, float]) -> None:
        name, due = argument
        if self._due.get(name) != due:
            # An earlier plan replaced it.
            return
        del self._due[name]
        self._run(name)

    def _run(self, name: str) -> None:
        now = self._cluster.now
        self._planned_at[name] = now
        moment = Moment(now, now)
        planner = self._planners[name]
        planned = planner.plan(self._snapshot(), moment)
        done = [actions.Done(action, self._apply(action)) for action in planned.actions]
        planner.note(done, moment)
        if planned.wake_after_seconds is not None:
            # A little later than requested, so that what it waits for has happened.
            self._plan_at(name, now + max(planned.wake_after_seconds + 1e-3, PACE_SECONDS[name]))
        elif any(action.outcome is actions.Outcome.HELD_BACK for action in done):
            self._plan_at(name, now + max(self._evictions.seconds_until_next(), PACE_SECONDS[name]))

    def _snapshot(self) -> Snapshot:
        cluster = self._cluster
        policy = self._policy
        sets_here = self._sets
        sets = {
            placeholders.name: StatefulSetState(
                placeholders.name, placeholders.name, sets_here.replicas[placeholders.name]
            )
            for placeholders in sets_here.sets.values()
        }
        nodes = {name: node.state for name, node in cluster.nodes.items()}
        return Snapshot(
            policy.release,
            policy.namespace,
            nodes=nodes,
            pods=cluster.pods,
            stateful_sets=sets,
            histories={**cluster.histories, **self._kept},
            namespaces=self._maker.namespaces,
        )

    def _apply(self, action: actions.Action) -> actions.Outcome:
        cluster = self._cluster
        sets = self._sets
        match action:
            case actions.ChangeNode():
                node = cluster.nodes.get(action.node)
                if node is None:
                    return actions.Outcome.GONE
                self._changes.change_node(node, _changed(node.state, action))
            case actions.EvictPod():
                pod = cluster.sim_pods.get(f"{action.namespace}/{action.name}")
                if pod is None or pod.state.uid != action.uid:
                    return actions.Outcome.GONE
                if not self._evictions.take():
                    return actions.Outcome.HELD_BACK
                cluster.measures.result.moves += 1
                self._changes.evict(pod)
            case actions.ScaleSet():
                if action.name not in sets.replicas:
                    return actions.Outcome.GONE
                sets.scale(action.name, action.replicas)
            case actions.CreatePod():
                return self._begin_pull(action.body)
            case actions.DeletePod():
                self._end_pull(f"{action.namespace}/{action.name}")
            case actions.KeepHistory():
                self._kept |= action.data
            case actions.Notice():
                # Events change nothing in a replay.
                pass
            case _:
                assert_never(action)
        return actions.Outcome.DONE

    def _begin_pull(self, body: Mapping[str, Any]) -> actions.Outcome:
        """A pod that pulls a popular image: it succeeds when the image is on its node."""
        cluster = self._cluster
        state = self._maker.read(dict(body))
        pull = read_pull(state)
        node = cluster.nodes.get(pull.node)
        if node is None:
            return actions.Outcome.FAILED
        name = state.name
        state = replace(state, uid=name, node_name=node.name, created=cluster.now)
        cluster.pods[state.key] = state
        # Its container runs until the pod is deleted.
        node.images.use(pull.image, cluster.now)
        self._pulling[state.key] = (node, pull.image)
        finish = self._kubelets.background_pull(node, pull.image)
        cluster.at(finish, self._pulled, (node, state))
        return actions.Outcome.DONE

    def _pulled(self, argument: tuple[SimNode, Pod]) -> None:
        node, state = argument
        if self._cluster.nodes.get(node.name) is node and state.key in self._cluster.pods:
            self._cluster.pods[state.key] = replace(state, phase="Succeeded")
            self._plan_soon(POPULAR)

    def _end_pull(self, key: str) -> None:
        cluster = self._cluster
        cluster.pods.pop(key, None)
        if key in self._pulling:
            node, image = self._pulling.pop(key)
            node.images.release(image, cluster.now)


def _is_on(name: str, document: Mapping[str, Any]) -> bool:
    gate = document.get("imageGate") or {}
    placeholders: Sequence[Mapping[str, Any]] = document.get("placeholders") or ()
    if name == GATE:
        return gate.get("mode") != "off" and bool(gate.get("pullers"))
    if name == MOVER:
        return bool((document.get("placeholderMover") or {}).get("enabled")) and bool(placeholders)
    books = bool((document.get("events") or {}).get("enabled"))
    if name == HEADROOM:
        return books or any(entry.get("windows") or entry.get("learn") for entry in placeholders)
    if name == POPULAR:
        return books or bool((document.get("popularImages") or {}).get("enabled"))
    return True


def _changed(node: Node, action: actions.ChangeNode) -> Node:
    labels = {key: value for key, value in node.labels.items() if key not in action.remove_labels}
    labels.update(action.set_labels)
    taints = tuple(taint for taint in node.taints if taint.key not in action.remove_taints)
    return replace(node, labels=labels, taints=taints)
