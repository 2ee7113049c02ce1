"""Decide on one pod: its class, whether it is placed at all, what the rules of its class say, and the patch of it.

The webhook answers reviews by it, and the simulator makes its pods by it.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from roost_core.placement.labels import HOME_TARGET_ANNOTATION
from roost_core.placement.pods import DAEMON_SET
from webhook.rules.bounds import MAX_OPERATIONS, MOST, Bound, exceeded
from webhook.rules.facts import HomePod
from webhook.rules.patch import Annotate, Change, patch_for, without_overflow
from webhook.rules.policies import Case, Degraded, LeftToCluster, Note, Reads

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from roost_core.placement.pods import Pod
    from webhook.rules.facts import Facts
    from webhook.rules.patch import Operation
    from webhook.rules.policies import Memory, Rule, Rulebook

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Result(StrEnum):
    """What came of a review."""

    PATCHED = "patched"
    # The pod carries all its rules already.
    UNCHANGED = "unchanged"
    # It has a class but is none of ours: opt-out, nodeName, DaemonSet …
    SKIPPED = "skipped"
    # It has no class.
    UNMATCHED = "unmatched"
    # Not the creation of a pod.
    IGNORED = "ignored"
    # The object isn't of a pod's shape.
    ODD = "odd"
    # It asks for more than one review may (webhook.rules.bounds).
    BEYOND_BOUNDS = "beyond-bounds"
    # No AdmissionReview: answered 4xx.
    MALFORMED = "malformed"
    # A fault of Roost's own.
    ERROR = "error"


class Decision(NamedTuple):
    """What one pod gets, and what is told of it."""

    result: Result
    # None: the pod has no class, or wasn't read that far.
    pod_class: str | None = None
    # Why it was skipped, or which bound it was beyond: a word.
    reason: str = ""
    # Why the gate gave way (no-holder, no-holder-fits, nodes-unknown, controllers-stale); "" when it didn't.
    degraded: str = ""
    # Why the pod was left to the cluster's scheduler (stale, never-held); "" when it wasn't.
    left_to_cluster: str = ""
    # JSON Patch.
    operations: Sequence[Operation] = ()
    # What the operations make true.
    changes: Sequence[Change] = ()
    # Annotations of the audit log, and sentences for whoever creates the pod.
    audit: Mapping[str, str] = _NOTHING
    warnings: Sequence[str] = ()
    # What the ledger is to remember, unless the review is a dry run; None: nothing.
    home: HomePod | None = None
    # With the same of these facts the same pod gets the same.
    reads: Reads = Reads.NOTHING


def decide(
    pod: Pod,
    rulebook: Rulebook,
    facts: Facts,
    memory: Memory,
    *,
    pod_key: str,
    now: float,
    asks: Callable[[Rule], bool] | None = None,
) -> Decision:
    """Decide on a pod that is about to be created. Nothing given is edited but what `memory` keeps for speed.

    pod_key: how facts and ledger know the pod. now: seconds of a clock that only grows. asks: only these rules are
    asked; None: all of its class. Raises OddPodError when a place that has to change isn't of a pod's shape.
    """
    pod_class = rulebook.classes.classify(pod.labels, pod.namespace, facts.namespaces)
    if pod_class is None:
        return Decision(Result.UNMATCHED)
    name, rules = pod_class.name, rulebook.rules[pod_class.name]
    reason = pod.reason_to_skip()
    # A DaemonSet's pod has its node, but it counts there only by what it requests.
    gets_requests_only = reason == DAEMON_SET and bool(pod_class.resources)
    if reason and not gets_requests_only:
        return _skipped(name, reason)
    bound = exceeded(pod, 0 if facts.nodes is None else len(facts.nodes))
    if bound is not None:
        return beyond(bound, name)
    if gets_requests_only:
        operations = patch_for(pod, [rules.requests])
        if not operations:
            return _skipped(name, DAEMON_SET)
        audit = {"class": name, "requests": DAEMON_SET}
        return Decision(Result.PATCHED, name, operations=operations, changes=[rules.requests], audit=audit)

    case = Case(pod, pod_key, rules, rulebook, facts, memory, now)
    changes: list[Change] = []
    audit = {"class": name, "policy-revision": rulebook.settings.revision}
    warnings: list[str] = []
    target = degraded = left_to_cluster = ""
    reads = Reads.NOTHING
    for rule in rules.rules:
        if asks is not None and not asks(rule):
            continue
        verdicts = list(rule.policy(case))
        if verdicts and rule.reads is not Reads.NOTHING:
            reads |= rule.reads
        for verdict in verdicts:
            if isinstance(verdict, Note):
                audit[verdict.topic] = verdict.text
                if verdict.is_warning:
                    warnings.append(f"Roost: {verdict.topic}: {verdict.text}")
            elif isinstance(verdict, Degraded):
                degraded = verdict.reason
            elif isinstance(verdict, LeftToCluster):
                left_to_cluster = verdict.reason
            else:
                changes.append(verdict)
                if isinstance(verdict, Annotate) and verdict.key == HOME_TARGET_ANNOTATION:
                    target = verdict.value
    fitting, left_out = without_overflow(pod, changes)
    if left_out:
        warnings.append(f"Roost: the pod's annotations leave no room for {', '.join(left_out)}")
    operations = patch_for(pod, fitting)
    if len(operations) > MAX_OPERATIONS:
        return beyond(Bound.OPERATIONS, name)
    return Decision(
        Result.PATCHED if operations else Result.UNCHANGED,
        name,
        degraded=degraded,
        left_to_cluster=left_to_cluster,
        operations=operations,
        changes=fitting,
        audit=audit,
        warnings=warnings,
        # What the facts show counts there: a repeated POST of a pod that is there will be refused.
        home=HomePod(name, target) if target and pod_key not in facts.homes.pods else None,
        reads=reads,
    )


def beyond(bound: Bound, pod_class: str | None = None) -> Decision:
    """The decision on a review that asks for too much: its pod is admitted as it came."""
    warning = f"Roost: pod admitted as it came: more than {MOST[bound]}"
    audit = {"beyond-bounds": bound.value}
    return Decision(Result.BEYOND_BOUNDS, pod_class, bound.value, audit=audit, warnings=[warning])


def _skipped(pod_class: str, reason: str) -> Decision:
    return Decision(Result.SKIPPED, pod_class, reason, audit={"class": pod_class, "skipped": reason})
