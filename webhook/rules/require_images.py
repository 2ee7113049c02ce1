"""Keep a pod off nodes that are pulling its images while another node that it could use has
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from roost_core.objects.fields import MalformedObjectError, child_list
from roost_core.objects.node import Node, node_admits, node_covers
from roost_core.objects.selectors import NodeRules
from roost_core.placement.labels import HELD
from roost_core.placement.lease_state import LeaseState
from roost_core.placement.nodes import Nodes
from roost_core.release.image_gate import GateMode
from roost_core.release.release_settings import CONTROLLERS
from webhook.patch import RequireNode, is_required
from webhook.rules.contract import GATE_TOPIC, Case, Note, Reads, Rule, RuleResult
from webhook.rules.image_gate import gate_mode, not_pulling, pulled_labels
from webhook.rules.preemption import may_preempt
from webhook.rules.requests import requests_of

# For a node of any size.
_NO_REQUESTS: Final[tuple[tuple[str, int], ...]] = ()
_DEGRADED_BECAUSE: Final = {
    "no-holder": "no node that the pod may use holds the image of",
    "no-holder-fits": (
        "no node that the pod may use and that is large enough for it holds the image of"
    ),
    "nodes-unknown": "nodes can't be read",
    "controllers-stale": (
        "Roost's controllers don't seem to renew their Lease, so node labels may be outdated"
    ),
    "may-preempt": (
        "pods of lower priority could be deleted for it on the nodes that hold the image of"
    ),
    "spread": (
        "it is spread over zones or nodes, and one that is closed wouldn't count any more; image of"
    ),
}


def require_pulled_images(case: Case) -> Iterator[RuleResult]:
    """Require only that the node isn't pulling.

    If a label had to be there, no new node would match, and autoscalers would add none.
    """
    missing = [
        label for label in pulled_labels(case) if not is_required(case.pod, not_pulling(label))
    ]
    if not missing:
        return
    allowed = _requirable(case, missing)
    for label in allowed.labels:
        yield RequireNode(not_pulling(label))
    if allowed.why_not_all is None:
        yield Note(GATE_TOPIC, f"required {len(allowed.labels)}")
        return
    labels = ", ".join(label for label in missing if label not in allowed.labels)
    text = f"degraded to a preference: {_DEGRADED_BECAUSE[allowed.why_not_all]}: {labels}"
    yield Note(GATE_TOPIC, text, is_warning=True, reason=allowed.why_not_all)


class _Requirable(NamedTuple):
    """Labels of images that a pod may be made to wait for, earlier ones first."""

    labels: Sequence[str]
    # A key of _DEGRADED_BECAUSE; None: all of the pod's labels may be required.
    why_not_all: str | None


def _requirable(case: Case, missing: Sequence[str]) -> _Requirable:
    """Which of the labels may be required.

    One and the same node must hold their images, be admitted by the pod's own rules and be large
    enough. Each image alone might be held by different nodes: with all of them required, the pod
    would wait for one more pull although it needn't.
    """
    # None: the Lease isn't watched. A Lease that is watched but can't be read may be a dead
    # leader's.
    if case.facts.leases.get(CONTROLLERS) not in (None, LeaseState.HELD):
        # A label may say "pulling" although no pull is running.
        return _Requirable([], "controllers-stale")
    nodes = case.facts.nodes
    if nodes is None:
        return _Requirable([], "nodes-unknown")
    if may_preempt(case):
        return _Requirable([], "may-preempt")
    if _is_spread(case):
        return _Requirable([], "spread")
    try:
        requests = requests_of(case)
    except MalformedObjectError:
        # The API server will reject the pod and say why.
        requests = _NO_REQUESTS
    if _is_held(case, nodes, missing, requests):
        return _Requirable(missing, None)
    required: list[str] = []
    for label in missing:
        if _is_held(case, nodes, [*required, label], requests):
            required.append(label)
    # Nobody could take the pod; a smaller node may hold the images.
    is_held_by_any = _is_held(case, nodes, missing, _NO_REQUESTS)
    return _Requirable(required, "no-holder-fits" if is_held_by_any else "no-holder")


def _is_spread(case: Case) -> bool:
    """Whether it must be spread evenly over the nodes that its required terms admit, as is the
    default.
    """
    constraints = child_list(case.pod.spec, "topologySpreadConstraints", "spec") or ()
    return any(
        type(constraint) is dict
        and constraint.get("whenUnsatisfiable") != "ScheduleAnyway"
        and constraint.get("nodeAffinityPolicy") != "Ignore"
        for constraint in constraints
    )


class HolderQuestion(NamedTuple):
    """Which nodes hold images, admit pods with these rules, and are large enough for them."""

    labels: tuple[str, ...]
    requests: tuple[tuple[str, int], ...]
    rules: NodeRules

    def answer(self, node: Node) -> bool | None:
        """True, or None for no."""
        if not node.ready or any(node.labels.get(label) != HELD for label in self.labels):
            return None
        if not node_covers(self.requests, node.allocatable) or not node_admits(self.rules, node):
            return None
        return True


def _is_held(
    case: Case, nodes: Nodes, labels: Sequence[str], requests: Sequence[tuple[str, int]]
) -> bool:
    """Whether a Ready node that the pod's rules admit holds all images, and could take the
    requests, were it empty.
    """
    question = HolderQuestion(tuple(sorted(labels)), tuple(requests), case.pod.rules)
    return bool(nodes.answers(question).by_name)


RULE: Final = Rule(
    require_pulled_images,
    lambda settings, pod_class: gate_mode(settings, pod_class) is GateMode.REQUIRE_LABEL,
    Reads.NODES | Reads.LEASES | Reads.PRIORITIES,
)
