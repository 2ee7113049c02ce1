"""Make the nodes of the replay's only pool, and the labels of nodes and namespaces.

Values choose nodes and namespaces by labels of any name. A replay has one pool, and a namespace for
each hub. So every node gets the labels by which the values choose nodes, and every namespace those
by which they choose namespaces.
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
    """A new node, which is ready, with the release's startup taints. now: seconds since 1970."""
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
    """The labels that all nodes have: those by which users, pullers and placeholders select nodes.

    Where two of them contradict each other, the first counts: users' before pullers' before
    placeholders', and then in the values' order.
    """
    labels: dict[str, str] = {}
    _add(labels, policy.user_nodes.items())
    _add(labels, [(NODE_PURPOSE_LABEL, "user")])
    for puller in policy.pullers:
        _add(labels, puller.node_selector.items())
    for placeholders in policy.placeholders:
        _add(labels, placeholders.spec.get("nodeSelector", {}).items())
        affinity = (placeholders.spec.get("affinity") or {}).get("nodeAffinity") or {}
        required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
        terms = required.get("nodeSelectorTerms") or ()
        # A node needs to match one of the terms only.
        first_term = read_node_term(terms[0]) if terms else None
        if first_term is not None:
            _add(labels, _labels_that_match(first_term.expressions))
    return labels


def namespace_labels(policy: Policy) -> dict[str, str]:
    """The labels of a hub's namespace: its name, and those by which the values select namespaces.

    Classes and `sharedPools` select namespaces.
    """
    labels = {NAMESPACE_NAME_LABEL: policy.namespace}
    settings = policy.webhook
    if settings is not None:
        selectors = [pod_class.namespace_selector for pod_class in settings.classes.values()]
        for selector in (*selectors, settings.shared_namespaces):
            if selector is not None:
                requirements = read_label_selector(dict(selector)) or ()
                _add(labels, _labels_that_match(requirements))
    return labels


def _add(labels: dict[str, str], wanted: Iterable[tuple[str, str]]) -> None:
    """Add labels whose keys aren't there yet."""
    for key, value in wanted:
        # Every node has a hostname label of its own.
        if key != HOSTNAME_LABEL:
            labels.setdefault(key, value)


def _labels_that_match(requirements: Iterable[Requirement]) -> Iterator[tuple[str, str]]:
    """Labels with which an object meets requirements that want a label to be there."""
    for requirement in sorted(requirements, key=lambda requirement: requirement.key):
        if requirement.operator == "In":
            yield requirement.key, min(requirement.values)
        elif requirement.operator == "Exists":
            yield requirement.key, "true"
