"""A small world for the image gate's plans: nodes, puller pods and what kubelets say, changed by
hand or by plans.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from roost.controllers.contract.actions import Action, ChangeNode, Done, Notice, Outcome, Planned
from roost.controllers.contract.pod_kinds import waits_at_gate
from roost.controllers.contract.snapshot import Moment, Snapshot
from roost.controllers.image_gate.plan import GateMemory, note_image_gate, plan_image_gate
from roost.controllers.image_gate.settings import GateSettings, PullerPods
from roost_core.objects.node import Node
from roost_core.objects.pod import ContainerState, Pod, PodSpec
from roost_core.objects.selectors import NodeTerm, Requirement, Taint, Toleration
from roost_core.placement.kubelet_pulls import PullEvent
from roost_core.placement.labels import (
    OWN_COMPONENT_LABEL,
    OWN_INSTANCE_LABEL,
    OWN_PART,
    OWN_PULLER,
    PART_OF_LABEL,
    pulled_label,
    puller_container,
)
from roost_core.release.image_gate import GateMode, Puller, managed_image

RELEASE, NAMESPACE = "hub", "jhub"
SCIPY = "quay.io/jupyter/scipy-notebook:2026-11-03"
GPU = "quay.io/jupyter/pytorch-notebook:cuda12"
OTHER = "registry.k8s.io/pause:3.10.1"
MB = 10**6


def label(image: str) -> str:
    return pulled_label(RELEASE, NAMESPACE, image)


def gate_settings(
    *images: str,
    mode: GateMode = GateMode.REQUIRE_LABEL,
    groups: Mapping[str, tuple[Mapping[str, str], Sequence[str]]] | None = None,
    **more: Any,
) -> GateSettings:
    """A gate for these images on every node. groups: name -> (node selector, images), instead."""
    groups = groups if groups is not None else {"hub-roost-puller": ({}, images)}
    pullers = tuple(
        Puller(name, selector, tuple(managed_image(RELEASE, NAMESPACE, image) for image in found))
        for name, (selector, found) in groups.items()
    )
    tolerations = (Toleration("hub.jupyter.org/dedicated", "Equal", "user", ""),)
    base = {
        "pull_deadline_seconds": 600,
        "open_after_seconds": 10,
        "has_puller": True,
        "puller_pods": PullerPods.ROOST,
    }
    given: dict[str, Any] = {
        **base,
        **more,
        "mode": mode,
        "pullers": pullers,
        "tolerations": tolerations,
    }
    return GateSettings(release=RELEASE, namespace=NAMESPACE, **given)


def true_waits(pods: Iterable[Pod]) -> dict[str, float]:
    """Since when pods wait at the gate, by uid, where all clocks agree."""
    return {
        pod.uid: pod.unschedulable_since
        for pod in pods
        if waits_at_gate(pod) and pod.unschedulable_since is not None
    }


class GateWorld:
    """Everything at one moment; `plan` looks at it, `apply` carries a plan out."""

    def __init__(self, settings: GateSettings) -> None:
        self.settings = settings
        self.memory = GateMemory()
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.events: dict[str, PullEvent] = {}
        self.wall = 1_800_000_000.0
        self.steady = 1000.0
        self._made = 0

    # The cluster

    def add_node(
        self,
        name: str = "a",
        *,
        images: Iterable[str] = (OTHER,),
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Taint] = (),
        ready: bool = True,
        runtime_version: str = "",
    ) -> None:
        self._made += 1
        self.nodes[name] = Node(
            name=name,
            labels=dict(labels or {}),
            taints=tuple(taints),
            ready=ready,
            uid=f"{name}-{self._made}",
            created=self.wall,
            ready_since=self.wall if ready else None,
            conditions={"Ready": "True" if ready else "False"},
            runtime_version=runtime_version,
        )
        self.list_images(*images, node=name)

    def add_pulling(self, **facts: Any) -> str:
        """Node a and its puller's pod; returns the pod's key."""
        self.add_node(**facts)
        return self.puller()

    def list_images(self, *images: str, node: str = "a", mb: int = 500) -> None:
        """What the node's own list says from now on."""
        self.nodes[node] = replace(
            self.nodes[node], images=dict.fromkeys(images, mb * MB), image_count=len(images)
        )

    def set_fact(self, node: str = "a", **changes: object) -> None:
        found = self.nodes[node]
        changed = replace(found, **changes)  # type: ignore[arg-type] # fields by name
        self.nodes[node] = replace(changed, ready_since=self.wall if changed.ready else None)

    def set_taints(self, *taints: Taint, node: str = "a") -> None:
        self.set_fact(node, taints=taints)

    def labels(self, node: str = "a") -> dict[str, str]:
        return dict(self.nodes[node].labels)

    def puller(self, node: str = "a", *images: str, **states: ContainerState) -> str:
        """A puller pod of Roost's on a node, its containers all being created; returns its key."""
        self._made += 1
        name = f"puller-{self._made}"
        images = images or tuple(
            image.reference for image in self.settings.images_for(self.nodes[node])
        )
        pod = Pod(
            NAMESPACE,
            name,
            uid=f"uid-{name}",
            labels={
                PART_OF_LABEL: OWN_PART,
                OWN_COMPONENT_LABEL: OWN_PULLER,
                OWN_INSTANCE_LABEL: RELEASE,
            },
            node_name=node,
            created=self.wall,
            containers=tuple(
                ContainerState(
                    image=OTHER, name=puller_container(image), waiting_reason="ContainerCreating"
                )
                for image in images
            ),
        )
        self.pods[pod.key] = pod
        return pod.key

    def say(self, pod: str, image: str, **state: object) -> None:
        """The kubelet writes the status of the container that pulls `image`."""
        found = self.pods[pod]
        told = ContainerState(image=OTHER, name=puller_container(image), **state)  # type: ignore[arg-type] # by name
        containers = tuple(
            told if container.name == told.name else container for container in found.containers
        )
        self.pods[pod] = replace(found, containers=containers)

    def fail(self, pod: str, image: str, message: str, reason: str = "ErrImagePull") -> None:
        self.say(pod, image, waiting_reason=reason, waiting_message=message)

    def pulled_event(self, pod: str, image: str, *, seconds_ago: float = 0.0) -> None:
        """The kubelet says `Pulled`."""
        found, at = self.pods[pod], self.wall - seconds_ago
        event = PullEvent(found.name, found.uid, found.node_name, image, "Pulled", "", at)
        self.events[f"{found.name}.{image}"] = event

    def pending_user(self, *images: str) -> str:
        """A user's pod that waits for a node and requires the labels of these images."""
        expressions = tuple(
            Requirement(label(image), "In", frozenset({"true"})) for image in images
        )
        pod = Pod(
            NAMESPACE,
            "jupyter-ada",
            uid="jupyter-ada",
            spec=PodSpec(required_node_terms=(NodeTerm(expressions, ()),)),
        )
        self.pods[pod.key] = pod
        return pod.key

    # Time and plans

    def wait(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds

    @property
    def now(self) -> Moment:
        return Moment(self.wall, self.steady)

    @property
    def snapshot(self) -> Snapshot:
        return Snapshot(RELEASE, NAMESPACE, self.nodes, self.pods, {}, self.events)

    def plan(self) -> Planned[GateMemory]:
        planned = plan_image_gate(self.snapshot, self.memory, self.settings, self.now)
        self.memory = planned.memory
        return planned

    def changes(self) -> list[Action]:
        return [action for action in self.plan().actions if not isinstance(action, Notice)]

    def apply(self, planned: Planned[GateMemory]) -> None:
        """Carry a plan out, as the API server would."""
        for action in planned.actions:
            if isinstance(action, ChangeNode):
                self._change(action)
        done = [Done(action, Outcome.DONE) for action in planned.actions]
        self.memory = note_image_gate(self.memory, done, self.now)

    def turn(self, after: float = 0.0) -> Planned[GateMemory]:
        """Plan and apply, after so many seconds."""
        self.wait(after)
        planned = self.plan()
        self.apply(planned)
        return planned

    def labels_next(self, after: float = 0.0) -> dict[str, str]:
        """Labels of node a after the next turn."""
        self.turn(after)
        return self.labels()

    def notices(self) -> list[Notice]:
        return [action for action in self.turn().actions if isinstance(action, Notice)]

    def new_leader(self) -> None:
        """Somebody else leads, and knows nothing."""
        self.memory = GateMemory()
        self.steady = 5.0

    def _change(self, action: ChangeNode) -> None:
        found = self.nodes[action.node]
        assert found.uid == action.uid
        labels = {
            key: value for key, value in found.labels.items() if key not in action.remove_labels
        }
        taints = tuple(taint for taint in found.taints if taint.key not in action.remove_taints)
        self.nodes[action.node] = replace(
            found, labels={**labels, **action.set_labels}, taints=taints
        )


def world(*images: str, mode: GateMode = GateMode.PREFER, **settings: Any) -> GateWorld:
    """A world whose labels say "true" or nothing; what requireLabel adds is in
    test_image_gate_require_label.py.
    """
    return GateWorld(gate_settings(*(images or (SCIPY,)), mode=mode, **settings))
