"""Create nodes, and give nodes and namespace the labels that the values select by.

Each hub has a namespace, and without a pools file there is one pool of nodes, which users are sent to: a node selector
or a namespace selector in the values names a label of theirs, whatever it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost_core.placement.labels import HOSTNAME_LABEL, NAMESPACE_NAME_LABEL, NODE_PURPOSE_LABEL
from roost_core.placement.nodes import NodeFact
from roost_core.placement.selectors import Taint, read_label_selector
from roost_core.scheduler.objects import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, NodeState
from roost_core.scheduler.pod_reader import read_node_term

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from roost.simulator.engine.node_groups import NodeGroup
    from roost.simulator.setup.policy import Policy
    from roost_core.placement.selectors import Requirement

_EFFECT: Final = "NoSchedule"
_ENDLESS_BYTES: Final = 10**15


def make_node(policy: Policy, group: NodeGroup, name: str, now: float) -> NodeState:
    """A new node as its group's template describes it, with its taints."""
    taints = group.taints
    # Whoever gives new nodes the startup taint does so in the pools that pullers bring images to.
    if not group.pool or any(puller.node_selector.items() <= group.labels.items() for puller in policy.pullers):
        taints = (*taints, *(Taint(taint, "", _EFFECT) for taint in policy.startup_taints))
    assumptions = group.assumed
    allocatable = {
        CPU: assumptions.node_cpu_millicores,
        MEMORY: assumptions.node_memory_bytes,
        PODS: assumptions.node_pods,
        EPHEMERAL_STORAGE: assumptions.node_disk_bytes or _ENDLESS_BYTES,
        **dict(group.resources),
    }
    labels = {**group.labels, HOSTNAME_LABEL: name}
    return NodeState(
        fact=NodeFact(name, labels, taints, allocatable=allocatable, created=now),
        uid=name,
        created=now,
        allocatable=allocatable,
        conditions={"Ready": "True"},
        ready_since=now,
    )


def node_labels(policy: Policy) -> dict[str, str]:
    """Labels of each node beside its name: what users, pullers and placeholders select nodes by.

    Of two that contradict each other the first counts, in this order, and in the values'.
    """
    labels: dict[str, str] = {}
    _add(labels, (*policy.user_nodes.items(), (NODE_PURPOSE_LABEL, "user")))
    for puller in policy.pullers:
        _add(labels, puller.node_selector.items())
    for placeholders in policy.placeholders:
        _add(labels, placeholders.spec.get("nodeSelector", {}).items())
        affinity = (placeholders.spec.get("affinity") or {}).get("nodeAffinity") or {}
        required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
        # Terms are ORed, so the first is enough.
        for body in (required.get("nodeSelectorTerms") or ())[:1]:
            term = read_node_term(body)
            _add(labels, () if term is None else _required(term.expressions))
    return labels


def namespace_labels(policy: Policy) -> dict[str, str]:
    """Labels of a hub's namespace: its name, and what classes and `sharedPools` select namespaces by."""
    labels = {NAMESPACE_NAME_LABEL: policy.namespace}
    settings = policy.webhook
    if settings is not None:
        selectors = [pod_class.namespace_selector for pod_class in settings.classes.values()]
        for selector in (*selectors, settings.shared_namespaces):
            if selector is not None:
                _add(labels, _required(read_label_selector(dict(selector)) or ()))
    return labels


def _add(labels: dict[str, str], wanted: Iterable[tuple[str, str]]) -> None:
    for key, value in wanted:
        # Every node has a hostname label of its own.
        if key != HOSTNAME_LABEL:
            labels.setdefault(key, value)


def _required(requirements: Iterable[Requirement]) -> Iterator[tuple[str, str]]:
    for requirement in sorted(requirements, key=lambda requirement: requirement.key):
        if requirement.operator == "In":
            yield requirement.key, min(requirement.values)
        elif requirement.operator == "Exists":
            yield requirement.key, "true"
