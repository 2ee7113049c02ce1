"""Bounds on what one review can cost; a pod that exceeds one is admitted unchanged.

Anyone who can reach the port can post a review, so no field may determine how long the webhook
works, how much it remembers, or how long its answer is. Each bound is many times what pods of hubs
have: whatever exceeds it is a mistake or an attack. `tests/unit/webhook/test_webhook_bounds.py`
counts the work of a review at its bounds, on 5,000 nodes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from roost_core.objects.fields import MAX_NAME
from roost_core.objects.pod_body import PodBody

# Parsed JSON takes up to 40 times its bytes. Pods of hubs have 3 to 30 kB, managedFields included;
# etcd takes 1.5 MiB.
MAX_BODY_BYTES: Final = 1024 * 1024
# Objects and lists in a review, and texts; pods of hubs have some hundred of each. Counted in the
# bytes, so braces and quotes within texts count too. A megabyte of them would hold the interpreter
# for 0.1 s while it is parsed, and leave its memory in pieces.
MAX_JSON_PARTS: Final = 20_000
MAX_JSON_TEXTS: Final = 50_000
# The longest name of a namespace. Source: k8s.io/apimachinery/pkg/api/validation, RFC 1123.
MAX_NAMESPACE: Final = 63
# Main and init containers together. A kubelet starts 110 pods on a node, and no pod comes near that
# many containers.
MAX_CONTAINERS: Final = 128
# Resources that the containers request or limit, all together: 128 containers with CPU, memory, GPU
# and disk each.
MAX_RESOURCES: Final = 1024
# Each; all keys and values of annotations together may have 256 KiB, by Kubernetes' own rule.
MAX_LABELS: Final = 512
MAX_ANNOTATIONS: Final = 1024
# Tolerations: two that every pod gets, two of the hub, one for each kind of node.
MAX_TOLERATIONS: Final = 128
MAX_NODE_SELECTOR: Final = 128
# Node and pod terms, required and preferred, in all; Roost's own demand goes into each required
# one.
MAX_TERMS: Final = 128
# Expressions and single values within those terms: a list of all instance types of a cloud has some
# 800.
MAX_EXPRESSIONS: Final = 512
MAX_VALUES: Final = 4096
# Rules about nodes times nodes: some 0.5 us each. With 5,000 nodes that leaves a pod 50 rules, of
# which hubs use 10.
MAX_STEPS: Final = 250_000
# Values of an `In` that are looked through in the time of one rule.
_VALUES_A_STEP: Final = 8
# Nodes are gone through once more for each image that none of them holds with those before it; pods
# have one to three.
_CONTAINERS_A_PASS: Final = 4
# Operations of the answer's patch: the API server applies them one by one, and the answer grows
# with them.
MAX_OPERATIONS: Final = 512
# An answer, and what the values alone add to each pod of a class: the API server refuses a pod of
# 1.5 MiB.
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
    """The first bound that the pod exceeds, None when there is none. nodes: how many the cluster
    has.

    Reads nothing that is longer than its own bound, so it is cheap whatever was sent.
    """
    if (
        len(pod.name) > MAX_NAME
        or len(pod.generate_name) > MAX_NAME
        or len(pod.namespace) > MAX_NAMESPACE
    ):
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
    tolerations, node_selector = len(pod.tolerations), len(pod.node_selector)
    if tolerations > MAX_TOLERATIONS:
        return Bound.TOLERATIONS
    if node_selector > MAX_NODE_SELECTOR:
        return Bound.NODE_SELECTOR
    steps = tolerations + node_selector
    if pod.affinity:
        counted = _count_affinity(pod)
        if isinstance(counted, Bound):
            return counted
        steps += counted
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
    """The first bound that the pod's terms exceed, else what its required node terms cost for each
    node.

    The other terms are matched against Roost's own terms alone.
    """
    branches = (pod.affinity.get("podAffinity"), pod.affinity.get("podAntiAffinity"))
    listed = [terms for branch in branches if type(branch) is dict for terms in branch.values()]
    pod_terms = [terms for terms in listed if type(terms) is list]
    required = pod.required_node_terms or ()
    terms = expressions = values = steps = 0
    for group in (required, pod.preferred_node_terms, *pod_terms):
        for term in group:
            terms += 1
            if terms > MAX_TERMS:
                return Bound.TERMS
            if type(term) is dict:
                more_expressions, more_values = _count_parts(term, depth=2)
                expressions += more_expressions
                values += more_values
            if expressions > MAX_EXPRESSIONS:
                return Bound.EXPRESSIONS
            if values > MAX_VALUES:
                return Bound.VALUES
        if group is required:
            steps = terms + expressions + values // _VALUES_A_STEP
    return steps


def _count_parts(part: dict[str, Any], depth: int) -> tuple[int, int]:
    """Expressions and single values of a node or pod term, weighted or not, in selectors up to two
    levels deep.
    """
    expressions = values = 0
    for name, value in part.items():
        if type(value) is list:
            if name == "namespaces":
                values += len(value)
            else:
                expressions += len(value)
                # More are too many, whatever they hold.
                for expression in value[:MAX_EXPRESSIONS]:
                    listed = expression.get("values") if type(expression) is dict else None
                    values += len(listed) if type(listed) is list else 0
        elif type(value) is dict:
            if name == "matchLabels":
                expressions += len(value)
            elif depth:
                more_expressions, more_values = _count_parts(value, depth - 1)
                expressions += more_expressions
                values += more_values
    return expressions, values
