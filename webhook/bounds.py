"""Bounds on what a review can cost. A pod that exceeds a bound is admitted unchanged.

Anyone who can reach the port can post a review. So no field may determine how long the webhook
works, how much it remembers, or how long its answer is. Each bound is many times what pods of hubs
have, so a pod that exceeds it is a mistake or an attack.
`tests/unit/webhook/test_webhook_bounds.py` counts the work of a review at its bounds, with 5,000
nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

from roost_core.objects.fields import MAX_NAME
from roost_core.objects.pod_body import PodBody

# Parsed JSON takes up to 40 times its bytes. Pods of hubs have 3 to 30 kB, managedFields included;
# etcd takes 1.5 MiB.
MAX_BODY_BYTES: Final = 1024 * 1024
# Objects and lists in a review, and texts in it. Pods of hubs have some hundred of each. They are
# counted in the bytes, so braces and quotes within texts count, too. To parse a megabyte of them
# would stop all other work for 0.1 s, and fragment the memory.
MAX_JSON_PARTS: Final = 20_000
MAX_JSON_TEXTS: Final = 50_000
# The longest name of a namespace. Source: k8s.io/apimachinery/pkg/api/validation, RFC 1123.
MAX_NAMESPACE: Final = 63
# Main and init containers together. A kubelet starts 110 pods on a node, and no pod comes near that
# many containers.
MAX_CONTAINERS: Final = 128
# Requests and limits of all containers together, by resource: 128 containers with CPU, memory, GPU
# and disk.
MAX_RESOURCES: Final = 1024
# The number of each. Kubernetes also limits all keys and values of annotations together to 256 KiB.
MAX_LABELS: Final = 512
MAX_ANNOTATIONS: Final = 1024
# Tolerations: two that every pod gets, two of the hub, one for each kind of node.
MAX_TOLERATIONS: Final = 128
MAX_NODE_SELECTOR: Final = 128
# Node terms and pod terms, required and preferred, together. Roost's own requirements are added to
# each required node term.
MAX_TERMS: Final = 128
# Expressions in these terms, and values in these expressions. A list of all instance types of a
# cloud has about 800 values.
MAX_EXPRESSIONS: Final = 512
MAX_VALUES: Final = 4096
# The number of a pod's rules about nodes, times the number of nodes. Each step takes about 0.5 us.
# With 5,000 nodes, a pod may have 50 rules; pods of hubs have 10.
MAX_STEPS: Final = 250_000
# So many values of an `In` take as long as a step.
_VALUES_A_STEP: Final = 8
# All nodes are looked at again for each image that no node holds together with the images before
# it. So every few containers count as another pass. Pods have one to three images.
_CONTAINERS_A_PASS: Final = 4
# Operations of the answer's patch. The API server applies one after the other, and they make the
# answer longer.
MAX_OPERATIONS: Final = 512
# The longest answer, and the most that the values may add to each pod of a class. The API server
# refuses a pod of 1.5 MiB.
MAX_ANSWER_BYTES: Final = 256 * 1024


class Bound(StrEnum):
    """The bound that was exceeded, as named in metric, audit annotation and warning."""

    BODY = "body"
    NAMES = "names"
    CONTAINERS = "containers"
    RESOURCES = "resources"
    LABELS = "labels"
    ANNOTATIONS = "annotations"
    TOLERATIONS = "tolerations"
    NODE_SELECTOR = "node-selector"
    TERMS = "terms"
    EXPRESSIONS = "expressions"
    VALUES = "values"
    STEPS = "node-steps"
    OPERATIONS = "operations"
    ANSWER = "answer"


# What each bound allows, in words.
MOST: Final = {
    Bound.BODY: (
        f"{MAX_BODY_BYTES} bytes, {MAX_JSON_PARTS} objects and lists, or {MAX_JSON_TEXTS} texts in"
        " a review"
    ),
    Bound.NAMES: f"{MAX_NAME} characters in a name, {MAX_NAMESPACE} in a namespace's",
    Bound.CONTAINERS: f"{MAX_CONTAINERS} containers",
    Bound.RESOURCES: f"{MAX_RESOURCES} resources requested or limited",
    Bound.LABELS: f"{MAX_LABELS} labels",
    Bound.ANNOTATIONS: f"{MAX_ANNOTATIONS} annotations",
    Bound.TOLERATIONS: f"{MAX_TOLERATIONS} tolerations",
    Bound.NODE_SELECTOR: f"{MAX_NODE_SELECTOR} labels in nodeSelector",
    Bound.TERMS: f"{MAX_TERMS} affinity terms",
    Bound.EXPRESSIONS: f"{MAX_EXPRESSIONS} expressions in affinity terms",
    Bound.VALUES: f"{MAX_VALUES} values in affinity terms",
    Bound.STEPS: f"{MAX_STEPS} steps (nodes of the cluster times the pod's rules about nodes)",
    Bound.OPERATIONS: f"{MAX_OPERATIONS} operations in a patch",
    Bound.ANSWER: f"{MAX_ANSWER_BYTES} bytes in an answer",
}


def exceeded(pod: PodBody, nodes: int) -> Bound | None:
    """The first bound that the pod exceeds; None: none. nodes: the number of the cluster's nodes.

    It is fast whatever was sent, because it stops at the first bound that is exceeded.
    """
    if len(pod.name) > MAX_NAME or len(pod.generate_name) > MAX_NAME:
        return Bound.NAMES
    if len(pod.namespace) > MAX_NAMESPACE:
        return Bound.NAMES
    containers = len(pod.containers) + len(pod.init_containers)
    if containers > MAX_CONTAINERS:
        return Bound.CONTAINERS
    if _resources(pod) > MAX_RESOURCES:
        return Bound.RESOURCES
    if len(pod.labels) > MAX_LABELS:
        return Bound.LABELS
    if len(pod.annotations) > MAX_ANNOTATIONS:
        return Bound.ANNOTATIONS
    tolerations = len(pod.tolerations)
    node_selector = len(pod.node_selector)
    if tolerations > MAX_TOLERATIONS:
        return Bound.TOLERATIONS
    if node_selector > MAX_NODE_SELECTOR:
        return Bound.NODE_SELECTOR
    steps = tolerations + node_selector
    if pod.affinity:
        affinity_steps = _count_affinity(pod)
        if isinstance(affinity_steps, Bound):
            return affinity_steps
        steps += affinity_steps
    passes = max(1, containers // _CONTAINERS_A_PASS)
    return Bound.STEPS if steps * nodes * passes > MAX_STEPS else None


def _resources(pod: PodBody) -> int:
    """Number of resources in all containers, in the pod's own resources, and in its overhead."""
    count = 0
    for container in (*pod.containers, *pod.init_containers, pod.spec):
        resources = container.get("resources")
        if type(resources) is dict:
            for amounts in resources.values():
                if type(amounts) is dict:
                    count += len(amounts)
    overhead = pod.spec.get("overhead")
    return count + (len(overhead) if type(overhead) is dict else 0)


def _count_affinity(pod: PodBody) -> Bound | int:
    """The first bound that the pod's terms exceed, else the steps of its required node terms.

    The other terms cost no steps: they are compared only with Roost's own terms, not with nodes.
    """
    groups: list[Sequence[Any]] = [pod.required_node_terms or (), pod.preferred_node_terms]
    for branch in ("podAffinity", "podAntiAffinity"):
        pod_affinity = pod.affinity.get(branch)
        if type(pod_affinity) is dict:
            groups += [terms for terms in pod_affinity.values() if type(terms) is list]
    terms = 0
    parts = _TermParts()
    steps = 0
    for position, group in enumerate(groups):
        for term in group:
            terms += 1
            if terms > MAX_TERMS:
                return Bound.TERMS
            if type(term) is dict:
                parts.add(term, depth=2)
            if parts.expressions > MAX_EXPRESSIONS:
                return Bound.EXPRESSIONS
            if parts.values > MAX_VALUES:
                return Bound.VALUES
        if position == 0:
            # So far, only required node terms were counted.
            steps = terms + parts.expressions + parts.values // _VALUES_A_STEP
    return steps


class _TermParts:
    """The number of expressions in node or pod terms, and of values in these expressions."""

    def __init__(self) -> None:
        self.expressions = 0
        self.values = 0

    def add(self, part: dict[str, Any], depth: int) -> None:
        """Count the parts of a term, with a weight or without, or of a selector in it.

        depth: how many levels of selectors in it are looked at.
        """
        for name, value in part.items():
            if type(value) is list:
                self._add_list(name, value)
            elif type(value) is dict:
                if name == "matchLabels":
                    self.expressions += len(value)
                elif depth:
                    self.add(value, depth - 1)

    def _add_list(self, name: str, items: list[Any]) -> None:
        if name == "namespaces":
            self.values += len(items)
            return
        self.expressions += len(items)
        # With more expressions the bound is exceeded, whatever they hold.
        for expression in items[:MAX_EXPRESSIONS]:
            if type(expression) is dict and type(expression.get("values")) is list:
                self.values += len(expression["values"])
