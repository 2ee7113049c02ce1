"""Decide on a pod that is about to be created: find its class, apply the class's rules, and make
the patch.

Both the webhook and the simulator call `decide`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from roost_core.objects.pod_body import MIRROR_ANNOTATION, PodBody
from roost_core.placement.labels import (
    OPT_OUT_ANNOTATION,
    OWN_COMPONENT_LABEL,
    OWN_PART,
    OWN_PLACEHOLDER,
    PART_OF_LABEL,
)
from webhook.bounds import MAX_OPERATIONS, Bound, exceeded
from webhook.facts.facts import Facts
from webhook.patch import Change, Operation, RequestByDefault, patch_for, without_overflow
from webhook.rules import Rulebook, requests
from webhook.rules.contract import GATE_TOPIC, SCHEDULER_TOPIC, Case, Note, Reads, Rule

# Why DaemonSet pods are skipped.
DAEMON_SET: Final = "daemon-set"
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class ReviewResult(StrEnum):
    """The result of a review."""

    PATCHED = "patched"
    # The pod already has everything that its rules want.
    UNCHANGED = "unchanged"
    # The pod has a class, but Roost leaves it alone: see `reason_to_skip`.
    SKIPPED = "skipped"
    # The pod has no class.
    UNMATCHED = "unmatched"
    # The request doesn't create a pod.
    IGNORED = "ignored"
    # The object is not a valid pod.
    ODD = "odd"
    # The pod, or its patch, exceeds a bound of webhook.bounds.
    BEYOND_BOUNDS = "beyond-bounds"
    # The request isn't an AdmissionReview: it is answered with a 4xx.
    MALFORMED = "malformed"
    # An error in Roost itself.
    ERROR = "error"


class Decision(NamedTuple):
    """What one pod gets, and what is reported about it."""

    result: ReviewResult
    # None: the pod has no class, or its class wasn't determined.
    pod_class: str | None = None
    # Why the pod was skipped, or the bound that it exceeds: one word.
    reason: str = ""
    # Why the gate doesn't require the pod's images; "": it does.
    # - no-holder: no node that the pod's rules admit holds them.
    # - no-holder-fits: nodes hold them, but are too small for the pod.
    # - nodes-unknown: nodes can't be read.
    # - controllers-stale: the labels may be outdated.
    # - may-preempt: with fewer nodes to choose from, the pod might take another pod's place.
    # - spread: the pod is spread evenly over zones, and closed nodes would leave out a zone.
    degraded: str = ""
    # Why the pod was left to the cluster's scheduler: stale, never-held, unknown or outdated; "":
    # it wasn't.
    left_to_cluster: str = ""
    # JSON Patch.
    operations: Sequence[Operation] = ()
    # What the operations implement.
    changes: Sequence[Change] = ()
    # Audit annotations.
    audit: Mapping[str, str] = _NOTHING
    # For the client that creates the pod.
    warnings: Sequence[str] = ()
    # The facts that the decision depends on.
    reads: Reads = Reads.NOTHING


def decide(
    pod: PodBody,
    rulebook: Rulebook,
    facts: Facts,
    *,
    now: float,
    selects: Callable[[Rule], bool] | None = None,
) -> Decision:
    """Decide on a pod that is about to be created. Changes none of its arguments.

    now: seconds of a monotonic clock. selects: apply only these rules of the class; None: all.
    Raises MalformedObjectError when a part of the pod that has to change is malformed.
    """
    pod_class = rulebook.classes.classify(pod.labels, pod.namespace, facts.namespaces)
    if pod_class is None:
        return Decision(ReviewResult.UNMATCHED)
    name = pod_class.name
    reason = reason_to_skip(pod)
    # Roost can't choose the node of a DaemonSet's pod. But it can give the pod requests, so that
    # the scheduler counts what the pod uses.
    gets_requests_only = reason == DAEMON_SET and bool(pod_class.resources)
    if reason and not gets_requests_only:
        return _skipped(name, reason)
    if name in rulebook.classes_too_long:
        return Decision(ReviewResult.BEYOND_BOUNDS, name, Bound.ANSWER)
    bound = exceeded(pod, 0 if facts.nodes is None else len(facts.nodes))
    if bound is not None:
        return Decision(ReviewResult.BEYOND_BOUNDS, name, bound)
    case = Case(pod, pod_class, rulebook.settings, facts, now)
    if gets_requests_only:
        return _give_requests(case)
    rules = rulebook.rules[name]
    return _apply_rules(case, rules if selects is None else filter(selects, rules))


def _give_requests(case: Case) -> Decision:
    """Decide on a DaemonSet's pod whose class has requests."""
    name = case.pod_class.name
    by_default = [
        verdict for verdict in requests.RULE.apply(case) if isinstance(verdict, RequestByDefault)
    ]
    operations = patch_for(case.pod, by_default)
    if not operations:
        return _skipped(name, DAEMON_SET)
    audit = {"class": name, "requests": DAEMON_SET}
    return Decision(
        ReviewResult.PATCHED, name, operations=operations, changes=by_default, audit=audit
    )


def _apply_rules(case: Case, rules: Iterable[Rule]) -> Decision:
    """Decide on a pod by what these rules say."""
    pod = case.pod
    name = case.pod_class.name
    changes: list[Change] = []
    audit = {"class": name, "policy-revision": case.settings.revision}
    warnings: list[str] = []
    # By topic of a note.
    reasons: dict[str, str] = {}
    reads = Reads.NOTHING
    for rule in rules:
        verdicts = list(rule.apply(case))
        if verdicts:
            reads |= rule.reads
        for verdict in verdicts:
            if isinstance(verdict, Note):
                audit[verdict.topic] = verdict.text
                reasons[verdict.topic] = verdict.reason
                if verdict.is_warning:
                    warnings.append(f"Roost: {verdict.topic}: {verdict.text}")
            else:
                changes.append(verdict)
    fitting, dropped = without_overflow(pod, changes)
    if dropped:
        warnings.append(f"Roost: the pod's annotations leave no room for {', '.join(dropped)}")
    operations = patch_for(pod, fitting)
    if len(operations) > MAX_OPERATIONS:
        return Decision(ReviewResult.BEYOND_BOUNDS, name, Bound.OPERATIONS)
    return Decision(
        ReviewResult.PATCHED if operations else ReviewResult.UNCHANGED,
        name,
        degraded=reasons.get(GATE_TOPIC, ""),
        left_to_cluster=reasons.get(SCHEDULER_TOPIC, ""),
        operations=operations,
        changes=fitting,
        audit=audit,
        warnings=warnings,
        reads=reads,
    )


def reason_to_skip(pod: PodBody) -> str:
    """Why Roost leaves a pod alone, whatever its class: a word for metrics; "": it doesn't."""
    if pod.annotations:
        if pod.annotations.get(OPT_OUT_ANNOTATION) == "true":
            return "opt-out"
        if MIRROR_ANNOTATION in pod.annotations:
            return "mirror-pod"
    if pod.node_name:
        return "node-name"
    is_roosts = pod.labels.get(PART_OF_LABEL) == OWN_PART
    is_placeholder = pod.labels.get(OWN_COMPONENT_LABEL) == OWN_PLACEHOLDER
    if is_roosts and not is_placeholder:
        return "own-pod"
    return DAEMON_SET if pod.is_daemon else ""


def _skipped(pod_class: str, reason: str) -> Decision:
    return Decision(
        ReviewResult.SKIPPED, pod_class, reason, audit={"class": pod_class, "skipped": reason}
    )
