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
    """The facts of one replay; changes are applied when the facts are read."""

    def __init__(
        self, policy: Policy, maker: PodMaker, labels: Mapping[str, Mapping[str, str]]
    ) -> None:
        """Begin without nodes. labels: labels of namespaces, by name."""
        self._maker = maker
        # A webhook that reads no nodes knows no warm sets either.
        self._reads_nodes = policy.webhook is None or policy.webhook.reads_nodes
        self._known_nodes = Nodes()
        warm = {name: WarmFacts() for name in maker.warm_classes} if self._reads_nodes else {}
        visible = self._known_nodes if self._reads_nodes else None
        self._facts: Facts = Facts(nodes=visible, warm=warm, namespaces=labels)
        # By class: changes that the facts' warm sets don't have yet.
        self._warm_changes: dict[str, dict[str, Any]] = {name: {} for name in warm}
        # Each node as it was when it last reported other images.
        self._reported: dict[str, Node] = {}

    def tell_pod(self, pod: SimPod) -> None:
        """A pod was created or bound, or its containers run."""
        if self._warm_changes:
            warm = self._maker.warm_pod(pod.state, is_starting=pod.ready_at is None)
            if warm is not None:
                pod.warm_class, self._warm_changes[warm[0]][pod.key] = warm

    def forget_pod(self, pod: SimPod) -> None:
        """A pod was deleted."""
        if pod.warm_class:
            self._warm_changes[pod.warm_class][pod.key] = None

    def tell_node(self, name: str, node: Node | None) -> None:
        """A node changed; None: it was removed."""
        before = self._known_nodes.get_node(name)
        if not self._warm_changes and _is_alike(before, node):
            # A webhook without a warm set doesn't read what images it has.
            return
        nodes = self._known_nodes.updated({name: node})
        self._known_nodes = nodes
        # What pods brought comes first, as for the webhook: a report that shrank must not lose it.
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
                    pod_class: known.with_reports({name: (last, node)})
                    for pod_class, known in warm.items()
                }
                self._reported[name] = node
        # A builder is Ready on every node.
        builders = dict.fromkeys(self._maker.homes, nodes.names)
        visible = nodes if self._reads_nodes else None
        self._facts = replace(self._facts, nodes=visible, builder_nodes=builders, warm=warm)

    def restart(self) -> None:
        """The webhook starts anew: it knows only what nodes report and which pods there are now."""
        self._apply()
        reports = {node: (None, now) for node, now in self._reported.items()}
        warm = {
            name: WarmFacts(known.pods).with_reports(reports)
            for name, known in self._facts.warm.items()
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
    """Whether two states of a node differ in its images at most. None: it isn't there."""
    if before is None or after is None or before.ready != after.ready:
        return False
    is_tainted_alike = before.taints == after.taints and before.labels == after.labels
    return is_tainted_alike and before.unschedulable == after.unschedulable
