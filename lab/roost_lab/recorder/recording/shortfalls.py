"""Find everything that a node lacks for a pod that fits on none. Pure.

kube-scheduler names only the first fault of each node. A shortfall is a JSON object with a `kind`:

    cordon                                the node is cordoned
    taint   taint                         a taint that the pod doesn't tolerate, `key=value:effect`
    gate    label                         the image gate: the node pulls one of the pod's images
    label   needs                         a node selector or term that the node's labels don't meet
    room    resource, asks, free, has     not enough of a resource: asked for, free, in all
                                          (millicores, bytes, pieces)
    other   why                           what kube-scheduler's other filters say
                                          (ports, spread, pod terms)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from roost_core.objects import selectors
from roost_core.objects.fields import JSONObject
from roost_core.objects.pod import Pod
from roost_core.objects.requests import PODS
from roost_core.placement.labels import PULLED_LABEL_PREFIX, PULLING
from roost_core.scheduler.node_filters import OTHER_NODES, UNSCHEDULABLE
from roost_core.scheduler.node_rows import NodeRow
from roost_core.scheduler.rejections import Rejection

CORDON: Final = "cordon"
TAINT: Final = "taint"
GATE: Final = "gate"
LABEL: Final = "label"
ROOM: Final = "room"
OTHER: Final = "other"
# kube-scheduler's reasons that are the shortfalls of the other kinds. `Other` has the rest.
_OF_OTHER_KINDS: Final = frozenset((*UNSCHEDULABLE.reasons, *OTHER_NODES.reasons, "Too many pods"))
# Such reasons with a name at their end: the resource, and before Kubernetes 1.34 the taint.
_BEGINNINGS_OF_OTHER_KINDS: Final = ("Insufficient ", "node(s) had untolerated taint")


def shortfalls(
    pod: Pod, row: NodeRow, rejection: Rejection | None, claimable: frozenset[str] = frozenset()
) -> list[JSONObject]:
    """Everything that the node lacks for the pod.

    rejection: the model's; None: the pod fits, and there are no shortfalls. claimable: resources
    that devices of a ResourceClaim may give, so a node without any of them lacks nothing.
    """
    if rejection is None:
        return []
    found = [*_of_node(pod, row), *_of_labels(pod, row), *_of_room(pod, row, claimable)]
    for reason in rejection.reasons:
        if reason in _OF_OTHER_KINDS or reason.startswith(_BEGINNINGS_OF_OTHER_KINDS):
            continue
        found.append({"kind": OTHER, "why": reason})
    return found


def _of_node(pod: Pod, row: NodeRow) -> Iterator[JSONObject]:
    tolerations = pod.spec.tolerations
    if row.node.unschedulable and not selectors.tolerates_cordon(tolerations):
        yield {"kind": CORDON}
    for taint in row.node.taints:
        if taint.effect == selectors.PREFER_NO_SCHEDULE:
            continue
        if taint.key == selectors.UNSCHEDULABLE_TAINT:
            # The cordon, which has its own kind.
            continue
        if not selectors.tolerates(tolerations, taint):
            yield {"kind": TAINT, "taint": f"{taint.key}={taint.value}:{taint.effect}"}


def _of_labels(pod: Pod, row: NodeRow) -> Iterator[JSONObject]:
    spec = pod.spec
    for key, value in spec.node_selector:
        if row.labels.get(key) != value:
            yield {"kind": LABEL, "needs": f"{key}={value}"}
    terms = spec.required_node_terms
    if terms is None:
        return
    if any(selectors.node_term_matches(term, row.name, row.labels) for term in terms):
        return
    # A node needs to match one of the terms only. The term with the fewest shortfalls is shown.
    by_term = [list(_of_term(term, row)) for term in terms]
    none_admits: list[JSONObject] = [{"kind": LABEL, "needs": "a node that no term admits"}]
    yield from min(by_term, key=len, default=none_admits)


def _of_term(term: selectors.NodeTerm, row: NodeRow) -> Iterator[JSONObject]:
    for requirement in term.expressions:
        key, operator, values = requirement
        if selectors.requirement_matches(key, operator, values, row.labels):
            continue
        if key.startswith(PULLED_LABEL_PREFIX) and row.labels.get(key) == PULLING:
            yield {"kind": GATE, "label": key}
        else:
            yield {"kind": LABEL, "needs": _as_text(requirement)}
    for requirement in term.fields:
        is_met = (row.name in requirement.values) == (requirement.operator == "In")
        if not is_met:
            yield {"kind": LABEL, "needs": _as_text(requirement)}


def _as_text(requirement: selectors.Requirement) -> str:
    key, operator, values = requirement
    if operator == "In" and len(values) == 1:
        return f"{key}={next(iter(values))}"
    return " ".join(filter(None, (key, operator, ", ".join(sorted(values)))))


def _of_room(pod: Pod, row: NodeRow, claimable: frozenset[str]) -> Iterator[JSONObject]:
    if len(row.pods) >= row.max_pods:
        yield {
            "kind": ROOM,
            "resource": PODS,
            "asks": 1,
            "free": row.max_pods - len(row.pods),
            "has": row.max_pods,
        }
    for name, asks in pod.spec.requests:
        has = row.allocatable.get(name, 0)
        free = has - row.requested.get(name, 0)
        is_claimed = not has and name in claimable
        if asks > 0 and asks > free and not is_claimed:
            yield {"kind": ROOM, "resource": name, "asks": asks, "free": free, "has": has}
