"""Give requests to pods without any: otherwise kube-scheduler never considers their nodes full.

Not where a pod that is admitted without requests could be refused with them, or could pre-empt
another's pod. No LimitRange refuses it for them: it gives requests to pods without any first, or
refuses these itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from roost_core.objects.quotas import NOT_BEST_EFFORT
from roost_core.objects.requests import EPHEMERAL_STORAGE, read_requests
from webhook.patch import RequestByDefault
from webhook.rules.contract import Case, Note, Reads, Rule, RuleResult
from webhook.rules.preemption import may_preempt

# Resources of quotas that may refuse pods with requests, and admit them without, as those of scope
# NotBestEffort do: a quota of CPU or memory refuses pods without.
STORAGE: Final = frozenset({EPHEMERAL_STORAGE, f"requests.{EPHEMERAL_STORAGE}"})
_UNKNOWN: Final = "none given: ResourceQuotas can't be read"
_REFUSED: Final = "none given: a ResourceQuota of the namespace could refuse the pod for them"
_PREEMPTS: Final = "none given: pods of lower priority could be deleted for them"


def request_by_default(case: Case) -> Iterator[RuleResult]:
    """Request `podClasses.<class>.resources` for each container."""
    why_none = _why_none(case)
    yield Note("requests", why_none) if why_none else RequestByDefault(case.pod_class.resources)


def requests_of(case: Case) -> tuple[tuple[str, int], ...]:
    """What a node must be large enough for: the pod's requests, or those that its class gives to
    pods without any.

    Without what a node may have and not list. Raises MalformedObjectError.
    """
    by_default: Mapping[str, object] = {} if _why_none(case) else case.pod_class.resources
    container = {"resources": {"requests": by_default}}
    requests = read_requests(case.pod.spec) or read_requests(
        {"containers": [container] * len(case.pod.containers)}
    )
    return tuple(request for request in requests if request[0] not in case.facts.claimable)


def _why_none(case: Case) -> str:
    """Why the pod gets no requests; "" if it does."""
    if (quotas := case.facts.quotas) is None:
        return _UNKNOWN
    limited = quotas.get(case.pod.namespace, frozenset())
    if NOT_BEST_EFFORT in limited or (
        EPHEMERAL_STORAGE in case.pod_class.resources and limited & STORAGE
    ):
        return _REFUSED
    # What a DaemonSet's pod may take the place of is for its author to say.
    return _PREEMPTS if not case.pod.is_daemon and may_preempt(case) else ""


RULE: Final = Rule(
    request_by_default,
    lambda _settings, pod_class: bool(pod_class.resources),
    Reads.QUOTAS | Reads.PRIORITIES,
)
