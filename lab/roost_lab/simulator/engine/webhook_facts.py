"""Keep the webhook's facts about the cluster: nodes, builders, and warm sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from roost_core.placement.nodes import Nodes
from webhook.facts.facts import Facts
from webhook.facts.warm import WarmFacts

if TYPE_CHECKING:
    from roost_core.objects.node import Node
    from roost_lab.simulator.engine.entities import SimPod
    from roost_lab.simulator.engine.pods import PodMaker
    from roost_lab.simulator.setup.policy import Policy


class WebhookFacts:
    """The facts of one hub's webhook. Changes of warm sets are applied when the facts are read."""

    def __init__(
        self, policy: Policy, maker: PodMaker, labels: Mapping[str, Mapping[str, str]]
    ) -> None:
        """Begin without nodes and pods. labels: namespace -> its labels."""
        self._maker = maker
        # A webhook that reads no nodes knows no warm sets either.
        self._reads_nodes = policy.webhook is None or policy.webhook.reads_nodes
        self._known_nodes = Nodes()
        warm = {name: WarmFacts() for name in maker.warm_classes} if self._reads_nodes else {}
        visible = self._known_nodes if self._reads_nodes else None
        self._facts: Facts = Facts(nodes=visible, warm=warm, namespaces=labels)
        # Class with a warm set -> changes that the set doesn't have yet: pod's key -> what it adds;
        # None: the pod is gone.
        self._warm_changes: dict[str, dict[str, Any]] = {name: {} for name in warm}
        # Each node as it was when it last reported other images.
        self._reported: dict[str, Node] = {}

    def tell_pod(self, pod: SimPod) -> None:
        """A pod was created or bound, or its containers run."""
        if self._warm_changes:
            warm = self._maker.warm_pod(pod.state, is_starting=pod.ready_at is None)
            if warm is not None:
                pod.warm_class, placed_pod = warm
                self._warm_changes[pod.warm_class][pod.key] = placed_pod

    def forget_pod(self, pod: SimPod) -> None:
        """A pod was deleted."""
        if pod.warm_class:
            self._warm_changes[pod.warm_class][pod.key] = None

    def tell_node(self, name: str, node: Node | None) -> None:
        """A node changed; None: it was removed."""
        before = self._known_nodes.get_node(name)
        if not self._warm_changes and _is_alike(before, node):
            # Only its images changed, and a webhook without a warm set doesn't read those.
            return
        nodes = self._known_nodes.updated({name: node})
        self._known_nodes = nodes
        # Images that pods brought are applied before the node's report, as the webhook does. A
        # report that got shorter must not lose them.
        self._apply()
        warm = self._facts.warm
        if node is None:
            warm = {
                pod_class: warm_set.without_nodes((name,)) for pod_class, warm_set in warm.items()
            }
            self._reported.pop(name, None)
        elif node.images:
            last = self._reported.get(name)
            if last is None or node.images is not last.images:
                warm = {
                    pod_class: warm_set.with_reports({name: (last, node)})
                    for pod_class, warm_set in warm.items()
                }
                self._reported[name] = node
        # In a replay every node has a ready builder.
        builders = dict.fromkeys(self._maker.homes, nodes.names)
        visible = nodes if self._reads_nodes else None
        self._facts = replace(self._facts, nodes=visible, builder_nodes=builders, warm=warm)

    def restart(self) -> None:
        """The webhook starts anew: it knows only what nodes report and which pods there are now."""
        self._apply()
        # Node's name -> its report before, which a new webhook doesn't know, and its report now.
        reports = {name: (None, node) for name, node in self._reported.items()}
        warm = {
            pod_class: WarmFacts(warm_set.pods).with_reports(reports)
            for pod_class, warm_set in self._facts.warm.items()
        }
        self._facts = replace(self._facts, warm=warm)

    def current(self) -> Facts:
        """The current facts."""
        self._apply()
        return self._facts

    def _apply(self) -> None:
        for name, changes in self._warm_changes.items():
            if changes:
                self._facts.warm[name].take_in(changes)
                changes.clear()


def _is_alike(before: Node | None, after: Node | None) -> bool:
    """Whether two states of a node are equal but for its images. None: there is no node."""
    if before is None or after is None or before.ready != after.ready:
        return False
    is_tainted_alike = before.taints == after.taints and before.labels == after.labels
    return is_tainted_alike and before.unschedulable == after.unschedulable
