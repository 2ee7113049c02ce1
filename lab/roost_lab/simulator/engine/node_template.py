"""Make the nodes of the one pool, and give nodes and namespaces the labels that the values select
by.

Each hub has a namespace, and users are sent to the only pool: a node selector or a namespace
selector in the values names a label of theirs, whatever it is called.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from roost_core.objects.node import HOSTNAME_LABEL, Node
from roost_core.objects.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from roost_core.objects.selectors import Requirement, Taint, read_label_selector, read_node_term
from roost_core.placement.labels import (
    KARPENTER_POOL_LABEL,
    NAMESPACE_NAME_LABEL,
    NODE_PURPOSE_LABEL,
)
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler
from roost_lab.simulator.setup.policy import Policy

_ENDLESS_BYTES: Final = 10**15


def make_node(policy: Policy, assumptions: Assumptions, name: str, now: float) -> Node:
    """A new node, with the release's startup taint if it has one."""
    allocatable = {
        CPU: assumptions.node_cpu_millicores,
        MEMORY: assumptions.node_memory_bytes,
        PODS: assumptions.node_pods,
        EPHEMERAL_STORAGE: assumptions.node_disk_bytes or _ENDLESS_BYTES,
    }
    labels = {**node_labels(policy), HOSTNAME_LABEL: name}
    if assumptions.autoscaler is Autoscaler.KARPENTER:
        labels[KARPENTER_POOL_LABEL] = "users"
    taints = tuple(Taint(taint, "", "NoSchedule") for taint in policy.startup_taints)
    ready = {"Ready": "True"}
    return Node(
        name,
        labels,
        taints,
        uid=name,
        created=now,
        allocatable=allocatable,
        conditions=ready,
        ready_since=now,
    )


def users_per_node(assumptions: Assumptions) -> int:
    """The most users of the usual size that a node can hold, at least 1."""
    cpu = assumptions.node_cpu_millicores // max(1, assumptions.user_cpu_millicores)
    memory = assumptions.node_memory_bytes // max(1, assumptions.user_memory_bytes)
    return max(1, min(assumptions.node_pods, cpu, memory))


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
    """Labels of a hub's namespace: its name, and what classes and `sharedPools` select namespaces
    by.
    """
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
